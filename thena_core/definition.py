"""How a tool is declared: `@tool` on a class or a function, or a `ToolDefinition` without either."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, cast, overload

from thena_core.errors import ThenaError

Effect = Literal["read", "write", "destructive"]
Disclosure = Mapping[type[Exception], str | Callable[[Exception], str]]
"""What the model may read of an exception: its class to a fixed text, or to a function that words it."""

MAX_OUTPUT_CHARS = 50_000
"""The most characters of an observation, unless the tool says otherwise: about 12,000 tokens."""

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """The arguments of `@tool` beyond name, description and schema; see `tool`."""

    effect: Effect | None = None
    idempotent: bool = False
    timeout: float | None = None
    max_output_chars: int = MAX_OUTPUT_CHARS
    blocking: bool = True
    strict: bool | None = None
    metadata: Mapping[str, Any] | None = None
    disclose: Disclosure | None = None
    aliases: Sequence[str] = ()
    workflows: Sequence[type] = ()


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool without a class; and what hooks, middleware and providers see of any tool.

    Attributes:
        name: What the model writes to call it: letters, digits, `_` and `-`, at most 64.
        description: How the model decides whether to call it.
        schema: The type of the arguments (pydantic model, dataclass, TypedDict), a JSON Schema as a `dict`, or `None`
            to derive it from the parameters of `execute`.
        execute: The function that does it; `None` in what the framework hands out, so that nobody calls it past the
            layers.
        effect: What it does to the world.
        idempotent: Whether doing it twice is the same as once.
        timeout: Seconds that one call may take.
        max_output_chars: The most characters of its observation.
        blocking: Whether a sync `execute` runs in a thread (`False`: inline, for what takes microseconds).
        strict: Whether providers that can are asked to hold the model to the schema.
        metadata: Anything for hooks and middleware.
        disclose: What the model may read of exceptions, before the app's own table.
        aliases: Other names under which models are known to call it; they never see them, and calls of them are its.
        workflows: The workflows that it starts, so that they are checked when the app is built.
        json_schema: What the model sees; filled when the app is built.
    """

    name: str
    description: str
    schema: Any = None
    execute: Callable[..., Any] | None = None
    effect: Effect | None = field(default=None, kw_only=True)
    idempotent: bool = field(default=False, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
    max_output_chars: int = field(default=MAX_OUTPUT_CHARS, kw_only=True)
    blocking: bool = field(default=True, kw_only=True)
    strict: bool | None = field(default=None, kw_only=True)
    metadata: Mapping[str, Any] | None = field(default=None, kw_only=True)
    disclose: Disclosure | None = field(default=None, kw_only=True)
    aliases: Sequence[str] = field(default=(), kw_only=True)
    workflows: Sequence[type] = field(default=(), kw_only=True)
    json_schema: Mapping[str, Any] = field(default_factory=dict[str, Any], kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Declared:
    """What `@tool` leaves on a class or keeps in a `FunctionTool`: read once, when the app is built.

    Attributes:
        definition: What was declared.
        local_names: The names of the function in which a class was defined, which its string annotations may need;
            empty for a class of a module.
    """

    definition: ToolDefinition
    local_names: Mapping[str, Any]


class FunctionTool:
    """A function that `@tool` made into a tool; calling it calls the function, so that a unit test needs no app."""

    def __init__(self, function: Callable[..., Any], declared: Declared) -> None:
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", declared.definition.name)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__thena_tool__ = declared

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself."""
        return self.__wrapped__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.__thena_tool__.definition.name!r} of {self.__module__}.{self.__qualname__}>"


class HasExecute(Protocol):
    """A class that can be a tool."""

    @property
    def execute(self) -> Callable[..., Any]:
        """Do the work; its parameters say what it wants."""
        ...


class IsFunction(Protocol):
    """A function and not a class: the two are told apart by an attribute that only functions have.

    It must not ask for `__call__`, too: pyright would then accept any class, whose constructor is a function.
    """

    @property
    def __kwdefaults__(self) -> Any: ...


ToolClass = TypeVar("ToolClass", bound=HasExecute)
ToolFunction = TypeVar("ToolFunction", bound=IsFunction)


class ToolDecorator(Protocol):
    """What `@tool(…)` returns: it keeps a class's own type, and a function's parameters and result."""

    @overload
    def __call__(self, target: type[ToolClass], /) -> type[ToolClass]: ...
    @overload
    def __call__(self, target: ToolFunction, /) -> ToolFunction: ...


@overload
def tool(function: ToolFunction, /) -> ToolFunction: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    schema: Any = None,
    effect: Effect | None = None,
    idempotent: bool = False,
    timeout: float | None = None,
    max_output_chars: int = MAX_OUTPUT_CHARS,
    blocking: bool = True,
    strict: bool | None = None,
    metadata: Mapping[str, Any] | None = None,
    disclose: Disclosure | None = None,
    aliases: Sequence[str] = (),
    workflows: Sequence[type] = (),
) -> ToolDecorator: ...


def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    schema: Any = None,
    **options: Any,
) -> Any:
    """Declare a class with `execute`, or a function, as a tool.

    Nothing is inspected here: whatever is wrong with the tool is reported when the app is built, together with the
    rest.

    Args:
        function: The function, where the decorator is used bare.
        name: What the model writes to call it (a function's own name unless given).
        description: How the model decides whether to call it (a function's docstring unless given).
        schema: The type of the arguments; derived from the input parameters of `execute` unless given.
        **options: `effect` ("read", "write", "destructive") and `idempotent` are seen by hooks and middleware;
            `timeout` in seconds; `max_output_chars` cuts the observation; `blocking=False` runs a sync `execute` on
            the event loop; `strict` asks the service to hold the model to the schema; `metadata` is yours; `disclose`
            maps exception classes to what the model may read of them; `aliases` are other names under which models
            are known to call it; `workflows` are those that it starts, so that they are checked with it.

    Raises:
        TypeError: For an argument that `tool` does not have.
    """
    settings = ToolOptions(**options)
    given: dict[str, Any] = {field_name: getattr(settings, field_name) for field_name in ToolOptions.__slots__}

    def declare(target: Any) -> Any:
        # the only way to the names of an enclosing function: that of the class or function being decorated
        here = inspect.currentframe()
        frame = here.f_back if here is not None else None
        if function is not None and frame is not None:
            frame = frame.f_back  # bare `@tool`: this was called by `tool` itself
        if inspect.isclass(target):
            owners = [member for cls in target.__mro__ for member in cls.__dict__.values()]
            local_names = needed_locals(owners, frame)
            definition = ToolDefinition(name or "", description or "", schema, None, **given)
            # type.__setattr__ through cast: the class keeps its own type
            cast("Any", target).__thena_tool__ = Declared(definition, local_names)
            return target
        if not callable(target):
            raise ThenaError(f"[thena] @tool goes on a class or a function, not on {target!r}.")
        text = description if description is not None else first_paragraph(target.__doc__)
        definition = ToolDefinition(name or target.__name__, text, schema, None, **given)
        return FunctionTool(target, Declared(definition, needed_locals([target], frame)))

    return declare if function is None else declare(function)


def first_paragraph(docstring: str | None) -> str:
    """Return what a docstring says before its sections: the part that the model is meant to read."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    sections = {"args:", "arguments:", "returns:", "raises:", "yields:", "parameters:", "attributes:"}
    kept: list[str] = []
    for line in lines:
        if line.strip().lower() in sections:
            break
        kept.append(line)
    return " ".join(" ".join(kept).split())


def needed_locals(owners: Any, frame: Any) -> Mapping[str, Any]:
    """Keep of an enclosing function's names only those that string annotations mention.

    Keeping the frame itself would keep alive everything that the function holds.
    """
    if frame is None or frame.f_locals is frame.f_globals or frame.f_code.co_name == "<module>":
        return {}
    words: set[str] = set()
    for owner in owners:
        plain = inspect.unwrap(getattr(owner, "__func__", None) or getattr(owner, "func", None) or owner)
        annotations: dict[str, Any] = getattr(plain, "__annotations__", None) or {}
        for annotation in annotations.values():
            # in quotes it is a string; inside a type, its repr shows the forward references
            words.update(_WORD.findall(annotation if isinstance(annotation, str) else repr(annotation)))
    return {word: frame.f_locals[word] for word in words if word in frame.f_locals}
