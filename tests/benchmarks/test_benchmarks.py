"""The benchmark itself: both sides do the same work, every figure has its limit. No figure is judged here."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from tests.benchmarks.__main__ import NAMES, measured, table
from tests.benchmarks.handwritten import HandWritten
from tests.benchmarks.limits import LIMITS
from tests.benchmarks.measure import ROOT, Effort, median_ratio
from tests.benchmarks.scenarios import Figure, all_at_once, same_work
from tests.benchmarks.through_thena import ThroughThena
from tests.benchmarks.workload import Shape, Turn, at_once, converse, every_second_rejected, one_after_the_other

TINY = Effort(repetitions=1, seconds=0, runs=10, imports=1)

SIDES = pytest.mark.parametrize("side", [HandWritten, ThroughThena], ids=["hand-written", "Thena"])


@SIDES
@pytest.mark.parametrize(
    ("turns", "calls"),
    [(one_after_the_other(7), 7), (at_once(5), 5), (every_second_rejected(3), 3)],
    ids=["one after the other", "at once", "every second rejected"],
)
async def test_both_sides_do_the_same_work(side: type, turns: list[Turn], calls: int) -> None:
    """The tool runs once for each valid call, and the model is asked once for each turn and once for the answer."""
    made = side(Shape(yields=True))
    script = await converse(made, turns)
    assert (made.counts.tool, script.position) == (calls, len(turns) + 1)


@SIDES
async def test_both_sides_run_their_hooks(side: type) -> None:
    """With hooks, one runs before and one after each call; without, none does."""
    with_hooks, without = side(Shape(hooks=True)), side(Shape())
    for made in (with_hooks, without):
        await converse(made, one_after_the_other(4))
    assert (with_hooks.counts.before, with_hooks.counts.after) == (4, 4)
    assert (without.counts.before, without.counts.after) == (0, 0)


@SIDES
async def test_runs_at_once_are_counted(side: type) -> None:
    """Many runs at once run the tool as often as they should together."""
    made = side(Shape(yields=True))
    await all_at_once(made, 10)
    assert made.counts.tool == 50


async def test_a_side_that_does_less_is_found() -> None:
    """A count that is wrong stops the benchmark."""
    with pytest.raises(RuntimeError, match="HandWritten: 2 calls of 3"):
        await same_work([HandWritten(Shape())], one_after_the_other(2), 3)


async def test_a_side_that_does_not_answer_is_found() -> None:
    """A run that ends without the model's answer stops the benchmark."""

    class Silent:
        counts = Shape().counts

        async def run(self) -> str:
            return ""

    with pytest.raises(RuntimeError, match="did not end with the model's answer"):
        await converse(Silent(), [])


@pytest.mark.parametrize("scenario", NAMES)
async def test_every_scenario_gives_figures(scenario: str) -> None:
    """Each scenario runs through and gives finite figures whose limits are those of the one place that has them."""
    figures = await measured(scenario, TINY)
    allowed = {getattr(LIMITS, name) for name in LIMITS.__slots__}
    assert figures
    assert all(math.isfinite(figure.measured) and figure.limit in allowed for figure in figures)


@pytest.mark.parametrize(
    ("figure", "ok"),
    [
        (Figure("at most", 2.0, 2.0), True),
        (Figure("at most", 2.01, 2.0), False),
        (Figure("at least", 0.4, 0.4, at_least=True), True),
        (Figure("at least", 0.39, 0.4, at_least=True), False),
    ],
    ids=["kept", "over", "reached", "under"],
)
def test_a_limit_is_kept_or_not(figure: Figure, ok: bool) -> None:
    """A figure on its limit keeps it."""
    assert figure.ok is ok
    assert ("NO" in table([figure])) is not ok


def test_ratios_are_paired() -> None:
    """The median is taken of the ratios of figures that were measured beside each other."""
    assert median_ratio([2.0, 20.0, 9.0], [1.0, 10.0, 3.0]) == 2.0


def test_an_unknown_scenario_is_named() -> None:
    """A misspelt scenario is wrong usage, and those that exist are listed."""
    command = [sys.executable, "-m", "tests.benchmarks", "trns"]
    said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert said.returncode == 2
    assert f"there is no scenario trns: {', '.join(NAMES)}" in said.stderr


def test_a_scenario_alone() -> None:
    """A scenario that is named is measured in a process of its own, and its figures stand in the table."""
    command = [sys.executable, "-m", "tests.benchmarks", "hooks"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert [line.split(" | ")[0].strip() for line in said.stdout.splitlines()[2:]] == ["S4 a hook before and one after"]
