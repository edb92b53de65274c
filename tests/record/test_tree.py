"""Tests of thena_core.record.tree."""

from __future__ import annotations

import gc
import time
import weakref
from itertools import pairwise

import pytest

from thena_core.budget import Budget, Tracker
from thena_core.messages import Usage
from thena_core.record.event import Event
from thena_core.record.tree import FREE_PROGRESS, Node, Recorder


def ids(node: Node) -> list[str]:
    return [node.id, *(found for child in node.children or () for found in ids(child))]


def test_ids_are_positions() -> None:
    """A step's id is its parent's and its number there; the root's is the run's."""
    recorder = Recorder("run")
    root = recorder.open("workflow", "w", None)
    for _ in range(2):
        recorder.open("chat", "c", recorder.open("agent", "a", root))
    assert ids(root) == ["run", "run/0", "run/0/0", "run/1", "run/1/0"]
    assert root.children is not None
    agent = root.children[1]
    assert (agent.parent_id, agent.depth, agent.position) == ("run", 1, 1)
    assert (root.parent_id, root.depth) == (None, 0)


def test_positions_are_those_of_asking() -> None:
    """Steps asked for together keep the order asked, whichever starts first, and later ones come after them."""
    recorder = Recorder("run")
    root = recorder.open("workflow", "w", None)
    asked = [root.take_position() for _ in range(3)]
    late = recorder.open("tool", "late", root)
    for position in (asked[2], asked[0], asked[1]):
        recorder.open("tool", f"t{position}", root, position=position)
    assert late.id == "run/3"
    assert [(child.id, child.name) for child in root.children or ()] == [
        ("run/0", "t0"), ("run/1", "t1"), ("run/2", "t2"), ("run/3", "late"),
    ]  # fmt: skip


def test_times_are_monotonic() -> None:
    """Starts and durations are of one clock, so that nothing seems to overlap that did not; the wall clock is near."""
    recorder = Recorder("run")
    root = recorder.open("workflow", "w", None)
    for _ in range(20):
        recorder.close(recorder.open("tool", "t", root))
    for one, other in pairwise(root.children or ()):
        assert one.duration_ms is not None
        assert one.clock + one.duration_ms / 1000 <= other.clock
        assert other.started_at - one.started_at == pytest.approx(other.clock - one.clock, abs=1e-6)
    assert abs(root.started_at - time.time()) < 60


def test_what_the_run_had_used_stands_at_each_step() -> None:
    """A step that has ended says what the run had used until then, itself included; one that runs does not yet."""
    tracker = Tracker(Budget(max_tool_calls=5))
    recorder = Recorder("run", tracker=tracker)
    root = recorder.open("workflow", "w", None)
    chat = recorder.open("chat", "c", root)
    tracker.take_chat()
    tracker.settle(Usage(10, 5, 0, 0.25))
    recorder.close(chat)
    tool = recorder.open("tool", "t", root)
    tracker.take_tool("t")
    recorder.close(tool)
    assert (chat.used, tool.used, root.used) == ((1, 0, 15, 0.25), (1, 1, 15, 0.25), None)


def test_a_tree_that_nobody_wants_is_not_kept() -> None:
    """Without a report a step is forgotten when it has ended, however long the run goes on; ids stay the same."""
    recorder = Recorder("run", keeps=False)
    root = recorder.open("workflow", "w", None)
    seen = [recorder.open("tool", "t", root).id for _ in range(3)]
    assert seen == ["run/0", "run/1", "run/2"]
    assert root.children is None


def test_a_tree_is_freed_at_once() -> None:
    """No cycle keeps a tree for the garbage collector."""

    class Marked:
        """Can be watched."""

    value = Marked()
    seen = weakref.ref(value)
    recorder = Recorder("run")
    root = recorder.open("workflow", "w", None)
    recorder.close(recorder.open("tool", "t", root, value), output=value)
    del value
    gc.disable()
    try:
        assert seen() is not None
        del root, recorder
        assert seen() is None
    finally:
        gc.enable()


@pytest.mark.behaviour("O03")
def test_no_event_is_built_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a report alone no event is made."""
    monkeypatch.setattr("thena_core.record.tree.Event", None)
    recorder = Recorder("run")
    node = recorder.open("tool", "t", None)
    recorder.progress(node, 1, 2, "half")
    recorder.close(node)
    assert node.meta["progress"] == {"done": 1, "total": 2, "message": "half"}


def test_events_say_what_was_then() -> None:
    """An event that is looked at late shows what was known when it happened."""
    seen: list[Event] = []
    recorder = Recorder("run", (seen.append,))
    node = recorder.open("tool", "t", None, {"path": "a"})
    recorder.progress(node, 1, 2, "one")
    recorder.progress(node, 2, 2, "two")
    node.meta["rows"] = 3
    recorder.close(node, "error", outcome="denied", error="no", output="out")
    start, one, two, end = seen
    assert [event.phase for event in seen] == ["start", "progress", "progress", "end"]
    assert (start.status, start.outcome, start.duration_ms, start.output, dict(start.meta)) == (
        "running",
        None,
        None,
        None,
        {},
    )
    assert (one.meta["progress"]["message"], two.meta["progress"]["message"]) == ("one", "two")
    assert (end.status, end.outcome, end.error, end.output, end.meta["rows"]) == ("error", "denied", "no", "out", 3)
    assert {event.started_at for event in seen} == {node.started_at}


@pytest.mark.behaviour("S03")
def test_the_runs_end_is_the_last_that_is_told() -> None:
    """What outlives the run (a thread that reports on, a task that nobody awaited) comes after its end for nobody."""
    seen: list[Event] = []
    recorder = Recorder("run", (seen.append,))
    root = recorder.open("workflow", "w", None)
    tool = recorder.open("tool", "t", root)
    recorder.close(root)
    recorder.progress(tool, 1, 2, "late")
    recorder.close(tool)
    recorder.close(recorder.open("tool", "later", root))
    assert [(event.phase, event.name) for event in seen] == [("start", "w"), ("start", "t"), ("end", "w")]


def test_progress_after_the_end_is_none() -> None:
    """A step that has ended makes no progress."""
    seen: list[Event] = []
    recorder = Recorder("run", (seen.append,))
    root = recorder.open("workflow", "w", None)
    tool = recorder.open("tool", "t", root)
    recorder.close(tool)
    recorder.progress(tool, 1, 2, "late")
    assert "progress" not in tool.meta
    assert [event.phase for event in seen] == ["start", "start", "end"]


@pytest.mark.behaviour("C05", "S03")
def test_a_flood_of_progress_is_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that reports without end does not push other steps' events out; the newest is known all the same."""
    now = [1_000.0]
    monkeypatch.setattr("thena_core.record.tree.time.perf_counter", lambda: now[0])
    seen: list[Event] = []
    recorder = Recorder("run", (seen.append,))
    node = recorder.open("tool", "t", None)
    for number in range(FREE_PROGRESS + 5_000):
        recorder.progress(node, number, None, "")
        now[0] += 0.001
    told = [event for event in seen if event.phase == "progress"]
    assert FREE_PROGRESS + 49 <= len(told) <= FREE_PROGRESS + 51
    assert node.meta["progress"]["done"] == FREE_PROGRESS + 4_999
