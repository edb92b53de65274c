"""Several tools' schemas as one: a call of any of them, told apart by the tool's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from thena_core import ToolDefinition

_DEFS = "#/$defs/"


def call_schemas(tools: Sequence[ToolDefinition]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the JSON Schema of a call of any of the tools, and the definitions that it refers to.

    `anyOf` and one-word `enum`s, since not every service reads `oneOf`, `discriminator` and `const`.
    """
    definitions: dict[str, Any] = {}
    branches: list[dict[str, Any]] = []
    for tool in tools:
        arguments = _moved(tool, definitions)
        branches.append(
            {
                "type": "object",
                "description": tool.description,
                "properties": {"name": {"type": "string", "enum": [tool.name]}, "arguments": arguments},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    return {"anyOf": branches}, definitions


def _moved(tool: ToolDefinition, definitions: dict[str, Any]) -> dict[str, Any]:
    """Take a tool's schema into another one: its definitions move to the top, under names of its own."""
    if not all(target.startswith(_DEFS) for target in _targets(tool.json_schema)):
        return {"type": "object"}  # it points into itself, which would be another place there
    schema = _renamed(tool.json_schema, tool.name)
    for name, definition in schema.pop("$defs", {}).items():
        definitions[f"{tool.name}.{name}"] = definition
    return cast("dict[str, Any]", schema)


def _targets(value: Any) -> list[str]:
    """List what a schema points to."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        here = fields.get("$ref")
        return ([here] if isinstance(here, str) else []) + [one for inner in fields.values() for one in _targets(inner)]
    if isinstance(value, list):
        return [one for inner in cast("list[Any]", value) for one in _targets(inner)]
    return []


def _renamed(value: Any, owner: str) -> Any:
    """Copy a schema so that what it points to is found under the owner's name."""
    if isinstance(value, Mapping):
        return {key: _renamed(inner, owner) for key, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_renamed(inner, owner) for inner in cast("list[Any]", value)]
    if isinstance(value, str) and value.startswith(_DEFS):  # a `$ref`, or an entry of a `discriminator`
        return f"{_DEFS}{owner}.{value.removeprefix(_DEFS)}"
    return value
