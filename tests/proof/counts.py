"""What must hold of the counts: what ran was counted, nothing more ran than is allowed, nothing was refused too early."""

from __future__ import annotations

from collections.abc import Sequence

from tests.proof.asked import Asked, Finished, ran
from tests.proof.model import AppSpec
from tests.proof.world import World


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
        if "max_duration" in content:
            assert world.fired, "refused before the time was up"
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
