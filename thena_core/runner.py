"""The runs of one app: made, guarded, reported, and waited for when the app closes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from thena_core._render import listed
from thena_core.budget import Budget, Tracker
from thena_core.context import Context
from thena_core.errors import EndsRun, RunAborted, ThenaError
from thena_core.execution import carry_out, opening
from thena_core.messages import Message
from thena_core.observers import LogOption, Observers
from thena_core.record import logs
from thena_core.record.run_id import checked_id
from thena_core.run import Run, RunResult

if TYPE_CHECKING:
    from thena_core.build import Built
    from thena_core.handle import RunHandle
    from thena_core.record.report import Report

T = TypeVar("T")


@dataclass(slots=True)
class Given:
    """What one run is given; see `Thena.run`."""

    message: str | None
    history: Sequence[Message] | str | None
    memory: str | Sequence[Message] | None
    data: Any
    budget: Budget | None
    run_id: str
    report: bool | Report | None
    log: LogOption | None


class Runner:
    """Everything about runs that lives as long as the app.

    Args:
        observers: Who looks at the runs.
    """

    def __init__(self, observers: Observers) -> None:
        self._observers = observers
        self._runs: set[Run] = set()
        self._idle: asyncio.Event | None = None
        self._closed = False
        self._second = 0
        self._prefix = ""
        self._salt = f"-{os.urandom(4).hex()}"
        self._count = 0

    def id_for(self, given: str | None) -> str:
        """Accept a run's id, which becomes a folder's name, or make one up.

        One that is made up is the second, so that folders sort, eight random hexadecimal digits, and a count: the
        digits tell processes and apps apart, the count the runs of one app.

        Raises:
            ValueError: For one that cannot name a folder.
        """
        if given is not None:
            return checked_id(given)
        now = int(time.time())
        if now != self._second:
            self._second, self._prefix = now, time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
            self._prefix += self._salt
        self._count += 1
        return f"{self._prefix}-{self._count}"

    async def close(self) -> None:
        """Refuse new runs, abort those in flight, wait for them and for their reports."""
        self._closed = True
        for run in tuple(self._runs):
            run.abort("the app is closing")
        while self._runs:
            self._idle = asyncio.Event()
            await self._idle.wait()
        await self._observers.close()

    def holds(self, run: Run) -> bool:
        """Whether a run of this app is in flight."""
        return run in self._runs

    async def carry(self, built: Built, given: Given, handle: RunHandle | None) -> RunResult:
        """Carry a run out, from its first step to its report."""
        target = built.target
        if target is None:
            raise ThenaError("[thena] This app has nothing to run. Write: Thena(MyWorkflow), or use app.call(…).")
        if given.budget is not None and given.budget.max_cost_usd is not None:
            _check_prices(given.budget.max_cost_usd, built)
        run = self.new_run(given, built, target.state() if target.state is not None else None, handle)
        try:
            stopped_by = await self.guard(run, carry_out(target, run, None, given.message))
        except BaseException as error:
            cancelled = isinstance(error, asyncio.CancelledError)
            path = await self._observers.write(run, run.stopped_by or "stop", given.report, waits=not cancelled)
            if path is not None and isinstance(error, ThenaError) and error.run is not None:
                error.run = replace(error.run, report_path=path)
            raise
        try:
            result = run.result(stopped_by)
            if run.root is None:  # nobody looked
                return result
            path = await self._observers.write(run, stopped_by, given.report)
            return result if path is None else replace(result, report_path=path)
        finally:
            run.forget()

    async def guard(self, run: Run, work: Coroutine[Any, Any, T]) -> T:
        """Let a run be aborted and waited for; what leaves it says which run it was and what there was."""
        task = run.task = asyncio.current_task()
        run.baseline = 0 if task is None else task.cancelling()
        self._runs.add(run)
        logged = run.recorder is not None and logs.run_started(run.id)  # without a recorder nobody's logging listens
        try:
            result = await work
        except BaseException as error:
            self._observers.mask(error)
            failure: BaseException = error
            if run.abort_reason is not None:
                failure = await self._aborted(run, error)
            self._failed(run, failure)
            if failure is error:
                raise
            raise failure from error
        else:
            if run.abort_reason is not None:  # it came when nothing was awaited any more
                aborted = await self._aborted(run, None)
                self._failed(run, aborted)
                raise aborted
            if logged:
                logs.run_ended(run.id, result if isinstance(result, str) else "called", run.started)
            return result
        finally:
            run.task = None
            self._runs.discard(run)
            if self._idle is not None and not self._runs:
                self._idle.set()

    async def _aborted(self, run: Run, error: BaseException | None) -> BaseException:
        """Take back the cancellation of an abort, delivered or not, and say what the run ends with."""
        task = run.task
        if task is not None and task.cancelling() > run.baseline:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # where nothing was awaited any more, it is delivered here and not to the caller
            task.uncancel()
            if task.cancelling() > run.baseline:
                return asyncio.CancelledError()  # somebody else cancels, too
        if isinstance(error, EndsRun):
            return error
        return run.end(RunAborted(run.abort_reason or "aborted"))

    def new_run(self, given: Given, built: Built, state: Any, handle: RunHandle | None) -> Run:
        """Make a run.

        Raises:
            ThenaError: After the app was closed.
        """
        if self._closed:
            raise ThenaError("[thena] The app is closed. Make a new one, or keep it open around its runs.")
        listeners = built.listeners if handle is None else (*built.listeners, handle.observe)
        tracker = Tracker(given.budget)
        recorder = self._observers.recorder(given.run_id, given.log, given.report, listeners, tracker)
        messages = opening(given.message, given.history, given.memory)
        run = Run(given.run_id, messages, given.data, state, tracker, recorder)
        run.context = Context(run)
        if handle is not None:
            handle.attach(run)
        return run

    def _failed(self, run: Run, error: BaseException) -> None:
        """Hang what there was on the error: as `.run` where it is ours, else the run's id as a note."""
        self._observers.mask(error)
        stopped = run.abort_reason is not None or isinstance(error, asyncio.CancelledError)
        logs.run_failed(run.id, error, run.started, self._observers.masker(), is_asked_for=stopped)
        result = run.result(run.stopped_by or "stop")
        run.forget()
        if isinstance(error, ThenaError):
            error.run = result
        elif not isinstance(error, asyncio.CancelledError):
            error.add_note(f"in the Thena run {run.id}")


def _check_prices(limit: float, built: Built) -> None:
    """Refuse a cost limit that nobody could keep: no provider of the app knows what a call costs."""
    if built.providers and not any(provider.knows_cost for provider in built.providers):
        names = listed(type(provider).__name__ for provider in built.providers)
        raise ThenaError(
            f"[thena] Budget(max_cost_usd={limit:g}) cannot be kept: {names} knows no price. "
            f"Give one: price=Price(prompt=…, completion=…), in US dollars per million tokens."
        )
