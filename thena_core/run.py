"""One run: what it was given, what it has said and used, and the one context variable that finds it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from thena_core._frozen import opened
from thena_core.budget import RunUsage, Tracker
from thena_core.errors import BudgetExceededError, EndsRun, ThenaError
from thena_core.messages import History, ToolRequest
from thena_core.record.tree import Node, Recorder

if TYPE_CHECKING:
    from thena_core.context import Context

StoppedBy = Literal["answered", "until", "exhausted", "fails", "budget", "stop"]


@dataclass(slots=True)
class Turn:
    """The newest step of an agent: one model answer and the tools that it asked for.

    Attributes:
        requests: The calls of this turn, in the order asked.
        errors: How many of them failed.
        response: The model's text.
    """

    requests: Sequence[ToolRequest] = ()
    errors: int = 0
    response: str = ""

    @property
    def tool_names(self) -> Sequence[str]:
        """The tools of this turn, in the order asked."""
        return [request.name for request in self.requests]

    @property
    def called_tool(self) -> bool:
        """Whether the model asked for a tool."""
        return bool(self.requests)

    @property
    def tool_error(self) -> bool:
        """Whether every top-level call of the turn failed (and there was one)."""
        return 0 < len(self.requests) == self.errors


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run gives back.

    Attributes:
        output: The answer; after an early stop the model's last text, or `None`.
        usage: What was used.
        stopped_by: Why it ended.
        history: Everything that was said; pass it to `run(history=…)` to go on.
        run_id: Its id.
        report_path: The folder of its report, or `None`.
    """

    output: Any
    usage: RunUsage
    stopped_by: StoppedBy
    history: History = field(repr=False)
    run_id: str
    report_path: Path | None = None


_OpenResult = opened(RunResult)


@dataclass(slots=True)
class LoopState:
    """How far the loop around the agent has come.

    Attributes:
        iteration: The number of this iteration, from 1.
        fails: How many failed turns in a row lie behind it.
        max_iterations: How many iterations there may be.
    """

    iteration: int
    fails: int
    max_iterations: int


class Run:
    """The state of one run; private to the framework, which hands out a `Context`."""

    # Defaults of the class for what few runs read before they set it; everything else is set below, since Python 3.11
    # reads an instance's own attribute ten times as fast as one of its class.
    root: Node | None = None
    context: Any = None  # a Context, until the run has ended
    task: asyncio.Task[Any] | None = None
    baseline: int = 0
    nested: int = 0
    stop_event: asyncio.Event | None = None
    loop: LoopState | None = None
    loop_ended: StoppedBy | None = None
    requests: Sequence[ToolRequest] = ()
    response: str = ""
    tool_errors: int = 0

    def __init__(
        self,
        run_id: str,
        history: History,
        data: Any = None,
        state: Any = None,
        tracker: Tracker | None = None,
        recorder: Recorder | None = None,
        parent: Run | None = None,
    ) -> None:
        self.id = run_id
        self.history = history
        self.data = data
        self.state = state
        self.tracker = tracker if tracker is not None else Tracker()
        self.recorder = recorder
        self.parent = parent
        self.agents: dict[Any, Any] = {}
        self.calls: dict[Any, asyncio.Task[Any] | None] | None = None  # by invocation: some services repeat ids
        self.ended: EndsRun | None = None
        self.stopping: str | None = None
        self.abort_reason: str | None = None
        self.stopped_by: StoppedBy | None = None
        self.services: Any = None  # di.keeper's, made at the first run-scoped service
        self.disposers: list[Callable[[], Any]] | None = None
        self.branch_of: Run | None = None  # for a step taken beside others: the run that it is a part of
        self.on_text: Callable[[str], None] | None = None if parent is None else parent.on_text
        self.turns = 0
        self.output: Any = None
        self.started = time.perf_counter()

    @property
    def turn(self) -> Turn:
        """The newest turn, for those who ask; the run itself goes by its three fields."""
        return Turn(self.requests, self.tool_errors, self.response)

    def end(self, error: EndsRun) -> EndsRun:
        """Note that the run must end with `error`, and return it to be raised.

        Noting it first means that nobody who catches it on its way out (a tool around a packed call, a middleware)
        keeps the run alive: the agent looks here after each step. A budget that only stops the run is no error.
        """
        if isinstance(error, BudgetExceededError) and error.stops:
            return error
        run: Run | None = self
        while run is not None and run.ended is None:
            run.ended = error
            run = run.parent
        return error

    def abort(self, reason: str) -> None:
        """Stop the top run and everything in flight; what it awaits is cancelled. Any thread may call it."""
        top = self.top
        task = top.task
        if top.abort_reason is not None or task is None:
            return
        if not on_loop_of(task):
            task.get_loop().call_soon_threadsafe(top.abort, reason)
            return
        top.abort_reason = reason
        top.tell(reason)
        task.cancel()

    def tell(self, reason: str) -> None:
        """Tell the tools that look at `ctx.signal` that the run is being stopped, and why."""
        if self.stopping is None:
            self.stopping = reason
            if self.stop_event is not None:
                self.stop_event.set()

    def stop(self) -> None:
        """Let the top run end after the step that it is in."""
        self.top.stopped_by = "stop"

    @property
    def top(self) -> Run:
        """The outermost run: what `ctx.abort()` and `ctx.stop()` act on."""
        return self if self.parent is None else self.parent.top

    @property
    def whole(self) -> Run:
        """The run of which this is a branch, or itself: what has the services, the clean-up and the id."""
        return self if self.branch_of is None else self.branch_of.whole

    @property
    def is_over(self) -> bool:
        """Whether no further step may be taken: something stopped this run, or stopped or aborted the top one."""
        top = self.top
        return self.stopped_by is not None or top.stopped_by is not None or top.abort_reason is not None

    def usage(self) -> RunUsage:
        """Return what the run has used so far."""
        tracker = self.tracker
        return RunUsage._make(
            (
                tracker.chat_calls,
                tracker.tool_calls,
                tracker.prompt_tokens,
                tracker.completion_tokens,
                tracker.cached_tokens,
                tracker.cost_usd,
                time.perf_counter() - self.started,
            )
        )

    def result(self, stopped_by: StoppedBy) -> RunResult:
        """Return what the run gives back."""
        result = _OpenResult()
        result.output = self.output
        result.usage = self.usage()
        result.stopped_by = stopped_by
        result.history = self.history
        result.run_id = self.id
        result.report_path = None
        result.__class__ = RunResult
        return cast("RunResult", result)

    @property
    def depth(self) -> int:
        """How many runs stand above this one."""
        return 0 if self.parent is None else self.parent.depth + (self.branch_of is None)

    def on_dispose(self, function: Callable[[], Any]) -> None:
        """Have a function called when the whole run ends, in any way; the last one given is called first."""
        whole = self.whole
        if whole.disposers is None:
            whole.disposers = []
        whole.disposers.append(function)

    def forget(self) -> None:
        """Let go of what refers back to the run, so that it is freed at once and not by the garbage collector."""
        self.agents.clear()
        self.calls = self.task = None
        self.context = None

    def living_context(self) -> Context[Any]:
        """Return what tools and hooks see of the run, for code that may have outlived it.

        Raises:
            ThenaError: Where the run has ended.
        """
        context: Context[Any] | None = self.context
        if context is None:
            raise ThenaError(f"[thena] The run {self.id} has ended; what worked for it looks at it no more.")
        return context


