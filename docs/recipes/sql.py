"""Ask a SQLite database, and change nothing in it.

Holds against: statements that write, in any disguise (the file is opened read-only, and SQLite's authorizer allows
nothing but to select, read and call functions); ATTACH, PRAGMA, VACUUM INTO, transactions; several statements in one;
loading extensions; endless queries (a clock, and the run's signal, between steps); huge results, rows, values and
statements; text that is not UTF-8; a file that is not there, not a database, or locked.

Does not hold against: reading what is in the file, so give it a file that the model may know; temporary disk space
that SQLite takes for sorting until the time is up.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from thena_core import Context, Inject, tool

SECONDS, MAX_ROWS, MAX_CELL, MAX_SQL = 5.0, 200, 500, 10_000  # rows; characters of a value, of a statement
STEPS = 1_000  # of SQLite's machine, between two looks at the clock: far less than a millisecond
READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
FORBIDDEN = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,  # bytes of a value: no zeroblob(1e9)
    sqlite3.SQLITE_LIMIT_COLUMN: 50,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,  # matching takes time that grows with both lengths
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


class Refused(Exception):
    """Say to the model why there is no answer."""


@dataclass(frozen=True, slots=True)
class Database:
    """The database that the tool may read."""

    path: Path

    def rows(self, query: str, stopped: Callable[[], bool]) -> list[str]:
        """Return the column names and the rows of one SELECT, each as a JSON array.

        Args:
            query: One statement.
            stopped: Asked between steps; whether to give up.

        Raises:
            Refused: Where SQLite does not allow it, or it took too long.
        """
        until = time.monotonic() + SECONDS
        try:
            with closing(self._connect()) as connection:
                connection.set_progress_handler(lambda: stopped() or time.monotonic() > until, STEPS)
                with closing(connection.execute(query)) as cursor:
                    if cursor.description is None:
                        raise Refused("it asks for nothing; one SELECT that reads is allowed")
                    rows = [json.dumps([column[0] for column in cursor.description], ensure_ascii=False)]
                    for row in cursor:
                        if len(rows) > MAX_ROWS:
                            return [*rows, f"[only the first {MAX_ROWS} rows]"]
                        rows.append(json.dumps([_cell(value) for value in row], ensure_ascii=False))
                    return rows
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # ValueError: a lone surrogate
            late = f" after {SECONDS:g} seconds" if time.monotonic() > until else ""
            raise Refused(f"{error}{late}; one SELECT that reads is allowed") from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.resolve().as_uri()}?mode=ro", uri=True, timeout=1, isolation_level=None
        )
        try:
            connection.text_factory = _text
            for limit, value in LIMITS.items():
                connection.setlimit(limit, value)
            connection.set_authorizer(_authorize)
        except BaseException:
            connection.close()
            raise
        return connection


def _authorize(action: int, _first: str | None, second: str | None, *_where: str | None) -> int:
    is_call = action == sqlite3.SQLITE_FUNCTION
    allowed = action in READING or (is_call and (second or "").lower() not in FORBIDDEN)
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    if isinstance(value, str) and len(value) > MAX_CELL:
        return f"{value[:MAX_CELL]}… [{len(value):,} characters]"
    return value


@tool(effect="read")
def query(
    sql: Annotated[str, Field(max_length=MAX_SQL, description="one SELECT; tables are in sqlite_schema")],
    database: Annotated[Database, Inject],
    ctx: Context,
) -> str:
    """Asks the SQLite database with one SELECT. Answers with the column names and the rows."""
    return "\n".join(database.rows(sql, lambda: ctx.signal.aborted))
