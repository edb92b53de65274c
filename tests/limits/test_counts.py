"""Counts of a budget: taken before a call runs, in every run above, and never over the limit."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal, scripted
from tests.limits.scenes import actor, starts
from thena_core import (
    Budget,
    BudgetExceededError,
    Thena,
    Toolbox,
    ToolDefinition,
    ToolOutput,
)
from thena_core.messages import ChatTurn
from thena_tools import ParallelTool


class Counted:
    """A tool that notes each time it runs, after giving way to the others."""

    def __init__(self, name: str = "search", turns: int = 2) -> None:
        self.ran = 0
        self.turns = turns
        self.definition = ToolDefinition(name, "d", None, self.execute)

    async def execute(self) -> str:
        self.ran += 1
        for _ in range(self.turns):
            await asyncio.sleep(0)
        return "found"


WAYS = ["one", "all", "packed", "packed in a batch", "nested", "nested in a batch", "toolbox"]


def asking(way: str, tool: Counted) -> tuple[list[Any], list[Any]]:
    """Return tools and turns that ask for far more calls than any limit here allows."""

    async def by_hand(toolbox: Toolbox) -> str:
        for _ in range(10):
            await toolbox["search"]({})
        return "ended"

    many = [ask("search", None, f"c{n}") for n in range(10)]
    packed = {"calls": [{"name": "search"}] * 10}
    inner = actor([tool.definition], *[many] * 3, tool_calls="all")
    turns: dict[str, list[Any]] = {
        "one": [ask("search")] * 9,
        "all": [many, many],
        "packed": [ask("parallel", packed)] * 2,
        "packed in a batch": [[ask("parallel", packed, f"c{n}") for n in range(4)]] * 2,
        "nested": [ask("nested")] * 3,
        "nested in a batch": [[ask("nested", None, f"c{n}") for n in range(5)]] * 2,
        "toolbox": [[ask("by_hand", None, f"c{n}") for n in range(3)]] * 2,
    }
    tools = [tool.definition, ParallelTool, starts(inner), ToolDefinition("by_hand", "d", None, by_hand)]
    return tools, turns[way]


@pytest.mark.behaviour("B04", "B03")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "unseen"])
@pytest.mark.parametrize("limit", [0, 1, 2, 7])
@pytest.mark.parametrize("way", WAYS)
async def test_no_way_makes_more_calls_than_the_limit(way: str, limit: int, observed: bool) -> None:
    """However calls are asked for, those that ran are as many as the limit, and the rest never ran."""
    tool = Counted()
    tools, turns = asking(way, tool)
    model = scripted(tools, *turns, tool_calls="all", observed=observed)
    ended = await model.run(budget=Budget(max_tool_calls=limit))
    assert ended.result is not None, ended.error
    assert ended.result.usage.tool_calls == limit
    assert ended.result.stopped_by == "budget"
    assert_legal(ended.history)
    if way in ("one", "all"):
        assert tool.ran == limit
    assert tool.ran <= limit
    if observed:
        calls = [event for event in model.events if event.phase == "end" and event.kind == "tool"]
        assert sum(event.outcome != "over_budget" for event in calls) == limit
        assert sum(event.name == "search" and event.outcome == "ok" for event in calls) == tool.ran


@pytest.mark.behaviour("B04", "B02")
@pytest.mark.parametrize("way", ["all", "packed"])
async def test_the_calls_over_the_limit_are_observations(way: str) -> None:
    """Each call over the limit is answered in its place with what was used up, and no further model call is made."""
    tool = Counted()
    tools, turns = asking(way, tool)
    model = scripted(tools, *turns, tool_calls="all")
    ended = await model.run(budget=Budget(max_tool_calls=4))
    ran = 4 if way == "all" else 3
    assert tool.ran == ran
    assert len(model.provider.requests) == 1
    over = [event for event in ended.nodes("search") if event.outcome == "over_budget"]
    assert [event.status for event in over] == ["error"] * (10 - ran)
    text = "\n".join(ended.observations)
    assert text.count("not run: the budget's max_tool_calls is used up") == 10 - ran
    assert text.count("found") == ran


@pytest.mark.behaviour("B04")
@pytest.mark.parametrize(
    ("turn", "counted"),
    [("fails", 1), ("times_out", 1), ("nope", 0), ("typed", 0), ("denied", 0), ("cached", 0), ("hooked", 0)],
)
async def test_what_counts_is_what_runs(turn: str, counted: int) -> None:
    """A failed call counts; one that no tool ran for, because it was wrong or answered before, costs nothing."""

    async def fails() -> str:
        raise ValueError("no")

    async def waits() -> str:
        await asyncio.Event().wait()
        return "late"

    async def typed(path: str) -> str:
        return path

    class Hooks:
        def before_tool(self, call: Any) -> ToolOutput | None:
            return ToolOutput("hooked") if call.name == "hooked" else None

    async def answers(call: Any, call_next: Any) -> ToolOutput:
        if call.name in ("denied", "cached"):
            return ToolOutput("no" if call.name == "denied" else "kept", is_error=call.name == "denied")
        return await call_next(call)

    tools = [ToolDefinition(name, "d", None, fails) for name in ("fails", "denied", "cached", "hooked")]
    tools += [ToolDefinition("typed", "d", None, typed), ToolDefinition("times_out", "d", None, waits, timeout=0.01)]
    ended = await scripted(tools, ask(turn), hooks=Hooks, around=[answers]).run(budget=Budget(max_tool_calls=1))
    assert ended.result is not None, ended.error
    assert (ended.result.usage.tool_calls, ended.result.stopped_by) == (counted, "answered")


@pytest.mark.behaviour("B05")
async def test_a_cache_costs_nothing() -> None:
    """A middleware that answers in a tool's or the model's place uses up neither limit."""
    tool = Counted()
    kept: list[ToolOutput] = []
    answers: list[Any] = []

    async def cache(call: Any, call_next: Any) -> ToolOutput:
        if not kept:
            kept.append(await call_next(call))
        return kept[0]

    async def chat_cache(call: Any, call_next: Any) -> Any:
        if len(answers) < 2:
            answers.append(await call_next(call))
        return answers[-1] if call.ctx.usage().tool_calls else answers[0]

    model = scripted([tool.definition], ask("search"), around=[cache])
    model.app.use(chat=chat_cache)
    async with model.app:
        first = await model.app.run("go", budget=Budget(max_tool_calls=1, max_chat_calls=2))
        assert (first.output, first.usage.tool_calls, first.usage.chat_calls) == ("done", 1, 2)
        again = await model.app.run("go", budget=Budget(max_tool_calls=0, max_chat_calls=0))
    assert tool.ran == 1
    assert (again.usage.tool_calls, again.usage.chat_calls) == (0, 0)
    assert again.stopped_by != "budget"


@pytest.mark.behaviour("B02")
@pytest.mark.parametrize("mode", ["stop", "throw"])
@pytest.mark.parametrize("way", WAYS)
async def test_on_exceeded_fires_once(way: str, mode: Any) -> None:
    """Whatever goes over and how often, the callback is called once, with what `throw` would raise."""
    said: list[BudgetExceededError] = []
    tools, turns = asking(way, Counted())
    budget = Budget(max_tool_calls=3, mode=mode, on_exceeded=said.append)
    ended = await scripted(tools, *turns, tool_calls="all").run(budget=budget)
    [error] = said
    assert (error.limit, error.allowed, error.used) == ("max_tool_calls", 3, 3)
    assert (ended.error is error) is (mode == "throw")


@pytest.mark.behaviour("B02")
@pytest.mark.parametrize("way", WAYS)
async def test_throw_raises_and_keeps_what_there_was(way: str) -> None:
    """`mode="throw"` raises with the history and the counts so far, never more than allowed, from any depth."""
    tool = Counted()
    tools, turns = asking(way, tool)
    ended = await scripted(tools, *turns, tool_calls="all").run(budget=Budget(max_tool_calls=5, mode="throw"))
    assert isinstance(ended.error, BudgetExceededError)
    assert str(ended.error) == "the budget's max_tool_calls is used up: 5 of 5"
    assert ended.error.run.usage.tool_calls == 5
    assert tool.ran <= 5
    assert_legal(ended.history)


@pytest.mark.behaviour("B02")
async def test_a_tool_cannot_swallow_a_thrown_budget() -> None:
    """A tool that catches what its inner call raises does not keep the run alive."""
    tool = Counted()

    async def stubborn(toolbox: Toolbox) -> str:
        for _ in range(5):
            with contextlib.suppress(Exception):
                await toolbox["search"]({})
        return "I go on"

    tools = [tool.definition, ToolDefinition("stubborn", "d", None, stubborn)]
    model = scripted(tools, ask("stubborn"))
    ended = await model.run(budget=Budget(max_tool_calls=3, mode="throw"))
    assert isinstance(ended.error, BudgetExceededError)
    assert (tool.ran, len(model.provider.requests)) == (2, 1)


@pytest.mark.behaviour("B02", "B01")
@pytest.mark.parametrize("limit", [0, 1, 3])
async def test_chat_calls(limit: int) -> None:
    """`max_chat_calls` is met exactly; the output is the model's last text."""
    tool = Counted()
    turns = [ChatTurn(f"thought {n}", [ask("search")]) for n in range(1, 9)]
    model = scripted([tool.definition], *turns)
    ended = await model.run(budget=Budget(max_chat_calls=limit))
    assert ended.result is not None, ended.error
    assert len(model.provider.requests) == ended.result.usage.chat_calls == tool.ran == limit
    assert ended.result.output == (f"thought {limit}" if limit else None)
    assert ended.result.stopped_by == "budget"
    thrown = await scripted([tool.definition], *turns).run(budget=Budget(max_chat_calls=limit, mode="throw"))
    assert isinstance(thrown.error, BudgetExceededError)
    assert thrown.error.run.output == ended.result.output


