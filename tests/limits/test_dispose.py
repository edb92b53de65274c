"""`ctx.on_dispose`: called at the end of the run, last first, whatever became of the run and of the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from dependency_injector import containers

from tests.hooks.scripted import ask, scripted
from tests.limits.scenes import actor, starts
from thena_core import (
    Budget,
    Context,
    FatalToolError,
    Inject,
    ResourceCloseError,
    RunAborted,
    RunScoped,
    Thena,
    ToolDefinition,
)


class Opened:
    """A service of the run."""

    closed = False


@pytest.mark.behaviour("X05")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "unseen"])
@pytest.mark.parametrize("way", ["ends", "fails", "fatal", "abort", "budget", "throw", "app.call"])
async def test_last_first_in_any_way(way: str, observed: bool) -> None:
    """Sync and async ones are called last first, once, after the run's last step, however it ended."""
    said: list[str] = []

    async def late() -> None:
        await asyncio.sleep(0)
        said.append("async")

    async def works(ctx: Context) -> str:
        ctx.on_dispose(lambda: said.append("sync"))
        ctx.on_dispose(late)
        said.append("worked")
        if way == "fails":
            raise ValueError("no")
        if way == "fatal":
            raise FatalToolError("broken")
        if way == "abort":
            ctx.abort()
        if way in ("abort", "budget", "throw"):
            await asyncio.Event().wait()
        return "ok"

    tools = [ToolDefinition("works", "d", None, works)]
    budget = (
        Budget(max_duration=0.02, mode="throw" if way == "throw" else "stop") if way in ("budget", "throw") else None
    )
    if way == "app.call":
        async with Thena(tools=tools) as app:
            await app.call("works")
    else:
        await scripted(tools, ask("works"), observed=observed).run(budget=budget)
    assert said == ["worked", "async", "sync"]


@pytest.mark.behaviour("X05")
@pytest.mark.parametrize("ends", [True, False], ids=["ends", "fails"])
async def test_one_that_raises_does_not_stop_the_others(ends: bool) -> None:
    """The others are called, too; the failure is raised, or is a note on what the run ended with."""
    said: list[str] = []

    async def breaks() -> None:
        raise OSError("disk full")

    async def works(ctx: Context) -> str:
        ctx.on_dispose(lambda: said.append("first"))
        ctx.on_dispose(breaks)
        ctx.on_dispose(lambda: said.append("last"))
        if not ends:
            raise FatalToolError("broken")
        return "ok"

    ended = await scripted([ToolDefinition("works", "d", None, works)], ask("works")).run()
    assert said == ["last", "first"]
    if ends:
        assert isinstance(ended.error, ResourceCloseError)
        assert "disk full" in str(ended.error)
        assert ended.error.run.output == "done"
    else:
        assert isinstance(ended.error, FatalToolError)
        assert any("disk full" in note for note in ended.error.__notes__)


@pytest.mark.behaviour("X05", "W07")
async def test_a_nested_run_has_its_own() -> None:
    """What is registered in a nested run is disposed of at its end, before the outer run goes on."""
    said: list[str] = []

    async def works(ctx: Context) -> str:
        ctx.on_dispose(lambda: said.append(f"disposed in {ctx.run_id}"))
        said.append(f"worked in {ctx.run_id}")
        return "ok"

    tool = ToolDefinition("works", "d", None, works)
    model = scripted([tool, starts(actor([tool], ask("works")))], ask("works"), ask("nested"))
    await model.run(run_id="r")
    assert said == ["worked in r", "worked in r.1", "disposed in r.1", "disposed in r"]


@pytest.mark.behaviour("X05", "D04")
async def test_before_the_services_of_the_run() -> None:
    """What is disposed of may still use the run's services; one registered while disposing is called as well."""
    said: list[str] = []

    async def opened() -> AsyncIterator[Opened]:
        session = Opened()
        yield session
        session.closed = True

    class Services(containers.DeclarativeContainer):
        session = RunScoped(opened)

    async def works(ctx: Context, session: Annotated[Opened, Inject]) -> str:
        def dispose() -> None:
            said.append(f"closed={session.closed}")
            ctx.on_dispose(lambda: said.append("one more"))

        ctx.on_dispose(dispose)
        return "ok"

    await scripted([ToolDefinition("works", "d", None, works)], ask("works"), container=Services()).run()
    assert said == ["closed=False", "one more"]


@pytest.mark.behaviour("X05", "X04", "D05")
@pytest.mark.parametrize("how", ["abort", "cancel", "both", "cancel twice"])
async def test_stopped_while_disposing(how: str) -> None:
    """A run that is stopped while it disposes still calls the rest, and closes its services."""
    said: list[str] = []
    begun, disposing = asyncio.Event(), asyncio.Event()

    async def opened() -> AsyncIterator[Opened]:
        yield Opened()
        said.append("service closed")

    class Services(containers.DeclarativeContainer):
        session = RunScoped(opened)

    async def slow() -> None:
        disposing.set()
        for _ in range(5):
            await asyncio.sleep(0)

    async def works(ctx: Context, session: Annotated[Opened, Inject]) -> str:
        ctx.on_dispose(lambda: said.append("first"))
        ctx.on_dispose(slow)
        begun.set()
        if how in ("both", "cancel twice"):
            await asyncio.Event().wait()
        return "ok"

    tools = [ToolDefinition("works", "d", None, works)]
    async with scripted(tools, ask("works"), container=Services()).app as app:
        handle = app.start("go")
        await begun.wait()
        if how in ("both", "cancel twice"):
            handle._task.cancel()
        await disposing.wait()
        if how == "abort":
            handle.abort("enough")
        else:
            handle._task.cancel()
        error: Any = (await asyncio.gather(handle.result(), return_exceptions=True))[0]
        assert isinstance(error, RunAborted if how == "abort" else asyncio.CancelledError)
    assert said == ["first", "service closed"]
