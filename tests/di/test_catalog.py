"""The index of a container's providers: what each produces, and which answers for a type or a name."""

from __future__ import annotations

import contextlib
from abc import ABC
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Iterator
from typing import Any, Generic, Optional, Protocol, TypeVar

import pytest
from dependency_injector import containers, providers, resources

from tests.di.apps import container
from thena_core import RunScoped
from thena_core.di.catalog import Catalog, effective, is_kind, produced_type

T = TypeVar("T")


class Shape(ABC):  # noqa: B024 - a base, and nothing more
    pass


class Square(Shape):
    pass


class Circle(Shape):
    pass


class Speaks(Protocol):
    def speak(self) -> str: ...


class Dog(Speaks):
    def speak(self) -> str:
        return "woof"


class Repo(Generic[T]):
    pass


class Squares(Repo[Square]):
    pass


class Circles(Repo[Circle]):
    pass


class SquareResource(resources.Resource[Square]):
    def init(self) -> Square:
        return Square()


def square() -> Square:
    return Square()


def maybe_square() -> Square | None:
    return None


def perhaps_square() -> Optional[Square]:  # noqa: UP045 - the older form
    return None


async def async_square() -> Square:
    return Square()


def square_generator() -> Generator[Square, None, None]:
    yield Square()


def square_iterator() -> Iterator[Square]:
    yield Square()


async def square_async_generator() -> AsyncGenerator[Square, None]:
    yield Square()


async def square_async_iterator() -> AsyncIterator[Square]:
    yield Square()


def square_awaitable() -> Awaitable[Square]:
    return async_square()


@contextlib.contextmanager
def square_manager() -> Iterator[Square]:
    yield Square()


@contextlib.asynccontextmanager
async def square_async_manager() -> AsyncIterator[Square]:
    yield Square()


def square_context() -> contextlib.AbstractContextManager[Square]:
    return contextlib.nullcontext(Square())


def squares() -> Repo[Square]:
    return Squares()


def untyped():
    return Square()


def for_checkers() -> Nowhere:  # noqa: F821 - a name that is not there at run time
    return Square()


FUNCTIONS = [
    square,
    maybe_square,
    perhaps_square,
    async_square,
    square_generator,
    square_iterator,
    square_async_generator,
    square_async_iterator,
    square_awaitable,
    square_manager,
    square_async_manager,
    square_context,
]


@pytest.mark.behaviour("D01", "D09")
@pytest.mark.parametrize("kind", [providers.Factory, providers.Singleton, providers.Resource, RunScoped])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_produces_what_it_says(kind: Any, function: Any) -> None:
    """Return annotations tell the type; generators, context managers, awaitables and `| None` are looked through."""
    assert produced_type(kind(function)) is Square


