"""A guard that fails ends the run, whatever tool stands around the call and whatever the guard raised."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal, packed, scripted
from thena_core import (
    HookError,
    Toolbox,
    tool,
)
from thena_tools import ParallelTool


@tool
async def echo(text: str) -> str:
    """Repeats."""
    return text


class Guarded:
    """An agent whose guard forbids `secret`."""

    def before_tool(self, call: Any) -> None:
        if call.name == "secret":
            raise PermissionError("not for you")


ran: list[str] = []


@tool
async def secret() -> str:
    """Never runs."""
    ran.append("secret")
    return "42"


@tool
async def catches(toolbox: Toolbox) -> str:
    """Catches whatever the other tool's layers raise."""
    try:
        return (await toolbox["secret"]({})).content
    except Exception as error:  # noqa: BLE001 - that is the case
        return f"all is well ({type(error).__name__})"


@tool
async def catches_and_raises(toolbox: Toolbox) -> str:
    """Makes another failure of it."""
    try:
        return (await toolbox["secret"]({})).content
    except Exception as error:
        raise ValueError("wrapped") from error


@tool
async def catches_and_goes_on(toolbox: Toolbox) -> str:
    """Does something else then."""
    try:
        return (await toolbox["secret"]({})).content
    except Exception:  # noqa: BLE001 - that is the case
        return (await toolbox["writes_now"]({})).content


@tool(effect="write")
async def writes_now() -> str:
    """Changes something."""
    ran.append("writes_now")
    return "written"


@tool
async def batches(toolbox: Toolbox) -> str:
    """Catches what a batch raises."""
    try:
        results = await toolbox.batch([("echo", {"text": "a"}), ("secret", {})])
        return str(len(results))
    except Exception:  # noqa: BLE001 - that is the case
        return "all is well"


PACKED = [echo, secret, catches, catches_and_raises, catches_and_goes_on, writes_now, batches, ParallelTool]


@pytest.mark.behaviour("F08", "H05")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(ask("catches"), id="toolbox"),
        pytest.param(ask("catches_and_raises"), id="toolbox-wrapped"),
        pytest.param(ask("catches_and_goes_on"), id="toolbox-goes-on"),
        pytest.param(ask("batches"), id="toolbox.batch"),
        pytest.param(packed(("echo", {"text": "a"}), ("secret", {})), id="parallel"),
        pytest.param(packed(("echo", {"text": "a"}), ("catches", {})), id="parallel-of-toolbox"),
        pytest.param([ask("catches"), ask("echo", {"text": "a"}, "c2")], id="all"),
    ],
)
async def test_a_guards_failure_passes_every_tool_around_it(asked: Any, observed: bool) -> None:
    """However the outer tool catches it, a guard that failed inside ends the run with its own error."""
    ran.clear()
    made = scripted(PACKED, asked, hooks=Guarded, tool_calls="all", observed=observed)
    ended = await made.run()
    assert isinstance(ended.error, HookError)
    assert str(ended.error) == 'before_tool of Guarded failed for the tool "secret": PermissionError: not for you'
    assert len(made.provider.requests) == 1
    assert_legal(ended.history)
    assert not ran, "a tool ran after the guard had failed"
    if observed:
        assert {
            node.status
            for node in ended.events
            if node.phase == "end" and node.name in ("catches", "batches", "parallel")
        } <= {"error"}


@pytest.mark.behaviour("F08")
async def test_a_guards_failure_passes_app_call() -> None:
    """Without a model, too, the tool that catches a guard's failure cannot hide it."""
    async with scripted(PACKED, hooks=Guarded).app as app:
        with pytest.raises(HookError):
            await app.call("catches")


@pytest.mark.behaviour("H05", "F08")
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(ask("secret"), id="alone"),
        pytest.param([ask("secret"), ask("echo", {"text": "a"}, "c2")], id="all"),
        pytest.param(ask("catches"), id="toolbox"),
        pytest.param(ask("batches"), id="toolbox.batch"),
        pytest.param(packed(("echo", {"text": "a"}), ("secret", {})), id="parallel"),
    ],
)
@pytest.mark.parametrize("how", ["unprintable", "cancelled", "stop-iteration", "group"])
async def test_odd_failures_of_a_guard_are_failures(asked: Any, how: str) -> None:
    """A guard that raises what cannot be printed, or what looks like a cancellation, still ends the run."""

    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    raised = {
        "unprintable": Unprintable(),
        "cancelled": asyncio.CancelledError(),
        "stop-iteration": StopIteration(),
        "group": BaseExceptionGroup("g", [asyncio.CancelledError(), ValueError("v")]),
    }[how]

    class Odd:
        def before_tool(self, call: Any) -> None:
            if call.name == "secret":
                raise raised

    ran.clear()
    made = scripted(PACKED, asked, hooks=Odd, tool_calls="all")
    ended = await made.run()
    assert isinstance(ended.error, HookError)
    assert len(made.provider.requests) == 1
    assert not ran
