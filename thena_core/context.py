"""What tools and hooks may see of the run that they work for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from typing_extensions import TypeVar

from thena_core.budget import RunUsage
from thena_core.errors import ThenaError
from thena_core.messages import Message
from thena_core.run import Run, Turn, current

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
        return self._run.id

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

    def usage(self) -> RunUsage:
        """Return what the run has used so far."""
        return self._run.usage()

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
    return place.run.context
