"""`ctx.signal`: what a sync or long tool looks at to know that it should stop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from tests.limits.scenes import actor, starts
from thena_core import Budget, Context, FatalToolError, RunAborted, Thena, ToolDefinition

PATIENCE = 10
"""Seconds after which a test that waits for another thread gives up."""


class Looking:
    """A sync tool that works until it is told to stop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.begun, self.told = asyncio.Event(), asyncio.Event()
        self.reasons: list[str | None] = []
        self.pause = threading.Event()

    def execute(self, ctx: Context) -> str:
        assert not ctx.signal.aborted
        assert ctx.signal.reason is None
        ctx.signal.raise_if_aborted()
        self.loop.call_soon_threadsafe(self.begun.set)
        for _ in range(PATIENCE * 1000):
            if ctx.signal.aborted:
                break
            self.pause.wait(0.001)
        self.reasons.append(ctx.signal.reason)
        try:
            ctx.signal.raise_if_aborted()
        except RunAborted as error:
            self.reasons.append(error.reason)
        self.loop.call_soon_threadsafe(self.told.set)
        return "stopped"


@pytest.mark.behaviour("X02", "X01", "X04")
@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
@pytest.mark.parametrize("how", ["abort", "cancel", "deadline", "close", "fatal sibling"])
async def test_a_sync_tool_is_told(how: str, nested: bool) -> None:
    """However the run is stopped, a sync tool of it at any depth is told, with a reason."""
    looking = Looking()

    async def breaks() -> str:
        await looking.begun.wait()
        raise FatalToolError("broken")

    tools = [ToolDefinition("looking", "d", None, looking.execute), ToolDefinition("breaks", "d", None, breaks)]
    asked: Any = [ask("looking"), ask("breaks", None, "c2")] if how == "fatal sibling" else ask("looking")
    if nested:
        inner = actor(tools, asked, tool_calls="all")
        model = scripted([starts(inner)], ask("nested"))
    else:
        model = scripted(tools, asked, tool_calls="all")
    await model.app.__aenter__()
    handle = model.app.start("go", budget=Budget(max_duration=0.1) if how == "deadline" else None)
    await looking.begun.wait()
    if how == "abort":
        handle.abort("the client left")
    elif how == "cancel":
        handle._task.cancel()
    elif how == "close":
        await model.app.close()
    await asyncio.wait([handle._task])
    async with asyncio.timeout(PATIENCE):
        await looking.told.wait()
    reason, raised = looking.reasons
    assert reason
    assert reason == raised
    if how == "abort":
        assert reason == "the client left"
    elif how == "close":
        assert reason == "the app is closing"
    await model.app.close()


@pytest.mark.behaviour("X02", "F11")
@pytest.mark.parametrize("how", ["cancelled", "time limit", "run ends"])
async def test_a_sync_tool_of_app_call_or_a_run_that_went_on(how: str) -> None:
    """A sync tool that was given up is told at the latest when the run ends, also that of `app.call`."""
    looking = Looking()
    tool = ToolDefinition("looking", "d", None, looking.execute, timeout=None if how == "cancelled" else 0.05)
    made = scripted([tool], ask("looking"))
    async with Thena(tools=[tool]) if how != "run ends" else made.app as app:
        if how == "run ends":
            assert (await app.run("go")).output == "done"
        elif how == "time limit":
            assert "timed out" in (await app.call("looking")).content
        else:
            task = asyncio.create_task(app.call("looking"))
            await looking.begun.wait()
            task.cancel()
            await asyncio.wait([task])
        async with asyncio.timeout(PATIENCE):
            await looking.told.wait()
    assert looking.reasons[0]


@pytest.mark.behaviour("X02")
async def test_wait() -> None:
    """A task of the tool's own can wait for the signal, also where it comes late to it."""
    said: list[str] = []
    waiting: list[asyncio.Task[None]] = []

    async def watch(ctx: Context) -> None:
        said.append(await ctx.signal.wait())

    async def slow(ctx: Context) -> str:
        waiting.append(asyncio.create_task(watch(ctx)))
        await asyncio.sleep(0)
        ctx.abort("enough")
        waiting.append(asyncio.create_task(watch(ctx)))
        await asyncio.Event().wait()
        return "late"

    ended = await scripted([ToolDefinition("slow", "d", None, slow)], ask("slow")).run()
    assert isinstance(ended.error, RunAborted)
    await asyncio.gather(*waiting)
    assert said == ["enough", "enough"]


@pytest.mark.behaviour("X02")
async def test_an_async_tool_is_simply_cancelled() -> None:
    """What an async tool awaits is cancelled; in its clean-up the signal says why."""
    said: list[str | None] = []
    begun = asyncio.Event()

    async def slow(ctx: Context) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            said.append(ctx.signal.reason)
        return "late"

    async with scripted([ToolDefinition("slow", "d", None, slow)], ask("slow")).app as app:
        handle = app.start("go")
        await begun.wait()
        handle.abort("the client left")
        with pytest.raises(RunAborted):
            await handle.result()
    assert said == ["the client left"]


@pytest.mark.behaviour("X03", "X01")
async def test_abort_from_a_thread() -> None:
    """`ctx.abort` in a sync tool stops the run at once, not when the tool gets round to returning."""
    release = threading.Event()

    def stops(ctx: Context) -> str:
        ctx.abort("enough")
        release.wait(PATIENCE)
        return "late"

    model = scripted([ToolDefinition("stops", "d", None, stops)], ask("stops"))
    loop = asyncio.get_running_loop()
    begun = loop.time()
    ended = await model.run()
    release.set()
    assert isinstance(ended.error, RunAborted)
    assert loop.time() - begun < PATIENCE / 2


@pytest.mark.behaviour("X03", "W05")
@pytest.mark.parametrize("place", ["tool", "nested", "thread", "hook"])
async def test_stop(place: str) -> None:
    """`ctx.stop` lets the step end, with its result, and no further one begin, from any depth."""

    async def stops(ctx: Context) -> str:
        ctx.stop()
        await asyncio.sleep(0)
        return "a result"

    def stops_too(ctx: Context) -> str:
        ctx.stop()
        return "a result"

    class Hooks:
        def after_tool(self, result: Any, ctx: Context) -> None:
            if place == "hook":
                ctx.stop()

    async def quick() -> str:
        return "a result"

    tools = [ToolDefinition("stops", "d", None, {"thread": stops_too, "hook": quick}.get(place, stops))]
    inner = actor(tools, *[ask("stops")] * 3)
    model = scripted([*tools, starts(inner)], *[ask("nested" if place == "nested" else "stops")] * 3, hooks=Hooks)
    ended = await model.run()
    assert ended.result is not None, ended.error
    assert ended.result.stopped_by == "stop"
    assert len(model.provider.requests) == 1
    assert len(inner.provider.requests) == (place == "nested")
    assert ended.observations if place == "nested" else ended.observation == "a result"
