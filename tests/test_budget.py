"""The budget's own arithmetic: what it refuses to be, and counts that are taken in a whole chain or not at all."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thena_core import Budget, BudgetExceededError
from thena_core.budget import Tracker
from thena_core.messages import Usage

LIMITS = ["max_duration", "max_chat_calls", "max_tool_calls", "max_tokens", "max_cost_usd"]


@pytest.mark.behaviour("B01")
@pytest.mark.parametrize("value", [-1, -0.001, math.nan], ids=str)
@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_a_number_from_zero_up(name: str, value: float) -> None:
    """A negative limit, or one that compares with nothing, is refused where it is written."""
    with pytest.raises(ValueError, match=rf"\[thena\] Budget\(.*{name}={value}\b.*\): a limit is a number from 0 up"):
        Budget(**{name: value})


@pytest.mark.behaviour("B01", "B08")
def test_a_quota_is_one_too() -> None:
    """So is a quota, which is shown with its tool."""
    with pytest.raises(ValueError, match=r"Budget\(.*search.*-1.*\): a limit is a number from 0 up"):
        Budget(tools={"search": -1})


@pytest.mark.behaviour("B01")
def test_a_mode_is_one_of_two() -> None:
    """A mode that does not exist is refused with the two that do."""
    wrong: Any = "raise"
    with pytest.raises(ValueError, match='write mode="stop" or mode="throw"'):
        Budget(mode=wrong)


@pytest.mark.behaviour("B01")
@pytest.mark.parametrize("name", LIMITS)
def test_zero_is_a_limit(name: str) -> None:
    """Zero means none at all, not no limit."""
    tracker = Tracker(Budget(**{name: 0}))
    if name == "max_tool_calls":
        assert tracker.take_tool("t") == name
    elif name != "max_duration":
        with pytest.raises(BudgetExceededError):
            tracker.take_chat()


limits = st.none() | st.integers(0, 6)
budgets = st.builds(
    Budget,
    max_tool_calls=limits,
    max_chat_calls=limits,
    tools=st.dictionaries(st.sampled_from("ab"), st.integers(0, 4)),
)


@pytest.mark.behaviour("B03", "B04", "B08")
@given(
    chain=st.lists(st.none() | budgets, min_size=1, max_size=4),
    calls=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), max_size=40),
)
def test_a_chain_counts_as_one(chain: list[Budget | None], calls: list[tuple[int, str]]) -> None:
    """A call is counted in its run and in all above where every one of them allows it, else in none."""
    trackers: list[Tracker] = []
    for budget in chain:
        trackers.append(Tracker(budget, trackers[-1] if trackers else None))
    counts = [0] * len(chain)
    used = [dict.fromkeys("abc", 0) for _ in chain]
    for depth, name in calls:
        place = min(depth, len(chain) - 1)
        above = range(place + 1)
        allowed = all(
            budget is None
            or (
                counts[n] < (math.inf if budget.max_tool_calls is None else budget.max_tool_calls)
                and used[n][name] < budget.tools.get(name, math.inf)
            )
            for n in above
            if (budget := chain[n]) is not None or True
        )
        assert (trackers[place].take_tool(name) is None) is allowed
        if allowed:
            for n in above:
                counts[n] += 1
                used[n][name] += 1
    assert [tracker.tool_calls for tracker in trackers] == counts


@pytest.mark.behaviour("B02", "B03")
@given(outer=st.integers(0, 6), inner=st.integers(0, 6), places=st.lists(st.booleans(), max_size=20))
def test_model_calls_of_a_chain(outer: int, inner: int, places: list[bool]) -> None:
    """Model calls never go over the limit of any run of the chain, and a limit once reached stays reached."""
    said: list[BudgetExceededError] = []
    top = Tracker(Budget(max_chat_calls=outer, on_exceeded=said.append))
    below = Tracker(Budget(max_chat_calls=inner, on_exceeded=said.append), top)
    for deep in places:
        with contextlib.suppress(BudgetExceededError):
            (below if deep else top).take_chat()
    assert top.chat_calls <= outer
    assert below.chat_calls <= min(inner, top.chat_calls)
    assert len(said) == (top.exceeded is not None) + (below.exceeded is not None)


@pytest.mark.behaviour("B01", "B03")
def test_usage_is_added_up_the_chain() -> None:
    """What a nested run used is in the sums of those above it; a cost that nobody names stays `None`."""
    top = Tracker()
    below = Tracker(None, top)
    below.settle(Usage(10, 5, 3, None))
    assert top.cost_usd is None
    below.settle(Usage(1, 1, 0, 0.5))
    top.settle(Usage(1, 0, 0, 0.25))
    assert below.cost_usd == 0.5
    assert (top.prompt_tokens, top.completion_tokens, top.cached_tokens) == (12, 6, 3)
    assert top.cost_usd == 0.75


@pytest.mark.behaviour("B06")
@pytest.mark.parametrize(
    ("outer", "inner", "expected"), [(None, None, None), (5, None, 105), (None, 3, 103), (5, 9, 105), (9, 3, 103)]
)
def test_the_nearest_deadline(outer: float | None, inner: float | None, expected: float | None) -> None:
    """The deadline of a run is the nearest of its own and those above."""
    top = Tracker(Budget(max_duration=outer))
    top.start(100)
    below = Tracker(None if inner is None else Budget(max_duration=inner), top)
    below.start(100)
    assert below.deadline == expected


@pytest.mark.behaviour("B01")
def test_a_refusal_names_its_own_limit() -> None:
    """What is refused says which limit refuses it, also where another one was reached before; the owner hears once."""
    said: list[BudgetExceededError] = []
    tracker = Tracker(Budget(max_chat_calls=0, max_tool_calls=0, on_exceeded=said.append))
    with pytest.raises(BudgetExceededError) as first:
        tracker.take_chat()
    assert first.value.limit == "max_chat_calls"
    assert tracker.take_tool("look") == "max_tool_calls"
    assert said == [first.value]
