"""What Thena uses of dependency-injector, on its own: an upgrade that changes it fails here first."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, get_args

import pytest
from dependency_injector import containers, providers, resources
from dependency_injector.wiring import Provide

from thena_core import RunScoped

pytestmark = pytest.mark.behaviour("D02")


class Part:
    """Something to provide."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs


def opened() -> Iterator[Part]:
    yield Part()


async def opened_async() -> AsyncIterator[Part]:
    yield Part()


def test_a_container_lists_its_providers_by_name() -> None:
    """`.providers` of an instance maps each name to the provider of that instance, nested containers included."""

    class Inner(containers.DeclarativeContainer):
        part = providers.Singleton(Part)

    class Outer(containers.DeclarativeContainer):
        inner = providers.Container(Inner)
        part = providers.Factory(Part)

    outer = Outer()
    assert set(outer.providers) == {"inner", "part"}
    assert outer.providers["part"] is outer.part
    assert outer.part is not Outer.part
    assert set(outer.providers["inner"].container.providers) == {"part"}


@pytest.mark.parametrize(
    "kind", [providers.Factory, providers.Singleton, providers.Callable, providers.Resource, RunScoped]
)
def test_a_provider_shows_what_it_calls_and_with_what(kind: Any) -> None:
    """`.provides`, `.args`, `.kwargs` and `.related` hold what was given, providers as themselves."""
    inner = providers.Object(1)
    provider = kind(Part, inner, 2, three=inner)
    assert provider.provides is Part
    assert list(provider.args) == [inner, 2]
    assert dict(provider.kwargs) == {"three": inner}
    assert list(provider.related) == [inner, inner]


def test_the_attributes_of_a_factory() -> None:
    """`.attributes` holds what `add_attributes` was given."""
    assert dict(providers.Factory(Part).add_attributes(one=1).attributes) == {"one": 1}


def test_the_parts_of_a_selector() -> None:
    """`.selector` and `.providers` hold what chooses, and what there is to choose from."""
    part = providers.Object("part")
    selector = providers.Selector(providers.Object("a"), a=part)
    assert selector.selector() == "a"
    assert selector.providers["a"] is part


@pytest.mark.parametrize(
    ("made", "related"),
    [
        (lambda part: part.provided, 1),
        (lambda part: next(iter(part.provided.name.related)), 1),
        (providers.List, 1),
        (lambda part: providers.Dict(a=part), 1),
        (lambda part: providers.Aggregate(a=part), 1),
        (lambda part: providers.Dependency(default=part), 1),
        (lambda part: part.provider, 1),
    ],
    ids=["provided", "attribute", "list", "dict", "aggregate", "dependency", "delegate"],
)
def test_what_is_composed_is_related(made: Any, related: int) -> None:
    """`.related` of what is made of a provider lists that provider."""
    part = providers.Object(1)
    assert [inner is part for inner in made(part).related] == [True] * related


def test_overriding() -> None:
    """`.last_overriding` is the newest override; `override` nests, and `reset_last_overriding` takes one back."""
    provider, first, second = providers.Factory(Part), providers.Object(1), providers.Object(2)
    assert provider.last_overriding is None
    provider.override(first)
    provider.override(second)
    assert provider.last_overriding is second
    provider.reset_last_overriding()
    assert provider.last_overriding is first
    provider.reset_override()
    assert provider.last_overriding is None


def test_a_value_may_override() -> None:
    """`override` wraps a value that is no provider in an `Object`."""
    provider = providers.Factory(Part)
    provider.override(7)
    assert isinstance(provider.last_overriding, providers.Object)
    assert provider() == 7


def test_a_singleton_is_kept_until_reset() -> None:
    """A singleton gives the same object, until `reset` or, with what it holds, `full_reset`."""
    inner = providers.Singleton(Part)
    outer = providers.Singleton(Part, inner)
    first, part = outer(), inner()
    assert outer() is first
    outer.reset()
    assert outer() is not first
    assert inner() is part
    assert isinstance(outer, providers.BaseSingleton)


@pytest.mark.parametrize("function", [opened, opened_async], ids=["sync", "async"])
async def test_a_resource_is_initialised_and_shut_down(function: Any) -> None:
    """`init`, `shutdown` and `initialized` of a resource; those of an asynchronous one are awaited."""
    resource = providers.Resource(function)
    assert not resource.initialized
    made = resource.init()
    assert inspect.isawaitable(made) is (function is opened_async)
    if inspect.isawaitable(made):
        await made
    assert resource.initialized
    closing = resource.shutdown()
    if inspect.isawaitable(closing):
        await closing
    assert not resource.initialized


