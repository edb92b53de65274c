"""Several calls of a turn: beside each other where they only read, one after the other where they change something."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from thena_core.call import Handler, Invocation
from thena_core.calls.failure import decisive
from thena_core.definition import ToolDefinition
from thena_core.output import ToolOutput
from thena_core.run import Place, current

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
        ValueError: For a concurrency below 1, or a timeout that is none.
        EndsRun: As itself, never in a group; the other calls are cancelled and awaited first, and what had finished
            stays in its invocation.
    """
    limit = MAX_CONCURRENCY if concurrency is None else concurrency
    if limit < 1 or (timeout is not None and not timeout > 0):
        raise ValueError(f"[thena] batch(concurrency={limit}, timeout={timeout}): at least 1, and seconds above 0.")
    if not calls:
        return []
    gate = asyncio.Semaphore(limit) if len(calls) > limit else None
    ordered = [call for call in calls if call[2] is not None and call[2].effect in ("write", "destructive")]
    tasks = [asyncio.create_task(_one(call, gate, timeout)) for call in calls if call not in ordered]
    if ordered:
        tasks.append(asyncio.create_task(_in_order(ordered, gate, timeout)))
    try:
        await together(tasks)
    except BaseException:
        for _, inv, _ in calls:
            _never_begun(inv)
        raise
    return [inv.output for _, inv, _ in calls if inv.output is not None]


async def together(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for tasks; where one fails, or the waiting is cancelled, the others are cancelled and awaited first.

    Raises:
        BaseException: The decisive failure, as itself and never in a group.
    """
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _ended(tasks)
    failure = _first_failure(tasks)
    if failure is not None:
        raise failure


async def _one(call: Call, gate: asyncio.Semaphore | None, timeout: float | None) -> None:
    handler, inv, _ = call
    inv.time_limit = timeout
    current.set(Place(inv.run, None, inv))  # the task's own context: nothing to reset
    if gate is None:
        inv.output = await handler(inv)
    else:
        async with gate:
            if inv.run.ended is not None:  # while this one waited
                raise inv.run.ended
            inv.output = await handler(inv)


def _never_begun(inv: Invocation) -> None:
    """Give a call that the batch ended before its turn a node: the record shows everything that was asked for."""
    recorder = inv.run.recorder
    if recorder is not None and inv.node is None:
        node = inv.node = recorder.open("tool", inv.name, inv.parent, inv.raw, inv.position)
        recorder.close(node, "error", outcome="cancelled", error="it had not begun")


async def _in_order(calls: Sequence[Call], gate: asyncio.Semaphore | None, timeout: float | None) -> None:
    for call in calls:
        await _one(call, gate, timeout)


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel what still runs and wait for it, also where the waiting itself is cancelled."""
    running: list[asyncio.Task[None]] = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    cancelled = False
    while running:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError:
            cancelled = True
        running = [task for task in running if not task.done()]
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at here: where the batch itself is cancelled, nobody else does
    if cancelled:
        raise asyncio.CancelledError


def _first_failure(tasks: Sequence[asyncio.Task[None]]) -> BaseException | None:
    """Return what the batch ends with: what ends the run or the process before anything else."""
    found = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    passing = [error for error in map(decisive, found) if error is not None]
    if passing or found:
        return (passing or found)[0]
    # a call that was cancelled and that nobody here cancelled
    return asyncio.CancelledError() if any(task.cancelled() for task in tasks) else None
