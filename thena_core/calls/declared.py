"""From an entry of `tools=[…]` to a tool that can be built, or to what is wrong with it."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from thena_core._render import did_you_mean, listed, qualified_name, said_by
from thena_core.definition import Declared, FunctionTool, ToolDefinition
from thena_core.errors import ToolDefinitionError
from thena_core.schema.signature import bound

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every big service accepts as a tool's name (OpenAI's and Anthropic's documented pattern)."""


@dataclass(frozen=True, slots=True)
class ToolSource:
    """A declared tool, before its class is built.

    Attributes:
        definition: What its author declared.
        where: How messages name its `execute`.
        origin: Where it stands: module and name.
        function: `execute`, as an instance would have it, or the function.
        cls: The class to be built, if it is one.
        instance: The configured instance, if the author made one.
        local_names: Names that string annotations may need.
    """

    definition: ToolDefinition
    where: str
    origin: str
    function: Callable[..., Any]
    cls: type | None = None
    instance: Any = None
    local_names: Mapping[str, Any] | None = None


def read_tool(item: Any) -> ToolSource:
    """Accept a class, a decorated function, a `ToolDefinition`, a configured instance, or an installed tool's name.

    Raises:
        ToolDefinitionError: For anything else, and for a tool that lacks what it needs.
    """
    if isinstance(item, str):
        item = _installed(item)
    if isinstance(item, ToolDefinition):
        return _checked(_from_definition(item))
    if isinstance(item, FunctionTool):
        declared: Declared = item.__thena_tool__
        function: Any = item.__wrapped__  # pyright: ignore[reportUnknownMemberType]
        origin = qualified_name(function)
        return _checked(
            ToolSource(declared.definition, item.__qualname__, origin, function, local_names=declared.local_names)
        )
    cls: Any = item if isinstance(item, type) else type(item)
    declared_on: Declared | None = getattr(cls, "__thena_tool__", None)
    if declared_on is None:
        raise ToolDefinitionError(_not_a_tool(item))
    if not callable(getattr(cls, "execute", None)):
        raise ToolDefinitionError(_no_execute(cls))
    return _checked(
        ToolSource(
            declared_on.definition,
            f"{cls.__name__}.execute",
            qualified_name(cls),
            bound(cls, "execute"),
            cls if cls is item else None,
            None if cls is item else item,
            declared_on.local_names,
        )
    )


def _from_definition(item: ToolDefinition) -> ToolSource:
    if item.execute is None:
        raise ToolDefinitionError(
            f'[thena] The ToolDefinition "{item.name}" has no execute: give the function that does the work.'
        )
    return ToolSource(item, f'ToolDefinition("{item.name}").execute', qualified_name(item.execute), item.execute)


def _checked(source: ToolSource) -> ToolSource:
    definition = source.definition
    if not NAME.fullmatch(definition.name):
        shown = f'The name "{definition.name}"' if definition.name else "The empty name"
        raise ToolDefinitionError(
            f"[thena] {shown} of the tool {source.origin} is refused by the big services: "
            f"use 1 to 64 letters, digits, `_` or `-`."
        )
    if not definition.description.strip():
        raise ToolDefinitionError(
            f'[thena] The tool "{definition.name}" ({source.origin}) has no description. It is what the model decides '
            f'by: add description="…", or a docstring to a function.'
        )
    return source


def _not_a_tool(item: Any) -> str:
    if inspect.isclass(item):
        return (
            f'[thena] The class "{item.__name__}" is not decorated with @tool().\n'
            f'Add above it: @tool(name="{_snake(item.__name__)}", description="…")'
        )
    if isinstance(item, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        name = getattr(item, "__name__", "it")
        return f'[thena] The function "{name}" is not decorated with @tool.\nAdd above it: @tool'
    return (
        f'[thena] The class "{item.__class__.__name__}" is not decorated with @tool().\n'
        f"tools=[…] takes tool classes, decorated functions, ToolDefinitions, instances of tool classes and names of "
        f"installed tools."
    )


def _no_execute(cls: type) -> str:
    text = f'[thena] The class "{cls.__name__}" does not implement execute(input).'
    for wrong in ("run", "__call__", "call", "invoke", "forward"):
        if any(wrong in base.__dict__ for base in cls.__mro__[:-1]):
            return f"{text}\nIt has `{wrong}`: rename it to `execute`."
    return f"{text}\nAdd: async def execute(self, args: …) -> str"


def _installed(name: str) -> Any:
    """Load a tool by its name in the entry-point group `thena.tools`."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - only names need it

    entries = list(entry_points(group="thena.tools"))
    found = [entry for entry in entries if entry.name == name]
    packages = [f"{entry.dist.name} {entry.dist.version}" for entry in found if entry.dist is not None]
    if not found:
        names = sorted({entry.name for entry in entries})
        known = f"Installed: {listed(names)}." if names else "No package that brings tools is installed."
        raise ToolDefinitionError(
            f'[thena] No installed package brings a tool named "{name}".{did_you_mean(name, names)} {known}'
        )
    if len(found) > 1:
        raise ToolDefinitionError(
            f'[thena] Several installed packages bring a tool named "{name}": {listed(sorted(packages))}. '
            f"Uninstall all but one."
        )
    [entry] = found
    try:
        return entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        origin = " of ".join([entry.value, *packages])
        raise ToolDefinitionError(
            f'[thena] The installed tool "{name}" ({origin}) cannot be imported: {said_by(error)}'
        ) from error


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().removesuffix("_tool")
