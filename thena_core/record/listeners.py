"""Observers that somebody else wrote: what they raise concerns nobody, and is said once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from thena_core._render import said_by
from thena_core.record.event import Event
from thena_core.record.logs import warn

SLOW_SECONDS = 0.25
"""How long an observer may hold the event loop for one event before the log says so."""


class Isolated:
    """An observer whose failure concerns nobody else; it is reported once, and so is that it is slow.

    Args:
        name: Which it is, for the report: `on_event of audit`.
        function: Called with every event, on the event loop: while it works, nothing else of any run does.
    """

    def __init__(self, name: str, function: Callable[[Event], object]) -> None:
        self._name = name
        self._function = function
        self._reported = False
        self._slow = False

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        begun = time.perf_counter()
        try:
            self._function(event)
        except (Exception, BaseExceptionGroup, asyncio.CancelledError) as error:  # noqa: BLE001 - it never fails a run
            if not self._reported:
                self._reported = True
                warn(f"[thena] {self._name} failed, and is not reported again: {said_by(error)}", stacklevel=2)
        took = time.perf_counter() - begun
        if took > SLOW_SECONDS and not self._slow:
            self._slow = True
            logging.getLogger("thena").warning(
                "%s took %.2f s for one event, and holds up every run of the event loop; it should hand the event to "
                "a thread or a queue",
                self._name,
                took,
            )