def test_the_class_form_of_a_resource() -> None:
    """Resource classes come from `dependency_injector.resources`, and produce what `init` returns."""

    class Opened(resources.Resource[Part]):
        def init(self) -> Part:
            return Part()

        def shutdown(self, resource: Part | None) -> None: ...

    assert any(base.__module__ == "dependency_injector.resources" for base in Opened.__mro__[1:])
    assert isinstance(providers.Resource(Opened).init(), Part)


async def test_what_needs_an_asynchronous_resource_is_awaitable() -> None:
    """A factory over an asynchronous resource answers with an awaitable."""
    resource = providers.Resource(opened_async)
    await resource.init()
    value = providers.Factory(Part, resource)()
    assert inspect.isawaitable(value)
    assert isinstance((await value).args[0], Part)
    await resource.shutdown()


def test_a_subclass_of_factory_decides_what_a_call_gives() -> None:
    """`_provide` of a subclass is asked for each call; copies in containers keep the subclass and its arguments."""

    class Counted(providers.Factory):
        def _provide(self, args: Any, kwargs: Any) -> Any:
            return "provided", args, kwargs

    class Services(containers.DeclarativeContainer):
        part = providers.Object(1)
        counted = Counted(Part, part)

    services = Services()
    assert services.counted(5, a=6) == ("provided", (5,), {"a": 6})
    assert type(services.counted) is Counted
    assert services.counted.args[0] is services.part


def test_a_delegate_hands_on_the_provider() -> None:
    """`.provider` of a provider gives, when called, the provider; injected, it is a handle."""
    part = providers.Factory(Part)
    assert part.provider() is part
    assert providers.Factory(Part, part.provider)().args[0] is part
    assert type(part.provider).__mro__[0].__name__ == "Delegate"


@pytest.mark.parametrize(
    "made", [providers.DelegatedFactory(Part), providers.Aggregate()], ids=["factory", "aggregate"]
)
def test_a_delegated_provider_is_handed_on(made: Any) -> None:
    """A provider with `__IS_DELEGATED__` is injected as itself; an ordinary one has no such attribute."""
    assert made.__IS_DELEGATED__
    assert providers.Factory(Part, made)().args[0] is made
    assert not hasattr(providers.Factory(Part), "__IS_DELEGATED__")


def test_a_copy_with_a_memo_replaces_parts() -> None:
    """`providers.deepcopy` takes the parts that stand in its memo, by their `id`, from there."""
    part = providers.Object("old")
    listed = providers.List(part)
    copied = providers.deepcopy(listed, {id(part): providers.Object("new")})
    assert (listed(), copied()) == (["old"], ["new"])


def test_a_dependency_that_nobody_fills() -> None:
    """`.is_defined`, `.default` and `.instance_of` tell what a `Dependency` still needs."""
    assert not providers.Dependency(instance_of=Part).is_defined
    assert providers.Dependency(instance_of=Part).instance_of is Part
    assert providers.Dependency(default=1).default() == 1
    filled = providers.Dependency(instance_of=Part)
    filled.override(providers.Object(Part()))
    assert filled.last_overriding is not None


def test_the_options_of_a_configuration() -> None:
    """An option is an attribute, whatever its name, and gives its value when called."""
    config = providers.Configuration()
    config.from_dict({"store": {"root": "/srv"}})
    assert config.store.root() == "/srv"
    assert type(config.store.root).__name__ == "ConfigurationOption"
    assert [cls.__name__ for cls in type(config.store.as_int()).__mro__[:2]] == ["TypedConfigurationOption", "Callable"]


def test_the_marker_of_its_wiring() -> None:
    """`Provide["name"]` is an instance of a class named `Provide`, and keeps the name as `.provider`."""
    mark = get_args(Annotated[Part, Provide["inner.part"]])[1]
    assert type(mark).__name__ == "Provide"
    assert type(mark).__module__.startswith("dependency_injector")
    assert mark.provider == "inner.part"


@pytest.mark.parametrize(
    "name", ["Factory", "Callable", "BaseSingleton", "Resource", "Object", "Delegate", "Dependency"]
)
def test_the_kinds_that_are_told_apart_by_name(name: str) -> None:
    """The classes that Thena tells apart by name are where it looks for them."""
    assert getattr(providers, name).__module__ == "dependency_injector.providers"
    assert getattr(providers, name).__name__ == name


async def test_concurrent_use_of_an_asynchronous_singleton() -> None:
    """An asynchronous singleton that is being made is made once, also where twenty ask."""
    made: list[int] = []

    async def make() -> Part:
        await asyncio.sleep(0)
        made.append(1)
        return Part()

    singleton = providers.Singleton(make)
    objects = await asyncio.gather(*[singleton() for _ in range(20)])
    assert len({id(one) for one in objects}) == 1
    assert made == [1]
