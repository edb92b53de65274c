"""Counts of runs that stand in one another: the tighter budget cuts, and recursion ends at the top one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from tests.limits.scenes import actor, starts
from tests.limits.test_counts import Counted
from thena_core import (
    Budget,
    BudgetExceededError,
    RunResult,
    ToolDefinition,
    WorkflowRuntime,
)


@pytest.mark.behaviour("B03")
@pytest.mark.parametrize("kind", ["max_tool_calls", "max_chat_calls"])
@pytest.mark.parametrize(("outer", "inner"), [(None, 3), (9, 3), (3, 9), (4, None)], ids=str)
async def test_the_tighter_budget_cuts(outer: int | None, inner: int | None, kind: str) -> None:
    """A nested run is cut by its own limit or by what is left of the one around it; only the latter ends both."""
    tool = Counted()
    own = None if inner is None else Budget(**{kind: inner})
    nested = actor([tool.definition], *[ask("search")] * 20)
    model = scripted([starts(nested, budget=own)], ask("nested"))
    ended = await model.run(budget=None if outer is None else Budget(**{kind: outer}))
    assert ended.result is not None, ended.error
    cut_by_inner = inner is not None and (outer is None or inner < outer)
    if cut_by_inner:
        assert tool.ran == inner
        assert (ended.result.stopped_by, ended.result.output) == ("answered", "done")
        assert ended.result.usage.tool_calls == 4  # the nested run's three, and the call that started it
    else:
        assert tool.ran == (outer or 0) - 1
        assert ended.result.stopped_by == "budget"
        used = ended.result.usage
        assert (used.tool_calls if kind == "max_tool_calls" else used.chat_calls) == outer


@pytest.mark.behaviour("B03")
@pytest.mark.parametrize("mode", ["stop", "throw"])
async def test_a_nested_budget_of_its_own_mode(mode: Any) -> None:
    """A nested run that stops gives its tool a result; one that throws ends the outer run, too."""
    results: list[RunResult] = []
    nested = actor([Counted().definition], *[ask("search")] * 5)

    async def outer(runtime: WorkflowRuntime) -> str:
        results.append(await runtime.run(nested, message="go", budget=Budget(max_tool_calls=2, mode=mode)))
        return "went on"

    ended = await scripted([ToolDefinition("outer", "d", None, outer)], ask("outer")).run()
    if mode == "throw":
        assert isinstance(ended.error, BudgetExceededError)
        assert not results
    else:
        assert (results[0].stopped_by, results[0].usage.tool_calls) == ("budget", 2)
        assert ended.observation == "went on"


@pytest.mark.behaviour("B07")
@pytest.mark.parametrize("kind", ["max_tool_calls", "max_chat_calls"])
async def test_recursion_stops_at_the_top_limit(kind: str) -> None:
    """A workflow whose tool starts the same workflow ends where the top run's limit is used up."""
    found: list[Any] = []

    async def again(runtime: WorkflowRuntime) -> RunResult:
        return await runtime.run(found[0], message="deeper")

    definition = ToolDefinition("again", "d", None, again)
    found.append(actor([definition], *[ask("again")] * 99))
    model = scripted([definition], *[ask("again")] * 99)
    ended = await model.run(budget=Budget(**{kind: 6}))
    assert ended.result is not None, ended.error
    assert ended.result.stopped_by == "budget"
    used = ended.result.usage
    assert (used.tool_calls if kind == "max_tool_calls" else used.chat_calls) == 6
    assert len(found[0].provider.requests) + len(model.provider.requests) == used.chat_calls
