"""Calling a middleware, of a tool or of a model call: it passes on the call that it got, once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from thena_core.errors import EndsRun, MiddlewareError
from thena_core.run import Run

OutputT = TypeVar("OutputT")


async def call_around(
    function: Callable[..., Awaitable[Any]],
    call: Any,
    go_on: Callable[[], Awaitable[OutputT]],
    *,
    run: Run,
    name: str,
    step: str,
    kind: type[OutputT],
) -> tuple[OutputT, bool]:
    """Call a middleware and hold it to its contract.

    Args:
        function: The middleware.
        call: What it is shown, and must pass on.
        go_on: The rest of the chain.
        run: The run, which is told of what must end it.
        name: The middleware's name, for messages.
        step: What it stands around: a tool's name, or `chat`.
        kind: What it must return.

    Returns:
        What it returned, and whether it went on to the rest.

    Raises:
        MiddlewareError: Where it raised, went on twice or with another call, or returned something else.
    """
    went_on = False
    passed_through: list[Exception] = []

    async def call_next(passed: Any) -> OutputT:
        nonlocal went_on
        if passed is not call:
            raise run.end(MiddlewareError(name, step, "it passed on another call than the one that it got"))
        if went_on:
            raise run.end(MiddlewareError(name, step, "it called call_next twice"))
        went_on = True
        try:
            return await go_on()
        except Exception as error:
            passed_through.append(error)
            raise

    try:
        output: Any = await function(call, call_next)
    except EndsRun as error:
        run.end(error)
        raise
    except Exception as error:
        if error in passed_through:
            raise
        raise run.end(MiddlewareError(name, step, f"{type(error).__name__}: {error}")) from error
    if not isinstance(output, kind):
        wrong = f"it returned {type(output).__name__} where a {kind.__name__} was due"
        raise run.end(MiddlewareError(name, step, wrong))
    return output, went_on
