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

from thena_core.budget import RunUsage, Tracker
from thena_core.errors import BudgetExceededError, EndsRun
from thena_core.messages import Message, ToolRequest
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
    history: Sequence[Message] = field(repr=False)
    run_id: str
    report_path: Path | None = None


class Run:
    """The state of one run; private to the framework, which hands out a `Context`."""

    __slots__ = (
        "agents",
        "context",
        "data",
        "ended",
        "history",
        "id",
        "loop_ended",
        "nested",
        "on_text",
        "output",
        "parent",
        "recorder",
        "root",
        "services",
        "started",
        "state",
        "stopped_by",
        "tracker",
        "turn",
        "turns",
    )

    def __init__(
        self,
        run_id: str,
        *,
        history: list[Message],
        data: Any = None,
        state: Any = None,
        tracker: Tracker | None = None,
        recorder: Recorder | None = None,
        parent: Run | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self.id = run_id
        self.history = history
        self.data = data
        self.state = state
        self.tracker = tracker if tracker is not None else Tracker()
        self.recorder = recorder
        self.root: Node | None = None
        self.parent = parent
        self.on_text = on_text
        self.context: Context[Any]
        self.agents: dict[Any, Any] = {}
        self.services: Any = None  # di.keeper's, made at the first run-scoped service
        self.nested = 0
        self.ended: EndsRun | None = None
        self.output: Any = None
        self.stopped_by: StoppedBy | None = None
        self.loop_ended: StoppedBy | None = None
        self.turn = _NO_TURN
        self.turns = 0
        self.started = time.perf_counter()

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

    def usage(self) -> RunUsage:
        """Return what the run has used so far."""
        return self.tracker.usage(time.perf_counter() - self.started)

    @property
    def depth(self) -> int:
        """How many runs stand above this one."""
        return 0 if self.parent is None else self.parent.depth + 1


def being_cancelled() -> bool:
    """Whether somebody cancels the task that runs; a `CancelledError` without that is the code's own."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


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


@dataclass(slots=True)
class Place:
    """Where the code that asks is: in which run, under which node (`None` when nobody looks)."""

    run: Run
    node: Node | None


_NO_TURN = Turn()

current: ContextVar[Place] = ContextVar("thena_current")
"""The one piece of module state: the place of the task that asks."""
