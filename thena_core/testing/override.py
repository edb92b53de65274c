"""Other services for a test, in the place of the container's; what was built before is forgotten on both sides."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator, Mapping
from typing import Any

from thena_core._render import did_you_mean, listed
from thena_core.di.catalog import Catalog, is_kind
from thena_core.errors import MissingDependencyError


@contextlib.contextmanager
def overridden(container: Any, /, **services: Any) -> Generator[None, None, None]:
    """Put other services in the place of a container's, for as long as the block lasts.

    Build the app inside of the block: `with overridden(services, clock=FakeClock()):`. Singletons that were made
    before are forgotten on both sides, so that what holds an overridden service is made anew with the other one, and
    made anew again afterwards. Blocks nest; the inner one wins. The override is the container's, so every task and
    thread that uses this container sees it.

    Args:
        container: A container, or the class of one.
        services: The provider's name to a value, or to another provider. A name with a dot, of a nested container or
            of the configuration, is given as `**{"inner.clock": FakeClock()}`.

    Raises:
        MissingDependencyError: Where the container has no provider of that name; nothing is overridden then.
    """
    providers = _providers_of(container, services)
    with contextlib.ExitStack() as stack:
        stack.callback(_forget, container)
        for provider, service in providers:
            undo = provider.reset_last_overriding
            if is_kind(provider, {"ConfigurationOption"}):  # only another value takes the place of an overriding one
                undo = functools.partial(provider.override, provider())
            provider.override(service)
            stack.callback(undo)
        _forget(container)
        yield


def _providers_of(container: Any, services: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    catalog = Catalog([container])
    found: list[tuple[Any, Any]] = []
    for name, service in services.items():
        known = catalog.named(name)
        if known is None:
            raise MissingDependencyError(
                f'[thena] overridden(): the container has no provider named "{name}".'
                f"{did_you_mean(name, catalog.services)} It has: {listed(catalog.services)}."
            )
        found.append((known.provider, service))
    return found


def _forget(container: Any) -> None:
    """Reset every singleton of a container, those inside of other providers included."""
    for provider in container.traverse():
        if is_kind(provider, {"BaseSingleton"}):
            provider.reset()
