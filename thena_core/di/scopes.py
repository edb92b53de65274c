"""`RunScoped`: a provider of what lives as long as one run; a small subclass of dependency-injector's `Factory`."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from dependency_injector import providers

from thena_core.di.keeper import services_of
from thena_core.errors import ScopeError
from thena_core.run import current

if TYPE_CHECKING:
    Base = providers.Factory[Any]
else:
    Base = providers.Factory


class RunScoped(Base):
    """Provide one object per run: `session = RunScoped(open_session, http)`.

    The first argument is an (async) generator function that yields the object and closes it afterwards, a function
    that returns a context manager, an (async) function, or a class; the rest are its arguments, as for `Factory`. It
    is opened at its first use in a run and closed, in reverse order, when the run ends. A generator goes on after its
    `yield` whatever happened, as dependency-injector's resources do; a context manager sees the run's error. A class
    is only called: what it makes is not entered.
    """

    def _provide(self, _args: Any, _kwargs: Any) -> Awaitable[Any]:
        """Answer a handle (`session.provider`) that was called by hand: await it for the object of the current run."""
        place = current.get(None)
        if place is None:
            raise ScopeError("[thena] A RunScoped service was asked for outside of a run: there is none to live in.")
        return services_of(place.run).get(self)
