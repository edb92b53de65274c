"""Providers that a function makes, one per run: opened at the run's first model call, closed when no run uses them."""

from __future__ import annotations

from collections.abc import Callable

from thena_core._render import qualified_name, type_name
from thena_core.errors import ThenaError
from thena_core.providers.base import Provider
from thena_core.run import Run


class Lender:
    """Make a run's provider, and close it with the run.

    A function may give the same provider to several runs: it is closed when the last of those that run has ended, and
    opens again at its next call.
    """

    __slots__ = ("_make", "_uses")

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._uses: dict[int, int] = {}

    def __call__(self, run: Run) -> Provider:
        """Make a provider for a run.

        Raises:
            ThenaError: Where the function returns something else.
        """
        provider = self._make()
        if not isinstance(provider, Provider):
            raise ThenaError(
                f"[thena] provider={qualified_name(self._make)} returned {type_name(type(provider))}, not a Provider: "
                f"give an instance, a class, or a function that returns one."
            )
        self._uses[id(provider)] = self._uses.get(id(provider), 0) + 1

        async def release_provider() -> None:
            left = self._uses.pop(id(provider)) - 1
            if left:
                self._uses[id(provider)] = left
            else:
                await provider.aclose()

        run.on_dispose(release_provider)
        return provider
