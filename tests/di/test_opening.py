"""Openings that fail, that nobody waits for any more, and that the loop's end interrupts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest

from tests.di.apps import Log, asking, container
from tests.di.sessions import Basket, Session, number, observations, sessions, waiting
from thena_core import (
    FatalToolError,
    Inject,
    RunScoped,
    Thena,
    ToolResult,
    tool,
)
from thena_core.di.keeper import RunServices


@pytest.mark.behaviour("D06")
async def test_a_failure_to_open_is_not_kept() -> None:
    """The call that met the failure reads of it, and the next one of the same run tries again."""
    attempts: list[int] = []

    async def open_session() -> Session:
        attempts.append(1)
        await asyncio.sleep(0)
        if len(attempts) == 1:
            raise ConnectionError("refused")
        return Session(len(attempts))

    app = Thena(asking("number", "number", "number", tools=[number]), container=container(s=RunScoped(open_session)))
    async with app:
        result = await app.run("go")
    first, second, third = observations(result)
    assert "ConnectionError: refused" in first
    assert (second, third) == ("2", "2")


async def test_what_was_opened_for_a_failed_one_is_closed() -> None:
    """Where a service fails to open, what was opened for it stays the run's and is closed at its end."""
    log = Log()

    def open_basket(session: Session) -> Basket:
        raise OSError("disk full")

    session = sessions(log)

    @tool
    async def buy(basket: Annotated[Basket, Inject]) -> str:
        """Buys."""
        return ""

    services = container(session=session, basket=RunScoped(open_basket, session))
    async with Thena(asking("buy", "number", tools=[buy, number]), container=services) as app:
        result = await app.run("go")
    assert observations(result)[1] == "1"
    assert log == ["open 1", "close 1"]


@pytest.mark.behaviour("D06")
async def test_one_who_gives_up_does_not_take_it_from_the_others() -> None:
    """A call that times out while a service opens leaves the opening to those who still wait."""
    may_open, gave_up = asyncio.Event(), asyncio.Event()

    async def open_session() -> Session:
        await may_open.wait()
        return Session(1)

    @tool(timeout=0.01)
    async def hasty(session: Annotated[Session, Inject]) -> str:
        """Waits for a moment only."""
        return "never"

    @tool
    async def trigger() -> str:
        """Lets the opening go on, after the hasty one gave up."""
        await gave_up.wait()
        may_open.set()
        return "go"

    async def after_tool(self: Any, result: ToolResult) -> None:
        if result.call.name == "hasty":
            gave_up.set()

    app = Thena(
        asking(["hasty", "number", "trigger"], tools=[hasty, number, trigger], after_tool=after_tool),
        container=container(session=RunScoped(open_session)),
    )
    async with app:
        result = await app.run("go")
    assert observations(result)[1:] == ["1", "go"]
    assert "never" not in observations(result)[0]


@pytest.mark.behaviour("D04")
async def test_what_is_still_opening_is_given_up() -> None:
    """A run that ends while several services are still being opened waits for none of them."""
    started = asyncio.Event()

    async def open_never() -> Session:
        started.set()
        await asyncio.Event().wait()
        return Session()

    async def open_never_either() -> AsyncIterator[Basket]:
        await asyncio.Event().wait()
        yield Basket(Session())

    @tool
    async def buy(basket: Annotated[Basket, Inject]) -> str:
        """Never gets its basket."""
        return ""

    @tool
    async def end() -> str:
        """Ends the run."""
        await started.wait()
        raise FatalToolError("enough")

    services = container(session=RunScoped(open_never), basket=RunScoped(open_never_either))
    async with Thena(asking(["number", "buy", "end"], tools=[number, buy, end]), container=services) as app:
        with pytest.raises(FatalToolError, match=r"^enough$"):
            await asyncio.wait_for(app.run("go"), 5)


async def test_a_loop_that_stops_closes_everything() -> None:
    """Where the loop cancels every task, the run's and the keeper's, the services are closed nevertheless."""
    log = Log()

    left: list[asyncio.Task[Any]] = []

    async def abandon() -> None:
        asked = asyncio.Event()
        app = Thena(tools=[waiting(asked)], container=container(session=sessions(log)))
        await app.__aenter__()
        left.append(asyncio.create_task(app.call("forever")))
        await asked.wait()

    await asyncio.to_thread(asyncio.run, abandon())
    assert log == ["open 1", "saw CancelledError", "close 1"]


async def test_a_loop_that_stops_does_not_wait_for_a_run_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that was opened where nothing is left to close it is closed when the loop stops, and nothing hangs."""
    monkeypatch.setattr("thena_core.di.keeper.PATIENCE", 0.01)
    log = Log()

    async def abandon() -> None:
        await RunServices().get(sessions(log))

    await asyncio.wait_for(asyncio.to_thread(asyncio.run, abandon()), 5)
    assert log == ["open 1", "close 1"]
