"""Closing an app: runs in flight are aborted and waited for, then plugins are shut down, whoever asks and however often."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.hooks.scripted import Scripted, ask, scripted
from thena_core import Context, RunAborted, Thena, ThenaError, ToolDefinition, hookimpl


class Stage:
    """An app with a slow tool and a plugin, and what happened in it, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.begun, self.cleaning, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.starting, self.may_start = asyncio.Event(), asyncio.Event()
        self.stopping, self.may_stop = asyncio.Event(), asyncio.Event()
        for event in (self.may_start, self.may_stop):
            event.set()

        async def slow() -> str:
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cleaning.set()
                await self.go_on.wait()
                self.said.append("cleaned up")
            return "late"

        stage = self

        class Plugin:
            @hookimpl
            async def startup(self) -> None:
                stage.said.append("started")
                stage.starting.set()
                await stage.may_start.wait()

            @hookimpl
            async def shutdown(self) -> None:
                stage.stopping.set()
                await stage.may_stop.wait()
                stage.said.append("shut down")

        tools = [ToolDefinition("slow", "d", None, slow)]
        self.model: Scripted = scripted(tools, ask("slow"), plugins=[Plugin()])
        self.app: Thena = self.model.app


@pytest.mark.behaviour("X06")
async def test_runs_first_then_plugins() -> None:
    """Every run in flight ends, with its clean-up, before a plugin is shut down; new runs are refused."""
    stage = Stage()
    handle = stage.app.start("go")
    await stage.begun.wait()
    closing = asyncio.create_task(stage.app.close())
    await stage.cleaning.wait()
    assert stage.said == ["started"]
    with pytest.raises(ThenaError, match="closed"):
        await stage.app.run("again")
    stage.go_on.set()
    await closing
    assert stage.said[-1] == "shut down"
    assert stage.said.count("shut down") == 1
    with pytest.raises(RunAborted):
        await handle.result()
    with pytest.raises(ThenaError, match="closed"):
        await stage.app.run("too late")
    with pytest.raises(ThenaError, match="closed"):
        await stage.app.call("slow")
    with pytest.raises(ThenaError, match="closed"):
        await stage.app.start("too late").result()


@pytest.mark.behaviour("X06")
async def test_closing_twice() -> None:
    """Two who close at once both wait until everything is closed, which happens once."""
    stage = Stage()
    stage.may_stop.clear()
    await stage.app.__aenter__()
    first = asyncio.create_task(stage.app.close())
    await stage.stopping.wait()
    second = asyncio.create_task(stage.app.close())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    stage.may_stop.set()
    await asyncio.gather(first, second)
    await stage.app.close()
    assert stage.said == ["started", "shut down"]


@pytest.mark.behaviour("X06")
async def test_a_close_that_is_cancelled() -> None:
    """Who gives up closing does not leave the app half open: everything is closed in the end."""
    stage = Stage()
    handle = stage.app.start("go")
    await stage.begun.wait()
    closing = asyncio.create_task(stage.app.close())
    await stage.cleaning.wait()
    closing.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    stage.go_on.set()
    stage.may_stop.set()
    await asyncio.wait([closing])
    assert closing.cancelled()
    await stage.app.close()
    assert stage.said == ["started", "cleaned up", "shut down"]
    with pytest.raises(RunAborted):
        await handle.result()


@pytest.mark.behaviour("X06")
async def test_close_while_the_first_run_builds() -> None:
    """An app that is closed while it is being built closes what the build opened."""
    stage = Stage()
    stage.may_start.clear()
    handle = stage.app.start("go")
    await stage.starting.wait()
    closing = asyncio.create_task(stage.app.close())
    for _ in range(5):
        await asyncio.sleep(0)
    stage.may_start.set()
    await closing
    with pytest.raises(ThenaError, match=r"closed|closing"):
        await handle.result()
    assert stage.said == ["started", "shut down"]


@pytest.mark.behaviour("X06")
async def test_close_before_anything() -> None:
    """An app that was never built is closed for good as well."""
    stage = Stage()
    await stage.app.close()
    with pytest.raises(ThenaError, match="closed"):
        await stage.app.run("go")
    assert stage.said in ([], ["started", "shut down"])


@pytest.mark.behaviour("X06")
@pytest.mark.parametrize("place", ["tool", "hook", "task of a tool", "dispose", "app.call"])
async def test_close_from_inside_a_run(place: str) -> None:
    """A run that closes its own app would wait for itself: it is told so, and the app stays open."""
    said: list[BaseException] = []
    apps: list[Thena] = []

    async def close() -> None:
        try:
            await apps[0].close()
        except ThenaError as error:
            said.append(error)

    async def closes(ctx: Context) -> str:
        if place in ("tool", "app.call"):
            await close()
        elif place == "task of a tool":
            await asyncio.create_task(close())
        elif place == "dispose":
            ctx.on_dispose(close)
        return "ok"

    class Hooks:
        async def before_tool(self) -> None:
            if place == "hook":
                await close()

    model = scripted([ToolDefinition("closes", "d", None, closes)], ask("closes"), hooks=Hooks)
    apps.append(model.app)
    async with model.app as app:
        if place == "app.call":
            assert (await app.call("closes")).content == "ok"
        else:
            assert (await app.run("go")).output == "done"
        [error] = said
        assert "from inside a run of the app" in str(error)
        assert (await app.run("go")).output == "done"


@pytest.mark.behaviour("X06", "C04")
@pytest.mark.parametrize("how", ["run", "call"])
async def test_closing_one_app_leaves_the_others(how: str) -> None:
    """A tool of one app may use, and close, another app; the runs of the first go on."""
    other = scripted([ToolDefinition("quick", "d", None, quick)], ask("quick"))

    async def uses() -> str:
        async with other.app as app:
            return (await app.run("go")).output if how == "run" else (await app.call("quick")).content

    ended = await scripted([ToolDefinition("uses", "d", None, uses)], ask("uses")).run()
    assert ended.observation == ("done" if how == "run" else "quick")


async def quick() -> str:
    return "quick"


@pytest.mark.behaviour("X06")
@pytest.mark.parametrize("count", [1, 20])
async def test_many_runs_at_once(count: int) -> None:
    """All runs in flight are aborted together, those of `run`, `start` and `app.call` alike."""
    begun: list[int] = []
    cleaned: list[int] = []
    all_begun = asyncio.Event()

    async def slow() -> str:
        begun.append(1)
        if len(begun) == 3 * count:
            all_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(1)
        return "late"

    model = scripted([ToolDefinition("slow", "d", None, slow)], ask("slow"))
    model.provider._turns = model.provider._turns[:1]
    await model.app.__aenter__()
    kinds: list[Callable[[], Any]] = [
        lambda: asyncio.create_task(model.app.run("go")),
        lambda: model.app.start("go")._task,
        lambda: asyncio.create_task(model.app.call("slow")),
    ]
    tasks = [make() for make in kinds for _ in range(count)]
    await all_begun.wait()
    await model.app.close()
    assert len(cleaned) == 3 * count
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(error, RunAborted)
