"""What was asked for in an operation, down to the calls that calls asked for, and what came back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.proof.model import Call
from tests.proof.world import Answer, World
from thena_core import Event, Message, RunUsage
from thena_core.turns import INTERRUPTED


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


def ran(world: World, call: Call) -> bool:
    """Whether a call's `execute` began."""
    return any(note.stage == "execute" for note in world.seen[call.ident])
