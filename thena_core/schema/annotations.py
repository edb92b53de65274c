"""From an annotation as it was written to the type that it means: strings, forward references, type variables."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ForwardRef, Generic, Literal, TypeVar, Union, cast, get_args, get_origin


class Unresolved(type):
    """Stand in for a name that exists only for type checkers; whoever needs the type itself reports it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unresolved(f"{cls.__name__}.{name}", (), {})

    def __getitem__(cls, item: Any) -> Any:
        return cls


class Scope:
    """Where the names in a callable's string annotations are looked up: each annotation on its own."""

    def __init__(self, function: Callable[..., Any], owner: type | None, local_names: Mapping[str, Any]) -> None:
        plain = _plain_function(function)
        module = sys.modules.get(getattr(plain, "__module__", "") or "")
        self._globals: dict[str, Any] = getattr(plain, "__globals__", None) or vars(module or builtins)
        self._locals = dict(local_names)
        if owner is not None:
            self._locals.setdefault(owner.__name__, owner)
        for variable in getattr(plain, "__type_params__", ()):
            self._locals[variable.__name__] = variable
        self._variables: Mapping[Any, Any] = _bound_variables(owner, plain) if owner is not None else {}

    def resolve(self, annotation: Any) -> Any:
        """Return the type that an annotation means; what cannot be found is a placeholder, not an error."""
        annotation = self._evaluated(annotation)
        return _substitute(annotation, self._variables) if self._variables else annotation

    def _evaluated(self, annotation: Any) -> Any:
        """Evaluate a string, and the strings and forward references inside a type, to whatever depth they nest."""
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        if isinstance(annotation, str):
            names = Names(self._locals, self._globals)
            try:
                value = eval(annotation, self._globals, names)  # noqa: S307 - the author's own annotation
            except Exception:  # noqa: BLE001 - whatever it raises, the type is not to be had
                return Unresolved(annotation, (), {})
            return Unresolved(annotation, (), {}) if value == annotation else self._evaluated(value)
        return _rebuilt(annotation, self._evaluated)


class Names(dict[str, Any]):
    """Look a name up in the local names, the module, the builtins; what is nowhere becomes a placeholder."""

    def __init__(self, local_names: Mapping[str, Any], module: Mapping[str, Any]) -> None:
        super().__init__(local_names)
        self._module = module

    def __missing__(self, name: str) -> Any:
        if name in self._module:
            return self._module[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        return Unresolved(name, (), {})


def _plain_function(function: Callable[..., Any]) -> Any:
    """Find the function that an author wrote: behind wrappers, partials, bound methods and callable objects."""
    plain: Any = inspect.unwrap(function)
    if isinstance(plain, functools.partial):
        return _plain_function(cast("functools.partial[Any]", plain).func)
    plain = getattr(plain, "__func__", plain)
    if not hasattr(plain, "__globals__") and not inspect.isclass(plain):
        plain = getattr(plain.__class__, "__call__", plain)  # noqa: B004
    return inspect.unwrap(plain)


def _rebuilt(annotation: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to the parts of a type, and build the type anew where one of them changed."""
    origin: Any = get_origin(annotation)
    if origin is None or origin is Literal:
        return annotation
    parts = get_args(annotation)
    if origin is Annotated:
        bare = change(parts[0])
        return annotation if bare is parts[0] else Annotated[(bare, *parts[1:])]
    changed = tuple(
        [change(inner) for inner in cast("list[Any]", part)] if isinstance(part, list) else change(part)
        for part in parts
    )
    if all(new is old for new, old in zip(changed, parts, strict=True)) or changed == parts:
        return annotation
    if origin in (Union, types.UnionType):
        return Union[changed]  # noqa: UP007 - built from a tuple
    return annotation.copy_with(changed) if hasattr(annotation, "copy_with") else origin[changed]


def _bound_variables(owner: type, function: Any) -> Mapping[Any, Any]:
    """Map the type variables of the class that defines a method to what its subclass fills in."""
    name = getattr(function, "__name__", "")
    definer = next((cls for cls in owner.__mro__ if name in cls.__dict__), owner)
    return _bindings(owner, {}).get(definer, {})


def _bindings(cls: type, variables: Mapping[Any, Any]) -> dict[type, Mapping[Any, Any]]:
    """Map each base to its own variables: two generics may use the same variable for different things."""
    found: dict[type, Mapping[Any, Any]] = {cls: variables}
    for base in cast("tuple[Any, ...]", cls.__dict__.get("__orig_bases__", cls.__bases__)):
        origin: Any = get_origin(base) or base
        if origin is Generic or not inspect.isclass(origin):
            continue
        own = cast("tuple[Any, ...]", getattr(origin, "__parameters__", ()))
        given = [_substitute(argument, variables) for argument in get_args(base)]
        for deeper, map_of_it in _bindings(cast("type", origin), dict(zip(own, given, strict=False))).items():
            found.setdefault(deeper, map_of_it)
    return found


def _substitute(annotation: Any, variables: Mapping[Any, Any]) -> Any:
    if isinstance(annotation, TypeVar):
        return variables.get(annotation, annotation)
    return _rebuilt(annotation, lambda part: _substitute(part, variables))


def unresolved_name(annotation: Any) -> str | None:
    """Return the first name in a type that exists only for type checkers."""
    if isinstance(annotation, Unresolved):
        return annotation.__name__
    for part in get_args(annotation):
        name = unresolved_name(part)
        if name is not None:
            return name
    return None
