"""Who looks at an app's runs: the log, the report, and the masking that both go through."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from thena_core.record.tree import Event, Listener, Recorder
from thena_core.run import Run, StoppedBy

if TYPE_CHECKING:
    from thena_core.record.report import Report

LogOption = bool | Literal["verbose"] | Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Observers:
    """What an app's constructor said about looking at its runs; `run` may say otherwise for one of them."""

    log: LogOption
    report: bool | Report
    redact: bool | Callable[[str], str]

    def masker(self) -> Callable[[str], str]:
        """Return what masks secrets in error texts, log and report."""
        if callable(self.redact):
            return self.redact
        if not self.redact:
            return _as_it_is
        from thena_core.record.redact import mask  # noqa: PLC0415 - its patterns cost time to compile

        return mask

    def recorder(
        self, run_id: str, log: LogOption | None, report: bool | Report | None, plugins: tuple[Listener, ...]
    ) -> Recorder | None:
        """Return a recorder, or `None` where nobody looks: no log, no report, no plugin that observes."""
        if log is None and report is None and not (self.log or self.report or plugins):
            return None
        wanted = self.report if report is None else report
        wanted_log = self.log if log is None else log
        listeners = (*self._listeners(wanted_log), *plugins) if wanted_log else plugins
        return Recorder(run_id, listeners) if listeners or wanted else None

    def write(self, run: Run, stopped_by: StoppedBy, report: bool | Report | None) -> Path | None:
        """Write the report of a run that ended, where one is wanted; return its folder.

        A report that cannot be written is a warning and never fails the run.
        """
        wanted = self.report if report is None else report
        if not wanted or run.root is None:
            return None
        from thena_core.record import report as reports  # noqa: PLC0415 - only runs with a report need it

        settings = wanted if isinstance(wanted, reports.Report) else reports.Report()
        document = reports.document(
            run.root,
            run_id=run.id,
            stopped_by=stopped_by,
            usage=run.usage()._asdict(),
            redact=self.masker() if self.redact else None,
            content=settings.content,
        )
        try:
            return reports.write(document, Path(settings.folder))
        except OSError as error:
            warnings.warn(f"[thena] The report of run {run.id} cannot be written: {error}", stacklevel=2)
            return None

    def _listeners(self, log: LogOption) -> tuple[Listener, ...]:
        if not log:
            return ()
        if callable(log):
            return (log,)
        from thena_core.record.console import ConsoleTree  # noqa: PLC0415 - only runs that print need it

        return (ConsoleTree(verbose=log == "verbose", redact=self.masker()),)


def _as_it_is(text: str) -> str:
    return text
