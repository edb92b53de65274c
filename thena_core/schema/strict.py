"""The subset of JSON Schema that services hold a model to (`strict`): every field required, nothing open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from thena_core.errors import ToolDefinitionError


def strict_schema(schema: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """Rewrite a schema for strict mode, after OpenAI's rules for structured outputs.

    Every field becomes required (one with a default may be `null`, which means its default), `default`, `oneOf` and
    `discriminator` go, and a `$ref` has no siblings.

    Raises:
        ToolDefinitionError: For an open object (`dict[str, Any]`), which strict mode cannot say.
    """
    definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))
    return cast("dict[str, Any]", _strict(schema, definitions, tool, ()))


def _strict(node: Any, definitions: Mapping[str, Any], tool: str, path: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_strict(part, definitions, tool, path) for part in cast("list[Any]", node)]
    if not isinstance(node, Mapping):
        return node
    found = dict(cast("Mapping[str, Any]", node))
    found.pop("default", None)
    found.pop("discriminator", None)
    if "oneOf" in found:
        found["anyOf"] = found.pop("oneOf")
    if "$ref" in found and len(found) > 1:
        return _inlined(found, definitions, tool, path)
    if found.get("type") == "object":
        _close(found, definitions, tool, path)
    for key in ("$defs", "definitions"):
        if key in found:
            named = cast("Mapping[str, Any]", found[key])
            found[key] = {name: _strict(part, definitions, tool, (name,)) for name, part in named.items()}
    for key in ("items", "anyOf", "allOf", "prefixItems"):
        if key in found:
            found[key] = _strict(found[key], definitions, tool, path)
    return found


def _inlined(found: dict[str, Any], definitions: Mapping[str, Any], tool: str, path: tuple[str, ...]) -> Any:
    """A `$ref` with a description beside it: copy what it refers to, or drop the description where it recurs."""
    reference = cast("str", found["$ref"])
    name = reference.rsplit("/", 1)[-1]
    target = definitions.get(name)
    if not isinstance(target, Mapping) or f"#{name}" in path:
        return {"$ref": reference}
    siblings = {key: value for key, value in found.items() if key != "$ref"}
    return _strict({**cast("Mapping[str, Any]", target), **siblings}, definitions, tool, (*path, f"#{name}"))


def _close(found: dict[str, Any], definitions: Mapping[str, Any], tool: str, path: tuple[str, ...]) -> None:
    properties = cast("dict[str, Any]", found.get("properties", {}))
    if found.get("additionalProperties", False) is not False or (not properties and path):
        where = ".".join(part for part in path if not part.startswith("#")) or "the schema itself"
        raise ToolDefinitionError(
            f'[thena] The tool "{tool}" says strict=True, but `{where}` is an open object, which strict mode cannot '
            f"express. Give it a model of its own, or say strict=False."
        )
    required = set(cast("list[str]", found.get("required", [])))
    found["properties"] = {
        name: _strict(part if name in required else _nullable(part), definitions, tool, (*path, name))
        for name, part in properties.items()
    }
    found["required"] = list(properties)
    found["additionalProperties"] = False


def _nullable(part: Any) -> Any:
    branches = cast("list[Any] | None", part.get("anyOf"))
    if branches is not None:
        return part if {"type": "null"} in branches else {**part, "anyOf": [*branches, {"type": "null"}]}
    outside = {key: part[key] for key in ("description", "title") if key in part}
    inside = {key: value for key, value in part.items() if key not in (*outside, "default")}
    return {**outside, "anyOf": [inside, {"type": "null"}]}
