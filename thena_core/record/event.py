"""One event of a run, as those who watch it get it: masked, and only as far as they look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing import Self

    from thena_core.messages import ToolRequest
    from thena_core.record.redact import Redactor
    from thena_core.record.tree import Node

Kind = Literal["workflow", "loop", "parallel", "agent", "chat", "tool"]
Status = Literal["running", "ok", "error"]
Phase = Literal["start", "end", "progress"]

SHORT = 100
"""Characters of `Event.brief`, unless somebody says otherwise."""


class Event:
    """The start or end of a step, or its progress.

    `name`, `error`, `input`, `output` and `meta` are masked, and made plain enough for JSON, when they are first looked
    at: an observer pays for what it reads, and nothing is built of what nobody reads.

    Attributes:
        phase: `start`, `end`, or `progress`.
        run_id: The run's id.
        id: The step's, derived from its position in the run; the same at its start and its end.
        parent_id: The id of the step above; `None` for the run itself.
        depth: How many steps stand above.
        kind: `workflow`, `loop`, `parallel`, `agent`, `chat` or `tool`.
        status: `running` until the end, then `ok` or `error`.
        outcome: How a tool's call ended: `ok`, `error`, `invalid`, `unknown`, `denied`, `over_budget`, `timeout`,
            `cancelled`, `fatal`.
        started_at: When the step started, in Unix seconds.
        duration_ms: Milliseconds from start to end; `None` before the end.
    """

    __slots__ = (
        "_asked",
        "_error",
        "_input",
        "_meta",
        "_name",
        "_output",
        "_redact",
        "_shown",
        "depth",
        "duration_ms",
        "id",
        "kind",
        "outcome",
        "parent_id",
        "phase",
        "run_id",
        "started_at",
        "status",
    )

    def __init__(
        self,
        phase: Phase,
        run_id: str,
        id: str,  # noqa: A002
        parent_id: str | None,
        depth: int,
        kind: Kind,
        name: str,
        *,
        status: Status = "running",
        outcome: str | None = None,
        error: str | None = None,
        started_at: float = 0.0,
        duration_ms: float | None = None,
        input: Any = None,  # noqa: A002
        output: Any = None,
        meta: Mapping[str, Any] | None = None,
        redact: Redactor | None = None,
    ) -> None:
        self.phase: Phase = phase
        self.run_id = run_id
        self.id = id
        self.parent_id = parent_id
        self.depth = depth
        self.kind: Kind = kind
        self.status: Status = status
        self.outcome = outcome
        self.started_at = started_at
        self.duration_ms = duration_ms
        self._name = name
        self._error = error
        self._input = input
        self._output = output
        self._asked: Sequence[ToolRequest] = ()
        self._meta = meta
        self._redact = redact
        self._shown: dict[str, Any] | None = None

    @classmethod
    def of(cls, phase: Phase, run_id: str, node: Node, redact: Redactor | None) -> Self:
        """Make an event of what a node says now; without the constructor, which takes thrice as long."""
        self = cls.__new__(cls)
        self.phase = phase
        self.run_id = run_id
        self.id = node.id
        self.parent_id = node.parent_id
        self.depth = node.depth
        self.kind = node.kind
        self.status = node.status
        self.outcome = node.outcome
        self.started_at = node.started_at
        self.duration_ms = node.duration_ms
        self._name = node.name
        self._error = node.error
        self._input = node.input
        self._output = node.output
        self._asked = node.asked
        self._meta = node.meta.copy() if node.meta else None
        self._redact = redact
        self._shown = None
        return self

    @property
    def name(self) -> str:
        """The workflow's, agent's, model service's or tool's name."""
        return self._name if self._redact is None else self._redact(self._name)

    @property
    def error(self) -> str | None:
        """What went wrong, in words."""
        return self._error if self._redact is None or not self._error else self._plain("error", self._error)

    @property
    def input(self) -> Any:
        """What went in: a tool's arguments as the model sent them, a chat's newest message; a copy."""
        return self._plain("input", self._input)

    @property
    def output(self) -> Any:
        """What came out; a copy."""
        return self._plain("output", said(self._output, self._asked))

    @property
    def meta(self) -> Mapping[str, Any]:
        """What layers, hooks and tools added until now; a copy. `progress` holds `done`, `total` and `message`."""
        return self._plain("meta", self._meta) if self._meta else {}

    def brief(self, limit: int = SHORT) -> str:
        """Return what matters most of the event, for a line: masked, and with nothing that steers a terminal.

        What went in at the start, what came out or went wrong at the end, how far it is on the way.

        Args:
            limit: The most characters.
        """
        from thena_core.record.oneline import how_far, in_short  # noqa: PLC0415 - only who prints needs it

        if self.phase == "progress":
            return how_far(self._meta or {}, limit, self._redact)
        value = (
            self._input
            if self.phase == "start"
            else self._error
            if self.status == "error"
            else said(self._output, self._asked)
        )
        return "" if value is None else in_short(value, limit, self._redact)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, ready for `json.dumps`."""
        return {
            "phase": self.phase,
            "run_id": self.run_id,
            "id": self.id,
            "parent_id": self.parent_id,
            "depth": self.depth,
            "kind": self.kind,
            "name": self.name,
            "status": self.status,
            "outcome": self.outcome,
            "error": self.error,
            "started_at": self.started_at,
            "duration_ms": self.duration_ms,
            "input": self.input,
            "output": self.output,
            "meta": dict(self.meta),
        }

    def __repr__(self) -> str:
        # never the content: a repr ends up in logs
        return f"<Event {self.phase} of {self.kind} {self.id}: {self.status}>"

    def _plain(self, field: str, value: Any) -> Any:
        if value is None:
            return None
        shown = self._shown
        if shown is None:
            shown = self._shown = {}
        if field not in shown:
            from thena_core.record.snapshot import mask_value  # noqa: PLC0415 - its patterns cost time to compile

            shown[field] = mask_value(value, self._redact)
        return shown[field]


def said(output: Any, asked: Sequence[ToolRequest]) -> Any:
    """Say what came out of a step: of a chat, beside its text, the calls that it asked for."""
    if not asked:
        return output
    calls = [{"name": request.name, "arguments": request.arguments} for request in asked]
    return {"content": output, "tool_requests": calls}
