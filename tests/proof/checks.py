"""What must hold of an operation when it is over, whatever was drawn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.hooks.scripted import assert_legal
from tests.proof.model import OUTER, PACKED, AppSpec, Call, identify, outcomes, road
from tests.proof.world import Answer, Note, World
from thena_core import Event, Message, RunUsage
from thena_core.agents import INTERRUPTED


@dataclass
class Limits:
    """The budget of an operation, as drawn."""

    tools: int | None = None
    quota: int | None = None
    chats: int | None = None
    throw: bool = False


@dataclass
class Asked:
    """A call that was asked for, by whom, and what came back; `None` where nothing did."""

    call: Call
    hooked: bool
    outer: Asked | None
    scope: int
    answer: Answer | None = None
    may_run: bool = True


@dataclass
class Finished:
    """An operation that is over."""

    limits: Limits
    asked: list[Asked]
    message: str
    usage: RunUsage | None
    events: Sequence[Event]
    recorded: bool
    scopes: dict[int, int | None] = field(default_factory=dict)


def followed(world: World, calls: Sequence[Call], *, hooked: bool) -> list[Asked]:
    """List calls that were asked for without a model, and every call below them."""
    found: list[Asked] = []
    for call in calls:
        _follow(world, Asked(call, hooked, None, 0), found)
    return found


def said(
    world: World, history: Sequence[Message] | None, turns: Sequence[Sequence[Call]], *, hooked: bool, only_first: bool
) -> list[Asked]:
    """List the calls of a run's turns with what its history answers, and every call below them."""
    found: list[Asked] = []
    for asked in _of_turns(history, turns, None, 0, only_first=only_first):
        asked.hooked = hooked
        _follow(world, asked, found)
    return found


def _of_turns(
    history: Sequence[Message] | None,
    turns: Sequence[Sequence[Call]],
    outer: Asked | None,
    scope: int,
    *,
    only_first: bool = False,
) -> Iterator[Asked]:
    answers = {message.tool_call_id: message for message in history or () if message.role == "tool"}
    for turn in turns:
        for number, call in enumerate(turn):
            found = answers.pop(f"c{call.key}", None)
            answer = None
            if found is not None and found.content != INTERRUPTED:
                answer = Answer(found.content, found.is_error)
            yield Asked(call, False, outer, scope, answer, may_run=not (only_first and number))
    assert not answers, f"answers that nobody asked for: {answers}"


def _follow(world: World, asked: Asked, found: list[Asked]) -> None:
    found.append(asked)
    call = asked.call
    for inner in call.inner:
        answers = world.answers[inner.ident]
        assert len(answers) <= 1, f"{len(answers)} results for one call"
        _follow(world, Asked(inner, asked.hooked, asked, asked.scope, *answers), found)
    nested = world.nested.get(call.key)
    for inner in _of_turns(nested and nested.history, call.turns, asked, call.key):
        _follow(world, inner, found)


def check_operation(world: World, spec: AppSpec, done: Finished) -> Counter[str]:
    """Hold an operation to the model; count what came of its calls."""
    clean = not (world.enders or world.ending_threads or world.fired)
    figures: Counter[str] = Counter()
    for asked in done.asked:
        figures[check_call(world, spec, asked, clean=clean)] += 1
    check_order_of_writes(world, spec, done.asked)
    check_counts(world, spec, done)
    check_budget(world, spec, done)
    if done.recorded:
        figures.update(f"{outcome} (outcome)" for outcome in check_nodes(world, done, clean=clean))
    else:
        assert not done.events
    assert not world.used_closed, "a tool was given a service that is not open"
    assert set(world.disposals.values()) <= {1}
    met = {asked.call.ident for asked in done.asked} & world.contexts.keys()
    assert met <= world.disposals.keys(), "on_dispose was not called"
    assert not world.late, f"begun after the run was stopped: {world.late}"
    return figures


