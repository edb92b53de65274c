"""Aborting from inside a run: what a tool, hook or model does after it neither keeps the run going nor reaches the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal, scripted
from tests.limits.scenes import actor, starts
from thena_core import (
    Context,
    FatalToolError,
    HookError,
    RunAborted,
    Thena,
    ToolDefinition,
    loop,
    workflow,
)
from thena_core.run import current
from thena_tools import ParallelTool


@pytest.mark.behaviour("X01", "X03")
@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
@pytest.mark.parametrize("way", ["run", "start"])
async def test_abort_from_inside(way: str, nested: bool) -> None:
    """`ctx.abort` in a tool stops the top run from any depth, and the caller goes on undisturbed."""

    async def stops(ctx: Context) -> str:
        ctx.abort("enough")
        await asyncio.Event().wait()
        return "late"

    tool = ToolDefinition("stops", "d", None, stops)
    model = scripted([starts(actor([tool], ask("stops"))) if nested else tool], ask("nested" if nested else "stops"))
    async with model.app as app:
        with pytest.raises(RunAborted, match="enough"):
            await (app.run("go") if way == "run" else app.start("go").result())
        await assert_undisturbed()


async def assert_undisturbed() -> None:
    """Check that no cancellation was left behind in the task that called the run."""
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)
    assert current.get(None) is None


def goes_on(ctx: Context) -> str:
    return "done"


def checks(ctx: Context) -> str:
    ctx.signal.raise_if_aborted()
    return "never"


def fatal(ctx: Context) -> str:
    raise FatalToolError("broken")


def fails(ctx: Context) -> str:
    raise ValueError("broken")


async def swallows(ctx: Context) -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "I go on"
    return "never"


async def swallows_twice(ctx: Context) -> str:
    await swallows(ctx)
    await asyncio.sleep(0)
    return "I go on"


@pytest.mark.behaviour("X01")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "unseen"])
@pytest.mark.parametrize("place", ["one", "all", "nested", "before_tool", "app.call"])
@pytest.mark.parametrize(
    "then", [goes_on, checks, fatal, fails, swallows, swallows_twice], ids=lambda then: then.__name__
)
async def test_an_abort_without_an_await_after_it(then: Callable[..., Any], place: str, observed: bool) -> None:
    """What a tool or hook does after `ctx.abort` neither keeps the run going nor leaks a cancellation to the caller."""
    after = asyncio.iscoroutinefunction(then)

    async def stops(ctx: Context) -> str:
        ctx.abort("enough")
        said = then(ctx)
        return await said if after else said

    class Hooks:
        async def before_tool(self, call: Any, ctx: Context) -> None:
            if place == "before_tool":
                await stops(ctx)

    async def quick() -> str:
        return "quick"

    tools = [ToolDefinition("stops", "d", None, stops), ToolDefinition("quick", "d", None, quick)]
    asked: dict[str, Any] = {
        "one": ask("stops"),
        "all": [ask("stops"), ask("quick", None, "c2")],
        "nested": ask("nested"),
        "before_tool": ask("quick"),
    }
    inner = actor(tools, *[ask("stops")] * 3)
    model = scripted(
        [*tools, starts(inner)], *[asked.get(place, ask("stops"))] * 3, hooks=Hooks, tool_calls="all", observed=observed
    )
    async with model.app as app:
        own = {fatal: FatalToolError, fails: HookError if place == "before_tool" else RunAborted}
        with pytest.raises((RunAborted, own.get(then, RunAborted))):
            await (app.call("stops") if place == "app.call" else app.run("go"))
        await assert_undisturbed()
    assert len(model.provider.requests) == (place != "app.call")
    assert len(inner.provider.requests) == (place == "nested")


@pytest.mark.behaviour("X01")
@pytest.mark.parametrize("way", ["one", "all", "packed", "nested"])
async def test_a_tool_that_swallows_the_cancellation(way: str) -> None:
    """After a tool that swallowed the abort, no further tool runs and no model is asked."""
    begun, ran = asyncio.Event(), []

    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "I go on"
        return "never"

    async def later() -> str:
        ran.append("later")
        return "later"

    tools = [ToolDefinition("stubborn", "d", None, stubborn), ToolDefinition("later", "d", None, later), ParallelTool]
    asked: dict[str, Any] = {
        "one": ask("stubborn"),
        "all": [ask("stubborn"), ask("stubborn", None, "c2")],
        "packed": ask("parallel", {"calls": [{"name": "stubborn"}] * 2}),
        "nested": ask("nested"),
    }
    inner = actor(tools, ask("stubborn"), ask("later"))
    model = scripted([*tools, starts(inner)], asked[way], ask("later"), tool_calls="all")
    async with model.app as app:
        handle = app.start("go")
        await begun.wait()
        handle.abort("enough")
        with pytest.raises(RunAborted) as caught:
            await handle.result()
    assert not ran
    assert len(model.provider.requests) == 1
    assert len(inner.provider.requests) == (way == "nested")
    assert_legal(caught.value.run.history)


@pytest.mark.behaviour("X01")
async def test_a_run_in_a_task_that_was_cancelled_before() -> None:
    """A run that tidies up after a cancellation (`except CancelledError:`) can still be aborted, and told from it."""
    said: list[Any] = []

    async def stops(ctx: Context) -> str:
        ctx.abort("enough")
        await asyncio.sleep(0)
        return "never"

    async def gives_up() -> str:
        raise asyncio.CancelledError

    tools = [ToolDefinition("stops", "d", None, stops), ToolDefinition("gives_up", "d", None, gives_up)]

    async def body() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            said.append(await outcome())

    async def outcome() -> Any:
        gave_up = await scripted(tools, ask("gives_up")).run()
        aborted = await scripted(tools, ask("stops")).run()
        return gave_up.observation, aborted.error

    task = asyncio.create_task(body())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    [(observation, error)] = said
    assert observation == "gives_up cancelled itself"
    assert isinstance(error, RunAborted)


@pytest.mark.behaviour("X01", "X03")
@pytest.mark.parametrize("looped", [True, False], ids=["loop", "steps"])
async def test_no_further_step_begins(looped: bool) -> None:
    """Where a tool swallows the abort, the next agent of the workflow is not asked any more."""

    async def stubborn(ctx: Context) -> str:
        ctx.abort("enough")
        return await swallows(ctx)

    first, second = actor([ToolDefinition("stubborn", "d", None, stubborn)], ask("stubborn")), actor([])
    steps = [loop([first, second])] if looped else [first, second]
    async with Thena(workflow(steps=steps)(type("Flow", (), {"__module__": __name__}))) as app:
        with pytest.raises(RunAborted, match="enough"):
            await app.run("go")
        await assert_undisturbed()
    assert (len(first.provider.requests), len(second.provider.requests)) == (1, 0)


@pytest.mark.behaviour("X01", "O01")
async def test_the_record_says_why() -> None:
    """Every step that an abort ended says so in the words of who aborted, and not by an exception's name."""

    async def quits(ctx: Context) -> str:
        ctx.abort("the client left")
        await asyncio.Event().wait()
        return "never"

    ended = await scripted([ToolDefinition("quits", "d", None, quits)], ask("quits")).run()
    assert isinstance(ended.error, RunAborted)
    failed = {event.kind: event.error for event in ended.events if event.phase == "end" and event.status == "error"}
    assert failed == dict.fromkeys(("tool", "agent", "loop", "workflow"), "aborted: the client left")
