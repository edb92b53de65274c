"""What happened in a run, for tests: the steps in a tree, read from whatever a test holds of the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from thena_core._render import shortened, type_name
from thena_core.errors import ThenaError
from thena_core.handle import RunHandle
from thena_core.record.tree import Event
from thena_core.run import RunResult

_MAX_SHOWN = 100
"""Characters of arguments or of an error in one line of the tree."""


@dataclass(slots=True, eq=False)
class Step:
    """One step of a run: the run's workflow, a turn of an agent, a model call, a tool call.

    Attributes:
        kind: `workflow`, `loop`, `parallel`, `agent`, `chat` or `tool`.
        name: The workflow's, agent's or tool's name.
        input: What went in; of a tool call the arguments as the model sent them.
        status: `running`, `ok` or `error`.
        outcome: Of a tool call, how it ended.
        error: What went wrong, in words.
        output: What came out; of a tool call what the model reads.
        duration_ms: Milliseconds from start to end; `None` while it runs.
        meta: Facts that layers, hooks and tools added.
        children: The steps under it, in the order in which they started.
    """

    kind: str
    name: str
    input: Any = None
    status: str = "running"
    outcome: str | None = None
    error: str | None = None
    output: Any = None
    duration_ms: float | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    children: list[Step] = field(default_factory=list["Step"])

    @property
    def arguments(self) -> Any:
        """The arguments of a tool call as a mapping, also where the model sent them as JSON; else what it sent."""
        if isinstance(self.input, str):
            try:
                return json.loads(self.input)
            except ValueError:
                return self.input
        return self.input

    def below(self) -> Iterator[Step]:
        """Go through the steps under this one, as the tree reads from top to bottom."""
        for child in self.children:
            yield child
            yield from child.below()

    def __str__(self) -> str:
        if self.kind != "tool":
            return f"{self.kind} {self.name}{_ended(self)}"
        return f"tool {shown_call(self.name, self.arguments)} → {self.outcome or self.status}{_ended(self)}"


class Record:
    """Keep what happens in an app's runs: `record = Record()`, then `Thena(…, log=record)`.

    `assert_calls` and `assert_outcome` read it; the pytest fixture `thena_record` is one, and shows its tree where the
    test fails.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = list(events)

    def __call__(self, event: Event) -> None:
        """Take an event; called by the run."""
        self.events.append(event)

    @property
    def steps(self) -> list[Step]:
        """The outermost step of each run: its workflow, or the tool of an `app.call`."""
        roots: list[Step] = []
        known: dict[str, Step] = {}
        for event in self.events:
            if event.phase == "start":
                step = known[event.id] = Step(event.kind, event.name, event.input)
                parent = known.get(event.parent_id) if event.parent_id is not None else None
                (roots if parent is None else parent.children).append(step)
            elif event.phase == "end" and event.id in known:
                step = known[event.id]
                step.status, step.outcome, step.error = event.status, event.outcome, event.error
                step.output, step.duration_ms, step.meta = event.output, event.duration_ms, event.meta
        return roots

    def __str__(self) -> str:
        return tree(self.steps)


def steps_of(source: Any) -> list[Step]:
    """Read the steps of a run from what a test holds of it.

    Args:
        source: A `Record`, the handle of a run that has ended, the result of a run with a report, or events.

    Raises:
        ThenaError: Where nothing was recorded, or the run goes on, with the way out.
        TypeError: For anything else.
    """
    if isinstance(source, Record):
        return source.steps
    if isinstance(source, RunHandle):
        return Record(_passed(source)).steps
    if isinstance(source, RunResult):
        return _reported(source)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        events = cast("Sequence[Any]", source)
        if all(isinstance(event, Event) for event in events):
            return Record(events).steps
    raise TypeError(
        f"[thena] {type_name(cast('Any', source).__class__)} is no record of a run. Give a Record (made with "
        f"Thena(…, log=record)), a handle, a result with a report, or a list of events."
    )


def tree(steps: Sequence[Step], depth: int = 1) -> str:
    """Draw steps as a tree, one line each."""
    lines: list[str] = []
    for step in steps:
        lines.append("  " * depth + str(step))
        if step.children:
            lines.append(tree(step.children, depth + 1))
    return "\n".join(lines)


def shown_call(name: str, arguments: Any = None) -> str:
    """Write a call for a message: `read_file {"path": "a"}`."""
    shown: Any = arguments
    if not shown:
        return name
    try:
        text = str(shown) if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    except (TypeError, ValueError):  # what a test expects may be anything, `unittest.mock.ANY` for example
        text = repr(shown)
    return f"{name} {shortened(text, _MAX_SHOWN)}"


def _ended(step: Step) -> str:
    if step.status == "running":
        return "" if step.kind == "tool" else " (running)"
    said = f": {shortened(step.error, _MAX_SHOWN)}" if step.error else ""
    return said if step.kind == "tool" or step.status == "ok" else f" ✗{said}"


def _passed(handle: RunHandle) -> Iterator[Event]:
    """Go through the events of a run that has ended: they are all there, so nothing needs to be awaited."""
    events = handle.events()
    while True:
        waiting = cast("Any", anext(events))
        try:
            waiting.send(None)
        except StopIteration as found:
            yield found.value
        except StopAsyncIteration:
            return
        else:
            waiting.close()
            raise ThenaError(f"[thena] The run {handle.run_id} has not ended. Write first: await handle.result()")


def _reported(result: RunResult) -> list[Step]:
    if result.report_path is None:
        raise ThenaError(
            f"[thena] The run {result.run_id} was not recorded: its result holds the answer, and not what happened. "
            f"Write: record = Record(), Thena(…, log=record), and give the record; or run with report=True."
        )
    document = json.loads((result.report_path / "report.json").read_text(encoding="utf-8"))
    return [_from_report(document["root"])]


def _from_report(node: Mapping[str, Any]) -> Step:
    return Step(
        node["kind"],
        node["name"],
        node.get("input"),
        node["status"],
        node.get("outcome"),
        node.get("error"),
        node.get("output"),
        node.get("duration_ms"),
        node.get("meta") or {},
        [_from_report(child) for child in node.get("children") or ()],
    )