def check_call(world: World, spec: AppSpec, asked: Asked, *, clean: bool) -> str:
    """Hold one call to the road that it must take; say what came of it."""
    call, answer = asked.call, asked.answer
    notes = world.seen[call.ident]
    way = road(spec, call, hooked=asked.hooked)
    stages = {stage: [note for note in notes if note.stage == stage] for stage in ("before", "around", "execute")}
    befores, arounds = ([(note.who, note.arguments) for note in stages[stage]] for stage in ("before", "around"))
    executed = stages["execute"]
    assert befores == way.befores[: len(befores)]
    assert arounds == way.arounds[: len(arounds)]
    assert not arounds or befores == way.befores
    assert len(executed) <= 1, "one call, executed twice"
    order = ["before", "around", "execute", "after"]
    assert [note.stage for note in notes] == sorted((note.stage for note in notes), key=order.index)
    if executed:
        check_seen_by_all(world, spec, call.ident)
        assert way.end == "arrives", f"executed, though the call ends at {way.end}"
        assert arounds == way.arounds
        assert befores == way.befores
        assert executed[0].arguments == way.arguments
    if not asked.may_run or (asked.outer is not None and not ran(world, asked.outer.call)):
        assert not notes, "a call that nobody asked for"
        assert answer is None
        return "dropped"
    if answer is None:
        assert not clean or not notes, "no result"
        check_afters(world, spec, asked, None, clean=False)
        return "interrupted" if notes else "not begun"
    assert (befores, arounds) == (way.befores, way.arounds)
    first = check_afters(world, spec, asked, answer, clean=clean)
    if first is None:
        return "answered"
    assert first in outcomes(call, way, stopped=world.fired) or "over_budget" in first or call.name in (OUTER, PACKED)
    assert bool(executed) == (way.end == "arrives" and first != "over_budget") or world.fired
    return first


def check_seen_by_all(world: World, spec: AppSpec, ident: str) -> None:
    """An `execute` that ran was seen before by every middleware, with the same name and arguments."""
    before: list[Note] = []
    for note in world.seen[ident]:
        if note.stage == "execute":
            saw = [(seen.who, seen.name, seen.arguments) for seen in before]
            assert saw == [(who, note.name, note.arguments) for who, _ in spec.arounds(note.name)]
        elif note.stage == "around":
            before.append(note)


def check_afters(world: World, spec: AppSpec, asked: Asked, answer: Answer | None, *, clean: bool) -> str | None:
    """Each after-hook saw the observation once, in order, as the one before it left it; say the outcome at first."""
    afters = [note for note in world.seen[asked.call.ident] if note.stage == "after"]
    layers = spec.afters(hooked=asked.hooked)
    expected = [who for who, _ in layers]
    names = [note.who for note in afters]
    assert names == (expected if clean else expected[: len(names)])
    if not afters:
        return None
    for note, (who, layer), following in zip(afters, layers, [*afters[1:], None], strict=False):
        content, is_error, outcome = note.content, note.is_error, note.outcome
        assert is_error == (outcome != "ok")
        if layer.picks_result(asked.call.ident):
            content = f"{content} ({who})" if layer.mode == "reword" else content
            is_error = {"flag": True, "mend": False}.get(layer.mode, is_error)
        after = answer if following is None else Answer(following.content, following.is_error, following.outcome)
        if after is None or (layer.mode == "raise" and not clean):
            continue
        assert (after.content, after.is_error) == (content, is_error)
        if after.outcome is not None and is_error == note.is_error:
            assert after.outcome == outcome
    return afters[0].outcome


def ran(world: World, call: Call) -> bool:
    """Whether a call's `execute` began."""
    return any(note.stage == "execute" for note in world.seen[call.ident])


