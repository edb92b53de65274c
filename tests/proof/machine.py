"""The machine: draws an app and what is done with it, does it, and holds what is left of it against the model."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, ClassVar
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.hooks.scripted import assert_legal
from tests.proof.apps import build
from tests.proof.asked import Finished, Limits, ran, said
from tests.proof.checks import check_nothing_left, check_operation, check_seen_by_all
from tests.proof.draws import Operation, Stop, apps, calls, limits, operations, stops
from tests.proof.model import AppSpec, Call, numbered
from tests.proof.recorded import check_history
from tests.proof.tools import LONG
from tests.proof.world import Answer, FakeTime, Note, World
from thena_core import Budget, EndsRun, Event, Message, RunAborted, RunResult, ThenaError
from thena_core.run import current

HANGS = 30.0
"""Seconds after which an operation is taken to hang: the test fails, and does not wait for ever."""

Turns = tuple[tuple[Call, ...], ...]


class NoWayAround(RuleBasedStateMachine):
    """One app, from its building to its closing, and what is done with it."""

    figures: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.figures["examples"] += 1
        self.keys = itertools.count(1)
        self.loop = FakeTime()
        self.world = World(self.loop)
        self.complaints: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _loop, context: self.complaints.append(context))
        self.events: list[Event] = []
        self.history: Sequence[Message] = ()
        self.threads = set(threading.enumerate())
        self.broken = True

    @initialize(spec=apps)
    def build(self, spec: AppSpec) -> None:
        """Build an app."""
        self.spec = spec
        log = self.events.append if spec.recorded else False
        self.app, self.main, self.inner = build(self.world, spec, log)
        self.do(self.app.__aenter__())
        self.loop.rests = self.threads_rest
        self.broken = False

    @rule(operation=operations)
    def run(self, operation: Operation) -> None:
        """Run the app."""
        self.step("run")
        turns, message = self.prepare(operation)
        events: list[Event] = []
        error = self.do(self.carried(operation, message, events))
        self.ended(operation, turns, message, events, error)

    @rule(first=operations, second=operations)
    def run_beside(self, first: Operation, second: Operation) -> None:
        """Run the app twice at the same time."""
        self.step("two runs")
        prepared = [(operation, *self.prepare(operation), []) for operation in (first, second)]

        async def both() -> list[Any]:
            return await asyncio.gather(*(self.carried(op, message, events) for op, _, message, events in prepared))

        outcomes = self.do(both())
        enders = [*self.world.enders, *self.world.ending_threads]
        self.world.ending_threads = []
        for (operation, turns, message, events), outcome in zip(prepared, outcomes, strict=True):
            own = {asked.call.ident for asked in said(self.world, None, turns, hooked=True, only_first=False)}
            self.world.enders = [ident for ident in enders if ident in own or ident == f"budget {message}"]
            self.ended(operation, turns, message, events, outcome)

    @rule(operation=operations, stop=stops)
    def run_and_stop(self, operation: Operation, stop: Stop) -> None:
        """Run the app, and stop it at some point."""
        self.step(f"run, {stop.how}")
        turns, message = self.prepare(operation)
        events: list[Event] = []
        error = self.do(self.stopped(operation, message, events, stop))
        self.ended(operation, turns, message, events, error, stop)

    @rule(call=calls(), budget=limits, hooked=st.booleans())
    def call(self, call: Call, budget: Limits, hooked: bool) -> None:
        """Call one tool, without a model."""
        self.step("call")
        call = self.number(call)
        self.events.clear()
        agent = self.main if hooked else self.inner
        work = self.app.call(call.asked_name, call.raw, budget=self.budget(budget, "call", None), agent=agent)
        result = self.do(self.outcome_of(work))
        self.check_end(result, None)
        asked = said(self.world, None, [[call]], hooked=hooked, only_first=False)
        if not isinstance(result, BaseException):
            asked[0].answer = Answer(result.content, result.is_error)
        context = self.world.contexts.get(call.ident)
        usage = None if context is None else context.usage()
        self.figures.update(
            check_operation(
                self.world, self.spec, Finished(budget, asked, "call", usage, tuple(self.events), self.spec.recorded)
            )
        )
        self.count(asked)

    def teardown(self) -> None:
        """Close the app: no task, no thread, no service is left of it."""
        try:
            if not self.broken:
                self.close()
        finally:
            self.loop.set_exception_handler(lambda _loop, _context: None)
            self.loop.rests = lambda: True
            for task in asyncio.all_tasks(self.loop):  # of a test that has failed already
                task.cancel()
                self.loop.run_until_complete(asyncio.wait([task]))
            self.loop.close()

    def close(self) -> None:
        """Close the app."""
        self.loop.rests = lambda: True  # the threads are told to end
        self.do(self.app.close())
        for ident in list(self.world.seen):
            check_seen_by_all(self.world, self.spec, ident)
        for thread in set(threading.enumerate()) - self.threads:
            if thread.name == "thena-tool":
                thread.join(HANGS)
                assert not thread.is_alive()

    def step(self, kind: str) -> None:
        """Begin an operation."""
        self.figures["steps"] += 1
        self.figures[f"step: {kind}"] += 1
        self.broken = True
        self.world.begin()

    def number(self, call: Call) -> Call:
        """Give a call its key, and let the tools find it by that."""
        call = numbered(call, self.keys)
        waiting = [call]
        while waiting:
            one = waiting.pop()
            self.world.calls[one.key] = one
            waiting += one.children
        return call

    def prepare(self, operation: Operation) -> tuple[tuple[tuple[Call, ...], ...], str]:
        """Number an operation's calls, and let the model find its turns by the message that is returned."""
        turns = tuple(tuple(self.number(call) for call in turn) for turn in operation.turns)
        message = f"m{next(self.keys)}"
        self.world.scripts[message] = turns
        return turns, message

    def budget(self, drawn: Limits, owner: str, seconds: float | None) -> Budget | None:
        """Make a real budget."""
        if drawn == Limits() and seconds is None:
            return None

        def exceeded(_error: Any) -> None:
            self.world.exceeded[owner] += 1
            if drawn.throw:
                self.world.ends(f"budget {owner}")

        return Budget(
            max_duration=seconds,
            max_tool_calls=drawn.tools,
            max_chat_calls=drawn.chats,
            tools={} if drawn.quota is None else {"t0": drawn.quota},
            mode="throw" if drawn.throw else "stop",
            on_exceeded=exceeded,
        )

    def given(self, operation: Operation, message: str, events: list[Event], seconds: float | None) -> dict[str, Any]:
        """Make the arguments of `run` and `start`."""
        return {
            "message": message,
            "history": self.history if operation.goes_on else None,
            "budget": self.budget(operation.limits, message, seconds),
            "log": events.append if operation.recorded else False,
        }

    async def carried(self, operation: Operation, message: str, events: list[Event]) -> Any:
        """Run the app; return the result or the error."""
        return await self.outcome_of(self.app.run(**self.given(operation, message, events, None)))

    async def outcome_of(self, work: Awaitable[Any]) -> Any:
        """Return what comes of something, or the error that it raises."""
        try:
            return await work
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it is looked at
            return error

    async def stopped(self, operation: Operation, message: str, events: list[Event], stop: Stop) -> Any:
        """Run the app, stop it, and return the result or the error."""
        given = self.given(operation, message, events, LONG if stop.how == "deadline" else None)
        world = self.world
        if stop.how == "cancel":
            task = asyncio.create_task(self.app.run(**given))

            def cancel(_note: Note) -> bool:
                world.fired = not task.done() and task.cancel()
                return False  # a tool may swallow it, as asyncio has it

            world.arm(stop.after, cancel, at_once=stop.at_once)
            return await self.outcome_of(task)
        handle = self.app.start(**given)

        def act(_note: Note) -> bool:
            if handle._task.done():
                world.fired = False
            elif stop.how == "abort":
                handle.abort("enough")
            elif stop.how in ("deadline", "time passes"):
                self.loop.now += 2 * LONG
                return stop.how == "deadline"
            else:
                running = [inv.id for inv in (handle._run and handle._run.calls) or ()]
                world.fired = bool(running) and handle.cancel_call(running[0])
                return False
            return world.fired

        world.arm(stop.after, act, at_once=stop.at_once)
        return await self.outcome_of(handle.result())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something to its end, and see that nothing of it is left."""
        task = self.loop.create_task(work)
        alarm = threading.Timer(HANGS, lambda: self.loop.call_soon_threadsafe(task.cancel))
        alarm.daemon = True
        alarm.start()
        try:
            with mock.patch("time.monotonic", self.loop.time):  # the loop's clock is that one, elsewhere, too
                result = self.loop.run_until_complete(task)
        finally:
            alarm.cancel()
        check_nothing_left(self.loop)
        assert not self.complaints, "an error that nobody looked at"
        assert current.get(None) is None
        assert not self.world.sessions, "a service of the run was left open"
        self.loop.run_until_complete(self.threads_end())
        return result

    async def threads_end(self) -> None:
        """Let the threads that a stopped run has abandoned come to their end."""
        self.world._action = None
        while self.world.at_gates:
            await asyncio.sleep(0)

    def threads_rest(self) -> bool:
        """Whether every thread of the app's tools waits: for a call, or for the loop."""
        pool = self.app._life._assembly.threads
        if pool._jobs:
            return False
        alive = sum(thread.name == "thena-tool" and thread not in self.threads for thread in threading.enumerate())
        return alive == pool._idle + self.world.at_gates

    def ended(
        self,
        operation: Operation,
        turns: Turns,
        message: str,
        events: Sequence[Event],
        outcome: Any,
        stop: Stop | None = None,
    ) -> None:
        """Hold a run that has ended to the model."""
        self.check_end(outcome, stop)
        left: RunResult | None = outcome.run if isinstance(outcome, ThenaError) else outcome
        history = usage = context = None
        if isinstance(left, RunResult):
            before = [message_.content for message_ in left.history].index(message)
            history, usage = left.history[before + 1 :], left.usage
            answered = left is outcome and left.stopped_by == "answered"
            check_history(history, turns, only_first=not self.spec.every_call, answered=answered)
            assert_legal(left.history)
            self.history = left.history
        asked = said(self.world, history, turns, hooked=True, only_first=not self.spec.every_call)
        if usage is None:
            known = [self.world.contexts.get(entry.call.ident) for entry in asked if entry.outer is None]
            context = next(filter(None, known), None)
            usage = None if context is None else context.usage()
        done = Finished(operation.limits, asked, message, usage, events, operation.recorded)
        self.figures.update(check_operation(self.world, self.spec, done))
        self.count(asked)

    def count(self, asked: Sequence[Any]) -> None:
        """Add to the figures."""
        self.figures["calls"] += sum(bool(self.world.seen[one.call.ident]) or one.answer is not None for one in asked)
        self.figures["executes"] += sum(ran(self.world, one.call) for one in asked)
        self.figures["stopped midway"] += self.world.fired
        self.broken = False

    def check_end(self, outcome: Any, stop: Stop | None) -> None:
        """A run ends with an error exactly where something ended it."""
        world = self.world
        surely = bool(world.enders or (world.ending_threads and not world.fired))
        perhaps = bool(world.enders or world.ending_threads)
        failed = isinstance(outcome, BaseException)
        ending = isinstance(outcome, EndsRun) and not isinstance(outcome, RunAborted)
        if not world.fired or stop is None or stop.how in ("cancel_call", "time passes"):
            assert surely <= failed <= perhaps, f"{outcome!r} with {world.enders}"
            assert not failed or ending, repr(outcome)
            return
        stubborn = any(call.what == "stubborn" and ran(world, call) for call in world.calls.values())
        if stop.how == "abort":
            assert isinstance(outcome, RunAborted) or (ending and perhaps), repr(outcome)
        elif stop.how == "cancel":
            assert isinstance(outcome, asyncio.CancelledError) or (ending and perhaps) or stubborn, repr(outcome)
        else:
            assert not failed or (ending and perhaps), repr(outcome)
