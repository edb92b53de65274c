"""The recipe for a session per run: changes are kept with a run that ends well, and undone with any other."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest
from dependency_injector import containers, providers

from tests.recipes.recipe import recipe
from thena_core import (
    Budget,
    FatalToolError,
    Inject,
    Prompt,
    ResourceCloseError,
    RunAborted,
    RunScoped,
    Thena,
    ToolRequest,
    agent,
    tool,
)
from thena_core.testing import FakeProvider
from thena_tools import ParallelTool

run_session = recipe("run_session")
Session = run_session.Session
MOVE = ToolRequest("c1", "transfer", {"source": "ana", "target": "bo", "cents": 30})
SLOW = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
started = threading.Event()


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Path]:
    """Make a bank, and see that nobody holds it afterwards."""
    path = tmp_path / "bank.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE account(name UNIQUE, cents CHECK(cents >= 0)); INSERT INTO account VALUES ('ana', 100), ('bo', 0);"
        )
    started.clear()
    yield path
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        connection.execute("BEGIN EXCLUSIVE")


def balance(path: Path) -> dict[str, int]:
    """Read the accounts as another one sees them."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, cents FROM account"))


@tool
async def fails() -> str:
    """Fails."""
    raise ValueError("wrong")


@tool
async def fatal() -> str:
    """Ends the run."""
    raise FatalToolError("no more")


@tool
async def slow(session: Annotated[Session, Inject]) -> str:
    """Writes, and then computes for ever."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE account SET cents = 1")
        started.set()
        connection.execute(SLOW).fetchall()

    await session.run(work)
    return "never"


@tool
async def ends_the_transaction(session: Annotated[Session, Inject]) -> str:
    """Does what a full disk does."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    await session.run(work)
    return "never"


def app_of(path: Path, *turns: Any) -> Thena:
    """Make an app whose model plays a script."""

    class Services(containers.DeclarativeContainer):
        session = RunScoped(run_session.open_session, providers.Object(path))

    tools = [run_session.transfer, fails, fatal, slow, ends_the_transaction, ParallelTool]

    @agent(provider=FakeProvider(turns), tools=tools, prompt=Prompt("Move."))
    class Teller: ...

    return Thena(Teller, container=Services())


async def test_a_run_that_ends_well(bank: Path) -> None:
    """Its changes are kept, together, when it ends and not before."""
    seen: list[dict[str, int]] = []

    async def look(call: Any, call_next: Any) -> Any:
        output = await call_next(call)
        seen.append(balance(bank))
        return output

    app = app_of(bank, MOVE, MOVE, "done")
    app.use(tool=look)
    async with app:
        await app.run("go")
    assert seen == [{"ana": 100, "bo": 0}] * 2
    assert balance(bank) == {"ana": 40, "bo": 60}


async def test_a_failed_call_changes_nothing(bank: Path) -> None:
    """What a failing call did is undone, and what the run did before and after it is kept."""
    too_much = ToolRequest("c2", "transfer", {"source": "ana", "target": "bo", "cents": 500})
    nobody = ToolRequest("c3", "transfer", {"source": "ana", "target": "eve", "cents": 5})
    async with app_of(bank, MOVE, too_much, nobody, ToolRequest("c4", "fails", {}), MOVE, "done") as app:
        result = await app.run("go")
    texts = [message.content for message in result.history if message.role == "tool"]
    assert texts[1:3] == [
        "IntegrityError: CHECK constraint failed: cents >= 0",
        "LookupError: there is no account 'eve'",
    ]
    assert balance(bank) == {"ana": 40, "bo": 60}


@pytest.mark.parametrize("arguments", [{"cents": 0}, {"cents": -5}, {"cents": "x"}, {}], ids=str)
async def test_amounts_that_are_none(bank: Path, arguments: dict[str, Any]) -> None:
    """They are refused before anything is opened."""
    async with app_of(bank, "done") as app:
        output = await app.call("transfer", {"source": "bo", "target": "ana", **arguments})
    assert output.content.startswith("invalid arguments")


