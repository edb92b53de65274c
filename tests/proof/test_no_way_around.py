"""The proof that there is no way around: random apps and calls, held against a plain model.

`THENA_PROOF=full` makes 1,000 examples of 20 steps of it, for the continuous integration.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.proof.machine import NoWayAround

FULL = os.environ.get("THENA_PROOF") == "full"
EXAMPLES, STEPS = (1_000, 20) if FULL else (150, 6)


@pytest.mark.behaviour("Q03", "M07")
def test_no_way_around(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever app and calls are drawn, each call takes its whole road, is counted, recorded and answered once."""

    class Machine(NoWayAround):
        figures: Counter[str] = Counter()

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            report_multiple_bugs=False,
            derandomize=True,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
    found = Machine.figures
    with capsys.disabled():
        print(f"\nproof: {figures(found)}")  # noqa: T201 - the figures are what the continuous integration is to show
    assert found["examples"] >= EXAMPLES
    assert found["calls"] > found["executes"] > found["examples"]


def figures(found: Counter[str]) -> str:
    """Word what was tried, and what came of it."""
    main = ("examples", "steps", "calls", "executes", "stopped midway")
    kinds = {
        kind: ", ".join(
            f"{number:,} {name.removeprefix(kind)}" for name, number in sorted(found.items()) if kind in name
        )
        for kind in ("step: ", "outcome: ")
    }
    numbers = ", ".join(f"{found[name]:,} {name}" for name in main)
    return f"{numbers}\n  steps: {kinds['step: ']}\n  outcomes of recorded calls: {kinds['outcome: ']}"
