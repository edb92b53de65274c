"""The providers behind a service, walked at build: how long it lives, what is missing, circular or captive in it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from thena_core._render import did_you_mean, type_name
from thena_core.di.catalog import Catalog, Lifetime, effective, is_kind, kinds
from thena_core.errors import CircularDependencyError, DependencyError, MissingDependencyError, ScopeError
from thena_core.schema.signature import bound, read_signature

MAX_DEPTH = 200
"""Providers behind one another; dependency-injector itself recurses, and stops at Python's limit with no path."""

_KEPT = {"BaseSingleton", "Resource"}
_MADE = {"Factory", "Callable"}
_VALUES = {"Object", "Configuration", "ConfigurationOption", "TypedConfigurationOption"}
_HANDLES = {"Delegate", "DependenciesContainer"}


def needed_by(provider: Any) -> list[Any]:
    """List the providers that one gets its arguments from; a delegate hands on a handle and needs nothing."""
    provider = effective(provider)
    if is_kind(provider, {"Delegate", *_VALUES}):
        return []
    return [inner for inner in provider.related if not is_kind(inner, _VALUES)]


def lifetime(provider: Any) -> Lifetime:
    """Tell how long what a provider gives may live: a `RunScoped` anywhere behind a factory makes it the run's."""
    found: Lifetime = "app"
    seen: set[int] = set()
    waiting = [provider]
    while waiting:
        reached = effective(waiting.pop())
        if id(reached) in seen:
            continue
        seen.add(id(reached))
        if is_kind(reached, {"RunScoped"}):
            return "run"
        if is_kind(reached, _KEPT | _VALUES | _HANDLES):
            continue
        if is_kind(reached, _MADE):
            found = "call"
        waiting.extend(needed_by(reached))
    return found


def way_to_the_run(catalog: Catalog, provider: Any) -> list[str]:
    """Name the providers from one that lives as long as a run to the `RunScoped` that makes it so, for a path."""
    seen: set[int] = set()
    waiting: list[tuple[Any, list[str]]] = [(provider, [])]
    while waiting:
        found, above = waiting.pop()
        way = [*above, _line(catalog, found)]
        if is_kind(effective(found), {"RunScoped"}):
            return way
        if id(found) not in seen:
            seen.add(id(found))
            waiting.extend((inner, way) for inner in reversed(needed_by(found)) if lifetime(inner) == "run")
    return [_line(catalog, provider)]


def check_graph(
    catalog: Catalog, provider: Any, path: Sequence[str], seen: set[int] | None = None
) -> Iterator[DependencyError]:
    """Walk what stands behind a provider.

    Args:
        catalog: Names the providers.
        provider: Where to begin.
        path: Who asks, outermost first, as the messages draw it.
        seen: The `id` of each provider that was walked before, and is not walked again.

    Yields:
        Every problem, each with the path to it: cycles, missing arguments, undefined `Dependency` providers, and
        what lives as long as the app and holds something of a run.
    """
    seen = set[int]() if seen is None else seen
    waiting: list[tuple[Any, list[Any]]] = [(provider, [])]
    while waiting:
        found, above = waiting.pop()
        chain = [*above, found]
        if any(found is link for link in above):
            yield _circular(catalog, chain, path)
            continue
        if len(chain) > MAX_DEPTH:
            yield DependencyError(
                f"[thena] More than {MAX_DEPTH} providers stand behind one another.\n"
                f"{drawn([*path, *(_line(catalog, link) for link in chain[:3])][:4])}\n   …"
            )
            continue
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield from _own_problems(catalog, found, _Path(catalog, path, chain))
        waiting.extend((inner, chain) for inner in reversed(needed_by(found)))


def drawn(path: Sequence[str]) -> str:
    """Draw a path, one step a line, each under the one that asks for it."""
    return "\n".join(f"{'   ' * depth}{'└─ ' if depth else '   '}{step}" for depth, step in enumerate(path))


@dataclass(frozen=True, slots=True)
class _Path:
    """The way to a provider, put into words only where there is a problem to tell."""

    catalog: Catalog
    asked_by: Sequence[str]
    chain: Sequence[Any]

    def drawn(self, *further: str) -> str:
        return drawn([*self.asked_by, *(_line(self.catalog, link) for link in self.chain), *further])


