"""From a callable to its parameters: the only module that touches `inspect` and the internals of `typing`."""

from __future__ import annotations

import builtins
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union, cast, get_args, get_origin

from thena_core._render import type_name
from thena_core.context import Context
from thena_core.errors import SignatureError
from thena_core.markers import Inject, Input, State, Tools

Role = Literal["input", "context", "state", "tools", "runtime", "service"]
MISSING: Any = inspect.Parameter.empty

_MARKERS: dict[type, Role] = {Input: "input", State: "state", Tools: "tools", Inject: "service", Context: "context"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a callable, with what it wants.

    Attributes:
        name: Its name.
        role: What fills it.
        type: Its type without markers and without `None`.
        annotation: Its type with everything that is not a marker of ours: what a schema is made of.
        default: Its default, or `MISSING`.
        optional: Whether its type allows `None`.
        marked: Whether a marker decided its role.
        marker: The `Input` or `Inject` instance, where one was given.
        provider_name: The name in `Provide["name"]`.
        keyword_only: Whether it must be passed by name.
        positional_only: Whether it must be passed by position.
    """

    name: str
    role: Role
    type: Any
    annotation: Any
    default: Any = MISSING
    optional: bool = False
    marked: bool = False
    marker: Any = None
    provider_name: str | None = None
    keyword_only: bool = False
    positional_only: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a callable, and whether it also takes anything (`*args`, `**kwargs`)."""

    where: str
    parameters: tuple[Parameter, ...]
    open_ended: bool
    problems: tuple[SignatureError, ...]


class Unresolved(type):
    """Stand in for a name that exists only for type checkers; whoever needs the type itself reports it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unresolved(f"{cls.__name__}.{name}", (), {})

    def __getitem__(cls, item: Any) -> Any:
        return cls


def read_signature(
    function: Callable[..., Any],
    *,
    where: str,
    owner: type | None = None,
    local_names: Mapping[str, Any] | None = None,
    skip_self: bool = False,
) -> Signature:
    """Read the parameters of a callable.

    Args:
        function: What is going to be called; decorators that use `functools.wraps` are looked through.
        where: How messages name it, e.g. `ReadFileTool.execute`.
        owner: The class that it belongs to, for type variables that a base class leaves open.
        local_names: The names of the function in which it was defined.
        skip_self: Whether the first parameter is `self`.

    Returns:
        The parameters with their roles; whatever is wrong with them is in `problems`, all of it.
    """
    problems: list[SignatureError] = []
    parameters: list[Parameter] = []
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        return Signature(where, (), True, (SignatureError(where, "…", f"the signature cannot be read: {error}"),))
    scope = _Scope(function, owner, local_names or {})
    open_ended = False
    for parameter in found[1:] if skip_self else found:
        try:
            annotation = scope.resolve(parameter.annotation)
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                open_ended = True
                _refuse_marker(where, parameter, annotation)
                continue
            parameters.append(_classify(where, parameter, annotation))
        except SignatureError as problem:
            problems.append(problem)
    return Signature(where, tuple(parameters), open_ended, tuple(problems))


def unresolved_name(annotation: Any) -> str | None:
    """Return the first name in a type that exists only for type checkers."""
    if isinstance(annotation, Unresolved):
        return annotation.__name__
    for part in get_args(annotation):
        name = unresolved_name(part)
        if name is not None:
            return name
    return None


def needs_runtime_type(where: str, parameter: str, annotation: Any) -> SignatureError | None:
    """Report a type that is needed at run time and exists only for type checkers."""
    name = unresolved_name(annotation)
    if name is None:
        return None
    return SignatureError(
        where,
        parameter,
        f"its type `{name}` cannot be found at run time. If it is imported under `if TYPE_CHECKING:`, "
        f"import it normally; if it is misspelt, correct it.",
    )


def without_none(annotation: Any) -> tuple[Any, bool]:
    """Split `X | None` into `X` and `True`; a union of several types stays one."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    kept = [part for part in get_args(annotation) if part is not type(None)]
    if len(kept) == len(get_args(annotation)):
        return annotation, False
    return (kept[0] if len(kept) == 1 else Union[tuple(kept)]), True  # noqa: UP007 - built from a tuple


class _Scope:
    """Where the names in a callable's string annotations are looked up: each annotation on its own."""

    def __init__(self, function: Callable[..., Any], owner: type | None, local_names: Mapping[str, Any]) -> None:
        plain: Any = inspect.unwrap(function)
        plain = getattr(plain, "__func__", plain)
        if not hasattr(plain, "__globals__") and callable(plain) and not inspect.isclass(plain):
            plain = getattr(type(plain), "__call__", plain)  # noqa: B004
        module = sys.modules.get(getattr(plain, "__module__", "") or "")
        self._globals: dict[str, Any] = getattr(plain, "__globals__", None) or vars(module or builtins)
        self._locals = dict(local_names)
        if owner is not None:
            self._locals.setdefault(owner.__name__, owner)
        for variable in getattr(plain, "__type_params__", ()):
            self._locals[variable.__name__] = variable
        self._variables = _bound_variables(owner)

    def resolve(self, annotation: Any) -> Any:
        if isinstance(annotation, str):
            names = _Names(self._locals, self._globals)
            try:
                annotation = eval(annotation, self._globals, names)  # noqa: S307 - the author's own annotation
            except Exception:  # noqa: BLE001 - whatever it raises, the type is not to be had
                return Unresolved(annotation, (), {})
        return _substitute(annotation, self._variables) if self._variables else annotation


class _Names(dict[str, Any]):
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


def _bound_variables(owner: type | None) -> dict[Any, Any]:
    """Map the type variables of generic bases to what the class fills in: `class Read(Base[ReadFile])`."""
    bound: dict[Any, Any] = {}
    for cls in reversed(owner.__mro__ if owner is not None else ()):
        for base in cast("tuple[Any, ...]", cls.__dict__.get("__orig_bases__", ())):
            origin = get_origin(base)
            if origin is None or origin is Generic:
                continue
            variables = cast("tuple[Any, ...]", getattr(origin, "__parameters__", ()))
            bound.update(zip(variables, get_args(base), strict=False))
    return bound


def _substitute(annotation: Any, variables: Mapping[Any, Any]) -> Any:
    if isinstance(annotation, TypeVar):
        filled = variables.get(annotation, annotation)
        return filled if filled is annotation else _substitute(filled, variables)
    open_variables = cast("tuple[Any, ...]", getattr(annotation, "__parameters__", ()))
    if not open_variables or inspect.isclass(annotation):
        return annotation
    return annotation[tuple(_substitute(variable, variables) for variable in open_variables)]


def _classify(where: str, parameter: inspect.Parameter, annotation: Any) -> Parameter:
    """Say what fills a parameter: its marker decides, then its type; the rest is input."""
    bare, metadata = _flatten(annotation)
    inner, optional = without_none(bare)
    if get_origin(inner) is Annotated:  # `Annotated[Clock, Inject] | None`: the marks belong to the parameter, too
        inner, inner_metadata = _flatten(inner)
        metadata = (*metadata, *inner_metadata)
    roles: list[tuple[Any, Role | None]] = [(mark, _role_of(mark)) for mark in metadata]
    marks: list[tuple[Any, Role]] = [(mark, role) for mark, role in roles if role is not None]
    if len(marks) > 1:
        names = " and ".join(_mark_name(mark) for mark, _ in marks)
        raise SignatureError(where, parameter.name, f"it carries {names}; keep one of them.")
    decided: Role = marks[0][1] if marks else _role_of_type(inner)
    mark = marks[0][0] if marks else None
    rest = tuple(mark for mark, role in roles if role is None)
    bare = Optional[inner] if optional else bare  # noqa: UP045 - built from a value
    return Parameter(
        name=parameter.name,
        role=decided,
        type=inner,
        annotation=Annotated[(bare, *rest)] if rest else bare,
        default=parameter.default,
        optional=optional,
        marked=bool(marks),
        marker=mark if isinstance(mark, Input) else None,
        provider_name=_provider_name(mark),
        keyword_only=parameter.kind is parameter.KEYWORD_ONLY,
        positional_only=parameter.kind is parameter.POSITIONAL_ONLY,
    )


def _flatten(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    if annotation is MISSING:
        return Any, ()
    if get_origin(annotation) is Annotated:
        bare, *metadata = get_args(annotation)
        return bare, tuple(metadata)
    return annotation, ()


def _role_of(mark: Any) -> Role | None:
    origin: Any = get_origin(mark)
    if origin is Context:
        return "context"
    if inspect.isclass(mark):
        return _MARKERS.get(cast("type", mark))
    if _is_provide(mark):
        return "service"
    return _MARKERS.get(mark.__class__)


def _role_of_type(bare: Any) -> Role:
    cls: Any = get_origin(bare) or bare
    if cls is Context:
        return "context"
    # Toolbox and WorkflowRuntime stand on a floor above and say themselves what they are
    return cast("Role", getattr(cls, "__thena_role__", "input") if inspect.isclass(cls) else "input")


def _is_provide(mark: Any) -> bool:
    """Recognise dependency-injector's `Provide["name"]` without importing its `wiring`, which costs 80 ms."""
    cls = mark.__class__
    return cls.__name__ in {"Provide", "Closing"} and cls.__module__.startswith("dependency_injector")


def _provider_name(mark: Any) -> str | None:
    if mark is None or not _is_provide(mark):
        return None
    name = getattr(mark, "provider", None)
    return name if isinstance(name, str) else None


def _mark_name(mark: Any) -> str:
    return "Provide[…]" if _is_provide(mark) else type_name(mark if inspect.isclass(mark) else type(mark))


def _refuse_marker(where: str, parameter: inspect.Parameter, annotation: Any) -> None:
    _, metadata = _flatten(annotation)
    if any(_role_of(mark) is not None for mark in metadata):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        raise SignatureError(
            where, f"{stars}{parameter.name}", "a marker cannot stand on it; give the value a parameter of its own."
        )
