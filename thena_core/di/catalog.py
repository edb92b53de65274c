"""From the app's dependency-injector container to an index of its providers, by produced type and by name."""

from __future__ import annotations

import inspect
import types
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args, get_origin, get_type_hints

_UNWRAPPED = {Iterator, AsyncIterator, Generator, AsyncGenerator, Awaitable}


@dataclass(frozen=True, slots=True)
class Service:
    """One provider of the container.

    Attributes:
        name: Its name in the container; `inner.name` for one of a nested container.
        provider: The provider itself.
        type: What it produces, or `None` where that cannot be told.
    """

    name: str
    provider: Any
    type: Any


class Catalog:
    """Find services by type or by name; asked while the app is built, never per call."""

    def __init__(self, container: Any = None) -> None:
        self.services: dict[str, Service] = dict(_collect(container)) if container is not None else {}
        self._by_type: dict[Any, list[Service]] = {}
        for service in self.services.values():
            for key in _keys(service.type):
                self._by_type.setdefault(key, []).append(service)

    def named(self, name: str) -> Service | None:
        """Return the service of that name."""
        return self.services.get(name)

    def of_type(self, wanted: Any) -> list[Service]:
        """Return the services that answer for a type; those that produce exactly it beat those of subclasses."""
        found = self._by_type.get(wanted, [])
        exact = [service for service in found if service.type == wanted]
        return exact or found


def produced_type(provider: Any) -> Any:
    """Tell what a provider produces: its class, or what its function says that it returns."""
    overriding = getattr(provider, "last_overriding", None)
    if overriding is not None:
        return produced_type(overriding)
    kind = type(provider).__name__
    if kind == "Object":
        return cast("Any", type(provider()))
    if kind == "Dependency":
        return provider.instance_of
    if kind in {"Configuration", "DependenciesContainer", "Container"}:
        return None
    provides = getattr(provider, "provides", None)
    if inspect.isclass(provides):
        return _of_resource_class(provides)
    return _returned(provides) if callable(provides) else None


def _collect(container: Any, prefix: str = "") -> Iterator[tuple[str, Service]]:
    providers: Mapping[str, Any] = container.providers
    for name, provider in providers.items():
        if type(provider).__name__ == "Container":  # a Configuration answers to any attribute, so ask for the kind
            yield from _collect(provider.container, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", Service(f"{prefix}{name}", provider, produced_type(provider))


def _returned(function: Callable[..., Any]) -> Any:
    try:
        returned = get_type_hints(inspect.unwrap(function)).get("return")
    except (NameError, TypeError):
        return None
    origin = get_origin(returned)
    if origin in _UNWRAPPED or getattr(origin, "__name__", "") in {
        "AbstractContextManager",
        "AbstractAsyncContextManager",
    }:
        return get_args(returned)[0]
    return None if returned is None else _bare(returned)


def _of_resource_class(cls: type) -> Any:
    """A class with `init` and `shutdown` (dependency-injector's own form) produces what `init` returns."""
    if any(base.__name__ in {"Resource", "AsyncResource"} for base in cls.__mro__[1:]) and hasattr(cls, "init"):
        return _returned(cast("Any", cls).init)
    return cls


def _bare(returned: Any) -> Any:
    if get_origin(returned) is types.UnionType:
        kept = [part for part in get_args(returned) if part is not type(None)]
        return kept[0] if len(kept) == 1 else returned
    return returned


def _keys(produced: Any) -> Iterator[Any]:
    """List the types that a product answers for: itself, its bases and generic bases."""
    if produced is None:
        return
    yield produced
    cls = get_origin(produced) or produced
    if not inspect.isclass(cls):
        return
    seen: list[Any] = [produced]
    for base in cls.__mro__:
        for key in (base, *base.__dict__.get("__orig_bases__", ())):
            if key is not object and key not in seen:
                seen.append(key)
                yield key
