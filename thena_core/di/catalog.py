"""From containers to an index of their providers, by produced type and by name; the app's own shadows the plugins'."""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from thena_core.schema.signature import without_none

Lifetime = Literal["app", "run", "call"]

_UNWRAPPED = {
    Iterator,
    AsyncIterator,
    Generator,
    AsyncGenerator,
    Awaitable,
    AbstractContextManager,
    AbstractAsyncContextManager,
}
_PRODUCING = {"Factory", "Callable", "BaseSingleton", "Resource"}
_DECLARED = {"Dependency", "AbstractFactory", "AbstractSingleton"}


@dataclass(frozen=True, slots=True)
class Service:
    """One provider of a container.

    Attributes:
        name: Its name in the container; `inner.name` for one of a nested container.
        provider: The provider itself.
        type: What it produces, or `None` where that cannot be told.
    """

    name: str
    provider: Any
    type: Any


class Catalog:
    """Find services by type or by name; asked while the app is built, never per call.

    Args:
        containers: The app's own container first, then those of its plugins; an earlier one shadows a later one.

    Attributes:
        services: Name to service.
        every: All services; one whose name an earlier container takes is still found by its type.
        names: A provider's `id` to its name.
    """

    def __init__(self, containers: Sequence[Any] = ()) -> None:
        self._layers = [_Layer(container) for container in containers]
        self.services: dict[str, Service] = {}
        for layer in self._layers:
            for name, service in layer.services.items():
                self.services.setdefault(name, service)
        self.every = [service for layer in self._layers for service in layer.services.values()]
        self.names = {id(service.provider): service.name for service in reversed(self.every)}

    def named(self, name: str) -> Service | None:
        """Find a service by its name; an option of a `Configuration` is named as that library does, `config.root`."""
        found = self.services.get(name)
        holder, *options = name.split(".")
        if found is not None or not options or holder not in self.services:
            return found
        provider = self.services[holder].provider
        if not is_kind(provider, {"Configuration"}):
            return None
        for option in options:
            provider = getattr(provider, option)
        return Service(name, provider, None)

    def of_type(self, wanted: Any) -> Sequence[Service]:
        """Return the services that answer for a type; those that produce exactly it beat those of subclasses."""
        for layer in self._layers:
            found = layer.of_type(wanted)
            if found:
                return found
        return ()

    def name_of(self, provider: Any) -> str:
        """Name a provider as its container does, or by what it produces."""
        known = self.names.get(id(provider))
        return known or str(getattr(produced_type(provider), "__name__", None) or type(provider).__name__)


class _Layer:
    """The providers of one container."""

    def __init__(self, container: Any) -> None:
        self.services = dict(_collect(container))
        self._by_type: dict[Any, list[Service]] = {}
        for service in self.services.values():
            for key in _keys(service.type):
                self._by_type.setdefault(key, []).append(service)

    def of_type(self, wanted: Any) -> Sequence[Service]:
        found = self._by_type.get(wanted, [])
        return [service for service in found if service.type == wanted] or found


def effective(provider: Any) -> Any:
    """Return what answers in a provider's place: the newest override, or itself."""
    overriding = getattr(provider, "last_overriding", None)
    return provider if overriding is None else effective(overriding)


def kinds(provider: Any) -> list[str]:
    """Name dependency-injector's own classes that a provider is one of, nearest first; `RunScoped` counts as one."""
    return [cls.__name__ for cls in type(provider).__mro__ if _is_own(cls)]


def is_kind(provider: Any, names: Container[str]) -> bool:
    """Whether a provider is of one of these kinds, or of one derived from them."""
    for cls in type(provider).__mro__:  # noqa: SIM110 - asked some thousand times per build: no generator
        if cls.__name__ in names and _is_own(cls):
            return True
    return False


def _is_own(cls: type) -> bool:
    return cls.__module__ == "dependency_injector.providers" or cls.__name__ == "RunScoped"


def produced_type(provider: Any) -> Any:
    """Tell what a provider produces: its class, or what its function says that it returns."""
    if is_kind(provider, {"Configuration"}):
        return None  # its values override it
    provider = effective(provider)
    if is_kind(provider, {"Object"}):
        return provider().__class__
    if is_kind(provider, _DECLARED):
        return getattr(provider, "instance_of", None) or getattr(provider, "provides", None)
    if not is_kind(provider, _PRODUCING):
        return None
    provides = provider.provides
    if inspect.isclass(get_origin(provides)):
        return provides
    if inspect.isclass(provides):
        return _of_resource_class(provides)
    return returned_type(provides) if callable(provides) else None


def returned_type(function: Callable[..., Any]) -> Any:
    """Tell what a function gives: its return annotation, generators and context managers unwrapped."""
    try:
        returned = get_type_hints(inspect.unwrap(function)).get("return")
    except (NameError, TypeError):
        return None
    if get_origin(returned) in _UNWRAPPED:
        return get_args(returned)[0]
    return None if returned is None else without_none(returned)[0]


def unreadable_type(provider: Any) -> str | None:
    """Return what a provider's function says that it gives, where that is not there at run time."""
    provides = getattr(effective(provider), "provides", None) if is_kind(effective(provider), _PRODUCING) else None
    said = getattr(provides, "__annotations__", {}).get("return")
    return said if isinstance(said, str) and returned_type(cast("Any", provides)) is None else None


def _collect(container: Any, prefix: str = "") -> Iterator[tuple[str, Service]]:
    providers: Mapping[str, Any] = container.providers
    for name, provider in providers.items():
        if is_kind(provider, {"Container"}):  # a Configuration answers to any attribute, so ask for the kind
            yield from _collect(provider.container, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", Service(f"{prefix}{name}", provider, produced_type(provider))


def _of_resource_class(cls: type) -> Any:
    """A class with `init` and `shutdown` (dependency-injector's own form) produces what `init` returns."""
    if any(base.__module__ == "dependency_injector.resources" for base in cls.__mro__[1:]):
        return returned_type(cast("Any", cls).init)
    return cls


def _keys(produced: Any) -> Iterator[Any]:
    """List the types that a product answers for: itself, its bases and generic bases."""
    if produced is None:
        return
    yield produced
    cls: Any = get_origin(produced) or produced
    if not inspect.isclass(cls):
        return
    seen: list[Any] = [produced, object]
    for base in cls.__mro__:
        for key in (base, *base.__dict__.get("__orig_bases__", ())):
            if key not in seen:
                seen.append(key)
                yield key
