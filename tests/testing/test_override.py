"""`overridden`: other services for a test, in both directions, also for what was built before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from dependency_injector import containers, providers

from thena_core import Inject, MissingDependencyError, RunScoped, Thena, ThenaError, tool
from thena_core.testing import overridden

pytestmark = pytest.mark.behaviour("D07")


class Clock:
    """A service."""

    name = "real"


class FakeClock(Clock):
    """What a test puts in its place."""

    def __init__(self, name: str = "fake") -> None:
        self.name = name


class Diary:
    """Holds a clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock


def open_clock() -> Iterator[Clock]:
    yield Clock()


class Inner(containers.DeclarativeContainer):
    """A nested container."""

    clock = providers.Singleton(Clock)


class Services(containers.DeclarativeContainer):
    """The app's container."""

    config = providers.Configuration()
    clock = providers.Singleton(Clock)
    diary = providers.Singleton(Diary, clock)
    inner = providers.Container(Inner)
    session = RunScoped(open_clock)
    root = providers.Callable(str, config.root)


@tool(name="read", description="Reads.")
class Read:
    """A tool whose constructor takes what holds the clock."""

    def __init__(self, diary: Diary) -> None:
        self.diary = diary

    async def execute(self) -> str:
        return self.diary.clock.name


async def answer(services: Any, item: Any = Read, name: str = "read") -> str:
    async with Thena(tools=[item], container=services) as app:
        return (await app.call(name)).content


async def test_a_tool_gets_the_other_service_and_the_first_again() -> None:
    """An app built inside of the block has the other service, though the first was built before; one after, the first."""
    services = Services()
    assert await answer(services) == "real"
    with overridden(services, clock=FakeClock()):
        assert await answer(services) == "fake"
    assert await answer(services) == "real"


async def test_what_is_built_only_inside_is_forgotten() -> None:
    """A singleton that was made for the first time inside of the block does not outlive it."""
    services = Services()
    with overridden(services, clock=FakeClock()):
        assert services.diary().clock.name == "fake"
    assert services.diary().clock.name == "real"


@pytest.mark.parametrize(
    ("service", "name"),
    [
        (FakeClock("value"), "value"),
        (providers.Factory(FakeClock, "factory"), "factory"),
        (providers.Singleton(FakeClock, "singleton"), "singleton"),
    ],
    ids=["value", "factory", "singleton"],
)
async def test_a_value_or_a_provider(service: Any, name: str) -> None:
    """Each name takes a value, or another provider."""
    services = Services()
    with overridden(services, clock=service):
        assert await answer(services) == name


async def test_several_at_once() -> None:
    """Several services are replaced together, and an option of the configuration among them."""
    services = Services(config={"root": "/srv"})
    with overridden(services, **{"clock": FakeClock(), "inner.clock": FakeClock("inner"), "config.root": "/fake"}):
        assert (services.clock().name, services.inner.clock().name, services.root()) == ("fake", "inner", "/fake")
    assert (services.clock().name, services.inner.clock().name, services.root()) == ("real", "real", "/srv")


def test_the_whole_configuration() -> None:
    """The configuration is replaced as a service is: the block sees the other values only."""
    services = Services(config={"root": "/srv"})
    with overridden(services, config={"root": "/fake"}):
        assert services.root() == "/fake"
    assert services.root() == "/srv"


async def test_a_run_scoped_service() -> None:
    """A service of a run is replaced by a value that nobody opens or closes."""

    @tool
    async def ask(session: Annotated[Clock, Inject]) -> str:
        """Asks."""
        return session.name

    services = containers.DynamicContainer()
    services.session = RunScoped(open_clock)
    assert await answer(services, ask, "ask") == "real"
    with overridden(services, session=FakeClock()):
        assert await answer(services, ask, "ask") == "fake"
    assert await answer(services, ask, "ask") == "real"


def test_blocks_nest() -> None:
    """The inner block wins, and leaving it brings the outer one's service back."""
    services = Services()
    with overridden(services, clock=FakeClock("outer")):
        with overridden(services, clock=FakeClock("inner")):
            assert services.diary().clock.name == "inner"
        assert services.diary().clock.name == "outer"
    assert services.diary().clock.name == "real"


def test_an_override_of_the_callers_stays() -> None:
    """What the caller had overridden before is overridden afterwards, too."""
    services = Services()
    services.clock.override(FakeClock("the caller's"))
    with overridden(services, clock=FakeClock()):
        assert services.diary().clock.name == "fake"
    assert services.diary().clock.name == "the caller's"


@pytest.mark.parametrize("error", [LookupError, KeyboardInterrupt, asyncio.CancelledError])
def test_it_always_unwinds(error: type[BaseException]) -> None:
    """Whatever leaves the block, the first services are back."""
    services = Services()

    def leave() -> None:
        with overridden(services, clock=FakeClock()):
            assert services.diary().clock.name == "fake"
            raise error

    with pytest.raises(error):
        leave()
    assert services.diary().clock.name == "real"


def test_an_unknown_name() -> None:
    """A name that the container does not have is told with the nearest one, and nothing is overridden."""
    services = Services()
    first = services.clock()
    with pytest.raises(MissingDependencyError) as caught, overridden(services, clock=FakeClock(), diry=None):
        pass
    assert isinstance(caught.value, ThenaError)
    assert str(caught.value) == (
        '[thena] overridden(): the container has no provider named "diry". Did you mean "diary"? '
        "It has: config, clock, diary, inner.clock, session, root."
    )
    assert services.clock() is first


def test_a_containers_class() -> None:
    """A class stands for the instances made of it inside of the block."""
    with overridden(Services, clock=FakeClock()):
        assert Services().diary().clock.name == "fake"
    assert Services().diary().clock.name == "real"


async def test_the_tool_is_not_touched() -> None:
    """Neither the tool's class nor another container of the same class sees an override."""
    before, other = dict(vars(Read)), Services()
    services = Services()
    with overridden(services, clock=FakeClock()):
        assert await answer(other) == "real"
    assert dict(vars(Read)) == before
