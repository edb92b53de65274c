"""Cancelling one call by its id while the run goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal, scripted
from tests.limits.scenes import actor, starts
from thena_core import Budget, Context, Event, RunAborted, ToolDefinition
from thena_tools import ParallelTool


class Slow:
    """A tool that waits until it is cancelled or let go, and does what a test says when it is cancelled."""

    def __init__(self, name: str = "slow", then: str = "raises") -> None:
        self.begun: list[asyncio.Event] = [asyncio.Event() for _ in range(3)]
        self.go_on, self.was_cancelled = asyncio.Event(), asyncio.Event()
        self.running = self.cancelled = 0
        self.then = then
        self.definition = ToolDefinition(name, "d", None, self.execute)

    async def execute(self) -> str:
        self.begun[self.running].set()
        self.running += 1
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            self.was_cancelled.set()
            if self.then == "swallows":
                return "went on"
            if self.then == "fails":
                raise ValueError("clean-up failed") from None
            if self.then == "fails in a group":
                raise ExceptionGroup("several", [ValueError("clean-up failed")]) from None
            raise
        return "let go"


WAYS = {
    "one": ("c1", ask("slow")),
    "all": ("c2", [ask("other"), ask("slow", None, "c2"), ask("slow", None, "c3")]),
    "packed": ("c1.1", ask("parallel", {"calls": [{"name": "other"}, {"name": "slow"}, {"name": "slow"}]})),
    "whole batch": ("c1", ask("parallel", {"calls": [{"name": "slow"}, {"name": "slow"}]})),
    "nested": ("c1", ask("nested")),
}


async def other() -> str:
    return "other"


@pytest.mark.behaviour("X07")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "unseen"])
@pytest.mark.parametrize("way", WAYS)
async def test_the_run_goes_on(way: str, observed: bool) -> None:
    """The one call is cancelled, the model reads so in its place, and everything else of the run happens."""
    call_id, asked = WAYS[way]
    slow = Slow()
    inner = actor([slow.definition], ask("slow", None, "n1"))
    tools = [slow.definition, ToolDefinition("other", "d", None, other), ParallelTool, starts(inner)]
    model = scripted(tools, asked, ask("other", None, "last"), tool_calls="all", observed=observed)
    both = way in ("all", "packed", "whole batch")
    async with model.app as app:
        handle = app.start("go")
        await slow.begun[1 if both else 0].wait()
        assert handle.cancel_call(call_id)
        if way in ("all", "packed"):
            await slow.was_cancelled.wait()
            slow.go_on.set()
        result = await handle.result()
        assert not handle.cancel_call(call_id)
    assert_legal(result.history)
    assert (result.output, result.stopped_by) == ("done", "answered")
    assert slow.cancelled == (2 if way == "whole batch" else 1)
    first = [message for message in result.history if message.role == "tool"]
    texts = "\n".join(message.content for message in first)
    named = {"whole batch": "parallel", "nested": "nested"}.get(way, "slow")
    assert texts.count(f"{named} was cancelled") == 1
    assert texts.count("let go") == (way in ("all", "packed"))
    assert first[-1].content == "other"
    if observed:
        outcomes = [event.outcome for event in model.events if event.phase == "end" and event.name == named]
        assert outcomes.count("cancelled") == 1


@pytest.mark.behaviour("X07")
@pytest.mark.parametrize("by", ["call", "step"])
async def test_a_call_of_a_nested_run(by: str) -> None:
    """A call that a nested run's model asked for is cancelled alone: that run goes on, and so does the one around it."""
    slow = Slow()
    inner = actor([slow.definition], ask("slow", None, "n1" if by == "call" else "c1"), then="the inner end")
    model = scripted([slow.definition, starts(inner)], ask("nested"))
    async with model.app as app:
        handle = app.start("go")
        await slow.begun[0].wait()
        step = next(event.id for event in model.events if event.name == "slow")
        assert handle.cancel_call("n1" if by == "call" else step)
        result = await handle.result()
    assert (result.output, result.history[2].content) == ("done", "the inner end")
    assert inner.provider.requests[1].messages[2].content == "slow was cancelled"


