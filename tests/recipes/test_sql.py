"""The recipe for SQL: reading works, and nothing else does, however it is written."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from dependency_injector import containers, providers

from tests.recipes.recipe import recipe
from thena_core import Prompt, RunAborted, Thena, ToolOutput, ToolRequest, agent
from thena_core.testing import FakeProvider

sql = recipe("sql")
COUNTER = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"


def endless(select: str) -> str:
    """Put a table `c` without end before a SELECT."""
    return f"{COUNTER} {select}"


class Asked:
    """The tool over one database."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def app(self, *more: Any) -> Thena:
        class Services(containers.DeclarativeContainer):
            database = providers.Singleton(sql.Database, path=self.path)

        return Thena(*more, tools=() if more else [sql.query], container=Services())

    async def __call__(self, query: str) -> ToolOutput:
        async with self.app() as app:
            return await app.call("query", {"sql": query})

    async def rows(self, query: str) -> list[Any]:
        output = await self(query)
        assert not output.is_error, output.content
        return [json.loads(line) for line in output.content.splitlines()[1:]]


@pytest_asyncio.fixture
async def ask(tmp_path: Path) -> AsyncIterator[Asked]:
    """Make a database, and see that its file is the same afterwards."""
    path = tmp_path / "a b#c?d%.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE t(a, b); CREATE INDEX i ON t(a); CREATE VIEW v AS SELECT a FROM t;"
            "INSERT INTO t VALUES (1, 'x'), (2, NULL);"
        )
    before, files = hashlib.sha256(path.read_bytes()).digest(), sorted(tmp_path.iterdir())
    yield Asked(path)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert sorted(tmp_path.iterdir()) == files


async def test_good_use(ask: Asked) -> None:
    """Columns and rows come as JSON, from tables, views, joins, functions and the schema."""
    assert (await ask("SELECT a, b FROM t ORDER BY a")).content == '["a", "b"]\n[1, "x"]\n[2, null]'
    assert await ask.rows("SELECT count(*), max(a) FROM v JOIN t USING (a);") == [[2, 2]]
    assert await ask.rows(endless("SELECT sum(n) FROM (SELECT n FROM c LIMIT 10)")) == [[55]]
    assert await ask.rows("SELECT name FROM sqlite_schema ORDER BY 1 -- DROP TABLE t") == [["i"], ["t"], ["v"]]
    assert await ask.rows("SELECT 'a;b', 1 WHERE 0") == []
    assert await ask.rows("VALUES (1), (2)") == [[1], [2]]


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO t VALUES (3, 3)",
        "UPDATE t SET a = 3",
        "DELETE FROM t",
        "DELETE FROM t RETURNING a",
        "REPLACE INTO t VALUES (1, 1)",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT 1, 2 FROM x",
        "CREATE TABLE u(a)",
        "CREATE TEMP TABLE u AS SELECT * FROM t",
        "CREATE TEMP TRIGGER z AFTER INSERT ON t BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE u USING fts5(a)",
        "DROP TABLE t",
        "ALTER TABLE t RENAME TO u",
        "REINDEX",
        "ANALYZE",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "ATTACH 'other.db' AS other",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "PRAGMA user_version",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = WAL",
        "PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_table_info('t')",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "SAVEPOINT s",
        "EXPLAIN DELETE FROM t",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "SELECT 1;\n-- a comment\nDELETE FROM t",
        "/* a comment */ DELETE FROM t",
        ";DELETE FROM t",
        "SELECT load_extension('x.so')",
        "SELECT LOAD_EXTENSION('x.so', 'entry')",
        "SELECT \"load_extension\"('x.so')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT writefile('x', 'y')",
        "SELECT readfile('/etc/hostname')",
        "SELECT edit('x')",
        "UPDATE sqlite_schema SET sql = ''",
        "",
        "-- nothing",
        "selec",
        "SELECT * FROM nothing",
        "SELECT 1\0; DROP TABLE t",
        "SELECT ?",
    ],
)
async def test_everything_else(ask: Asked, query: str) -> None:
    """Writing, stacked, attaching, configuring and wrong statements are observations, and the file stays as it is."""
    output = await ask(query)
    assert output.is_error, output.content
    assert output.content.startswith("Refused: ")
    assert str(ask.path.parent) not in output.content


