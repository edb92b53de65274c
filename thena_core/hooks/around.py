"""Calling a middleware, of a tool or of a model call: it passes on the call that it got, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from thena_core._render import said_by
from thena_core.errors import EndsRun, MiddlewareError
from thena_core.run import Run, passes

OutputT = TypeVar("OutputT")


@dataclass(frozen=True, slots=True)
class Middleware:
    """A middleware, as messages name it.

    Attributes:
        function: `async def fn(call, call_next)`.
        name: Its qualified name.
        kind: What it must return.
    """

    function: Callable[..., Awaitable[Any]]
    name: str
    kind: type


class Rest(Generic[OutputT]):
    """The rest of the chain, as a middleware gets it: to be called once, with the call that it was shown."""

    __slots__ = ("_call", "_fail", "_go_on", "failed", "went_on")

    def __init__(
        self, call: Any, go_on: Callable[[], Awaitable[OutputT]], fail: Callable[[str], BaseException]
    ) -> None:
        self._call = call
        self._go_on = go_on
        self._fail = fail
        self.went_on = False
        self.failed: Exception | None = None

    async def __call__(self, passed: Any) -> OutputT:
        """Go on with the call.

        Raises:
            MiddlewareError: The second time, and with another call.
        """
        if passed is not self._call:
            raise self._fail("it passed on another call than the one that it got")
        if self.went_on:
            raise self._fail("it called call_next twice")
        self.went_on = True
        try:
            return await self._go_on()
        except Exception as error:
            self.failed = error
            raise


async def call_around(
    middleware: Middleware, call: Any, go_on: Callable[[], Awaitable[OutputT]], run: Run, step: str
) -> tuple[OutputT, bool]:
    """Call a middleware and hold it to its contract.

    Args:
        middleware: The middleware.
        call: What it is shown, and must pass on.
        go_on: The rest of the chain.
        run: The run, which is told of what must end it.
        step: What it stands around: a tool's name, or `chat`.

    Returns:
        What it returned, and whether it went on to the rest.

    Raises:
        MiddlewareError: Where it raised, went on twice or with another call, or returned something else.
    """

    def fail(problem: str) -> BaseException:
        # what ended the run first is what it ends with: a middleware that rewords it does not hide it
        return run.ended or run.end(MiddlewareError(middleware.name, step, problem))

    rest = Rest(call, go_on, fail)
    try:
        output: Any = await middleware.function(call, rest)
    except EndsRun as error:
        run.end(error)
        raise
    except (Exception, BaseExceptionGroup, asyncio.CancelledError) as error:
        if error is rest.failed or passes(error):
            raise
        raise fail(said_by(error)) from error
    if not isinstance(output, middleware.kind):
        raise fail(f"it returned {type(output).__name__} where a {middleware.kind.__name__} was due")
    if run.ended is not None:  # caught on its way out
        raise run.ended
    return cast("OutputT", output), rest.went_on