async def test_values_that_look_like_sql(bank: Path) -> None:
    """They are values."""
    name = "x'; DROP TABLE account; --"
    async with app_of(bank, "done") as app:
        output = await app.call("transfer", {"source": name, "target": "bo", "cents": 1})
    assert output.is_error
    assert balance(bank) == {"ana": 100, "bo": 0}


async def test_a_run_that_fails(bank: Path) -> None:
    """All of its changes are undone."""
    async with app_of(bank, MOVE, ToolRequest("c2", "fatal", {})) as app:
        with pytest.raises(FatalToolError):
            await app.run("go")
    assert balance(bank) == {"ana": 100, "bo": 0}


@pytest.mark.parametrize("how", ["abort", "cancel"])
async def test_stopped_in_the_middle_of_a_statement(bank: Path, how: str) -> None:
    """A statement that runs when its run is stopped is interrupted, and undone with the rest."""
    async with app_of(bank, MOVE, ToolRequest("c2", "slow", {}), "done") as app:
        if how == "abort":
            handle = app.start("go")
            await asyncio.to_thread(started.wait, 10)
            handle.abort("enough")
            with pytest.raises(RunAborted):
                await handle.result()
        else:
            task = asyncio.create_task(app.run("go"))
            await asyncio.to_thread(started.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert balance(bank) == {"ana": 100, "bo": 0}


async def test_stopped_by_its_budget(bank: Path) -> None:
    """A run that its budget stops ends well, with what there is; one whose time is up in a statement does not hang."""
    async with app_of(bank, MOVE, MOVE, "done") as app:
        result = await app.run("go", budget=Budget(max_tool_calls=1))
    assert (result.stopped_by, balance(bank)) == ("budget", {"ana": 70, "bo": 30})
    async with app_of(bank, ToolRequest("c2", "slow", {}), "done") as app:
        result = await app.run("go", budget=Budget(max_duration=0.5))
    assert (result.stopped_by, balance(bank)) == ("budget", {"ana": 70, "bo": 30})


async def test_calls_beside_each_other(bank: Path) -> None:
    """Packed calls use the one session in turn, each whole or not at all."""
    call = {"name": "transfer", "arguments": {"source": "ana", "target": "bo", "cents": 30}}
    async with app_of(bank, ToolRequest("c1", "parallel", {"calls": [call] * 5}), "done") as app:
        result = await app.run("go")
    text = result.history[2].content
    assert (text.count("→ ok"), text.count("→ error")) == (3, 2)
    assert balance(bank) == {"ana": 10, "bo": 90}


async def test_a_transaction_that_ends_itself(bank: Path) -> None:
    """Where the database has undone everything, the model reads why, and the run says that nothing was kept."""
    async with app_of(bank, MOVE, ToolRequest("c2", "ends_the_transaction", {}), "done") as app:
        with pytest.raises(ResourceCloseError, match="no transaction is active") as caught:
            await app.run("go")
    texts = [message.content for message in caught.value.run.history if message.role == "tool"]
    assert texts[1] == "OperationalError: disk I/O error"
    assert balance(bank) == {"ana": 100, "bo": 0}


async def test_a_database_that_is_busy(bank: Path) -> None:
    """Another one's lock is an observation after a while; a database that is not there, too."""
    session = Session(bank, patience=0.05)
    with closing(sqlite3.connect(bank, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            await session.run(lambda connection: connection.execute("UPDATE account SET cents = 1"))
        other.execute("ROLLBACK")
    session.end(keep=False)
    with pytest.raises(RuntimeError, match="has ended"):
        await session.run(lambda connection: connection.execute("SELECT 1"))
    async with app_of(bank.parent / "no" / "bank.db", MOVE, "done") as app:
        result = await app.run("go")
    assert "unable to open database file" in result.history[2].content


async def test_each_run_has_its_own(bank: Path) -> None:
    """A run begins with what the one before it kept, in a session of its own."""
    async with app_of(bank, MOVE, "done", MOVE, "done") as app:
        await app.run("go")
        await app.run("go")
    assert balance(bank) == {"ana": 40, "bo": 60}