def on_loop_of(task: asyncio.Task[Any]) -> bool:
    """Whether the calling code runs on a task's event loop, and not in a thread."""
    try:
        return asyncio.get_running_loop() is task.get_loop()
    except RuntimeError:
        return False


def being_cancelled() -> bool:
    """Whether somebody cancels the task that runs; a `CancelledError` without that is the code's own."""
    task = asyncio.current_task()
    if task is None:
        return True
    place = current.get(None)
    top = None if place is None else place.run.top
    # a run may begin in a task that is being cancelled already: only what came since counts
    return task.cancelling() > (top.baseline if top is not None and top.task is task else 0)


def forget_cancellation() -> None:
    """Take back the cancellation that a failed task group leaves on its task before Python 3.13.

    Nobody asked for it, and it would make the next `CancelledError` of a tool's own look like the run's.
    """
    task = asyncio.current_task()
    if sys.version_info < (3, 13) and task is not None and task.cancelling() > 0:
        task.uncancel()


def passes(error: BaseException) -> bool:
    """Whether a guard must let an exception pass: a cancellation that somebody asked for, the process's end."""
    if isinstance(error, asyncio.CancelledError):
        return being_cancelled()
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error)
        return inner.subgroup((KeyboardInterrupt, SystemExit)) is not None
    return False


def worded(run: Run, error: BaseException) -> str:
    """Say for the record what ended a step: an abort by its reason, what is ours in its own words, else the class."""
    if isinstance(error, asyncio.CancelledError):
        reason = run.top.abort_reason
        return "cancelled" if reason is None else f"aborted: {reason}"
    return str(error) if isinstance(error, ThenaError) else type(error).__name__


@dataclass(slots=True)
class Place:
    """Where the code that asks is.

    Attributes:
        run: In which run.
        node: Under which node; `None` when nobody looks.
        lane: In which of the calls that run beside each other (an `Invocation`); `None` where they do not.
    """

    run: Run
    node: Node | None
    lane: Any = None


current: ContextVar[Place] = ContextVar("thena_current")
"""The one piece of module state: the place of the task that asks."""
