"""The container's own resources: initialised when the app starts, and only those shut down when it closes."""

from __future__ import annotations

import inspect
from typing import Any

from thena_core._render import said_by
from thena_core.di.catalog import Catalog, effective, is_kind
from thena_core.di.graph import needed_by
from thena_core.errors import DependencyError


class Resources:
    """What one app initialised; what somebody else had initialised before stays theirs."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._opened: list[tuple[str, Any]] = []

    async def open(self) -> None:
        """Initialise every resource that is not yet, each after those that it needs.

        Raises:
            DependencyError: Where one fails; those opened before are shut down.
        """
        seen: set[int] = set()
        for service in self._catalog.every:
            for provider in _in_order(service.provider, seen):
                if not is_kind(provider, {"Resource"}) or provider.initialized:
                    continue
                name = self._catalog.name_of(provider)
                try:
                    made = provider.init()
                    if inspect.isawaitable(made):
                        await made
                except BaseException as error:
                    failures = await self.close()
                    if not isinstance(error, Exception):
                        raise
                    problem = DependencyError(f'[thena] The resource "{name}" failed: {said_by(error)}')
                    for other, failure in failures:
                        problem.add_note(f'the resource "{other}" also failed to shut down: {said_by(failure)}')
                    raise problem from error
                self._opened.append((name, provider))

    async def close(self) -> list[tuple[str, Exception]]:
        """Shut down what was initialised here, in reverse order; return what failed, after all were tried."""
        failures: list[tuple[str, Exception]] = []
        while self._opened:
            name, provider = self._opened.pop()
            try:
                closing = provider.shutdown()
                if inspect.isawaitable(closing):
                    await closing
            except Exception as error:  # noqa: BLE001 - the others must be closed, too; the caller reports it
                failures.append((name, error))
        return failures


def _in_order(provider: Any, seen: set[int]) -> list[Any]:
    """List a provider and what stands behind it, what is needed first; each once, also in a circle nobody asks for."""
    ordered: list[Any] = []
    waiting: list[tuple[Any, bool]] = [(provider, False)]
    while waiting:
        found, listed = waiting.pop()
        if listed:
            ordered.append(found)
            continue
        found = effective(found)
        if id(found) not in seen:
            seen.add(id(found))
            waiting.append((found, True))
            waiting.extend((inner, False) for inner in reversed(needed_by(found)))
    return ordered
