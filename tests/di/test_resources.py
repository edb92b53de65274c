"""The container's own resources: opened in order when the app starts, closed by the app that opened them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from dependency_injector import containers, providers, resources

from tests.di.apps import Log, container, said
from thena_core import BuildError, Inject, Prompt, Thena, agent, hookimpl, tool
from thena_core.di.catalog import Catalog
from thena_core.di.resources import Resources
from thena_core.testing import FakeProvider


class Http:
    """A service."""


class Other(Http):
    """Another service."""


def resource(log: Log, name: str, *needs: Any, opening: str = "", closing: str = "") -> Any:
    """Provide a resource that writes down what happens to it, and fails where it should."""

    async def opened(*_: Any) -> AsyncIterator[Http]:
        if opening:
            raise OSError(opening)
        log.append(f"open {name}")
        yield Http()
        log.append(f"close {name}")
        if closing:
            raise OSError(closing)

    return providers.Resource(opened, *needs)


@tool
async def use(http: Annotated[Http, Inject]) -> str:
    """Uses it."""
    return type(http).__name__


@pytest.mark.behaviour("D04")
async def test_opened_at_start_in_order_and_closed_in_reverse() -> None:
    """Each is opened after those that it needs, whether anything asks for it or not, and closed before them."""
    log = Log()
    first = resource(log, "first")
    second = resource(log, "second", first)
    services = container(a=resource(log, "third", second), b=second, c=first)
    async with Thena(tools=[], container=services):
        assert log == ["open first", "open second", "open third"]
    assert log[3:] == ["close third", "close second", "close first"]


@pytest.mark.behaviour("D04")
@pytest.mark.parametrize("form", ["generator", "async generator", "coroutine", "class", "async class", "singleton"])
async def test_every_form_is_injected_as_what_it_gives(form: str) -> None:
    """Sync and async resources, in each of dependency-injector's forms, and an async singleton reach `execute`."""

    class Opened(resources.Resource[Http]):
        def init(self) -> Http:
            return Http()

        def shutdown(self, resource: Http | None) -> None: ...

    class OpenedAsync(resources.AsyncResource[Http]):
        async def init(self) -> Http:
            return Http()

        async def shutdown(self, resource: Http | None) -> None: ...

    def generator() -> Iterator[Http]:
        yield Http()

    async def async_generator() -> AsyncIterator[Http]:
        yield Http()

    async def coroutine() -> Http:
        return Http()

    made: Any = {
        "generator": providers.Resource(generator),
        "async generator": providers.Resource(async_generator),
        "coroutine": providers.Resource(coroutine),
        "class": providers.Resource(Opened),
        "async class": providers.Resource(OpenedAsync),
        "singleton": providers.Singleton(coroutine),
    }[form]
    async with Thena(tools=[use], container=container(http=made)) as app:
        assert (await app.call("use")).content == "Http"


@pytest.mark.behaviour("D03", "D04")
async def test_one_that_fails_closes_those_before() -> None:
    """Where one cannot be opened, the build says which, and what was opened before is closed."""
    log = Log()
    services = container(a=resource(log, "a"), b=resource(log, "b"), c=resource(log, "c", opening="no route"))
    assert await said(services=services) == ['[thena] The resource "c" failed: OSError: no route']
    assert log == ["open a", "open b", "close b", "close a"]


@pytest.mark.behaviour("D05")
async def test_a_failing_close_of_those_before_is_told() -> None:
    """Where closing them fails, too, the build's problem carries a note of it."""
    log = Log()
    services = container(a=resource(log, "a", closing="stuck"), b=resource(log, "b", opening="no route"))
    with pytest.raises(BuildError) as caught:
        await Thena(container=services).__aenter__()
    assert caught.value.exceptions[0].__notes__ == ['the resource "a" also failed to shut down: OSError: stuck']


@pytest.mark.behaviour("D04")
async def test_cancelled_while_opening() -> None:
    """An app that is cancelled while a resource opens closes those before it."""
    log = Log()
    asked = asyncio.Event()

    async def never() -> Http:
        asked.set()
        await asyncio.Event().wait()
        return Http()

    app = Thena(container=container(a=resource(log, "a"), b=providers.Resource(never)))
    task = asyncio.create_task(app.__aenter__())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["open a", "close a"]


