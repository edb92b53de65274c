"""What a tool's failure, its time limit and its cancellation become: the layers right around `execute`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from thena_core.call import Handler, Invocation
from thena_core.calls.failure import comes_of_cancellation, decisive, leaves_of
from thena_core.errors import EndsRun
from thena_core.output import ToolOutput
from thena_core.run import being_cancelled, forget_cancellation

Word = Callable[[BaseException], str]
"""Says to the model what an exception was."""


def error_policy(inner: Handler, word: Word) -> Handler:
    """Turn a tool's exception into an observation; what ends the run passes, and is noted."""
    watched = cancellable(inner, time_limit(inner))

    async def forgiving(inv: Invocation) -> ToolOutput:
        try:
            if inv.run.calls is None and inv.time_limit is None:
                output = await inner(inv)
            else:
                output = await watched(inv)
        except EndsRun as error:
            inv.run.end(error)
            raise
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - any failure of a tool ends here
            failure: BaseException = error
        except asyncio.CancelledError:
            return _cancelled(inv)
        else:
            if inv.run.ended is not None:  # the tool caught what must end the run
                raise inv.run.ended
            return output
        return _observed(inv, failure, word)  # out here, so that the failure is not the context of what it raises

    return forgiving


def cancellable(inner: Handler, limited: Handler) -> Handler:
    """Let a call be found by its id while it runs, and cancelled alone; with a batch's time limit, where there is."""

    async def found(inv: Invocation) -> ToolOutput:
        calls = inv.run.calls
        if calls is None:
            return await limited(inv)
        calls[inv] = asyncio.current_task()
        output = failure = None
        try:
            output = await (inner(inv) if inv.time_limit is None else limited(inv))
        except BaseException as error:
            if not inv.cancelled:
                raise
            failure = error
        finally:
            del calls[inv]
        if not inv.cancelled:
            return output or ToolOutput("")
        await _take_back(inv)
        passing = None if failure is None else decisive(failure)
        if passing is not None:
            raise passing
        if output is not None:
            return output  # it had ended when it was cancelled
        inv.outcome = "cancelled"
        return ToolOutput(f"{inv.name} was cancelled", is_error=True)

    return found


async def _take_back(inv: Invocation) -> None:
    """Take back the cancellation of one call, delivered or not.

    Raises:
        asyncio.CancelledError: Where the run is being cancelled as well.
    """
    inv.cancelled = False
    task = asyncio.current_task()
    if task is None:
        return
    if being_cancelled():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)  # where nothing was awaited any more, it is delivered here and to nobody else
        task.uncancel()
    if being_cancelled():
        raise asyncio.CancelledError


def time_limit(inner: Handler, seconds: float | None = None) -> Handler:
    """Stop a tool that takes longer than it may: its own limit, or that of the batch that it is called in."""

    async def limited(inv: Invocation) -> ToolOutput:
        allowed = inv.time_limit if seconds is None else seconds
        limit = asyncio.timeout(allowed)
        try:
            async with limit:
                return await inner(inv)
        except EndsRun:
            raise
        except Exception:
            if not limit.expired():
                raise  # the tool's own; after the limit, its clean-up's
        inv.outcome = "timeout"
        return ToolOutput(f"{inv.name} timed out after {allowed:g} s", is_error=True)

    return limited


def _cancelled(inv: Invocation) -> ToolOutput:
    """Answer a call that cancelled itself; a cancellation of the run passes.

    Raises:
        asyncio.CancelledError: Where the run is being cancelled.
    """
    if being_cancelled():
        raise asyncio.CancelledError
    inv.outcome = "cancelled"
    return ToolOutput(f"{inv.name} cancelled itself", is_error=True)


def _observed(inv: Invocation, failure: BaseException, word: Word) -> ToolOutput:
    """Word a tool's failure for the model, unless the run must end."""
    run = inv.run
    if run.ended is not None:
        raise run.ended
    if being_cancelled() and all(comes_of_cancellation(leaf) for leaf in leaves_of(failure)):
        raise asyncio.CancelledError  # the tool made a failure of the run's cancellation
    passing = decisive(failure)
    if passing is not None:
        raise run.end(passing) if isinstance(passing, EndsRun) else passing
    if issubclass(type(failure), BaseExceptionGroup):
        forget_cancellation()
    inv.outcome = "error"
    return ToolOutput(word(failure), is_error=True)