def check_order_of_writes(world: World, spec: AppSpec, asked: Sequence[Asked]) -> None:
    """Tools that write begin in the order asked."""
    writing = {f"t{number}" for number, leaf in enumerate(spec.leaves) if leaf.effect is not None}
    groups = [entry.call.inner for entry in asked if entry.call.inner]
    groups += [turn for entry in asked for turn in entry.call.turns]
    begun = [note.ident for note in world.trace if note.stage == "execute"]
    for group in groups:
        places = [begun.index(call.ident) for call in group if call.name in writing and call.ident in begun]
        assert places == sorted(places)


def perhaps_counted(world: World, spec: AppSpec, asked: Sequence[Asked]) -> list[Asked]:
    """List the calls that the budget may have counted and that did not run: stopped before their thread or service came."""
    if not (world.fired or world.enders or world.ending_threads):
        return []
    slow = {f"t{n}" for n, leaf in enumerate(spec.leaves) if leaf.kind == "thread" or leaf.form == "scoped"}
    return [
        entry
        for entry in asked
        if entry.call.name in slow
        and not ran(world, entry.call)
        and (entry.answer is None or "was cancelled" in entry.answer.content or "timed out" in entry.answer.content)
    ]


def check_counts(world: World, spec: AppSpec, done: Finished) -> None:
    """What the budget counted is what ran, and it never counted more than it allows."""
    executed = [asked for asked in done.asked if ran(world, asked.call)]
    late = perhaps_counted(world, spec, done.asked)
    chats = world.chats[done.message] + sum(world.chats[f"s{asked.call.key}"] for asked in done.asked)
    if done.usage is not None:
        assert len(executed) <= done.usage.tool_calls <= len(executed) + len(late)
        assert done.usage.chat_calls == chats
    limits = done.limits
    assert limits.chats is None or chats <= limits.chats
    assert limits.tools is None or len(executed) <= limits.tools
    assert limits.quota is None or sum(asked.call.name == "t0" for asked in executed) <= limits.quota
    for asked in done.asked:
        key, limit = asked.call.key, asked.call.limit
        inside = sum(_is_inside(inner, key) for inner in executed)
        assert limit is None or inside <= limit
        if key in world.nested:
            counted = world.nested[key].usage.tool_calls
            assert inside <= counted <= inside + sum(_is_inside(inner, key) for inner in late)


def _is_inside(asked: Asked, key: int) -> bool:
    entry: Asked | None = asked
    while entry is not None:
        if entry.scope == key:
            return True
        entry = entry.outer
    return False


def check_budget(world: World, spec: AppSpec, done: Finished) -> None:
    """A refusal means that a limit was full, and the owner of the budget was told once."""
    executed = [asked for asked in done.asked if ran(world, asked.call)]
    late = perhaps_counted(world, spec, done.asked)

    def full(limit: int | None, name: str | None, scope: int) -> bool:
        counted, more = (
            sum(name in (None, entry.call.name) and (not scope or _is_inside(entry, scope)) for entry in entries)
            for entries in (executed, late)
        )
        return limit is not None and counted <= limit <= counted + more

    for asked in done.asked:
        afters = [note for note in world.seen[asked.call.ident] if note.stage == "after"]
        content = afters[0].content if afters else asked.answer.content if asked.answer is not None else ""
        if not content.startswith("not run: the budget's"):
            continue
        if 't0"]' in content:
            assert full(done.limits.quota, "t0", 0), "refused before the quota was used up"
            continue
        filled = full(done.limits.tools, None, 0)
        entry = asked
        while entry.outer is not None:
            filled = filled or full(entry.outer.call.limit, None, entry.outer.call.key)
            entry = entry.outer
        assert filled, "refused before the limit was reached"
    assert set(world.exceeded.values()) <= {1}, "on_exceeded was called twice"


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


def check_nothing_left(loop: asyncio.AbstractEventLoop) -> None:
    """No task of the operation is left."""
    left = [task for task in asyncio.all_tasks(loop) if not task.done()]
    assert left == [], f"left running: {left}"
