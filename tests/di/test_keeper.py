"""The services of one run: opened at first use and once, of every kind, also by a handle."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from dependency_injector import providers
from dependency_injector.wiring import Provide

from tests.di.apps import Log, asking, container
from tests.di.sessions import Basket, Held, Session, number, number_sync, observations, sessions
from thena_core import (
    CircularDependencyError,
    Inject,
    RunScoped,
    ScopeError,
    Thena,
    WorkflowRuntime,
    tool,
    workflow,
)


@pytest.mark.behaviour("D04")
async def test_opened_at_first_use_once_per_run() -> None:
    """A run that asks opens one, shared by all its calls, and the next run opens its own; one that does not, none."""
    log = Log()
    app = Thena(asking("number", "number", tools=[number]), container=container(session=sessions(log)))
    async with app:
        first = await app.run("go")
        second = await app.run("go")
    assert observations(first) == ["1", "1"]
    assert log == ["open 1", "close 1"]
    assert observations(second) == []  # the scripted model's last turn repeats


@pytest.mark.behaviour("D06")
async def test_sibling_runs_get_their_own() -> None:
    """Runs that go on at the same time never share one."""
    log = Log()
    met = asyncio.Barrier(2)

    @tool
    async def meet(session: Annotated[Session, Inject]) -> str:
        """Waits for the other run."""
        await met.wait()
        return str(session.number)

    async with Thena(tools=[meet], container=container(session=sessions(log))) as app:
        answers = await asyncio.gather(app.call("meet"), app.call("meet"))
    assert sorted(answer.content for answer in answers) == ["1", "2"]
    assert sorted(log) == ["close 1", "close 2", "open 1", "open 2"]


@pytest.mark.behaviour("D06")
async def test_parallel_first_use_builds_once() -> None:
    """Twenty calls of one turn that all ask first get the same object."""
    log = Log()
    app = Thena(asking(["number"] * 20, tools=[number]), container=container(session=sessions(log)))
    async with app:
        result = await app.run("go")
    assert observations(result) == ["1"] * 20
    assert log == ["open 1", "close 1"]


@pytest.mark.behaviour("D06")
async def test_a_nested_run_gets_its_own_and_closes_it_first() -> None:
    """The nested run's session is another one, closed when that run ends, before the outer one's."""
    log = Log()

    @workflow(steps=[asking("number", tools=[number])])
    class Inner: ...

    @tool
    async def delegate(session: Annotated[Session, Inject], runtime: WorkflowRuntime) -> str:
        """Starts a nested run."""
        inner = await runtime.run(Inner, message="go")
        log.append("back")
        return f"{session.number} {observations(inner)}"

    app = Thena(asking("delegate", tools=[delegate]), container=container(session=sessions(log)), workflows=[Inner])
    async with app:
        result = await app.run("go")
    assert observations(result) == ["1 ['2']"]
    assert log == ["open 1", "open 2", "close 2", "back", "close 1"]


@pytest.mark.behaviour("D04")
async def test_app_call_closes_too() -> None:
    """A single call through `app.call` is a run of its own, and closes what it opened before it returns."""
    log = Log()
    async with Thena(tools=[number], container=container(session=sessions(log))) as app:
        assert (await app.call("number")).content == "1"
        assert log == ["open 1", "close 1"]


@pytest.mark.behaviour("D04")
async def test_a_sync_tool_gets_it() -> None:
    """A sync tool gets the session opened on the loop, and runs in its thread."""
    log = Log()
    async with Thena(tools=[number_sync], container=container(session=sessions(log))) as app:
        assert (await app.call("number_sync")).content == "1 False"
    assert log == ["open 1", "close 1"]


@pytest.mark.behaviour("D04")
async def test_closed_in_reverse_order() -> None:
    """What was opened later is closed earlier; what a service needs is opened before it and closed after it."""
    log = Log()

    async def open_basket(session: Session) -> AsyncIterator[Basket]:
        log.append("open basket")
        yield Basket(session)
        log.append("close basket")

    session = sessions(log)

    @tool
    async def buy(basket: Annotated[Basket, Inject], session: Annotated[Session, Inject]) -> str:
        """Buys."""
        return str(basket.session is session)

    services = container(session=session, basket=RunScoped(open_basket, session))
    async with Thena(tools=[buy], container=services) as app:
        assert (await app.call("buy")).content == "True"
    assert log == ["open 1", "open basket", "close basket", "close 1"]


@pytest.mark.behaviour("D04")
async def test_a_service_that_asks_for_another_by_its_handle() -> None:
    """What is being opened may call the handle of another service of the run; it gets the run's object."""
    log = Log()
    session = sessions(log)

    async def open_basket(get_session: Any) -> Basket:
        return Basket(await get_session())

    @tool
    async def buy(basket: Annotated[Basket, Inject], session: Annotated[Session, Inject]) -> str:
        """Buys."""
        return str(basket.session is session)

    services = container(session=session, basket=RunScoped(open_basket, session.provider))
    async with Thena(tools=[buy], container=services) as app:
        answer = await asyncio.wait_for(app.call("buy"), 5)
    assert answer.content == "True"
    assert log == ["open 1", "close 1"]


