"""The thread that writes an app's reports, so that no run and no event loop waits for a disk."""

from __future__ import annotations

import asyncio
import atexit
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from thena_core._render import said_by
from thena_core.record.logs import warn

PATIENCE = 0.5
"""Seconds that a run waits for its report: an idle disk needs some milliseconds, one that hangs holds nobody up."""

CROWD = 30
"""Reports in the queue from which on a run does not wait for its own at all."""

CLOSING = 10.0
"""Seconds without a single report done after which a closing app waits no longer."""

EXIT = 5.0
"""The same for the exit of a program that did not close its app."""

_IDLE = 5.0
_WORK = 0.001
_REST = 0.0002

Maker = Callable[[Callable[[], None]], None]
"""Makes a report; it calls what it is given between two pieces of work."""

Written = Future[bool]
"""Whether a report could be written; it never fails."""


class Writer:
    """One daemon thread, started by the first report and ended when there is nothing to do."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Maker, str, str, Written]] = queue.SimpleQueue()
        self._held: deque[tuple[Maker, str, str, Written]] = deque()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._given = 0
        self._done = 0
        self._failed: set[str] = set()

    def write(self, make: Maker, run_id: str, folder: str) -> Written:
        """Have a report written; never raises, and never waits.

        The thread gets it when the event loop's turn is over: what else is ready goes first.

        Args:
            make: Makes the report.
            run_id: Whose report it is, for the warning where it cannot be written.
            folder: Where reports go; a folder that fails is warned of once, until it works again.
        """
        written: Written = Future()
        with self._starting:  # taken by the thread only when it ends
            self._given += 1
            self._held.append((make, run_id, folder, written))
            asyncio.get_running_loop().call_soon(self._release)
            if self._thread is not None and self._thread.is_alive():  # it is not, in a process that was forked off
                return written
            self._thread = threading.Thread(target=self._work, name="thena-report", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:  # the interpreter is ending, or there may be no more threads
                self._thread = None
                self._held.clear()
                self._done = self._given
                written.set_result(False)
                failed = error
            else:
                atexit.register(self._drain)
                return written
        self._warn(run_id, folder, failed)
        return written

    async def wait_for(self, written: Written) -> bool:
        """Wait for a report as long as a run may; say whether it is there, or may still come."""
        if not written.done() and self._given - self._done < CROWD:
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()

            def wake() -> None:
                if not waiter.done():
                    waiter.set_result(None)

            timer = loop.call_later(PATIENCE, wake)
            written.add_done_callback(lambda _: _tell(loop, wake))
            try:
                await waiter
            finally:
                timer.cancel()
        return not written.done() or written.result()

    async def close(self) -> None:
        """Wait until everything is written, or nothing moves any more; the event loop stays free."""
        self._release()
        done, since = self._done, time.monotonic()
        while self._done < self._given and time.monotonic() - since < CLOSING:
            await asyncio.sleep(0.005)
            if self._done > done:
                done, since = self._done, time.monotonic()

    def _release(self) -> None:
        while self._held:
            self._jobs.put(self._held.popleft())

    def _drain(self) -> None:
        self._release()
        done, since = self._done, time.monotonic()
        while self._done < self._given and time.monotonic() - since < EXIT:
            time.sleep(0.005)
            if self._done > done:
                done, since = self._done, time.monotonic()

    def _work(self) -> None:
        while True:
            try:
                make, run_id, folder, written = self._jobs.get(timeout=_IDLE)
            except queue.Empty:
                with self._starting:
                    if self._held or not self._jobs.empty():
                        continue
                    self._thread = None
                    atexit.unregister(self._drain)
                    return
            done = self._attempt(make, run_id, folder)
            del make  # it holds the run's tree
            self._done += 1
            written.set_result(done)

    def _attempt(self, make: Maker, run_id: str, folder: str) -> bool:
        try:
            make(_breather())
        except Exception as error:  # noqa: BLE001 - whatever fails, the disk or the app's own masking: the run is over
            self._warn(run_id, folder, error)
            return False
        self._failed.discard(folder)
        return True

    def _warn(self, run_id: str, folder: str, error: Exception) -> None:
        if folder in self._failed:
            return
        self._failed.add(folder)
        text = f"[thena] The report of run {run_id} cannot be written; the next that fails there is not told of: "
        warn(text + said_by(error), UserWarning)


def _tell(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(wake)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return


def _breather() -> Callable[[], None]:
    """Return what lets other threads in after each millisecond of work.

    A thread that computes gives way only every five milliseconds (`sys.getswitchinterval`), and an event loop asks
    anew in every turn.
    """
    last = time.perf_counter()

    def breathe() -> None:
        nonlocal last
        if time.perf_counter() - last > _WORK:
            time.sleep(_REST)
            last = time.perf_counter()

    return breathe
