"""`max_duration`: a deadline that cancels what is in flight, visible to tools, and met also by what does not listen."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal, scripted
from tests.limits.scenes import PLACES, actor, scene, starts
from tests.limits.test_cancellation import Rewording
from thena_core import (
    Budget,
    BudgetExceededError,
    Context,
    Prompt,
    RunResult,
    Thena,
    ToolDefinition,
    WorkflowRuntime,
    agent,
    tool,
)
from thena_core.messages import ChatTurn

SHORT = 0.1
"""Seconds."""

LONG = 60.0


@pytest.mark.behaviour("B06", "X01", "X04")
@pytest.mark.parametrize("mode", ["stop", "throw"])
@pytest.mark.parametrize("place", PLACES)
async def test_it_cancels_what_is_in_flight(place: str, mode: Any) -> None:
    """Wherever the run waits when time is up, that is cancelled and cleaned up, and the run stops or throws."""
    said: list[BudgetExceededError] = []
    made = scene(place)
    ended = await made.model.run(budget=Budget(max_duration=SHORT, mode=mode, on_exceeded=said.append))
    assert made.opened == made.closed > 0
    [error] = said
    assert (error.limit, error.allowed) == ("max_duration", SHORT)
    if mode == "stop":
        assert ended.result is not None, ended.error
        assert ended.result.stopped_by == "budget"
    else:
        assert ended.error is error
    assert_legal(ended.history)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.behaviour("B06", "X05")
async def test_teardown_still_happens() -> None:
    """What a tool gave to `on_dispose` is called after the deadline, and has all the time that it needs."""
    said: list[str] = []

    async def tidy() -> None:
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(SHORT, done.set)
        await done.wait()
        said.append("tidied")

    async def slow(ctx: Context) -> str:
        ctx.on_dispose(tidy)
        await asyncio.Event().wait()
        return "late"

    ended = await scripted([ToolDefinition("slow", "d", None, slow)], ask("slow")).run(
        budget=Budget(max_duration=SHORT)
    )
    assert said == ["tidied"]
    assert ended.result is not None


@pytest.mark.behaviour("B06", "B02")
async def test_the_output_so_far_is_returned() -> None:
    """After the deadline the model's last text is the output, and the interrupted call has an answer."""

    async def slow() -> str:
        await asyncio.Event().wait()
        return "late"

    model = scripted([ToolDefinition("slow", "d", None, slow)], ChatTurn("half of it", [ask("slow")]))
    ended = await model.run(budget=Budget(max_duration=SHORT))
    assert ended.result is not None, ended.error
    assert (ended.result.output, ended.result.stopped_by) == ("half of it", "budget")
    assert ended.observation.startswith("interrupted")
    assert ended.node("slow").outcome == "cancelled"
    assert len(model.provider.requests) == 1


@pytest.mark.behaviour("B06", "C01", "B03")
@pytest.mark.parametrize(
    ("own", "shorter"),
    [
        (None, False),
        (Budget(max_tool_calls=9), False),
        (Budget(max_duration=LONG * 2), False),
        (Budget(max_duration=LONG / 2), True),
    ],
    ids=["none", "no time limit", "longer", "shorter"],
)
async def test_ctx_deadline(own: Budget | None, shorter: bool) -> None:
    """`ctx.deadline` is on the loop's clock; in a nested run it is the nearest one, the parent's included."""
    found: list[float | None] = []

    async def looks(ctx: Context) -> str:
        found.append(ctx.deadline)
        return "seen"

    looking = ToolDefinition("looks", "d", None, looks)
    model = scripted([looking, starts(actor([looking], ask("looks")), budget=own)], ask("looks"), ask("nested"))
    before = asyncio.get_running_loop().time()
    await model.run(budget=Budget(max_duration=LONG))
    after = asyncio.get_running_loop().time()
    outer, nested = found
    assert outer is not None
    assert nested is not None
    assert before + LONG <= outer <= after + LONG
    if shorter:
        assert before + LONG / 2 <= nested <= after + LONG / 2
    else:
        assert nested == outer


@pytest.mark.behaviour("B06", "C01")
async def test_no_deadline() -> None:
    """Without a time limit there is no deadline."""
    found: list[float | None] = []

    async def looks(ctx: Context) -> str:
        found.append(ctx.deadline)
        return "seen"

    await scripted([ToolDefinition("looks", "d", None, looks)], ask("looks")).run(budget=Budget(max_tool_calls=3))
    assert found == [None]