@pytest.mark.behaviour("X07", "F08")
@pytest.mark.parametrize("limited", [False, True], ids=["no limit", "time limit"])
@pytest.mark.parametrize("then", ["raises", "swallows", "fails", "fails in a group"])
@pytest.mark.parametrize("way", ["one", "all"])
async def test_whatever_the_tool_makes_of_it(way: str, then: str, limited: bool) -> None:
    """A tool that swallows its cancellation or fails in its clean-up does not spoil the run, which can still be aborted."""
    slow, second = Slow(then=then), Slow("second")
    definition = ToolDefinition("slow", "d", None, slow.execute, timeout=60 if limited else None)
    asked: Any = ask("slow") if way == "one" else [ask("slow"), ask("other", None, "c2")]
    tools = [definition, second.definition, ToolDefinition("other", "d", None, other)]
    model = scripted(tools, asked, ask("second", None, "s1"), tool_calls="all")
    async with model.app as app:
        handle = app.start("go")
        await slow.begun[0].wait()
        assert handle.cancel_call("c1")
        await second.begun[0].wait()
        assert handle._task.cancelling() == 0
        handle.abort("enough")
        with pytest.raises(RunAborted, match="enough") as caught:
            await handle.result()
    read = caught.value.run.history[2].content
    assert read == "went on" if then == "swallows" else "slow was cancelled" in read


@pytest.mark.behaviour("X07", "B06")
async def test_a_deadline_after_a_cancelled_call() -> None:
    """A call that was cancelled, and swallowed it, leaves the deadline working."""
    slow, second = Slow(then="swallows"), Slow("second")
    model = scripted([slow.definition, second.definition], ask("slow"), ask("second", None, "s1"))
    async with model.app as app:
        handle = app.start("go", budget=Budget(max_duration=0.05))
        await slow.begun[0].wait()
        handle.cancel_call("c1")
        assert (await handle.result()).stopped_by == "budget"


@pytest.mark.behaviour("X07")
@pytest.mark.parametrize("waits", [False, True], ids=["no await left", "an await left"])
async def test_from_inside_the_call(waits: bool) -> None:
    """A listener that cancels the call which reports to it (its progress, say) cancels that call and no later one."""
    handles: list[Any] = []

    async def reports(ctx: Context) -> str:
        ctx.progress(1)
        if waits:
            await asyncio.Event().wait()
        return "reported"

    async def later() -> str:
        await asyncio.sleep(0)
        return "later"

    def listens(event: Event) -> None:
        if event.phase == "progress":
            handles[0].cancel_call("c1")

    tools = [ToolDefinition("reports", "d", None, reports), ToolDefinition("later", "d", None, later)]
    model = scripted(tools, ask("reports"), ask("later", None, "c2"))
    async with model.app as app:
        handles.append(app.start("go", log=listens))
        result = await handles[0].result()
    assert_legal(result.history)
    assert result.history[2].content in (("reports was cancelled",) if waits else ("reported", "reports was cancelled"))
    assert result.history[4].content == "later"


@pytest.mark.behaviour("X07")
@pytest.mark.parametrize("call_id", ["c9", "", "c1.0", "slow"])
async def test_an_unknown_id(call_id: str) -> None:
    """An id that no running call has is answered with `False`, before, during and after the run."""
    slow = Slow()
    async with scripted([slow.definition], ask("slow")).app as app:
        handle = app.start("go")
        assert not handle.cancel_call("c1")
        await slow.begun[0].wait()
        assert not handle.cancel_call(call_id)
        slow.go_on.set()
        assert (await handle.result()).history[2].content == "let go"
        assert not handle.cancel_call("c1")


@pytest.mark.behaviour("X07")
async def test_repeated_ids() -> None:
    """Some services give several calls of a turn one id: while any of them runs, it can be cancelled."""
    slow = Slow()
    tools = [slow.definition, ToolDefinition("other", "d", None, other)]
    model = scripted(tools, [ask("slow"), ask("other")], tool_calls="all")
    other_ended = asyncio.Event()

    def listens(event: Event) -> None:
        if event.phase == "end" and event.name == "other":
            other_ended.set()

    async with model.app as app:
        handle = app.start("go", log=listens)
        await slow.begun[0].wait()
        await other_ended.wait()
        assert handle.cancel_call("c1")
        result = await handle.result()
    assert [message.content for message in result.history if message.role == "tool"] == ["slow was cancelled", "other"]


@pytest.mark.behaviour("X07", "X01")
async def test_an_abort_and_a_cancelled_call_at_once() -> None:
    """A call that is cancelled while the run is aborted does not keep the run going."""
    slow = Slow()
    model = scripted([slow.definition], ask("slow"))
    async with model.app as app:
        for first in ("abort", "cancel"):
            slow.begun, slow.running = [asyncio.Event() for _ in range(3)], 0
            handle = app.start("go")
            model.provider.requests.clear()
            await slow.begun[0].wait()
            if first == "cancel":
                handle.cancel_call("c1")
            handle.abort("enough")
            if first == "abort":
                handle.cancel_call("c1")
            with pytest.raises(RunAborted) as caught:
                await handle.result()
            assert_legal(caught.value.run.history)
            assert len(model.provider.requests) == 1
