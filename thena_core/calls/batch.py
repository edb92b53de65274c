"""Several calls of a turn: beside each other where they only read, one after the other where they change something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from thena_core.call import Handler, Invocation
from thena_core.calls.failure import decisive, leaves_of
from thena_core.definition import ToolDefinition
from thena_core.output import ToolOutput

MAX_CONCURRENCY = 16
"""Calls of one batch that run at once, unless the caller says otherwise."""

Call = tuple[Handler, Invocation, ToolDefinition | None]


async def run_together(
    calls: Sequence[Call], *, concurrency: int | None = None, timeout: float | None = None
) -> list[ToolOutput]:
    """Run calls and return their outputs in the order asked.

    Tools that `write` or are `destructive` run one after the other in that order, beside the rest.

    Args:
        calls: The handler, the invocation and the definition of each.
        concurrency: How many run at once (16 unless given).
        timeout: Seconds for each call.

    Raises:
        EndsRun: As itself, never in a group; the other calls are cancelled and awaited first, and what had finished
            stays in its invocation.
    """
    gate = asyncio.Semaphore(concurrency or MAX_CONCURRENCY) if len(calls) > (concurrency or MAX_CONCURRENCY) else None
    ordered = [call for call in calls if call[2] is not None and call[2].effect in ("write", "destructive")]

    async def one(call: Call) -> None:
        handler, inv, _ = call
        inv.time_limit = timeout
        if gate is None:
            inv.output = await handler(inv)
        else:
            async with gate:
                inv.output = await handler(inv)

    async def in_order() -> None:
        for call in ordered:
            await one(call)

    jobs: list[Callable[[], Coroutine[Any, Any, None]]] = [in_order] if ordered else []
    failure = None
    try:
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(job())
            for call in calls:
                if call not in ordered:
                    group.create_task(one(call))
    except BaseExceptionGroup as group_error:
        failure = decisive(group_error) or leaves_of(group_error)[0]
    if failure is not None:  # raised out here, so that the group does not become its context
        raise failure
    return [inv.output for _, inv, _ in calls if inv.output is not None]