def _own_problems(catalog: Catalog, provider: Any, path: _Path) -> Iterator[DependencyError]:
    actual = effective(provider)
    name = catalog.name_of(provider)
    if is_kind(actual, {"Dependency"}) and not _is_defined(actual):
        wanted = type_name(actual.instance_of)
        yield MissingDependencyError(
            f'[thena] The provider "{name}" is a Dependency({wanted}) that nobody fills.\n{path.drawn()}\n'
            f"Give it when you make the container: MyContainer({name}=providers.Singleton({wanted}))"
        )
    if is_kind(actual, _KEPT):
        for inner in needed_by(actual):
            if lifetime(inner) == "run":
                yield ScopeError(
                    f'[thena] The provider "{name}" lives as long as the app and holds "{catalog.name_of(inner)}", '
                    f"which lives as long as one run.\n{path.drawn(*way_to_the_run(catalog, inner))}\n"
                    f"Make it live as long as a run, too: {name} = RunScoped(…)"
                )
    yield from _missing_arguments(catalog, actual, name, path)


def _missing_arguments(catalog: Catalog, provider: Any, name: str, path: _Path) -> Iterator[MissingDependencyError]:
    """Compare what a provider passes with what its class or function takes."""
    provides = getattr(provider, "provides", None)
    if not is_kind(provider, _KEPT | _MADE) or not callable(provides):
        return
    missing = _unfilled(provides, len(provider.args), set(provider.kwargs))
    types = _types_of(provides) if missing else {}
    for parameter in missing:
        tp = types.get(parameter.name, Any)
        wanted = None if tp is Any else type_name(tp)
        found = catalog.of_type(tp) if wanted else ()
        known = [type_name(service.type) for service in catalog.services.values() if service.type is not None]
        given = found[0].name if found else parameter.name
        asked = f"{parameter.name}: {wanted or '?'} — of {_place(provides)}"
        nearest = "" if found else did_you_mean(wanted or "", known)
        yield MissingDependencyError(
            f'[thena] The provider "{name}" does not give {type_name(provides)} its '
            f"`{parameter.name}{f': {wanted}' if wanted else ''}`.{nearest}\n"
            f"{path.drawn(asked)}\n"
            f"Write: {name} = {_constructor(provider)}({type_name(provides)}, {parameter.name}={given})"
        )


def _types_of(provides: Callable[..., Any]) -> dict[str, Any]:
    function = bound(cast("type", provides), "__init__") if inspect.isclass(provides) else provides
    owner = cast("type", provides) if inspect.isclass(provides) else None
    signature = read_signature(function, where=type_name(provides), owner=owner)
    return {parameter.name: parameter.type for parameter in signature.parameters}


def _constructor(provider: Any) -> str:
    """Write how a provider is made, as its container does."""
    name = kinds(provider)[0]
    return name if name == "RunScoped" else f"providers.{name}"


def _unfilled(provides: Callable[..., Any], by_position: int, by_name: set[str]) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(provides).parameters.values())
    except (TypeError, ValueError):  # something written in C: it will say itself what it lacks
        return []
    plain = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    positional = [parameter for parameter in parameters if parameter.kind in plain]
    rest = positional[by_position:] + [
        parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
    ]
    return [parameter for parameter in rest if parameter.default is parameter.empty and parameter.name not in by_name]


def _circular(catalog: Catalog, chain: Sequence[Any], path: Sequence[str]) -> CircularDependencyError:
    last = chain[-1]
    start = next(index for index, link in enumerate(chain) if link is last)
    names = [catalog.name_of(link) for link in chain[start:]]
    holder, held = chain[-2], names[-1]
    return CircularDependencyError(
        f"[thena] A circle of providers: {' -> '.join(names)}\n"
        f"{drawn([*path, *(_line(catalog, link) for link in chain)])}\n"
        f"Let one of them take a handle, and call it later: "
        f"{names[-2]} = {_constructor(holder)}(…, {held}={held}.provider)"
    )


def _line(catalog: Catalog, provider: Any) -> str:
    produced = getattr(effective(provider), "provides", None)
    shown = f" ({type_name(produced)})" if produced is not None else ""
    return f'provider "{catalog.name_of(provider)}"{shown}'


def _is_defined(provider: Any) -> bool:
    return bool(getattr(provider, "is_defined", True)) or getattr(provider, "default", None) is not None


def _place(provides: Any) -> str:
    code = getattr(getattr(provides, "__init__", provides), "__code__", None) or getattr(provides, "__code__", None)
    module = getattr(provides, "__module__", "?")
    return f"{module}.{type_name(provides)}" + (f", line {code.co_firstlineno}" if code is not None else "")
