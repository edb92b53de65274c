"""The services of a run: opened once at first use, closed in reverse by one task, whatever ends the run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from dependency_injector import providers
from dependency_injector.wiring import Provide

from tests.di.apps import Log, asking, container
from thena_core import (
    CircularDependencyError,
    FatalToolError,
    Inject,
    ResourceCloseError,
    RunScoped,
    ScopeError,
    Thena,
    ToolResult,
    WorkflowRuntime,
    tool,
    workflow,
)
from thena_core.di.keeper import RunServices


class Session:
    """A service of a run."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.user = f"user {number}"


class Basket:
    """A second service of a run, which needs the first."""

    def __init__(self, session: Session) -> None:
        self.session = session


class Held(contextlib.AbstractContextManager["Held"]):
    """A context manager."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def __exit__(self, *_: object) -> None:
        self.log.append("held closed")


def sessions(log: Log) -> Any:
    """Provide a numbered session, and write down when it is opened, closed, and with what."""

    @contextlib.asynccontextmanager
    async def open_session() -> AsyncIterator[Session]:
        number = sum(line.startswith("open") for line in log) + 1
        log.append(f"open {number}")
        await asyncio.sleep(0)
        try:
            yield Session(number)
        except BaseException as error:
            log.append(f"saw {type(error).__name__}")
            raise
        finally:
            log.append(f"close {number}")

    return RunScoped(open_session)


@tool
async def number(session: Annotated[Session, Inject]) -> str:
    """Gives the session's number."""
    return str(session.number)


@tool
def number_sync(session: Annotated[Session, Inject]) -> str:
    """Gives the session's number from a thread."""
    return f"{session.number} {threading.current_thread() is threading.main_thread()}"


@tool
async def ruin(session: Annotated[Session, Inject]) -> str:
    """Ends the run."""
    raise FatalToolError("ruined")


def waiting(asked: asyncio.Event) -> Any:
    """Make a tool that tells when it runs, and never answers."""

    @tool
    async def forever(session: Annotated[Session, Inject]) -> str:
        """Never answers."""
        asked.set()
        await asyncio.Event().wait()
        return ""

    return forever


def observations(result: Any) -> list[str]:
    return [message.content for message in result.history if message.role == "tool"]


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


@pytest.mark.behaviour("D06")
async def test_a_failure_to_open_is_not_kept() -> None:
    """The call that met the failure reads of it, and the next one of the same run tries again."""
    attempts: list[int] = []

    async def open_session() -> Session:
        attempts.append(1)
        await asyncio.sleep(0)
        if len(attempts) == 1:
            raise ConnectionError("refused")
        return Session(len(attempts))

    app = Thena(asking("number", "number", "number", tools=[number]), container=container(s=RunScoped(open_session)))
    async with app:
        result = await app.run("go")
    first, second, third = observations(result)
    assert "ConnectionError: refused" in first
    assert (second, third) == ("2", "2")


async def test_what_was_opened_for_a_failed_one_is_closed() -> None:
    """Where a service fails to open, what was opened for it stays the run's and is closed at its end."""
    log = Log()

    def open_basket(session: Session) -> Basket:
        raise OSError("disk full")

    session = sessions(log)

    @tool
    async def buy(basket: Annotated[Basket, Inject]) -> str:
        """Buys."""
        return ""

    services = container(session=session, basket=RunScoped(open_basket, session))
    async with Thena(asking("buy", "number", tools=[buy, number]), container=services) as app:
        result = await app.run("go")
    assert observations(result)[1] == "1"
    assert log == ["open 1", "close 1"]


@pytest.mark.behaviour("D06")
async def test_one_who_gives_up_does_not_take_it_from_the_others() -> None:
    """A call that times out while a service opens leaves the opening to those who still wait."""
    may_open, gave_up = asyncio.Event(), asyncio.Event()

    async def open_session() -> Session:
        await may_open.wait()
        return Session(1)

    @tool(timeout=0.01)
    async def hasty(session: Annotated[Session, Inject]) -> str:
        """Waits for a moment only."""
        return "never"

    @tool
    async def trigger() -> str:
        """Lets the opening go on, after the hasty one gave up."""
        await gave_up.wait()
        may_open.set()
        return "go"

    async def after_tool(self: Any, result: ToolResult) -> None:
        if result.call.name == "hasty":
            gave_up.set()

    app = Thena(
        asking(["hasty", "number", "trigger"], tools=[hasty, number, trigger], after_tool=after_tool),
        container=container(session=RunScoped(open_session)),
    )
    async with app:
        result = await app.run("go")
    assert observations(result)[1:] == ["1", "go"]
    assert "never" not in observations(result)[0]


@pytest.mark.behaviour("D04")
async def test_what_is_still_opening_is_given_up() -> None:
    """A run that ends while several services are still being opened waits for none of them."""
    started = asyncio.Event()

    async def open_never() -> Session:
        started.set()
        await asyncio.Event().wait()
        return Session()

    async def open_never_either() -> AsyncIterator[Basket]:
        await asyncio.Event().wait()
        yield Basket(Session())

    @tool
    async def buy(basket: Annotated[Basket, Inject]) -> str:
        """Never gets its basket."""
        return ""

    @tool
    async def end() -> str:
        """Ends the run."""
        await started.wait()
        raise FatalToolError("enough")

    services = container(session=RunScoped(open_never), basket=RunScoped(open_never_either))
    async with Thena(asking(["number", "buy", "end"], tools=[number, buy, end]), container=services) as app:
        with pytest.raises(FatalToolError, match=r"^enough$"):
            await asyncio.wait_for(app.run("go"), 5)


async def test_a_loop_that_stops_closes_everything() -> None:
    """Where the loop cancels every task, the run's and the keeper's, the services are closed nevertheless."""
    log = Log()

    left: list[asyncio.Task[Any]] = []

    async def abandon() -> None:
        asked = asyncio.Event()
        app = Thena(tools=[waiting(asked)], container=container(session=sessions(log)))
        await app.__aenter__()
        left.append(asyncio.create_task(app.call("forever")))
        await asked.wait()

    await asyncio.to_thread(asyncio.run, abandon())
    assert log == ["open 1", "saw CancelledError", "close 1"]


async def test_a_loop_that_stops_does_not_wait_for_a_run_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that was opened where nothing is left to close it is closed when the loop stops, and nothing hangs."""
    monkeypatch.setattr("thena_core.di.keeper.PATIENCE", 0.01)
    log = Log()

    async def abandon() -> None:
        await RunServices().get(sessions(log))

    await asyncio.wait_for(asyncio.to_thread(asyncio.run, abandon()), 5)
    assert log == ["open 1", "close 1"]


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