@pytest.mark.behaviour("B08")
@pytest.mark.parametrize("way", WAYS)
async def test_a_quota_per_tool(way: str) -> None:
    """Beyond its quota a tool answers `over_budget`; other tools and the run go on."""
    tool, other = Counted(), Counted("other")
    tools, turns = asking(way, tool)
    turns = [*turns[:5], ask("other", None, "o1")]
    model = scripted([*tools, other.definition], *turns, tool_calls="all")
    ended = await model.run(budget=Budget(tools={"search": 3, "unused": 0}))
    assert ended.result is not None, ended.error
    assert (tool.ran, other.ran) == (3, 1)
    assert (ended.result.stopped_by, ended.result.output) == ("answered", "done")
    outcomes = {event.outcome for event in ended.nodes("search")}
    assert outcomes == {"ok", "over_budget"}


@pytest.mark.behaviour("B04")
async def test_app_call_has_a_budget_too() -> None:
    """`app.call` counts what its tool calls in turn, and refuses beyond the limit."""
    tool = Counted()
    tools, _ = asking("toolbox", tool)
    async with Thena(tools=tools) as app:
        said = await app.call("by_hand", budget=Budget(max_tool_calls=4))
        assert (said.content, tool.ran) == ("ended", 3)
        refused = await app.call("search", budget=Budget(max_tool_calls=0))
        assert refused.is_error
        assert refused.content == "not run: the budget's max_tool_calls is used up"
        with pytest.raises(BudgetExceededError):
            await app.call("search", budget=Budget(max_tool_calls=0, mode="throw"))
    assert tool.ran == 3
