"""Middleware that breaks its contract ends the run with an error that names it."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from tests.hooks.payments import outer, paid, passing, pay
from tests.hooks.scripted import ask, assert_legal, scripted
from thena_core import MiddlewareError, ToolCall, ToolOutput


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    """Each test starts with no payment."""
    paid.clear()


async def denies(call: Any, call_next: Any) -> ToolOutput:
    """Refuse by raising, which is not how it is done."""
    raise PermissionError("not allowed")


async def spoils(call: Any, call_next: Any) -> Any:
    """Fail after the call."""
    await call_next(call)
    raise OSError("metrics down")


async def twice(call: Any, call_next: Any) -> Any:
    """Go on twice."""
    await call_next(call)
    return await call_next(call)


async def twice_and_swallows(call: Any, call_next: Any) -> Any:
    """Go on twice and hide it."""
    output = await call_next(call)
    try:
        return await call_next(call)
    except Exception:  # noqa: BLE001 - that is the case
        return output


async def twice_at_once(call: Any, call_next: Any) -> Any:
    """Go on twice at the same time."""
    outputs = await asyncio.gather(call_next(call), call_next(call), return_exceptions=True)
    return outputs[0]


async def returns_none(call: Any, call_next: Any) -> Any:
    """Forget to return."""
    await call_next(call)


async def returns_nothing_at_all(call: Any, call_next: Any) -> Any:
    """Do nothing."""
    return


async def returns_text(call: Any, call_next: Any) -> Any:
    """Return the text alone."""
    return "paid"


async def cancels(call: Any, call_next: Any) -> Any:
    """Look as if the run were cancelled."""
    raise asyncio.CancelledError


async def raises_a_group(call: Any, call_next: Any) -> Any:
    """Raise what a task group makes of a cancellation inside of it."""
    raise BaseExceptionGroup("g", [asyncio.CancelledError(), OSError("metrics down")])


class CannotBePrinted(Exception):
    def __str__(self) -> str:
        raise RuntimeError


async def unprintable(call: Any, call_next: Any) -> Any:
    """Raise what cannot be printed."""
    raise CannotBePrinted


async def passes_a_copy(call: Any, call_next: Any) -> Any:
    """Pass on a copy, as a way around the read-only call."""
    return await call_next(copy.copy(call))


async def passes_a_replaced_call(call: Any, call_next: Any) -> Any:
    """Rewrite, which is the hooks' part."""
    return await call_next(call.replace(arguments={"amount": 999}))


async def passes_another_and_swallows(call: Any, call_next: Any) -> Any:
    """Pass on another call, and hide that it failed."""
    try:
        return await call_next(None)
    except Exception:  # noqa: BLE001 - that is the case
        return ToolOutput("fine")


BROKEN = [
    pytest.param(denies, "PermissionError: not allowed", 0, id="raises"),
    pytest.param(spoils, "OSError: metrics down", 1, id="raises-after"),
    pytest.param(twice, "call_next twice", 1, id="twice"),
    pytest.param(twice_and_swallows, "call_next twice", 1, id="twice-swallowed"),
    pytest.param(twice_at_once, "call_next twice", 1, id="twice-at-once"),
    pytest.param(returns_none, "NoneType", 1, id="none-after"),
    pytest.param(returns_nothing_at_all, "NoneType", 0, id="none"),
    pytest.param(returns_text, "str", 0, id="text"),
    pytest.param(cancels, "cancelled", 0, id="cancels"),
    pytest.param(raises_a_group, "", 0, id="base-group"),
    pytest.param(unprintable, "CannotBePrinted", 0, id="unprintable"),
    pytest.param(passes_a_copy, "another call", 0, id="copy"),
    pytest.param(passes_a_replaced_call, "another call", 0, id="replaced"),
    pytest.param(passes_another_and_swallows, "another call", 0, id="another-swallowed"),
]


@pytest.mark.behaviour("M04", "M05", "F08")
@pytest.mark.parametrize(("function", "text", "runs"), BROKEN)
@pytest.mark.parametrize("way", ["one", "all", "packed"])
async def test_a_broken_tool_middleware_ends_the_run(function: Any, text: str, runs: int, way: str) -> None:
    """C14 (middyjs/middy#175): each breach is a `MiddlewareError` naming middleware and tool; nobody can hide it."""
    asked: Any = {
        "one": ask("pay", {"amount": 5}),
        "all": [ask("pay", {"amount": 5}), ask("nope", None, "c2")],
        "packed": ask("outer"),
    }[way]

    async def only_pay(call: ToolCall, call_next: Any) -> Any:
        return await (function if call.name == "pay" else passing("x", []))(call, call_next)

    only_pay.__qualname__ = function.__name__
    made = scripted([pay, outer], asked, around=[passing("first", []), only_pay], tool_calls="all")
    ended = await made.run()
    error = ended.error
    assert isinstance(error, MiddlewareError), error
    assert text in str(error)
    assert (function.__name__ in error.middleware, error.step) == (True, "pay")
    assert len(paid) == runs
    assert len(made.provider.requests) == 1
    assert_legal(ended.history)
    assert ended.node("pay").status == "error"


@pytest.mark.behaviour("M04", "M05")
@pytest.mark.parametrize(("function", "text", "runs"), [case for case in BROKEN if case.id != "replaced"])
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
async def test_a_broken_chat_middleware_ends_the_run(function: Any, text: str, runs: int, observed: bool) -> None:
    """The same contract holds around a model call."""
    made = scripted([pay], observed=observed)
    made.app.use(chat=function)
    ended = await made.run()
    assert isinstance(ended.error, MiddlewareError), ended.error
    assert text in str(ended.error)
    assert (function.__name__ in ended.error.middleware, ended.error.step) == (True, "chat")
    assert len(made.provider.requests) == runs


@pytest.mark.behaviour("M04")
async def test_the_cause_of_a_middleware_error_is_what_it_raised() -> None:
    """Whoever catches it around `run` has the whole chain."""
    ended = await scripted([pay], ask("pay", {"amount": 1}), around=[denies]).run()
    assert ended.error is not None
    assert isinstance(ended.error.__cause__, PermissionError)


@pytest.mark.behaviour("M05", "F12")
@pytest.mark.parametrize("content", [None, 5, {"a": 1}], ids=["none", "number", "object"])
async def test_an_output_without_text_loses_no_answer(content: Any) -> None:
    """A `ToolOutput` whose content is no text is worded or refused; either way each call has its answer."""

    async def answers(call: Any, call_next: Any) -> ToolOutput:
        await call_next(call)
        return ToolOutput(content)

    asked = [ask("pay", {"amount": 1}), ask("pay", {"amount": 2}, "c2")]
    ended = await scripted([pay], asked, around=[answers], tool_calls="all").run()
    assert ended.error is None or isinstance(ended.error, MiddlewareError)
    assert_legal(ended.history)
