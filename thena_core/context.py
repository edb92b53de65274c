"""What tools and hooks may see of the run that they work for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic

from typing_extensions import TypeVar

from thena_core.budget import RunUsage
from thena_core.errors import ThenaError
from thena_core.messages import Message
from thena_core.run import LoopState, Run, Turn, current, on_loop_of
from thena_core.signals import Signal

DataT = TypeVar("DataT", default=Any)


class Context(Generic[DataT]):
    """The run, as its tools, hooks and middleware see it. `Context[Tenant]` types `.data`.

    As a parameter of `execute` it is injected: `ctx: Context`, or `Annotated[Context, Context]`.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._run.whole.id

    @property
    def data(self) -> DataT:
        """What `run(data=…)` was given: never sent to the model, never in events, log or report."""
        return self._run.data  # type: ignore[no-any-return]

    @property
    def state(self) -> Any:
        """The workflow's state: one instance per run."""
        return self._run.state

    @property
    def turn(self) -> Turn:
        """The newest turn: `called_tool`, `tool_names`, `tool_error`, `response`."""
        return self._run.turn

    @property
    def history(self) -> Sequence[Message]:
        """What has been said so far; a copy."""
        return tuple(self._run.history)

    @property
    def output(self) -> Any:
        """The model's last text, or what the agent made of it."""
        return self._run.output

    @property
    def loop(self) -> LoopState | None:
        """How far the loop around the agent has come: `iteration`, `fails`, `max_iterations`."""
        return self._run.loop

    @property
    def signal(self) -> Signal:
        """Tells a sync or long tool that it should stop."""
        return Signal(self._run)

    @property
    def deadline(self) -> float | None:
        """When the budget's `max_duration` cuts the run off, on the event loop's clock (`loop.time()`, seconds).

        The nearest one of this run and of those above; `None` where there is none. `asyncio.timeout_at` takes it.
        """
        return self._run.tracker.deadline

    def usage(self) -> RunUsage:
        """Return what the run has used so far."""
        return self._run.usage()

    def abort(self, reason: str = "aborted by a tool or hook") -> None:
        """Stop the top run at once: what is in flight is cancelled, and its result raises `RunAborted`."""
        self._run.abort(reason)

    def stop(self) -> None:
        """Let the top run end after the step that it is in, with what there is (`stopped_by="stop"`)."""
        self._run.stop()

    def on_dispose(self, function: Callable[[], Any]) -> None:
        """Have a function called when the run ends, in any way; the last one given is called first.

        Args:
            function: Sync or async; one that raises does not stop the others.
        """
        self._run.on_dispose(function)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report how far the step has come, to the events and the console; nothing happens where nobody looks.

        Args:
            done: How much is done, in any unit.
            total: How much there is, in the same unit, if known.
            message: A few words.
        """
        place, run = current.get(None), self._run
        if place is None or place.run is not run or place.node is None or run.recorder is None:
            return
        top = run.top
        if top.task is None or on_loop_of(top.task):
            run.recorder.progress(place.node, done, total, message)
        else:  # a sync tool in its thread: those who listen are on the loop
            top.task.get_loop().call_soon_threadsafe(run.recorder.progress, place.node, done, total, message)

    def meta(self, **data: Any) -> None:
        """Add facts to the node of the step that is running; nothing happens where nobody looks."""
        place = current.get(None)
        if place is not None and place.run is self._run and place.node is not None:
            place.node.meta.update(data)

    def __repr__(self) -> str:
        # never the data, the state or the history: a repr ends up in logs
        return f"<Context of run {self._run.id}>"


def current_context() -> Context[Any]:
    """Return the context of the run that the calling code works for.

    Raises:
        ThenaError: Outside of a run.
    """
    place = current.get(None)
    if place is None:
        raise ThenaError("[thena] current_context() was called outside of a run: it works in what app.run() reaches.")
    return place.run.living_context()