@pytest.mark.behaviour("B06", "B03", "X03")
@pytest.mark.parametrize("cut_by", ["outer", "inner"])
async def test_a_nested_run_is_cut_by_the_nearer_deadline(cut_by: str) -> None:
    """The nested run's own deadline gives its tool a result; the outer one ends both."""
    results: list[RunResult] = []

    async def slow() -> str:
        await asyncio.Event().wait()
        return "late"

    nested = actor([ToolDefinition("slow", "d", None, slow)], ask("slow"))

    async def outer(runtime: WorkflowRuntime) -> str:
        own = Budget(max_duration=SHORT if cut_by == "inner" else LONG)
        results.append(await runtime.run(nested, message="go", budget=own))
        return "went on"

    model = scripted([ToolDefinition("outer", "d", None, outer)], ask("outer"))
    ended = await model.run(budget=Budget(max_duration=LONG if cut_by == "inner" else SHORT))
    assert ended.result is not None, ended.error
    if cut_by == "inner":
        assert results[0].stopped_by == "budget"
        assert (ended.result.stopped_by, ended.observation) == ("answered", "went on")
    else:
        assert not results
        assert ended.result.stopped_by == "budget"
    assert len(model.provider.requests) == (2 if cut_by == "inner" else 1)


@pytest.mark.behaviour("B06", "B03")
async def test_both_deadlines_at_once() -> None:
    """A nested run with the same limit as the outer one ends with it, and no cancellation is left over."""

    async def slow() -> str:
        await asyncio.Event().wait()
        return "late"

    nested = starts(actor([ToolDefinition("slow", "d", None, slow)], ask("slow")), budget=Budget(max_duration=SHORT))
    ended = await scripted([nested], *[ask("nested")] * 3).run(budget=Budget(max_duration=SHORT))
    assert ended.result is not None, ended.error
    assert ended.result.stopped_by == "budget"


@pytest.mark.behaviour("B06", "B02")
@pytest.mark.parametrize("mode", ["stop", "throw"])
@pytest.mark.parametrize("way", ["one", "all", "nested"])
async def test_a_tool_that_swallows_the_deadline(way: str, mode: Any) -> None:
    """A tool that goes on after the deadline's cancellation gets its result in, and no model is asked any more."""

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "I go on"
        return "never"

    tools: list[Any] = [ToolDefinition("stubborn", "d", None, stubborn)]
    inner = actor(tools, *[ask("stubborn")] * 3)
    asked: dict[str, Any] = {
        "one": ask("stubborn"),
        "all": [ask("stubborn"), ask("stubborn", None, "c2")],
        "nested": ask("nested"),
    }
    model = scripted([*tools, starts(inner)], *[asked[way]] * 3, tool_calls="all")
    ended = await model.run(budget=Budget(max_duration=SHORT, mode=mode))
    assert len(model.provider.requests) == 1
    assert len(inner.provider.requests) == (way == "nested")
    assert_legal(ended.history)
    if mode == "throw":
        assert isinstance(ended.error, BudgetExceededError)
    else:
        assert ended.result is not None, ended.error
        assert ended.result.stopped_by == "budget"


@pytest.mark.behaviour("B06")
@pytest.mark.parametrize("seconds", [0, 0.01])
async def test_a_run_that_never_gives_way(seconds: float) -> None:
    """Where nothing is awaited, so that no timer can fire, no model call is made after the deadline."""

    @tool(blocking=False)
    def busy() -> str:
        """Keeps the event loop busy."""
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        return "busy"

    model = scripted([busy], *[ask("busy")] * 5)
    ended = await model.run(budget=Budget(max_duration=seconds))
    assert ended.result is not None, ended.error
    assert ended.result.stopped_by == "budget"
    assert len(model.provider.requests) == (1 if seconds else 0)


@pytest.mark.behaviour("B06", "H09")
async def test_a_provider_that_rewords_the_cancellation() -> None:
    """A model client that raises something else when it is cancelled does not turn the deadline into its own failure."""
    asked: list[Exception] = []

    class Hooks:
        def on_error(self, error: Exception) -> str:
            asked.append(error)
            return "sorry"

    made = agent(provider=Rewording(), prompt=Prompt("p"))(Hooks)
    async with Thena(made) as app:
        result = await app.run("go", budget=Budget(max_duration=SHORT))
    assert (result.stopped_by, asked) == ("budget", [])


@pytest.mark.behaviour("B06")
@pytest.mark.parametrize("mode", ["stop", "throw"])
async def test_app_call(mode: Any) -> None:
    """`app.call` has a deadline, too: an observation that says so, or the error."""
    closed: list[str] = []

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append("closed")
        return "late"

    async with Thena(tools=[ToolDefinition("slow", "d", None, slow)]) as app:
        if mode == "throw":
            with pytest.raises(BudgetExceededError):
                await app.call("slow", budget=Budget(max_duration=SHORT, mode=mode))
        else:
            said = await app.call("slow", budget=Budget(max_duration=SHORT))
            assert said.is_error
            assert "max_duration is used up" in said.content
    assert closed == ["closed"]


@pytest.mark.behaviour("B06")
async def test_a_run_that_ends_in_time() -> None:
    """A deadline that is not reached changes nothing, and its timer does not hit the caller afterwards."""
    ended = await scripted([]).run(budget=Budget(max_duration=SHORT))
    assert ended.result is not None
    assert ended.result.stopped_by == "answered"
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(SHORT * 2, later.set)
    await later.wait()