@pytest.mark.behaviour("D09")
@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        (providers.Factory(Square), Square),
        (providers.Object(Square()), Square),
        (providers.Dependency(instance_of=Shape), Shape),
        (providers.AbstractFactory(Shape), Shape),
        (providers.DelegatedFactory(Square), Square),
        (providers.Callable(square), Square),
        (providers.Coroutine(async_square), Square),
        (providers.ThreadLocalSingleton(Square), Square),
        (providers.Resource(SquareResource), Square),
        (providers.Callable(squares), Repo[Square]),
        (providers.Factory(Repo[Square]), Repo[Square]),
        (providers.Factory(untyped), None),
        (providers.Factory(for_checkers), None),
        (providers.Configuration(), None),
        (providers.Configuration().root, None),
        (providers.Factory(Square).provider, None),
        (providers.Factory(Square).provided, None),
        (providers.Factory(Square).provided.side, None),
        (providers.Factory(Square).provided["side"], None),
        (providers.Factory(Square).provided.turn.call(), None),
        (providers.List(providers.Factory(Square)), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_each_kind_produces(provider: Any, expected: Any) -> None:
    """Each kind of provider tells what it produces, or `None` where that cannot be known."""
    assert produced_type(provider) == expected


@pytest.mark.behaviour("D02")
def test_an_override_tells_the_type() -> None:
    """What overrides a provider, the newest of several, tells what it produces."""
    provider = providers.Factory(Square)
    provider.override(providers.Factory(Dog))
    last = providers.Object(Circle())
    provider.override(last)
    assert produced_type(provider) is Circle
    assert effective(provider) is last


def names(services: Any, wanted: Any) -> list[str]:
    return [service.name for service in Catalog([services]).of_type(wanted)]


@pytest.mark.behaviour("D09")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Square, ["square"]),
        (Shape, ["square", "circle"]),
        (ABC, ["square", "circle"]),
        (Speaks, ["dog"]),
        (Dog, ["dog"]),
        (Repo[Square], ["squares"]),
        (Repo[Circle], ["circles"]),
        (Repo[int], []),
        (Repo, ["squares", "circles"]),
        (object, []),
    ],
    ids=[
        "itself",
        "base",
        "abstract base",
        "protocol",
        "its class",
        "alias",
        "other alias",
        "no alias",
        "bare",
        "object",
    ],
)
def test_a_provider_answers_for_its_bases(wanted: Any, expected: list[str]) -> None:
    """A provider answers for what it produces and for that class's bases and generic bases, and not by structure."""
    services = container(
        square=providers.Factory(Square),
        circle=providers.Factory(Circle),
        dog=providers.Factory(Dog),
        squares=providers.Factory(Squares),
        circles=providers.Factory(Circles),
    )
    assert names(services, wanted) == expected


@pytest.mark.behaviour("D09")
def test_the_exact_type_wins() -> None:
    """A provider of the type itself beats those of subclasses."""
    services = container(base=providers.Factory(Shape), square=providers.Factory(Square))
    assert names(services, Shape) == ["base"]


def test_nested_containers_have_dotted_names() -> None:
    """Providers of a nested container are named `inner.name`."""

    class Inner(containers.DeclarativeContainer):
        square = providers.Factory(Square)

    class Outer(containers.DeclarativeContainer):
        shapes = providers.Container(Inner)

    catalog = Catalog([Outer()])
    assert list(catalog.services) == ["shapes.square"]
    assert catalog.name_of(catalog.services["shapes.square"].provider) == "shapes.square"


@pytest.mark.behaviour("D02")
def test_an_option_of_a_configuration_has_a_name() -> None:
    """`config.store.root` names an option, as in dependency-injector's own wiring; other dots name nothing."""
    services = container(config=providers.Configuration(), square=providers.Factory(Square))
    services.config.from_dict({"store": {"root": "/srv"}})
    catalog = Catalog([services])
    found = catalog.named("config.store.root")
    assert found is not None
    assert (found.name, found.provider()) == ("config.store.root", "/srv")
    assert catalog.named("square.side") is None
    assert catalog.named("nothing.here") is None


@pytest.mark.behaviour("D02")
def test_an_earlier_container_shadows_a_later_one() -> None:
    """By name and by type, the app's own provider is found and a plugin's of the same is not."""
    own = container(shape=providers.Factory(Square))
    plugins = container(shape=providers.Factory(Square), other=providers.Factory(Square), dog=providers.Factory(Dog))
    catalog = Catalog([own, plugins])
    assert catalog.services["shape"].provider is own.shape
    assert [service.provider for service in catalog.of_type(Square)] == [own.shape]
    assert [service.provider for service in catalog.of_type(Dog)] == [plugins.dog]


def test_a_derived_provider_is_of_its_bases_kind() -> None:
    """A kind is told by dependency-injector's classes behind a provider's own."""

    class Mine(providers.Singleton):
        pass

    assert is_kind(Mine(Square), {"BaseSingleton"})
    assert is_kind(providers.DelegatedFactory(Square), {"Factory"})
    assert not is_kind(providers.Factory(Square), {"BaseSingleton"})


def test_the_name_of_a_provider_that_has_none() -> None:
    """A provider inside of another is named by what it produces, else by its kind."""
    catalog = Catalog()
    assert catalog.name_of(providers.Factory(Square)) == "Square"
    assert catalog.name_of(providers.List()) == "List"
