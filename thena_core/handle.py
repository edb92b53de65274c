"""The handle of a started run: its result, its events and text as they come, and the ways to stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from thena_core.budget import RunUsage
from thena_core.errors import RunAborted
from thena_core.record.event import Event
from thena_core.record.stream import Follower, Stream
from thena_core.run import Run, RunResult

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


MAX_CHUNKS = 100_000
"""Pieces of the model's text that are kept: more than a run has, since text with a hole in it is of no use."""


class RunHandle:
    """A run that was started and goes on beside the code that holds this; leaving `async with` aborts it.

    Attributes:
        run_id: Its id, known from the start.
    """

    def __init__(self, run_id: str, carry: Callable[[RunHandle], Coroutine[Any, Any, RunResult]]) -> None:
        self.run_id = run_id
        self._events: Stream[Event] = Stream()
        self._text: Stream[str] = Stream(MAX_CHUNKS)
        self._run: Run | None = None
        self._reason: str | None = None
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(carry(self), name=f"thena-run-{run_id}")
        self._task.add_done_callback(self._ended)

    async def result(self) -> RunResult:
        """Wait for the run's end and return its result; giving up waiting does not stop the run.

        Raises:
            RunAborted: Where it was aborted.
            ThenaError: What the run ended with.
        """
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._reason is None or not self._task.cancelled():
                raise
            raise RunAborted(self._reason) from None  # it was aborted before it had begun

    def abort(self, reason: str = "aborted") -> None:
        """Stop the run at once: what is in flight is cancelled, and `result()` raises `RunAborted`."""
        if self._task.done():
            return
        if self._run is not None:
            self._run.abort(reason)
        elif self._reason is None:
            self._reason = reason
            self._task.cancel()

    def cancel_call(self, call_id: str) -> bool:
        """Cancel one call and let the run go on; the model reads that it was cancelled.

        Args:
            call_id: The model's id of a call, also of one in a nested run (of several that have it, the outermost); or
                the id of the call's step, as its events have it, which is unique.

        Returns:
            Whether a call of that id was running.
        """
        calls = self._run.calls if self._run is not None else None
        for inv, task in (calls or {}).items():
            named = call_id == inv.id or (inv.node is not None and call_id == inv.node.id)
            if named and task is not None and not inv.cancelled:
                inv.cancelled = True
                return task.cancel()
        return False

    def events(self) -> Follower[Event]:
        """Follow the run's events with `async for`, those that have passed first; ends with the run.

        Each follower goes at its own pace and never holds the run up. The newest 10,000 events are kept, the run's end
        always; how many a late or slow follower missed is in its `dropped`.
        """
        return self._events.follow()

    def text(self) -> Follower[str]:
        """Follow the model's text as it arrives, what has passed first; ends with the run."""
        return self._text.follow()

    @property
    def usage(self) -> RunUsage:
        """What the run has used so far."""
        return self._run.usage() if self._run is not None else RunUsage()

    def attach(self, run: Run) -> None:
        """Take the run that this is the handle of; called once, by the app."""
        self._run = run
        run.calls = {}
        run.on_text = self._text.put

    def observe(self, event: Event) -> None:
        """Take an event; called by the recorder."""
        self._events.put(event)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.abort("its handle was left")
        cancelled = False
        while not self._task.done():
            try:
                await asyncio.wait([self._task])
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError

    def _ended(self, task: asyncio.Task[RunResult]) -> None:
        self._events.close()
        self._text.close()
        if not task.cancelled():
            task.exception()  # looked at here, so that a result nobody asks for is no warning
