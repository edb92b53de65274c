"""Limit how often tools are called, as middleware.

Holds against: a model that calls again and again, in one run, in several, and in a batch: `calls` come at once, and
after that one each `seconds / calls`. A call that would wait longer than `patience` is refused, with the seconds to
wait.

Does not hold against: other processes: the counts live in this one. A call that is cancelled while it waits has used
its place.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Hashable

from thena_core import CallNext, ToolCall, ToolOutput

MANY = 10_000  # scopes, from which on those are forgotten that are free again


class RateLimit:
    """Count calls per scope. Use `limit.wait` as middleware.

    It is the generic cell rate algorithm (ATM Forum, 1996): one number per scope, when it would be free of all calls.

    Args:
        calls: How many may come at once, and in `seconds`.
        seconds: In how long.
        scope: Whose calls count together: `lambda call: (call.ctx.data.tenant, call.name)`.
        patience: The most seconds that a call waits for its place.
        clock: Seconds, for tests.
        sleep: Waits, for tests.
    """

    def __init__(
        self,
        calls: int,
        seconds: float,
        scope: Callable[[ToolCall], Hashable],
        patience: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        if calls < 1 or seconds <= 0:
            raise ValueError(f"RateLimit(calls={calls}, seconds={seconds:g}): at least one call in some time")
        self._each = seconds / calls
        self._burst = seconds - self._each
        self._scope = scope
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._free_at: dict[Hashable, float] = {}

    async def wait(self, call: ToolCall, call_next: CallNext) -> ToolOutput:
        """Wait for the call's place, or refuse it."""
        now, key = self._clock(), self._scope(call)
        free_at = max(self._free_at.get(key, now), now)
        wait = free_at - self._burst - now
        if wait > self._patience:
            seconds = math.ceil(wait)
            return ToolOutput(f"Too many calls of {call.name}: try again in {seconds} s, or go on.", is_error=True)
        self._forget(now)
        self._free_at[key] = free_at + self._each  # before waiting: the next call stands behind this one
        if wait > 0:
            call.meta(waited=round(wait, 3))
            await self._sleep(wait)
        return await call_next(call)

    def _forget(self, now: float) -> None:
        if len(self._free_at) >= MANY:
            self._free_at = {key: free_at for key, free_at in self._free_at.items() if free_at > now}
