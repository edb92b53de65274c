"""Threads for sync tools: our own, daemon and bounded, since the loop's default pool blocks the interpreter's exit."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

MAX_THREADS = 32
"""Sync tools that run at once in one app; more wait their turn. Abandoned threads are not counted."""

IDLE_SECONDS = 10.0
"""How long a thread waits for another call before it ends."""


class _Job:
    """One call for a thread, with the loop that waits for it."""

    __slots__ = ("abandoned", "context", "finished", "function", "future", "loop")

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.context = contextvars.copy_context()
        self.finished = False
        self.abandoned = False

    def deliver(self, result: Any, error: BaseException | None) -> None:
        """Hand the result to the loop; where nobody waits any more, there is nobody to tell."""
        try:
            self.loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:  # the loop is closed: the run ended, and this thread was abandoned by it
            return

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class ThreadPool:
    """Run functions in daemon threads; a thread that outlives its call is abandoned and no longer counted."""

    def __init__(self, limit: int = MAX_THREADS) -> None:
        self._limit = limit
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._closed = False

    async def run(self, function: Callable[[], Any], abandoned: Callable[[], object] | None = None) -> Any:
        """Call `function` in a thread, with the caller's context variables, and return what it returns.

        Args:
            function: What to call.
            abandoned: Called where the caller is cancelled and the thread runs on, with nobody waiting for it.

        Raises:
            RuntimeError: In place of a `StopIteration`, which a future cannot carry (it would stay pending for ever).
        """
        job = _Job(function)
        with self._changed:
            self._jobs.append(job)
            self._staff()
        try:
            return await job.future
        except asyncio.CancelledError:
            if self._abandon(job) and abandoned is not None:
                abandoned()
            raise

    def close(self) -> None:
        """Let the waiting threads end; one that still works ends after its call."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _staff(self) -> None:
        """See that somebody takes the waiting jobs; called with the lock held."""
        if self._idle < len(self._jobs) and self._threads < self._limit:
            self._threads += 1
            threading.Thread(target=self._work, name="thena-tool", daemon=True).start()
        self._changed.notify()

    def _abandon(self, job: _Job) -> bool:
        """Give a job up; say whether a thread is at work on it."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
            elif not job.finished:
                job.abandoned = True
                self._threads -= 1
                self._staff()
            return job.abandoned

    def _work(self) -> None:
        while (job := self._next()) is not None:
            result, error = _attempt(job)
            with self._changed:
                job.finished = True
            job.deliver(result, error)
            if job.abandoned:
                return

    def _next(self) -> _Job | None:
        with self._changed:
            if not self._jobs and not self._closed:
                self._idle += 1
                self._changed.wait_for(lambda: self._jobs or self._closed, timeout=IDLE_SECONDS)
                self._idle -= 1
            if self._jobs:
                return self._jobs.popleft()
            self._threads -= 1
            return None


def _attempt(job: _Job) -> tuple[Any, BaseException | None]:
    try:
        return job.context.run(job.function), None
    except StopIteration as error:
        wrapped = RuntimeError("StopIteration was raised")
        wrapped.__cause__ = error
        return None, wrapped
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt belong to the caller
        return None, error
