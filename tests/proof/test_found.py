"""Cases that the machine found once, kept so that they are tried each time."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.proof.asked import Limits
from tests.proof.draws import Operation, Stop
from tests.proof.machine import NoWayAround
from tests.proof.model import OUTER, AppSpec, Call, Leaf

PLAIN = AppSpec(
    (Leaf("function", "async", "write", limited=False),) * 4, None, None, (), (), every_call=True, recorded=False
)
STUBBORN = Call(OUTER, what="each", inner=(Call("t1", what="stubborn", wait=4), Call("t1", wait=4)))
WRITES = (Call("t1", what="stubborn", wait=4), Call("t1", wait=4))
FATAL = Call("t0", what="fatal group")


def tried(turns: tuple[tuple[Call, ...], ...], stop: Stop) -> None:
    """Run an app without hooks and stop it."""

    class Machine(NoWayAround):
        figures: Counter[str] = Counter()

    machine = Machine()
    try:
        machine.build(PLAIN)
        machine.run_and_stop(Operation(turns, Limits(), recorded=True, goes_on=False), stop)
    finally:
        machine.teardown()


@pytest.mark.behaviour("Q03", "X01")
@pytest.mark.parametrize("how", ["abort", "deadline"])
@pytest.mark.parametrize("turn", [(STUBBORN,), WRITES], ids=["toolbox", "writes"])
def test_nothing_begins_after_a_run_was_stopped(how: str, turn: tuple[Call, ...]) -> None:
    """A tool that swallows its cancellation does not let the calls after it, or the next model call, begin."""
    tried((turn,), Stop(how, 3 if turn[0].name == OUTER else 2, at_once=False))


@pytest.mark.behaviour("Q03", "F08")
def test_a_cancelled_call_that_is_fatal_ends_the_run() -> None:
    """What ends the run does so also out of a group, and in the moment in which its call is cancelled by id."""
    tried(((FATAL, Call("t1")),), Stop("cancel_call", 2, at_once=True))
