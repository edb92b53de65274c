"""What happened in a run: nodes in a tree, and the events of their start and end. Built only when somebody looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["workflow", "loop", "parallel", "agent", "chat", "tool"]
Status = Literal["running", "ok", "error"]
Phase = Literal["start", "end", "progress"]


@dataclass(slots=True, eq=False)
class Node:
    """One step of a run, while it happens and afterwards.

    Attributes:
        id: Derived from the position in the run (`<run>/0/2`), never random.
        kind: What it is.
        name: The workflow's, agent's or tool's name.
        parent: The node that it stands under; `None` for the root.
        started_at: Unix time in seconds.
        duration_ms: Milliseconds from start to end; `None` while it runs.
        status: `running`, then `ok` or `error`.
        outcome: For tools, how the call ended.
        error: What went wrong, in words.
        input: What went in: a tool's arguments, a chat's newest message.
        output: What came out.
        meta: Facts that layers, hooks and tools added.
    """

    id: str
    kind: Kind
    name: str
    parent: Node | None
    started_at: float
    clock: float
    depth: int = 0
    duration_ms: float | None = None
    status: Status = "running"
    outcome: str | None = None
    error: str | None = None
    input: Any = None
    output: Any = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    children: list[Node] = field(default_factory=list["Node"])


@dataclass(slots=True, frozen=True)
class Event:
    """The start or end of a step, or its progress, as listeners get it."""

    phase: Phase
    run_id: str
    id: str
    parent_id: str | None
    depth: int
    kind: Kind
    name: str
    status: Status
    outcome: str | None
    error: str | None
    duration_ms: float | None
    input: Any
    output: Any
    meta: Mapping[str, Any]


Listener = Callable[[Event], None]


class Recorder:
    """Keep the tree of one run and tell its listeners; a nested run writes into its parent's."""

    __slots__ = ("_listeners", "root", "run_id")

    def __init__(self, run_id: str, listeners: tuple[Listener, ...] = ()) -> None:
        self.run_id = run_id
        self.root: Node | None = None
        self._listeners = listeners

    def open(self, kind: Kind, name: str, parent: Node | None, input: Any = None) -> Node:  # noqa: A002
        """Start a step under `parent` (the first one, without a parent, is the root)."""
        if parent is None:
            node = Node(self.run_id, kind, name, None, time.time(), time.perf_counter(), 0, input=input)
            self.root = node
        else:
            siblings = parent.children
            node_id = f"{parent.id}/{len(siblings)}"
            node = Node(node_id, kind, name, parent, time.time(), time.perf_counter(), parent.depth + 1, input=input)
            siblings.append(node)
        if self._listeners:
            self._tell("start", node)
        return node

    def close(
        self,
        node: Node,
        status: Status = "ok",
        *,
        outcome: str | None = None,
        error: str | None = None,
        output: Any = None,
    ) -> None:
        """End a step."""
        node.duration_ms = (time.perf_counter() - node.clock) * 1000
        node.status = status
        node.outcome = outcome
        node.error = error
        node.output = output
        if self._listeners:
            self._tell("end", node)

    def progress(self, node: Node, done: float, total: float | None, message: str) -> None:
        """Report how far a step has come."""
        node.meta["progress"] = {"done": done, "total": total, "message": message}
        if self._listeners:
            self._tell("progress", node)

    def _tell(self, phase: Phase, node: Node) -> None:
        parent_id = node.parent.id if node.parent is not None else None
        event = Event(
            phase,
            self.run_id,
            node.id,
            parent_id,
            node.depth,
            node.kind,
            node.name,
            node.status,
            node.outcome,
            node.error,
            node.duration_ms,
            node.input,
            node.output,
            node.meta,
        )
        for listener in self._listeners:
            listener(event)
