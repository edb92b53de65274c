"""From a callable to its parameters: the only module that touches `inspect` and the internals of `typing`."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, Union, cast, get_args, get_origin

from thena_core._render import type_name
from thena_core.context import Context
from thena_core.errors import SignatureError
from thena_core.markers import Inject, Input, State, Tools
from thena_core.schema.annotations import Scope, unresolved_name

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


def read_signature(
    function: Callable[..., Any],
    *,
    where: str,
    owner: type | None = None,
    local_names: Mapping[str, Any] | None = None,
) -> Signature:
    """Read the parameters of a callable.

    Args:
        function: What is going to be called; decorators that use `functools.wraps` are looked through.
        where: How messages name it, e.g. `ReadFileTool.execute`.
        owner: The class that it is a method of; `bound` gives the method.
        local_names: The names of the function in which it was defined.

    Returns:
        The parameters with their roles; whatever is wrong with them is in `problems`, all of it.
    """
    problems: list[SignatureError] = []
    parameters: list[Parameter] = []
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        hint = " A method's first parameter is `self`." if owner is not None else ""
        problem = SignatureError(where, "self" if owner is not None else "…", f"it cannot be read: {error}.{hint}")
        return Signature(where, (), True, (problem,))
    scope = Scope(function, owner, local_names or {})
    open_ended = False
    given = _given_by_name(function)
    for parameter in found:
        if parameter.name in given:
            continue  # a partial fills it already
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


def bound(cls: type, name: str) -> Any:
    """Return a method as an instance would have it, without making one: plain, static, of the class, partial."""
    found: Any = inspect.getattr_static(cls, name)
    return found.__get__(object(), cls) if hasattr(found, "__get__") else found


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


def _given_by_name(function: Any) -> set[str]:
    if not isinstance(function, functools.partial):
        return set()
    partial = cast("functools.partial[Any]", function)
    return {*partial.keywords, *_given_by_name(partial.func)}


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
    if mark is not None and _is_provide(mark) and _provider_name(mark) is None:
        raise SignatureError(
            where, parameter.name, 'Provide[…] takes the provider\'s name in the container: `Provide["name"]`.'
        )
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
