"""From a class to its instance: constructors checked first, all of them, then filled, once per app."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_origin

from thena_core._render import did_you_mean, listed, said_by, type_name
from thena_core.call import Invocation
from thena_core.di.catalog import Catalog, Lifetime, Service, unreadable_type
from thena_core.di.graph import check_graph, drawn, lifetime, way_to_the_run
from thena_core.di.keeper import services_of, value_of
from thena_core.errors import (
    AmbiguousDependencyError,
    DependencyError,
    MissingDependencyError,
    ScopeError,
)
from thena_core.schema.signature import MISSING, Parameter, bound, needs_runtime_type, read_signature

Source = Callable[[], Awaitable[Any]]

_NO_RUN_YET = {"context": "ctx: Context", "tools": "toolbox: Toolbox"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an instance is made: each parameter of the constructor, and where its value comes from.

    Attributes:
        cls: The class.
        sources: Parameter to what fetches its value when the app starts.
    """

    cls: type
    sources: Sequence[tuple[Parameter, Source]]


@dataclass(slots=True)
class Resolver:
    """Everything that an app's constructors and tools get: inspected first, made when nothing is wrong.

    Attributes:
        catalog: The services of the app's container and of its plugins.
        runtime: What a `WorkflowRuntime` parameter gets.
    """

    catalog: Catalog
    runtime: Any
    _recipes: dict[type, Recipe | None] = field(default_factory=dict[type, "Recipe | None"])
    _instances: dict[type, Any] = field(default_factory=dict[type, Any])
    _kept: dict[int, tuple[Service, Any]] = field(default_factory=dict[int, tuple[Service, Any]])
    _walked: set[int] = field(default_factory=set[int])

    def inspect(self, cls: type, asked_by: str, problems: list[Exception]) -> None:
        """Check a class's constructor and everything behind its services; what is wrong is added to `problems`."""
        if cls in self._recipes:
            return
        self._recipes[cls] = None
        if inspect.getattr_static(cls, "__init__") is object.__init__:
            self._recipes[cls] = Recipe(cls, ())
            return
        where = f"{cls.__name__}.__init__"
        signature = read_signature(bound(cls, "__init__"), where=where, owner=cls)
        found: list[Exception] = [DependencyError(str(problem)) for problem in signature.problems]
        sources: list[tuple[Parameter, Source]] = []
        for parameter in signature.parameters:
            try:
                source = self._constructor_source(parameter, where, [asked_by, where], found)
            except DependencyError as problem:
                found.append(problem)
                continue
            if source is not None:
                sources.append((parameter, source))
        problems.extend(found)
        if not found:
            self._recipes[cls] = Recipe(cls, sources)

    async def instance(self, cls: type) -> Any:
        """Return the app's instance of a class that was inspected.

        Raises:
            DependencyError: Where its constructor, or what makes one of its services, fails.
        """
        if cls in self._instances:
            return self._instances[cls]
        recipe = self._recipes[cls]
        positional: list[Any] = []
        named: dict[str, Any] = {}
        try:
            for parameter, source in recipe.sources if recipe is not None else ():
                value = await source()
                if parameter.positional_only:
                    positional.append(value)
                else:
                    named[parameter.name] = value
            instance = cls(*positional, **named)
        except Exception as error:
            if isinstance(error, DependencyError):
                raise
            raise DependencyError(f"[thena] {cls.__name__} cannot be built: {said_by(error)}") from error
        self._instances[cls] = instance
        return instance

    def provides(self, tp: Any) -> bool:
        """Whether the container provides a type, so that a parameter of it needs a marker to say what it is."""
        return not _is_builtin(tp) and bool(self.catalog.of_type(tp))

    def call_source(
        self, parameter: Parameter, where: str, path: Sequence[str], problems: list[Exception]
    ) -> tuple[Lifetime, Callable[[Invocation], Any]]:
        """Return how long a service in `execute` lives, and what fetches it: a value, or an awaitable per call.

        Raises:
            DependencyError: Where nothing, or more than one thing, provides it.
        """
        if parameter.role == "runtime":
            runtime = self.runtime
            return "app", lambda _inv: runtime
        service = self._find(parameter, where)
        if service is None:
            value = self._without_service(parameter, where)
            return "app", lambda _inv: value
        self._walk(service, path, problems)
        provider = service.provider
        lives = lifetime(provider)
        if lives == "run":
            return lives, lambda inv: services_of(inv.run).resolve(provider)
        if lives == "call":
            return lives, lambda _inv: value_of(provider)
        kept = self._kept  # filled when the app starts, before the first call
        kept.setdefault(id(provider), (service, MISSING))
        return lives, lambda _inv: kept[id(provider)][1]

    async def start(self) -> None:
        """Make the app-lived services that `execute` asks for.

        Raises:
            DependencyError: Where one of them cannot be made.
        """
        for key, (service, value) in list(self._kept.items()):
            if value is MISSING:
                self._kept[key] = service, await self._value(service)

    async def _value(self, service: Service) -> Any:
        try:
            return await value_of(service.provider)
        except Exception as error:
            raise DependencyError(f'[thena] The provider "{service.name}" failed: {said_by(error)}') from error

    def _constructor_source(
        self, parameter: Parameter, where: str, path: Sequence[str], problems: list[Exception]
    ) -> Source | None:
        """Return what fetches a constructor's parameter; `None` where its default stands."""
        if parameter.role == "runtime":
            runtime = self.runtime
            return lambda: _ready(runtime)
        if parameter.role in ("context", "state", "tools") or (parameter.role == "input" and parameter.marked):
            raise _too_early(parameter, where)
        unresolved = needs_runtime_type(where, parameter.name, parameter.annotation)
        if unresolved is not None and parameter.provider_name is None:
            if parameter.default is not MISSING:
                return None
            raise DependencyError(str(unresolved))
        service = self._find(parameter, where)
        if service is None:
            value = self._without_service(parameter, where)
            return None if parameter.default is not MISSING else lambda: _ready(value)
        steps = [*path[:-1], f"{path[-1]}, parameter `{parameter.name}: {type_name(parameter.type)}`"]
        if lifetime(service.provider) == "run":
            way = way_to_the_run(self.catalog, service.provider)
            raise ScopeError(
                f"[thena] {where}, parameter `{parameter.name}`: the service lives as long as one run, and no run "
                f"exists yet when the constructor is called.\n{drawn([*steps, *way])}\n"
                f"Ask for it in execute: `{parameter.name}: Annotated[{type_name(parameter.type)}, Inject]`."
            )
        self._walk(service, steps, problems)
        return lambda: self._value(service)

    def _walk(self, service: Service, path: Sequence[str], problems: list[Exception]) -> None:
        problems.extend(check_graph(self.catalog, service.provider, path, self._walked))

    def _find(self, parameter: Parameter, where: str) -> Service | None:
        if parameter.provider_name is not None:
            return self._named(parameter, parameter.provider_name, where)
        if _is_builtin(parameter.type):
            return None
        found = self.catalog.of_type(parameter.type)
        if len(found) > 1:
            names = [service.name for service in found]
            wanted = type_name(parameter.type)
            raise AmbiguousDependencyError(
                f"[thena] {where}, parameter `{parameter.name}`: {len(found)} providers give a {wanted}: "
                f'{listed(names)}. Choose one: `{parameter.name}: Annotated[{wanted}, Provide["{names[0]}"]]`.'
            )
        return found[0] if found else None

    def _named(self, parameter: Parameter, name: str, where: str) -> Service:
        service = self.catalog.named(name)
        if service is None:
            raise MissingDependencyError(
                f'[thena] {where}, parameter `{parameter.name}`: the container has no provider named "{name}".'
                f"{did_you_mean(name, self.catalog.services)}"
            )
        return service

    def _without_service(self, parameter: Parameter, where: str) -> Any:
        """Fall back on the default, or on `None` where the type allows it."""
        if parameter.default is not MISSING:
            return parameter.default
        if parameter.optional:
            return None
        raise MissingDependencyError(self._missing(parameter, where))

    def _missing(self, parameter: Parameter, where: str) -> str:
        wanted = type_name(parameter.type)
        if _is_builtin(parameter.type):
            return (
                f"[thena] {where}, parameter `{parameter.name}`: a plain `{wanted}` is never injected by its type. "
                f'Name the provider: `{parameter.name}: Annotated[{wanted}, Provide["{parameter.name}"]]`.'
            )
        for service in self.catalog.every:
            if service.type is None and wanted in (unreadable_type(service.provider) or ""):
                return (
                    f"[thena] {where}, parameter `{parameter.name}`: nothing in the container provides {wanted}. "
                    f'The provider "{service.name}" says that it gives `{unreadable_type(service.provider)}`, but that '
                    f"name cannot be found at run time. Import or define it in its module, outside of any function."
                )
        known = [type_name(service.type) for service in self.catalog.services.values() if service.type is not None]
        return (
            f"[thena] {where}, parameter `{parameter.name}`: nothing in the container provides {wanted}."
            f"{did_you_mean(wanted, known)}\n"
            f"Add to your container: {parameter.name} = providers.Singleton({wanted})"
        )


def _too_early(parameter: Parameter, where: str) -> ScopeError:
    wanted = type_name(parameter.type)
    line = _NO_RUN_YET.get(parameter.role, f"{parameter.name}: Annotated[{wanted}, {parameter.role.capitalize()}]")
    return ScopeError(
        f"[thena] {where}, parameter `{parameter.name}`: no run exists yet when the constructor is called. "
        f"Ask for it in execute: `{line}`."
    )


async def _ready(value: Any) -> Any:
    return value


def _is_builtin(tp: Any) -> bool:
    cls: Any = get_origin(tp) or tp
    return tp is Any or (inspect.isclass(cls) and cls.__module__ == builtins.__name__)
