"""Stopping a run from outside and from inside: what is in flight ends, and nothing of it reaches the caller's next step."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.hooks.scripted import assert_legal
from tests.limits.scenes import PLACES, Scene, scene
from thena_core import (
    Prompt,
    ProviderError,
    RunAborted,
    Thena,
    agent,
)
from thena_core.providers import ChatRequest, ChatTurn, Provider


def assert_over(made: Scene) -> None:
    """Check that what had begun to wait was ended, that each history is legal, and that each step's node is closed."""
    assert made.opened == made.closed > 0
    for context in made.contexts:
        assert_legal(context.history)
    events = made.model.events
    begun = [event.id for event in events if event.phase == "start"]
    assert sorted(begun) == sorted(event.id for event in events if event.phase == "end")


@pytest.mark.behaviour("X01", "X03", "X04")
@pytest.mark.parametrize("place", PLACES)
async def test_abort(place: str) -> None:
    """`handle.abort` stops the run wherever it waits, and its result raises the reason."""
    made = scene(place)
    async with made.model.app as app:
        handle = app.start("go")
        await made.begun.wait()
        handle.abort("the client left")
        handle.abort("a second reason")
        with pytest.raises(RunAborted, match="the client left") as caught:
            await handle.result()
    assert caught.value.reason == "the client left"
    assert caught.value.run.run_id == handle.run_id
    assert_legal(caught.value.run.history)
    assert_over(made)


@pytest.mark.behaviour("X01", "X03", "X04")
@pytest.mark.parametrize("place", PLACES)
async def test_cancelling_the_awaiting_task(place: str) -> None:
    """Cancelling the task that awaits `run` stops it wherever it waits; `CancelledError` leaves it as itself."""
    made = scene(place)
    async with made.model.app as app:
        task = asyncio.create_task(app.run("go"))
        await made.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert_over(made)


@pytest.mark.behaviour("X01", "X04")
@pytest.mark.parametrize("place", PLACES)
async def test_a_timeout_around_run(place: str) -> None:
    """`asyncio.timeout` around `run` stops it and raises its own `TimeoutError`."""
    made = scene(place)
    async with made.model.app as app:
        with pytest.raises(TimeoutError):
            await timed(made, app)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
    assert_over(made)


async def timed(made: Scene, app: Thena) -> None:
    """Run within a timeout that expires when the run waits."""

    async def expire(limit: asyncio.Timeout) -> None:
        await made.begun.wait()
        limit.reschedule(0)

    async with asyncio.timeout(None) as limit:
        expiring = asyncio.create_task(expire(limit))
        await app.run("go")
    await expiring


@pytest.mark.behaviour("X01", "X04")
@pytest.mark.parametrize("place", PLACES)
async def test_in_a_task_group(place: str) -> None:
    """A failing sibling in a task group stops the run; gathered runs are plain coroutines, too."""
    made = scene(place)

    async def fails() -> None:
        await made.begun.wait()
        raise LookupError("sibling")

    async with made.model.app as app:
        with pytest.raises(ExceptionGroup) as caught:
            await grouped(app.run("go"), fails())
    assert [type(error) for error in caught.value.exceptions] == [LookupError]
    assert_over(made)


async def grouped(*work: Coroutine[Any, Any, Any]) -> None:
    """Do things in a task group."""
    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(each)


@pytest.mark.behaviour("X06", "X04")
@pytest.mark.parametrize("place", PLACES)
async def test_closing_the_app(place: str) -> None:
    """`close` aborts the run wherever it waits and waits for its clean-up."""
    made = scene(place)
    await made.model.app.__aenter__()
    handle = made.model.app.start("go")
    await made.begun.wait()
    await made.model.app.close()
    assert_over(made)
    with pytest.raises(RunAborted, match="the app is closing"):
        await handle.result()


class Rewording(Provider):
    """A model whose client makes an error of its own of a cancellation."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def chat(self, request: ChatRequest) -> ChatTurn:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise ProviderError("connection lost") from error
        return ChatTurn("late")


@pytest.mark.behaviour("X01", "H09")
@pytest.mark.parametrize("way", ["abort", "cancel"])
async def test_a_provider_that_rewords_the_cancellation(way: str) -> None:
    """A model client that raises something else when it is cancelled hides neither an abort nor a cancellation."""
    asked: list[BaseException] = []

    class Hooks:
        def on_error(self, error: Exception) -> str:
            asked.append(error)
            return "sorry"

    provider = Rewording()
    app = Thena(agent(provider=provider, prompt=Prompt("p"))(Hooks))
    async with app, app.start("go") as handle:
        await provider.begun.wait()
        if way == "abort":
            handle.abort("enough")
            with pytest.raises(RunAborted, match="enough"):
                await handle.result()
        else:
            handle._task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await handle.result()
    assert not asked
