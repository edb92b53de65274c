"""A run is stopped at each of its awaits in turn: whatever it was doing, nothing of it is left."""

from __future__ import annotations

import asyncio
import functools
import itertools
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal
from tests.limits.everything import Ledger, Plays, app_of, turn
from thena_core import (
    Context,
    Prompt,
    RunAborted,
    Thena,
    ThenaError,
    ToolDefinition,
    agent,
    hookimpl,
)
from thena_core.run import current

MANY = 2_000
"""Turns of the event loop after which a run is taken to go on for ever."""


async def run_to_its_end(app: Thena, stop: Callable[[asyncio.Task[Any]], Awaitable[None] | None], turns: int) -> Any:
    """Start a run, stop it after some turns of the loop, and return its result or what ended it."""

    async def body() -> Any:
        try:
            return await app.run("go")
        finally:
            assert current.get(None) is None

    task: asyncio.Task[Any] = asyncio.create_task(body())
    for _ in range(turns):
        if task.done():
            break
        await asyncio.sleep(0)
    if not task.done():
        waiting = stop(task)
        if waiting is not None:
            await waiting
    async with asyncio.timeout(10):
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # looked at here, so that one that no test asks for is no warning
    return task


async def stopped_in_turn(
    make: Callable[[Ledger], Thena], stop: Callable[[Thena, Ledger, asyncio.Task[Any]], Any], kinds: Any
) -> int:
    """Stop a run of a new app after 0, 1, 2, … turns of the loop, until it ends by itself; return how many there were."""
    before = asyncio.all_tasks()
    for turns in itertools.count():
        ledger = Ledger()
        async with make(ledger) as app:
            task = await run_to_its_end(app, functools.partial(stop, app, ledger), turns)
            left = asyncio.all_tasks() - before
            assert not left, f"after {turns} turns: {left}"
            try:
                ledger.assert_settled()
            except AssertionError as error:
                raise AssertionError(f"stopped after {turns} turns") from error
            if not task.cancelled() and task.exception() is None:
                return turns
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            assert isinstance(error, kinds), (turns, error)
            if isinstance(error, RunAborted):
                assert_legal(error.run.history)
        assert turns < MANY
    raise AssertionError


def cancel(app: Thena, ledger: Ledger, task: asyncio.Task[Any]) -> None:
    """Cancel the task that awaits the run."""
    task.cancel()


def abort(app: Thena, ledger: Ledger, task: asyncio.Task[Any]) -> None:
    """Abort the run, where it has begun; before that there is nobody to tell."""
    if ledger.contexts:
        ledger.contexts[0].abort("stop")
    else:
        task.cancel()


async def abort_and_cancel(app: Thena, ledger: Ledger, task: asyncio.Task[Any]) -> None:
    """Abort the run, and cancel the task one turn of the loop later, which hits the clean-up."""
    abort(app, ledger, task)
    await asyncio.sleep(0)
    task.cancel()


async def cancel_again_and_again(app: Thena, ledger: Ledger, task: asyncio.Task[Any]) -> None:
    """Cancel the task in every turn of the loop until it is done."""
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)


async def close(app: Thena, ledger: Ledger, task: asyncio.Task[Any]) -> None:
    """Close the app."""
    await app.close()
    assert task.done() or not ledger.contexts


STOPS = [cancel, abort, abort_and_cancel, cancel_again_and_again, close]


@pytest.mark.behaviour("X04", "X01", "X05", "D04", "F12")
@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.__name__)
async def test_at_every_await(stop: Any) -> None:
    """At each of its awaits a run can be stopped, and no task, service, node or half history of it is left."""
    turns = await stopped_in_turn(app_of, stop, (asyncio.CancelledError, ThenaError if stop is close else RunAborted))
    assert turns > 100


@pytest.mark.behaviour("X04")
@pytest.mark.parametrize("stop", [cancel, close], ids=lambda stop: stop.__name__)
async def test_no_process_is_left(stop: Any) -> None:
    """A tool that starts a process and kills it in its clean-up leaves none, wherever it is stopped."""

    def make(ledger: Ledger) -> Thena:
        async def shell(ctx: Context) -> str:
            ledger.contexts.append(ctx)
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(30)")
            ledger.processes.append(process)
            try:
                await turn()
            finally:
                process.kill()
                await process.wait()
            return "killed"

        made = agent(
            provider=Plays(ask("shell")), tools=[ToolDefinition("shell", "d", None, shell)], prompt=Prompt("p")
        )
        return Thena(made(type("Shell", (), {"__module__": __name__})), log=ledger.events.append)

    before = asyncio.all_tasks()
    started = 0
    for turns in range(16):
        ledger = Ledger()
        async with make(ledger) as app:
            await run_to_its_end(app, functools.partial(stop, app, ledger), turns)
        for process in ledger.processes:  # killed, or it would go on for 30 s
            async with asyncio.timeout(10):
                assert await process.wait() < 0
        ledger.assert_settled()
        assert asyncio.all_tasks() == before
        started += len(ledger.processes)
    assert started


class Starts:
    """A plugin that takes its time to start; one that is stopped on its way has nothing to shut down."""

    def __init__(self, started: list[Any], stopped: list[Any]) -> None:
        self.started = started
        self.stopped = stopped

    @hookimpl
    async def startup(self) -> None:
        await turn()
        await turn()
        self.started.append(self)

    @hookimpl
    async def shutdown(self) -> None:
        self.stopped.append(self)


@pytest.mark.behaviour("X04", "P01")
@pytest.mark.parametrize("how", ["abort", "close"])
async def test_at_every_await_of_the_build(how: str) -> None:
    """A first run that is stopped while it builds the app leaves nothing open, and the app can be built again."""
    for turns in itertools.count():
        started: list[str] = []
        stopped: list[str] = []

        ledger = Ledger()
        made = agent(provider=Plays(), prompt=Prompt("p"))(type("Quiet", (), {"__module__": __name__}))
        app = Thena(made, plugins=[Starts(started, stopped), Starts(started, stopped)], log=ledger.events.append)
        handle = app.start("go")
        for _ in range(turns):
            await asyncio.sleep(0)
        over = handle._task.done()
        if how == "abort":
            handle.abort("stop")
        else:
            await app.close()
        await asyncio.wait([handle._task])
        await app.close()
        assert set(started) <= set(stopped), turns
        assert len(set(stopped)) == len(stopped), turns
        if over:
            assert turns > 5
            return
    raise AssertionError
