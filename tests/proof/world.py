"""What the tools, hooks and middlewares of a drawn app write down, and the trigger that stops a run between two notes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.proof.model import Call
from thena_core import Context, Message, RunUsage

GRACE = 16
"""Turns of the loop after which a cancellation must have reached every task of a run: two for each level of batches."""


PATIENCE = 100_000
"""How often the loop looks whether the threads rest, a few seconds in all, before it is a failure."""


class FakeTime(asyncio.SelectorEventLoop):
    """An event loop whose clock moves only when it is told to, and that waits for threads: each run is the same again.

    Attributes:
        now: What it takes the time to be, in seconds.
        rests: Whether no thread can do anything before the loop does.
    """

    now = 1000.0
    rests: Callable[[], bool] = staticmethod(lambda: True)

    def time(self) -> float:
        """Return the test's own time."""
        return self.now

    def _run_once(self) -> None:
        waited = 0
        while not self.rests():
            time.sleep(0.00002)
            waited += 1
            assert waited < PATIENCE, "a tool's thread neither waits nor works"
        super()._run_once()  # type: ignore[misc]


@dataclass
class Note:
    """Something that happened to a call."""

    ident: str
    stage: str
    who: str = ""
    name: str = ""
    arguments: Any = None
    outcome: str | None = None
    content: str = ""
    is_error: bool = False


@dataclass
class Answer:
    """What came back to whoever asked for a call."""

    content: str
    is_error: bool
    outcome: str | None = None


@dataclass
class Nested:
    """What is left of a nested run."""

    history: Sequence[Message]
    usage: RunUsage


@dataclass
class Session:
    """A service that lives as long as a run."""

    number: int


@dataclass
class World:
    """Everything that is known of one app's life."""

    loop: FakeTime
    calls: dict[int, Call] = field(default_factory=dict)
    scripts: dict[str, tuple[tuple[Call, ...], ...]] = field(default_factory=dict)
    trace: list[Note] = field(default_factory=list)
    seen: defaultdict[str, list[Note]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[str, list[Answer]] = field(default_factory=lambda: defaultdict(list))
    nested: dict[int, Nested] = field(default_factory=dict)
    contexts: dict[str, Context] = field(default_factory=dict)
    enders: list[str] = field(default_factory=list)
    ending_threads: list[str] = field(default_factory=list)
    exceeded: Counter[str] = field(default_factory=Counter)
    chats: Counter[str] = field(default_factory=Counter)
    inside: set[str] = field(default_factory=set)
    beside: dict[str, set[str]] = field(default_factory=dict)
    opened: int = 0
    sessions: set[int] = field(default_factory=set)
    used_closed: int = 0
    disposals: Counter[str] = field(default_factory=Counter)
    at_gates: int = 0
    late: list[Note] = field(default_factory=list)
    fired: bool = False
    silent: bool = False
    _operation: int = 0
    _left: int = 0
    _action: Callable[[Note], bool] | None = None
    _at_once: bool = False

    def begin(self) -> None:
        """Forget what concerns one operation only."""
        self._operation += 1
        self.enders, self.ending_threads, self.late = [], [], []
        self.exceeded.clear()
        self.fired = self.silent = False
        self._action = None

    def arm(self, notes: int, action: Callable[[Note], bool], *, at_once: bool) -> None:
        """Have something done after so many more notes: inside of what was noted, or as soon as the loop is free.

        Where it says that it stopped the run, nothing may begin any more once that has reached every task.
        """
        self._left, self._action, self._at_once = notes, action, at_once

    def note(self, ident: str, stage: str, who: str = "", **facts: Any) -> None:
        """Write down what happens to a call."""
        note = Note(ident, stage, who, **facts)
        self.trace.append(note)
        self.seen[ident].append(note)
        if self.silent and stage in ("execute", "chat"):
            self.late.append(note)
        action = self._action
        if action is None:
            return
        self._left -= 1
        if self._left > 0:
            return
        self._action = None
        if threading.current_thread() is not threading.main_thread():
            self.loop.call_soon_threadsafe(self._fire, action, note)
        elif self._at_once:
            self._fire(action, note)
        else:
            self.loop.call_soon(self._fire, action, note)

    def _fire(self, action: Callable[[Note], bool], note: Note) -> None:
        self.fired = True
        if action(note):
            self._hush(GRACE, self._operation)

    def _hush(self, turns: int, operation: int) -> None:
        if turns:
            self.loop.call_soon(self._hush, turns - 1, operation)
        elif operation == self._operation:
            self.silent = True

    def enter(self, ident: str) -> None:
        """Note that a leaf begins its work, and which others are at it."""
        self.beside[ident] = set(self.inside)
        self.inside.add(ident)

    def leave(self, ident: str) -> None:
        """Note that a leaf has done its work."""
        self.inside.discard(ident)

    def ends(self, ident: str) -> None:
        """Note that a call is about to end its run; a thread may have been abandoned by now."""
        surely = threading.current_thread() is threading.main_thread()
        (self.enders if surely else self.ending_threads).append(ident)

    def meet(self, ident: str, ctx: Context) -> None:
        """Keep a call's context, which knows what its run used."""
        if ident in self.contexts:
            return
        self.contexts[ident] = ctx
        ctx.on_dispose(lambda: self.disposals.update([ident]))

    def open_gate(self, gate: threading.Event, turns: int) -> None:
        """Let a thread go on after so many turns of the loop."""
        if turns:
            self.loop.call_soon(self.open_gate, gate, turns - 1)
            return
        self.at_gates -= 1
        gate.set()

    def wait_at_gate(self, turns: int) -> None:
        """Wait in a thread for so many turns of the loop."""
        gate = threading.Event()
        self.loop.call_soon_threadsafe(self.open_gate, gate, turns)
        self.at_gates += 1
        gate.wait(30)

    async def session(self) -> AsyncIterator[Session]:
        """Open what a run needs, and close it: the run-scoped service."""
        self.opened += 1
        number = self.opened
        await asyncio.sleep(0)
        self.sessions.add(number)
        try:
            yield Session(number)
        finally:
            await asyncio.sleep(0)
            self.sessions.discard(number)
