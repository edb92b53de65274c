"""Answer a call that was made before from memory, as middleware.

Holds against: one tenant reading what another one's call brought (`scope` has no default); tools of one name in two
agents; arguments that only look alike (`1`, `1.0`, `True`; secrets that print as stars); keeping failures; growing
without end; tools that change something (only those with `effect="read"` are cached).

Does not hold against: two equal calls at the same time: both run. A tool's `data` is shared by those who get it, so
it should not be changed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from thena_core import CallNext, ToolCall, ToolDefinition, ToolOutput


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer, and what it answers."""

    definition: ToolDefinition | None
    arguments: Mapping[str, Any]
    output: ToolOutput
    until: float


class Cache:
    """Keep the newest answers. Use `cache.remember` as middleware: what it answers costs no budget.

    Args:
        scope: Who may share an answer: `lambda call: call.ctx.data.tenant`.
        seconds: How long an answer is good.
        most: How many are kept; the one that was not used for longest goes first.
        clock: Seconds, for tests.
    """

    def __init__(
        self,
        scope: Callable[[ToolCall], Hashable],
        seconds: float = 60.0,
        most: int = 1_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scope = scope
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()

    async def remember(self, call: ToolCall, call_next: CallNext) -> ToolOutput:
        """Answer from memory, or call and keep the answer."""
        if call.definition is None or call.definition.effect != "read":
            return await call_next(call)
        arguments = dict(call.arguments)
        # repr tells 1 from True, which are equal; equality tells apart what prints alike: together they are the key
        key = self._scope(call), call.name, repr(sorted(arguments.items()))
        kept = self._kept.get(key)
        if kept is not None and self._is_good(kept, call, arguments):
            self._kept.move_to_end(key)
            call.meta(cached=True)
            return kept.output
        output = await call_next(call)
        if not output.is_error:
            self._kept[key] = Kept(call.definition, arguments, output, self._clock() + self._seconds)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return output

    def _is_good(self, kept: Kept, call: ToolCall, arguments: Mapping[str, Any]) -> bool:
        same = kept.definition is call.definition and kept.arguments == arguments
        return same and self._clock() < kept.until
