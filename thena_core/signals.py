"""What tells a tool that it should stop."""

from __future__ import annotations

import asyncio
import time

from thena_core.errors import RunAborted
from thena_core.run import Run


class Signal:
    """Whether the run is being stopped, for sync and long tools: `ctx.signal`.

    What an async tool awaits is simply cancelled; a sync one, in its thread, looks here from time to time.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def aborted(self) -> bool:
        """Whether the tool should stop: the run is being stopped, has ended, or is past its deadline."""
        return self.reason is not None

    @property
    def reason(self) -> str | None:
        """Why, in the words of who stopped the run; `None` while nobody did."""
        tracker = self._run.tracker
        if tracker.ends_at is not None and time.monotonic() >= tracker.ends_at:
            return "the budget's max_duration is used up"
        return self._run.top.stopping

    def raise_if_aborted(self) -> None:
        """Raise where the tool should stop.

        Raises:
            RunAborted: With the reason.
        """
        reason = self.reason
        if reason is not None:
            raise RunAborted(reason)

    async def wait(self) -> str:
        """Wait until the run is being stopped, and return the reason; for a task of the tool's own."""
        top = self._run.top
        if top.stop_event is None:
            top.stop_event = asyncio.Event()
            if top.stopping is not None:
                top.stop_event.set()
        await top.stop_event.wait()
        return top.stopping or ""
