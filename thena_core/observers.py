"""Who looks at an app's runs: the console, the log, the report, and the masking that all of them go through."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from thena_core._render import did_you_mean, qualified_name
from thena_core.record.event import Event
from thena_core.record.listeners import Isolated
from thena_core.record.logs import log_step, steps_are_wanted
from thena_core.record.tree import Listener, Recorder
from thena_core.run import Run, StoppedBy

if TYPE_CHECKING:
    from thena_core.budget import Tracker
    from thena_core.record.console import Console
    from thena_core.record.report import Report
    from thena_core.record.writer import Writer

LogOption = bool | Literal["verbose"] | Callable[[Event], object]

_SHORT = 120
_REMEMBERED = 1_000


class Observers:
    """What an app's constructor said about looking at its runs; `run` may say otherwise for one of them.

    Args:
        log: Print the tree, `"verbose"` with short content; a function gets the events.
        report: Write a report.
        redact: Mask secrets, with a function of the app's own, or not at all.

    Raises:
        ValueError: For a `log` that is none of these.
    """

    def __init__(self, log: LogOption, report: bool | Report, redact: bool | Callable[[str], str]) -> None:
        self.log: LogOption = _checked(log)
        self.report = report
        self.redact = redact
        self._masker: Callable[[str], str] | None = None
        self._console: Console | None = None
        self._writer: Writer | None = None
        self._own = _isolated(log) if callable(log) else None

    def masker(self) -> Callable[[str], str]:
        """Return what masks secrets in error texts, events, log and report."""
        if callable(self.redact):
            return self.redact
        if not self.redact:
            return _as_it_is
        if self._masker is None:
            from thena_core.record.redact import mask  # noqa: PLC0415 - its patterns cost time to compile

            self._masker = _remembering(mask)
        return self._masker

    def mask(self, error: BaseException) -> None:
        """Mask what an exception that leaves the app says, and the chain behind it."""
        if self.redact:
            from thena_core.record.chain import mask_error  # noqa: PLC0415 - only what fails needs it

            mask_error(error, self.masker())

    def recorder(
        self,
        run_id: str,
        log: LogOption | None,
        report: bool | Report | None,
        plugins: tuple[Listener, ...],
        tracker: Tracker | None = None,
    ) -> Recorder | None:
        """Return a recorder, or `None` where nobody looks: no console, no report, no plugin that observes, no logging.

        Raises:
            ValueError: For a `log` that it cannot be.
        """
        logged = steps_are_wanted()
        if log is None and report is None and not (self.log or self.report or plugins or logged):
            return None
        wanted = self.report if report is None else report
        listeners = (*self._listeners(log, tracker), *plugins)
        if logged:
            listeners = (*listeners, log_step)
        if not listeners and not wanted:
            return None
        redact = self.masker() if self.redact else None
        return Recorder(run_id, listeners, redact=redact, keeps=bool(wanted), tracker=tracker)

    async def write(
        self, run: Run, stopped_by: StoppedBy, report: bool | Report | None, *, waits: bool = True
    ) -> Path | None:
        """Write the report of a run that ended, where one is wanted, in a thread of its own; return its folder.

        A report that cannot be written is a warning and never fails the run. One that takes long is not waited for.

        Args:
            run: The run.
            stopped_by: Why it ended.
            report: What was said about this run.
            waits: Whether to see for a moment that it is there; not where the run is being cancelled.
        """
        wanted = self.report if report is None else report
        if not wanted or run.root is None:
            return None
        from thena_core.record.report import Report, maker  # noqa: PLC0415 - only runs with a report need it
        from thena_core.record.writer import Writer  # noqa: PLC0415 - the same

        settings = wanted if isinstance(wanted, Report) else Report()
        folder = os.path.abspath(settings.folder)  # noqa: ASYNC240, PTH100 - looks at no disk; a Path costs far more
        if self._writer is None:
            self._writer = Writer()
        make = maker(
            run.root,
            run.id,
            stopped_by,
            run.usage()._asdict(),
            run.tracker.budget,
            folder=folder,
            content=settings.content,
            redact=self.masker() if self.redact else None,
        )
        written = self._writer.write(make, run.id, folder)
        if waits and not await self._writer.wait_for(written):
            return None
        return Path(settings.folder, run.id)

    async def close(self) -> None:
        """Wait for the reports that are still to be written."""
        if self._writer is not None:
            await self._writer.close()

    def _listeners(self, log: LogOption | None, tracker: Tracker | None) -> tuple[Listener, ...]:
        wanted = self.log if log is None else _checked(log)
        if not wanted:
            return ()
        if callable(wanted):
            return (self._own if log is None and self._own is not None else _isolated(wanted),)
        from thena_core.record.console import Console, ConsoleTree  # noqa: PLC0415 - only runs that print need it

        if self._console is None:
            self._console = Console()
        return (ConsoleTree(verbose=wanted == "verbose", console=self._console, tracker=tracker),)


def _checked(log: object) -> LogOption:
    """Accept what `log=…` may be.

    Raises:
        ValueError: For anything else, and for a function that would have to be awaited.
    """
    if isinstance(log, bool):
        return log
    if log == "verbose":
        return "verbose"
    if not callable(log):
        hint = did_you_mean(log, ["verbose"]) if isinstance(log, str) else ""
        text = f'[thena] log={log!r}: write True, "verbose", or a function that takes an event.{hint}'
        raise ValueError(text)  # noqa: TRY004 - as Budget(…) does: one kind of error for what is given wrongly
    if inspect.iscoroutinefunction(log) or inspect.iscoroutinefunction(getattr(log, "__call__", None)):  # noqa: B004
        raise ValueError(
            f"[thena] log={qualified_name(log)} is `async def`, and nobody awaits it; write `def`, or follow "
            f"handle.events() of app.start(…)."
        )
    return log


def _isolated(log: Callable[[Event], object]) -> Isolated:
    return Isolated(f"log={qualified_name(log)}", log)


def _remembering(mask: Callable[[str], str]) -> Callable[[str], str]:
    """Mask each short text once: the names of tools and agents are looked at with every step of every run."""
    short = functools.lru_cache(_REMEMBERED)(mask)

    def remembering(text: str) -> str:
        return short(text) if len(text) <= _SHORT else mask(text)

    return remembering


def _as_it_is(text: str) -> str:
    return text
