"""The services of one run are closed in reverse, by one task, however the run ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

from tests.di.apps import Log, asking, container
from tests.di.sessions import Basket, Session, number, observations, ruin, sessions, waiting
from thena_core import (
    FatalToolError,
    Inject,
    ResourceCloseError,
    RunScoped,
    Thena,
    tool,
)


@pytest.mark.behaviour("D04")
async def test_closed_on_error() -> None:
    """When the run fails, a context manager sees the run's error, and is closed."""
    log = Log()
    async with Thena(asking("ruin", tools=[ruin]), container=container(session=sessions(log))) as app:
        with pytest.raises(FatalToolError, match=r"^ruined$"):
            await app.run("go")
    assert log == ["open 1", "saw FatalToolError", "close 1"]


@pytest.mark.behaviour("D04")
@pytest.mark.parametrize("how", ["fails", "is cancelled"])
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_plain_generator_goes_on_after_its_yield(how: str, kind: str) -> None:
    """What stands after the `yield` runs however the run ends, also where nobody wrote `try`."""
    log, asked = Log(), asyncio.Event()

    async def open_async() -> AsyncIterator[Session]:
        yield Session(1)
        log.append("closed")

    def open_sync() -> Iterator[Session]:
        yield Session(1)
        log.append("closed")

    session = RunScoped(open_async if kind == "async" else open_sync)
    async with Thena(tools=[ruin, waiting(asked)], container=container(session=session)) as app:
        task = asyncio.create_task(app.call("ruin" if how == "fails" else "forever"))
        if how == "is cancelled":
            await asked.wait()
            task.cancel()
        with pytest.raises(FatalToolError if how == "fails" else asyncio.CancelledError):
            await task
    assert log == ["closed"]


@pytest.mark.behaviour("D04")
async def test_closed_on_cancellation() -> None:
    """When the run is cancelled, everything is closed before the cancellation leaves it."""
    log, asked = Log(), asyncio.Event()
    async with Thena(tools=[waiting(asked)], container=container(session=sessions(log))) as app:
        task = asyncio.create_task(app.call("forever"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert log == ["open 1", "saw CancelledError", "close 1"]


@pytest.mark.behaviour("D04")
@pytest.mark.parametrize("broken", [False, True], ids=["closing well", "closing fails"])
async def test_a_second_cancellation_does_not_stop_closing(broken: bool) -> None:
    """A cancellation while services are being closed is passed on after all of them are closed."""
    log = Log()
    closing, go_on = asyncio.Event(), asyncio.Event()

    async def open_slow(session: Session) -> AsyncIterator[Basket]:
        yield Basket(session)
        closing.set()
        await go_on.wait()
        log.append("close basket")
        if broken:
            raise OSError("lost")

    session = sessions(log)

    @tool
    async def buy(basket: Annotated[Basket, Inject]) -> str:
        """Buys."""
        return "bought"

    services = container(session=session, basket=RunScoped(open_slow, session))
    async with Thena(tools=[buy], container=services) as app:
        task = asyncio.create_task(app.call("buy"))
        await closing.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
    assert log == ["open 1", "close basket", "close 1"]
    notes = ['the run-scoped service "open_slow" also failed to close: OSError: lost'] if broken else []
    assert getattr(caught.value, "__notes__", []) == notes


@pytest.mark.behaviour("D04")
async def test_one_task_opens_and_closes() -> None:
    """A task group in a service works: it is entered and left in the same task, though many tasks ask for it."""
    tasks: list[Any] = []

    async def open_group() -> AsyncIterator[asyncio.TaskGroup]:
        tasks.append(asyncio.current_task())
        async with asyncio.TaskGroup() as group:
            yield group
        tasks.append(asyncio.current_task())

    @tool
    async def spawn(group: Annotated[asyncio.TaskGroup, Inject]) -> str:
        """Starts work in the run's task group."""
        tasks.append(asyncio.current_task())
        await group.create_task(asyncio.sleep(0))
        return "spawned"

    app = Thena(asking(["spawn"] * 3, tools=[spawn]), container=container(group=RunScoped(open_group)))
    async with app:
        result = await app.run("go")
    assert observations(result) == ["spawned"] * 3
    assert tasks[0] is tasks[-1]
    assert len(set(tasks)) == 4


@pytest.mark.behaviour("D04")
async def test_a_timeout_scope_inside_works() -> None:
    """`asyncio.timeout` around the `yield` of a service is entered and left by its own task."""

    async def open_timed() -> AsyncIterator[Session]:
        async with asyncio.timeout(60):
            yield Session(7)

    async with Thena(tools=[number], container=container(session=RunScoped(open_timed))) as app:
        assert (await app.call("number")).content == "7"


@pytest.mark.behaviour("D05")
async def test_teardown_goes_on_after_a_failure() -> None:
    """Where one service fails to close, the others are closed, and the run that had no error says so."""
    log = Log()

    def open_basket(session: Session) -> Iterator[Basket]:
        yield Basket(session)
        raise OSError("disk full")

    session = sessions(log)

    @tool
    async def buy(basket: Annotated[Basket, Inject]) -> str:
        """Buys."""
        return "bought"

    async with Thena(tools=[buy], container=container(session=session, basket=RunScoped(open_basket, session))) as app:
        with pytest.raises(ResourceCloseError) as caught:
            await app.call("buy")
    assert log == ["open 1", "close 1"]
    assert str(caught.value) == (
        '[thena] The run ended well, but services failed to close: "open_basket": OSError: disk full'
    )
    assert [name for name, _ in caught.value.failures] == ["open_basket"]


@pytest.mark.behaviour("D05")
async def test_the_runs_own_error_is_not_hidden() -> None:
    """A service that fails to close leaves the run's own error as it is, with a note."""
    log = Log()

    async def open_basket(session: Session) -> AsyncIterator[Basket]:
        try:
            yield Basket(session)
        finally:
            raise OSError("disk full")

    session = sessions(log)

    @tool
    async def buy(basket: Annotated[Basket, Inject]) -> str:
        """Ends the run."""
        raise FatalToolError("ruined")

    async with Thena(tools=[buy], container=container(session=session, basket=RunScoped(open_basket, session))) as app:
        with pytest.raises(FatalToolError) as caught:
            await app.call("buy")
    assert str(caught.value) == "ruined"
    assert log == ["open 1", "saw FatalToolError", "close 1"]
    assert caught.value.__notes__ == ['the run-scoped service "open_basket" also failed to close: OSError: disk full']


@pytest.mark.behaviour("D05")
async def test_a_manager_that_raises_the_runs_error_again_has_not_failed() -> None:
    """A context manager that raises what it was given leaves no note on it."""

    class Strict(contextlib.AbstractAsyncContextManager[Session]):
        async def __aenter__(self) -> Session:
            return Session(1)

        async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
            if error is not None:
                raise error

    def open_session() -> contextlib.AbstractAsyncContextManager[Session]:
        return Strict()

    async with Thena(tools=[ruin], container=container(session=RunScoped(open_session))) as app:
        with pytest.raises(FatalToolError) as caught:
            await app.call("ruin")
    assert not hasattr(caught.value, "__notes__")


async def test_a_service_cannot_swallow_the_runs_error() -> None:
    """A context manager that catches the run's error does not keep the run alive."""

    @contextlib.asynccontextmanager
    async def open_session() -> AsyncIterator[Session]:
        with contextlib.suppress(BaseException):
            yield Session(1)

    async with Thena(tools=[ruin], container=container(session=RunScoped(open_session))) as app:
        with pytest.raises(FatalToolError, match=r"^ruined$"):
            await app.call("ruin")
