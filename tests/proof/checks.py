"""What must hold of an operation when it is over, whatever was drawn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from tests.proof.asked import Answer, Asked, Finished, ran
from tests.proof.counts import check_budget, check_counts
from tests.proof.model import OUTER, PACKED, AppSpec, outcomes, road
from tests.proof.recorded import check_nodes
from tests.proof.world import Note, World


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
        figures.update(f"outcome: {outcome}" for outcome in check_nodes(world, done, clean=clean))
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


def check_order_of_writes(world: World, spec: AppSpec, asked: Sequence[Asked]) -> None:
    """Tools that write begin in the order asked, and none while another one is at it."""
    writing = {f"t{number}" for number, leaf in enumerate(spec.leaves) if leaf.effect is not None}
    groups = [[entry.call for entry in asked if entry.outer is None]]
    groups += [entry.call.inner for entry in asked if entry.call.inner]
    groups += [turn for entry in asked for turn in entry.call.turns]
    begun = [note.ident for note in world.trace if note.stage == "execute"]
    for group in groups:
        writes = [call.ident for call in group if call.name in writing and call.ident in world.beside]
        places = [begun.index(ident) for ident in writes]
        assert places == sorted(places)
        if not world.fired:  # the thread of a call that was given up runs on
            assert not any(world.beside[ident] & set(writes) for ident in writes)


def check_nothing_left(loop: asyncio.AbstractEventLoop) -> None:
    """No task of the operation is left."""
    left = [task for task in asyncio.all_tasks(loop) if not task.done()]
    assert left == [], f"left running: {left}"