async def test_a_circle_closed_by_a_handle_is_named() -> None:
    """Two services that open one another by handles get an error that names the circle, and nothing hangs."""
    told: list[Exception] = []

    async def open_session(get_basket: Any) -> Session:
        await get_basket()
        return Session()

    async def open_basket(get_session: Any) -> Basket:
        try:
            return Basket(await get_session())
        except CircularDependencyError as error:
            told.append(error)
            raise

    session = RunScoped(open_session)
    basket = RunScoped(open_basket, session.provider)
    session.add_args(basket.provider)
    async with Thena(tools=[number], container=container(session=session, basket=basket)) as app:
        await asyncio.wait_for(app.call("number"), 5)
    assert [str(error) for error in told] == [
        (
            "[thena] A circle of run-scoped services, closed by a handle: open_session -> open_basket -> open_session\n"
            "Call the handle later, in a method, not while its holder is being opened."
        )
    ]


@pytest.mark.behaviour("D04")
async def test_every_kind_of_opener() -> None:
    """Generators, context managers, coroutines, functions and classes all open; what can be closed is closed."""
    log = Log()

    def generator() -> Iterator[Session]:
        yield Session(1)
        log.append("generator closed")

    @contextlib.asynccontextmanager
    async def manager() -> AsyncIterator[Basket]:
        yield Basket(Session(2))
        log.append("manager closed")

    async def held() -> Held:
        return Held(log)

    @tool
    async def all_of_them(
        a: Annotated[Session, Inject],
        b: Annotated[Basket, Inject],
        c: Annotated[Held, Inject],
        d: Annotated[Log, Inject],
    ) -> str:
        """Takes every kind."""
        return " ".join(type(part).__name__ for part in (a, b, c, d))

    services = container(a=RunScoped(generator), b=RunScoped(manager), c=RunScoped(held), d=RunScoped(Log))
    async with Thena(tools=[all_of_them], container=services) as app:
        assert (await app.call("all_of_them")).content == "Session Basket Held Log"
    assert log == ["held closed", "manager closed", "generator closed"]


@pytest.mark.behaviour("D04")
async def test_what_stands_on_a_run_scoped_service() -> None:
    """A factory, a list, a dictionary, a selector and an attribute over a service of the run use the run's object."""
    log = Log()
    session = sessions(log)
    services = container(
        session=session,
        basket=providers.Factory(Basket, session),
        listed=providers.List(session, Log()),
        mapped=providers.Dict(one=session),
        chosen=providers.Selector(lambda: "b", a=RunScoped(lambda: 1 / 0), b=session),
        user=session.provided.user,
        upper=session.provided.user.upper.call(),
        dressed=providers.Factory(Log).add_attributes(session=session),
    )

    @tool
    async def look(
        session: Annotated[Session, Inject],
        basket: Annotated[Basket, Inject],
        again: Annotated[Basket, Provide["basket"]],
        listed: Annotated[list[Any], Provide["listed"]],
        mapped: Annotated[dict[str, Any], Provide["mapped"]],
        chosen: Annotated[Any, Provide["chosen"]],
        user: Annotated[str, Provide["user"]],
        upper: Annotated[str, Provide["upper"]],
        dressed: Annotated[Any, Provide["dressed"]],
    ) -> str:
        """Compares what it gets."""
        assert basket is not again
        same = [basket.session, again.session, listed[0], mapped["one"], chosen, dressed.session]
        assert all(one is session for one in same)
        assert listed[1] is services.listed.args[1]
        return f"{user} {upper}"

    async with Thena(tools=[look], container=services) as app:
        assert (await app.call("look")).content == "user 1 USER 1"
    assert log == ["open 1", "close 1"]


@pytest.mark.behaviour("D04")
async def test_a_factory_gives_a_new_object_per_call() -> None:
    """A `Factory` asked for in `execute` makes one for each call; a `Singleton` is the same for all."""
    made: list[Any] = []

    @tool
    async def take(fresh: Annotated[Session, Inject], kept: Annotated[Log, Inject]) -> str:
        """Takes both."""
        made.append((fresh, kept))
        return ""

    services = container(fresh=providers.Factory(Session), kept=providers.Singleton(Log))
    async with Thena(asking("take", "take", tools=[take]), container=services) as app:
        await app.run("go")
    assert made[0][0] is not made[1][0]
    assert made[0][1] is made[1][1]


async def test_a_handle_outside_of_a_run() -> None:
    """A handle called where no run is says so, instead of making an object that nobody closes."""
    services = container(session=sessions(Log()))
    with pytest.raises(ScopeError) as caught:
        services.session()
    assert str(caught.value) == (
        "[thena] A RunScoped service was asked for outside of a run: there is none to live in."
    )


async def test_a_handle_after_the_end_of_its_run() -> None:
    """A task that outlives its run and calls a handle gets an error, and starts nothing that nobody would close."""
    log = Log()
    left: list[asyncio.Task[Any]] = []
    ended = asyncio.Event()
    session = sessions(log)

    async def later(handle: Any) -> Any:
        await ended.wait()
        return await handle()

    @tool
    async def leave(handle: Annotated[Any, Provide["handle"]], session: Annotated[Session, Inject]) -> str:
        """Leaves a task behind."""
        left.append(asyncio.create_task(later(handle)))
        return ""

    other = RunScoped(lambda: Basket(Session()))
    async with Thena(tools=[leave], container=container(session=session, handle=other.provider)) as app:
        await app.call("leave")
    ended.set()
    with pytest.raises(ScopeError, match="after its run has ended"):
        await left[0]