@pytest.mark.parametrize(
    "query",
    [
        endless("SELECT count(*) FROM c"),
        endless("SELECT max(n) FROM c WHERE n < 0"),
        endless("SELECT n FROM c WHERE n < 0"),
        endless("SELECT a.n FROM c a, c b, c d ORDER BY 1"),
    ],
    ids=["counting", "no row", "rows that never come", "a join of endless tables"],
)
async def test_endless_queries(ask: Asked, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query without end is stopped by the clock."""
    monkeypatch.setattr(sql, "SECONDS", 0.2)
    assert (await ask(query)).content == "Refused: interrupted after 0.2 seconds; one SELECT that reads is allowed"


async def test_stopped_with_its_run(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query whose run is aborted gives its thread back, long before its own time is up."""
    monkeypatch.setattr(sql, "SECONDS", 60.0)
    started, ended = threading.Event(), threading.Event()
    really = sql.Database.rows

    def rows(self: Any, query: str, stopped: Any) -> Any:
        started.set()
        try:
            return really(self, query, stopped)
        finally:
            ended.set()

    monkeypatch.setattr(sql.Database, "rows", rows)

    @agent(
        provider=FakeProvider([ToolRequest("c1", "query", {"sql": endless("SELECT count(*) FROM c")}), "done"]),
        tools=[sql.query],
        prompt=Prompt("Count."),
    )
    class Counter: ...

    async with ask.app(Counter) as app:
        handle = app.start("go")
        while not started.is_set():
            await asyncio.sleep(0)
        handle.abort("enough")
        with pytest.raises(RunAborted):
            await handle.result()
    assert ended.wait(10)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT zeroblob(1000000000)",
        "SELECT randomblob(1000000000)",
        "SELECT replace(hex(zeroblob(400000)), '0', 'xxxxxxxxxx')",
        endless("SELECT group_concat(hex(zeroblob(100000))) FROM (SELECT n FROM c LIMIT 100000)"),
        "SELECT 'x' LIKE '" + "%a" * 60 + "'",
        "SELECT " + ", ".join(["1"] * 60),
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        " UNION ALL ".join(["SELECT 1"] * 60),
    ],
    ids=["zeroblob", "randomblob", "replace", "group_concat", "LIKE", "columns", "depth", "UNION"],
)
async def test_too_big(ask: Asked, query: str) -> None:
    """A value, a pattern, a row or a statement without measure is refused by SQLite's own limits."""
    output = await ask(query)
    assert output.is_error
    assert len(output.content) < 500


async def test_long_results(ask: Asked) -> None:
    """Rows and values are cut, and the observation says so; a statement that is too long is not looked at."""
    many = (await ask(endless("SELECT n FROM c"))).content.splitlines()
    assert (len(many), many[-1]) == (sql.MAX_ROWS + 2, "[only the first 200 rows]")
    [[text, blob]] = await ask.rows("SELECT hex(zeroblob(1000)), zeroblob(1000)")
    assert text == "0" * 500 + "… [2,000 characters]"
    assert blob == "<1,000 bytes>"
    assert (await ask("SELECT 1 --" + "x" * 20_000)).content.startswith("invalid arguments")


async def test_odd_values(ask: Asked) -> None:
    """Wrong UTF-8, NUL, infinity and line breaks in values stay in their row."""
    output = await ask("SELECT CAST(x'ff41' AS TEXT), char(0), 9e999, 'a' || char(10) || 'b'")
    assert output.content.splitlines()[1] == '["\N{REPLACEMENT CHARACTER}A", "\\u0000", Infinity, "a\\nb"]'


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Missing, wrong and empty files are observations; none is made."""
    assert "unable to open database file" in (await Asked(tmp_path / "none.db")("SELECT 1")).content
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_text("hello " * 200)
    assert "not a database" in (await Asked(tmp_path / "text.db")("SELECT * FROM t")).content


async def test_locked(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that another one has locked is an observation after a second."""
    with closing(sqlite3.connect(ask.path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        output = await ask("SELECT * FROM t")
        writer.execute("ROLLBACK")
    assert output.content == "Refused: database is locked; one SELECT that reads is allowed"


async def test_a_hostile_schema(tmp_path: Path) -> None:
    """A view of the file that calls what has effects is not trusted."""
    path = tmp_path / "bad.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW v AS SELECT load_extension('x.so')")
    assert (await Asked(path)("SELECT * FROM v")).is_error
