"""What must hold of the record and of the history: one node and one result for each call, in their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.hooks.scripted import assert_legal
from tests.proof.asked import Finished
from tests.proof.model import Call, identify
from tests.proof.world import World
from thena_core import Event, Message


def check_nodes(world: World, done: Finished, *, clean: bool) -> list[str | None]:
    """Every call has one node, under the node of the call that asked for it, closed once with the outcome it returns."""
    started, ended = ({e.id: e for e in done.events if e.phase == phase} for phase in ("start", "end"))
    assert len(started) == sum(event.phase == "start" for event in done.events)
    assert len(ended) == sum(event.phase == "end" for event in done.events)
    assert started.keys() == ended.keys(), "a node that was left open"
    nodes: dict[str, list[Event]] = {}
    for event in ended.values():
        if event.kind == "tool":
            nodes.setdefault(identify(event.name, event.input), []).append(event)
    calls = {asked.call.ident: asked for asked in done.asked}
    assert nodes.keys() <= calls.keys()
    for ident, asked in calls.items():
        found = nodes.get(ident, [])
        begun = bool(world.seen[ident]) or asked.answer is not None
        assert len(found) == 1 if begun else len(found) <= 1, f"{len(found)} nodes for one call"
        if not found:
            continue
        node = found[0]
        assert node.name == asked.call.asked_name
        outer = None if asked.outer is None else asked.outer.call.ident
        assert _tool_above(node, started) == outer
        if asked.answer is not None and clean:
            assert (node.output, node.status == "error") == (asked.answer.content, asked.answer.is_error)
            assert asked.answer.outcome in (None, node.outcome)
    return [node.outcome for found in nodes.values() for node in found]


def _tool_above(node: Event, nodes: dict[str, Event]) -> str | None:
    parent = node.parent_id
    while parent is not None:
        event = nodes[parent]
        if event.kind == "tool":
            return identify(event.name, event.input)
        parent = event.parent_id
    return None


def check_history(
    history: Sequence[Message], turns: Sequence[Sequence[Call]], *, only_first: bool, answered: bool
) -> None:
    """Each turn of a run stands in its history as it was asked for, with one result per call, in that order."""
    assert_legal(history)
    expected: list[tuple[str, Any]] = []
    for turn in turns:
        asked = turn[:1] if only_first else turn
        expected.append(("assistant", [(f"c{call.key}", call.asked_name, call.raw) for call in asked]))
        expected += [("tool", f"c{call.key}") for call in asked]
    expected.append(("assistant", []))
    found = [
        (message.role, [(r.id, r.name, r.arguments) for r in message.tool_requests])
        if message.role == "assistant"
        else (message.role, message.tool_call_id)
        for message in history
    ]
    assert found == (expected if answered else expected[: len(found)])
