"""Try a tool again where a failure may pass, as a layer of the tool's own, right around the function.

Holds against: networks and services that fail for a moment, by full jitter (a random wait up to a limit that doubles);
retrying what cannot pass (only the listed exceptions), what ends the run, and for ever; the whole is one call: one
node, one count in the budget, one time limit (`@tool(timeout=…)`), and a cancellation stops it at once.

Does not hold against: doing things twice. A request may have arrived though its answer did not: put it only on what
reads, or what the other side recognises when it comes again.

It is no middleware around the call, on purpose: `call_next` runs once. Behind a second one there would be a second
count, and a failure that the model never hears of.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from thena_core import EndsRun, ThenaError, current_context

P = ParamSpec("P")
R = TypeVar("R")


def retried(
    attempts: int = 3,
    on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
    base: float = 0.5,
    cap: float = 8.0,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Decorate a tool's async function, or its `execute`, under `@tool`.

    Args:
        attempts: How often to try; the first one counts.
        on: The exceptions after which to try again.
        base: The longest first wait, in seconds; it doubles with each attempt.
        cap: The longest wait of all.
        sleep: Waits, for tests.
    """
    if attempts < 1:
        raise ValueError(f"retried(attempts={attempts}): 1 is the least, the first one counts")

    def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(function)
        async def again(*args: P.args, **kwargs: P.kwargs) -> R:
            for attempt in range(1, attempts):
                try:
                    return await function(*args, **kwargs)
                except on as error:
                    if isinstance(error, EndsRun):
                        raise
                with suppress(ThenaError):  # outside of a run, in a unit test, there is no node to write to
                    current_context().meta(attempts=attempt + 1)
                await sleep(random.uniform(0, min(cap, base * 2 ** (attempt - 1))))  # noqa: S311 - no secret
            return await function(*args, **kwargs)

        return again

    return decorate