@pytest.mark.behaviour("D04")
@pytest.mark.parametrize("culprit", ["constructor", "provider", "agent's provider"])
async def test_a_constructor_that_fails_closes_them(culprit: str) -> None:
    """Where the app cannot be made after its resources were opened, they are closed again."""
    log = Log()

    class NeedsAKey(FakeProvider):
        def __init__(self, key: str) -> None: ...

    def fail() -> Http:
        raise OSError("no")

    @tool(name="t", description="d")
    class Broken:
        def __init__(self) -> None:
            raise OSError("no")

        async def execute(self) -> str:
            return ""

    target = agent(provider=NeedsAKey, prompt=Prompt("p"), tools=[])(type("Clerk", (), {}))
    services = container(a=resource(log, "a"), b=providers.Singleton(fail))
    options: Any = {
        "constructor": {"tools": [Broken]},
        "provider": {"tools": [agent_free(services)]},
        "agent's provider": {"target": target},
    }[culprit]
    with pytest.raises(BuildError):
        await Thena(container=services, **options).__aenter__()
    assert log == ["open a", "close a"]


def agent_free(services: Any) -> Any:
    """Make a tool that asks for the provider named `b`."""
    from dependency_injector.wiring import Provide

    @tool
    async def ask(b: Annotated[Http, Provide["b"]]) -> str:
        """Asks."""
        return ""

    return ask


@pytest.mark.behaviour("D05")
async def test_one_that_fails_to_close_does_not_stop_the_others() -> None:
    """A resource that fails to shut down is told as a warning, and the others are closed."""
    log = Log()
    services = container(a=resource(log, "a"), b=resource(log, "b", closing="stuck"))
    app = Thena(container=services)
    await app.__aenter__()
    with pytest.warns(UserWarning, match=r'^\[thena\] The resource "b" failed to shut down: OSError: stuck$'):
        await app.close()
    assert log == ["open a", "open b", "close b", "close a"]


@pytest.mark.behaviour("D08")
async def test_an_app_closes_only_what_it_opened() -> None:
    """What was initialised before, by the caller or by another app, stays open."""
    log = Log()
    services = container(mine=resource(log, "mine"), theirs=resource(log, "theirs"))
    await services.mine.init()
    async with Thena(container=services):
        async with Thena(container=services):
            pass
        assert log == ["open mine", "open theirs"]
    assert log == ["open mine", "open theirs", "close theirs"]
    await services.mine.shutdown()


@pytest.mark.behaviour("D08")
async def test_two_apps_with_different_containers() -> None:
    """Two apps in one process each use their own container, and no function of any module is patched."""
    log = Log()

    async def other() -> Http:
        return Other()

    before = {name: id(value) for name, value in globals().items()}
    one = Thena(tools=[use], container=container(http=resource(log, "one")))
    two = Thena(tools=[use], container=container(http=providers.Resource(other)))
    async with one, two:
        answers = [(await app.call("use")).content for app in (one, two, one)]
    assert answers == ["Http", "Other", "Http"]
    assert {name: id(value) for name, value in globals().items()} == before


@pytest.mark.behaviour("D08")
async def test_a_container_class_is_made_for_the_app() -> None:
    """A container's class stands for a new instance of it, so two apps share nothing."""

    class Services(containers.DeclarativeContainer):
        http = providers.Singleton(Http)

    seen: list[Any] = []

    @tool
    async def keep(http: Annotated[Http, Inject]) -> str:
        """Keeps it."""
        seen.append(http)
        return ""

    for _ in range(2):
        async with Thena(tools=[keep], container=Services) as app:
            await app.call("keep")
    assert seen[0] is not seen[1]


@pytest.mark.behaviour("D04", "D08")
async def test_a_plugins_resource_under_a_name_that_the_app_takes() -> None:
    """A plugin's resource whose name the app uses for something else is still opened, closed and found by its type."""
    log = Log()

    class Plugin:
        @hookimpl
        def services(self) -> Any:
            return container(client=resource(log, "plugin's"))

    services = container(client=providers.Object("the app's"))
    async with Thena(tools=[use], container=services, plugins=[Plugin()]) as app:
        assert (await app.call("use")).content == "Http"
    assert log == ["open plugin's", "close plugin's"]


async def test_nothing_is_warned_of() -> None:
    """Opening and closing well says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with Thena(container=container(a=resource(Log(), "a"))):
            pass


async def test_a_circle_that_nobody_asks_for() -> None:
    """Providers that need one another, of which no tool asks for any, do not stop an app from starting."""
    one, other = providers.Factory(Http), providers.Factory(Http)
    one.add_args(other)
    other.add_args(one)
    async with Thena(container=container(one=one, other=other)):
        pass


@pytest.mark.behaviour("D04")
async def test_whoever_opens_and_is_cancelled_leaves_nothing_open() -> None:
    """The resources themselves close what they opened when they are cancelled, whoever holds them."""
    log, asked = Log(), asyncio.Event()

    async def never() -> Http:
        asked.set()
        await asyncio.Event().wait()
        return Http()

    held = Resources(Catalog([container(a=resource(log, "a"), b=providers.Resource(never))]))
    task = asyncio.create_task(held.open())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["open a", "close a"]
    assert await held.close() == []
