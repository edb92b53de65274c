"""What happened in a run: nodes in a tree, and the events of their start and end. Built only when somebody looks."""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any

from thena_core.record.event import Event, Kind, Phase, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thena_core.budget import Tracker
    from thena_core.messages import ToolRequest
    from thena_core.record.redact import Redactor

__all__ = ["Event", "Kind", "Listener", "Node", "Phase", "Recorder", "Status", "Used"]

Listener = Callable[[Event], None]
Used = tuple[int, int, int, float | None]
"""What the whole run has used so far: model calls, tool calls, tokens read and written, US dollars."""

FREE_PROGRESS = 100
"""Reports of progress that a step may make as fast as it likes; after that, those in between are not told."""
PROGRESS_SECONDS = 0.1

_position = attrgetter("position")


class Node:
    """One step of a run, while it happens and afterwards.

    It refers to the steps below it and not to the one above, so that a tree is freed as soon as nobody holds it.

    Attributes:
        id: Derived from the position in the run (`<run>/0/2`), never random: see `take_position`.
        parent_id: The id of the node that it stands under; `None` for the root.
        position: Its number among the steps that were asked for under the same node, from 0.
        depth: How many nodes stand above it.
        kind: What it is.
        name: The workflow's, agent's or tool's name.
        clock: When it started, in seconds of `time.perf_counter()`.
        started_at: The same moment in Unix seconds; both clocks are read once a run, so that differences between
            nodes are as precise as the monotonic clock, and nothing overlaps that did not.
        duration_ms: Milliseconds from start to end; `None` while it runs. `clock + duration_ms / 1000` is its end.
        status: `running`, then `ok` or `error`.
        outcome: For tools, how the call ended.
        error: What went wrong, in words.
        input: What went in: a tool's arguments, a chat's newest message.
        output: What came out; of a chat, its text.
        asked: The calls that a chat asked for.
        used: What the whole run had used when this step ended, itself included; `None` while it runs, and for an
            agent, which ends with the last of its calls.
        meta: Facts that layers, hooks and tools added; `changed_by` lists who changed arguments or output, with both
            values, `progress` is how far the step came.
        children: The steps under it, in the order asked; `None` where there are none, or no report is wanted.
    """

    __slots__ = (
        "asked",
        "children",
        "clock",
        "depth",
        "duration_ms",
        "error",
        "id",
        "input",
        "kind",
        "meta",
        "name",
        "outcome",
        "output",
        "parent_id",
        "position",
        "started_at",
        "status",
        "taken",
        "used",
    )

    kind: Kind
    name: str
    id: str
    parent_id: str | None
    depth: int
    position: int
    input: Any
    output: Any
    asked: Sequence[ToolRequest]
    status: Status
    outcome: str | None
    error: str | None
    clock: float
    started_at: float
    duration_ms: float | None
    used: Used | None
    meta: dict[str, Any]
    children: list[Node] | None
    taken: int

    def take_position(self) -> int:
        """Take the next position among the steps under this one.

        Who asks for several steps at once takes their positions at once and in that order, and opens each with its
        own: then the ids say what was asked for, the same in every run of the same script, also a resumed one,
        whichever of the steps gets to start first.
        """
        position = self.taken
        self.taken = position + 1
        return position


class Recorder:
    """Keep the tree of one run and tell its listeners; a nested run writes into its parent's.

    Args:
        run_id: The run's id; the root's, too.
        listeners: Called with every event, in order; each of them answers for what it raises.
        redact: Masks what the listeners see; `None` masks nothing.
        keeps: Whether the tree is kept for a report; without, a step is forgotten when it has ended.
        tracker: Counts what the run uses.
    """

    __slots__ = ("_began", "_listeners", "_redact", "_told", "keeps", "root", "run_id", "tracker")

    def __init__(
        self,
        run_id: str,
        listeners: tuple[Listener, ...] = (),
        *,
        redact: Redactor | None = None,
        keeps: bool = True,
        tracker: Tracker | None = None,
    ) -> None:
        self.run_id = run_id
        self.root: Node | None = None
        self.keeps = keeps
        self.tracker = tracker
        self._listeners = listeners
        self._redact = redact
        self._told: dict[str, tuple[int, float]] = {}
        self._began = time.time() - time.perf_counter()

    def open(
        self,
        kind: Kind,
        name: str,
        parent: Node | None,
        input: Any = None,  # noqa: A002
        position: int | None = None,
    ) -> Node:
        """Start a step under `parent` (the first one, without a parent, is the root).

        Args:
            kind: What it is.
            name: Its name.
            parent: The node that it stands under.
            input: What went in.
            position: What `parent.take_position()` gave when the step was asked for; taken now unless given.
        """
        # filled here and not by a constructor: some three are made a turn
        node = Node()
        if parent is None:
            self.root = node
            node.id, node.parent_id, node.depth, node.position = self.run_id, None, 0, 0
        else:
            if position is None:
                position = parent.taken
                parent.taken = position + 1
            node.id = f"{parent.id}/{position}"
            node.parent_id = parent.id
            node.depth = parent.depth + 1
            node.position = position
            if self.keeps:
                _add_child(parent, node)
        node.kind = kind
        node.name = name
        node.input = input
        node.output = node.outcome = node.error = node.duration_ms = node.used = node.children = None
        node.asked = ()
        node.status = "running"
        node.meta = {}
        node.taken = 0
        node.clock = clock = perf_counter()  # last, so that making the node is no part of its time
        node.started_at = self._began + clock
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
        node.duration_ms = (perf_counter() - node.clock) * 1000
        node.status = status
        node.output = output
        if outcome is not None:
            node.outcome = outcome
        if error is not None:
            node.error = error
        tracker = self.tracker
        if tracker is not None and node.kind != "agent":  # which ends with the last of its calls
            tokens = tracker.prompt_tokens + tracker.completion_tokens
            node.used = (tracker.chat_calls, tracker.tool_calls, tokens, tracker.cost_usd)
        if self._listeners:
            self._tell("end", node)
            if node is self.root:  # the run's end is the last that is told, whatever outlived it
                self._listeners = ()

    def progress(self, node: Node, done: float, total: float | None, message: str) -> None:
        """Report how far a step has come.

        What a step reports after its end is not told, nor is all of what it reports too often: beyond the first 100,
        one in a tenth of a second. The node's `meta["progress"]` is the newest in any case.
        """
        if node.status != "running":
            return
        node.meta["progress"] = {"done": done, "total": total, "message": message}
        if not self._listeners:
            return
        count, before = self._told.get(node.id, (0, 0.0))
        now = time.perf_counter()
        if count < FREE_PROGRESS or now - before >= PROGRESS_SECONDS:
            self._told[node.id] = count + 1, now
            self._tell("progress", node)

    def _tell(self, phase: Phase, node: Node) -> None:
        event = Event.of(phase, self.run_id, node, self._redact)
        for listener in self._listeners:
            listener(event)


def _add_child(parent: Node, node: Node) -> None:
    siblings = parent.children
    if siblings is None:
        parent.children = [node]
    else:
        siblings.append(node)
        if siblings[-2].position > node.position:
            siblings.sort(key=_position)
