"""One database session per run: its changes are kept when the run ends well, and undone when it does not.

Holds against: half a run (an error, an abort or a cancellation undoes all of it); half a call (what a call did before
it failed is undone, and the run goes on); calls beside each other (one after the other); a call that is cancelled while
its statement runs (the statement is stopped before the session ends); values that look like SQL (they are
parameters); a failing commit (the run raises it).

Does not hold against: a run that ends well and did the wrong thing; one stopped by its budget ends well, with what
there is. SQLite has one writer: from its first change to its end a run makes other writers wait, nested ones too.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field

from thena_core import Inject, tool

T = TypeVar("T")
STEPS = 1_000  # of SQLite's machine, between two looks at whether the run has ended: far less than a millisecond


class Session:
    """One connection in one transaction, for one run."""

    def __init__(self, path: Path, patience: float = 5.0) -> None:
        # other threads use it too, one at a time
        self._connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
        self._turn = threading.Lock()
        self._ended = False
        # not `interrupt()`, which would miss a call that is between two of its statements
        self._connection.set_progress_handler(lambda: self._ended, STEPS)
        self._connection.execute("BEGIN")

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run what one call does in a thread; where it raises, all that it did is undone."""
        return await asyncio.to_thread(self._run, work)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._turn:
            if self._ended:
                raise RuntimeError("the run's session has ended")
            self._connection.execute("SAVEPOINT one_call")
            try:
                return work(self._connection)
            except BaseException:
                if self._connection.in_transaction:  # a full disk, say, ends it without us
                    self._connection.execute("ROLLBACK TO one_call")
                raise
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("RELEASE one_call")

    def end(self, *, keep: bool) -> None:
        """Keep or undo what the run did, and close; what a cancelled call still does is stopped first."""
        self._ended = True
        with self._turn:
            self._connection.set_progress_handler(None, 0)
            try:
                self._connection.execute("COMMIT" if keep else "ROLLBACK")
            finally:
                self._connection.close()


@asynccontextmanager
async def open_session(path: Path) -> AsyncGenerator[Session]:
    """Open a session for `RunScoped(open_session, path)`: as a context manager it sees how the run ended."""
    session = await asyncio.to_thread(Session, path)
    try:
        yield session
    except BaseException:
        await asyncio.to_thread(session.end, keep=False)
        raise
    await asyncio.to_thread(session.end, keep=True)


@tool(effect="write")
async def transfer(
    source: str, target: str, cents: Annotated[int, Field(gt=0)], session: Annotated[Session, Inject]
) -> str:
    """Moves money from one account to another."""

    def move(connection: sqlite3.Connection) -> None:
        for account, change in ((source, -cents), (target, cents)):
            done = connection.execute("UPDATE account SET cents = cents + ? WHERE name = ?", (change, account))
            if done.rowcount != 1:
                raise LookupError(f"there is no account {account!r}")

    await session.run(move)
    return f"moved {cents} cents from {source} to {target}"
