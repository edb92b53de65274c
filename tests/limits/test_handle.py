"""The handle of a started run: aborted early and late, left, waited for and given up."""

from __future__ import annotations

import asyncio

import pytest

from tests.hooks.scripted import ask, scripted
from tests.limits.scenes import scene
from thena_core import (
    RunAborted,
    ToolDefinition,
)
from thena_core.handle import RunHandle


@pytest.mark.behaviour("X01")
async def test_abort_before_the_run_began() -> None:
    """A handle that is aborted at once raises the reason, and nothing was built or asked."""
    model = scripted([], observed=False)
    handle = model.app.start("go")
    handle.abort("changed my mind")
    with pytest.raises(RunAborted, match="changed my mind"):
        await handle.result()
    assert not model.provider.requests


@pytest.mark.behaviour("X01")
async def test_abort_after_the_end() -> None:
    """An abort that comes too late changes nothing."""
    model = scripted([])
    async with model.app as app:
        handle = app.start("go")
        result = await handle.result()
        handle.abort("too late")
        assert await handle.result() is result


@pytest.mark.behaviour("X01", "X04")
async def test_leaving_the_handle_aborts() -> None:
    """Leaving `async with handle` stops the run and waits for its clean-up."""
    made = scene("one")
    async with made.model.app as app:
        async with app.start("go") as handle:
            await made.begun.wait()
        assert made.closed == 1
        with pytest.raises(RunAborted, match="its handle was left"):
            await handle.result()


@pytest.mark.behaviour("X04")
async def test_a_cancellation_while_leaving_the_handle() -> None:
    """Cancelling the code that leaves a handle does not leave the run's clean-up behind."""
    begun, cleaning, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    handles: list[RunHandle] = []

    async def slow() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await go_on.wait()
        return "never"

    model = scripted([ToolDefinition("slow", "d", None, slow)], ask("slow"))

    async def body() -> None:
        async with model.app.start("go") as handle:
            handles.append(handle)
            await begun.wait()

    task = asyncio.create_task(body())
    await cleaning.wait()
    task.cancel()
    asyncio.get_running_loop().call_later(0.02, go_on.set)
    await asyncio.wait([task])
    was_over = handles[0]._task.done()
    await asyncio.wait([handles[0]._task])
    assert was_over
    assert task.cancelled()


@pytest.mark.behaviour("X01")
async def test_giving_up_waiting_does_not_stop_the_run() -> None:
    """A cancelled `handle.result()` leaves the run alone; another one can still wait for it."""
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        begun.set()
        await go_on.wait()
        return "slow"

    model = scripted([ToolDefinition("slow", "d", None, slow)], ask("slow"))
    async with model.app as app:
        handle = app.start("go")
        waiting = asyncio.create_task(handle.result())
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go_on.set()
        assert (await handle.result()).output == "done"
