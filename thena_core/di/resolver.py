"""From a class to its instance: constructors filled from the container, each class built once per app."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Mapping
from typing import Any

from thena_core._render import did_you_mean, listed, type_name
from thena_core.di.catalog import Catalog, Service
from thena_core.errors import (
    AmbiguousDependencyError,
    DependencyError,
    MissingDependencyError,
    ScopeError,
)
from thena_core.schema.signature import MISSING, Parameter, bound, needs_runtime_type, read_signature


class Resolver:
    """Build tools and agents from the app's services."""

    def __init__(self, catalog: Catalog, builtin: Mapping[str, Any]) -> None:
        self._catalog = catalog
        self._builtin = builtin
        self._instances: dict[type, Any] = {}

    def build(self, cls: type) -> Any:
        """Return the app's instance of a tool's or agent's class.

        Raises:
            DependencyError: Where a parameter of its constructor cannot be filled, or the constructor fails.
        """
        if cls in self._instances:
            return self._instances[cls]
        arguments: list[Any] = []
        named: dict[str, Any] = {}
        if inspect.getattr_static(cls, "__init__") is not object.__init__:
            where = f"{cls.__name__}.__init__"
            signature = read_signature(bound(cls, "__init__"), where=where, owner=cls)
            for problem in signature.problems:
                raise DependencyError(str(problem))
            for parameter in signature.parameters:
                value = self.service(parameter, where)
                if value is MISSING:
                    continue
                if parameter.positional_only:
                    arguments.append(value)
                else:
                    named[parameter.name] = value
        try:
            instance = cls(*arguments, **named)
        except Exception as error:
            raise DependencyError(
                f"[thena] {cls.__name__} cannot be built: its constructor raised {type(error).__name__}: {error}"
            ) from error
        self._instances[cls] = instance
        return instance

    def service(self, parameter: Parameter, where: str) -> Any:
        """Return what a parameter asks for; `MISSING` where it has a default and nothing provides it.

        Raises:
            DependencyError: Where nothing, or more than one thing, provides it.
        """
        if parameter.role in ("context", "state", "tools"):
            raise ScopeError(
                f"[thena] {where}, parameter `{parameter.name}`: no run exists yet when the constructor is called. "
                f"Ask for it in execute: `{parameter.name}: {type_name(parameter.type)}`."
            )
        if parameter.role == "runtime":
            return self._builtin["runtime"]
        problem = needs_runtime_type(where, parameter.name, parameter.annotation)
        if problem is not None and parameter.provider_name is None:
            raise DependencyError(str(problem))
        found = self._find(parameter, where)
        if found is None:
            if parameter.default is not MISSING:
                return MISSING if not parameter.marked else parameter.default
            if parameter.optional:
                return None
            raise MissingDependencyError(self._missing(parameter, where))
        return found.provider()

    def _find(self, parameter: Parameter, where: str) -> Service | None:
        if parameter.provider_name is not None:
            service = self._catalog.named(parameter.provider_name)
            if service is None:
                name = parameter.provider_name
                raise MissingDependencyError(
                    f"[thena] {where}, parameter `{parameter.name}`: the container has no provider named "
                    f'"{name}".{did_you_mean(name, self._catalog.services)}'
                )
            return service
        if _is_builtin(parameter.type):
            return None
        found = self._catalog.of_type(parameter.type)
        if len(found) > 1:
            names = [service.name for service in found]
            raise AmbiguousDependencyError(
                f"[thena] {where}, parameter `{parameter.name}`: {len(found)} providers give a "
                f"{type_name(parameter.type)}: {listed(names)}. Choose one: "
                f'`{parameter.name}: Annotated[{type_name(parameter.type)}, Provide["{names[0]}"]]`.'
            )
        return found[0] if found else None

    def _missing(self, parameter: Parameter, where: str) -> str:
        wanted = type_name(parameter.type)
        if _is_builtin(parameter.type):
            return (
                f"[thena] {where}, parameter `{parameter.name}`: a plain `{wanted}` is never injected by its type. "
                f'Name the provider: `{parameter.name}: Annotated[{wanted}, Provide["{parameter.name}"]]`.'
            )
        known = [type_name(service.type) for service in self._catalog.services.values() if service.type is not None]
        nearest = did_you_mean(wanted, known)
        return (
            f"[thena] {where}, parameter `{parameter.name}`: nothing in the container provides {wanted}.{nearest}\n"
            f"Add to your container: {parameter.name} = providers.Singleton({wanted})"
        )


def _is_builtin(tp: Any) -> bool:
    return tp is Any or (inspect.isclass(tp) and tp.__module__ == builtins.__name__)
