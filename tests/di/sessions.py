"""Run-scoped services of several kinds, and tools that use them: for tests of what keeps them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any

from tests.di.apps import Log
from thena_core import (
    FatalToolError,
    Inject,
    RunScoped,
    tool,
)


class Session:
    """A service of a run."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.user = f"user {number}"


class Basket:
    """A second service of a run, which needs the first."""

    def __init__(self, session: Session) -> None:
        self.session = session


class Held(contextlib.AbstractContextManager["Held"]):
    """A context manager."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def __exit__(self, *_: object) -> None:
        self.log.append("held closed")


def sessions(log: Log) -> Any:
    """Provide a numbered session, and write down when it is opened, closed, and with what."""

    @contextlib.asynccontextmanager
    async def open_session() -> AsyncIterator[Session]:
        number = sum(line.startswith("open") for line in log) + 1
        log.append(f"open {number}")
        await asyncio.sleep(0)
        try:
            yield Session(number)
        except BaseException as error:
            log.append(f"saw {type(error).__name__}")
            raise
        finally:
            log.append(f"close {number}")

    return RunScoped(open_session)


@tool
async def number(session: Annotated[Session, Inject]) -> str:
    """Gives the session's number."""
    return str(session.number)


@tool
def number_sync(session: Annotated[Session, Inject]) -> str:
    """Gives the session's number from a thread."""
    return f"{session.number} {threading.current_thread() is threading.main_thread()}"


@tool
async def ruin(session: Annotated[Session, Inject]) -> str:
    """Ends the run."""
    raise FatalToolError("ruined")


def waiting(asked: asyncio.Event) -> Any:
    """Make a tool that tells when it runs, and never answers."""

    @tool
    async def forever(session: Annotated[Session, Inject]) -> str:
        """Never answers."""
        asked.set()
        await asyncio.Event().wait()
        return ""

    return forever


def observations(result: Any) -> list[str]:
    return [message.content for message in result.history if message.role == "tool"]
