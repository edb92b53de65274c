"""A JSON Schema given as a `dict`: checked at build, remote references refused, then a validator like any other."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from thena_core._render import shortened
from thena_core.errors import ToolDefinitionError
from thena_core.schema.describe import accepted, received

_OPEN_ENDED = {
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "$ref",
    "$dynamicRef",
    "dependentSchemas",
    "propertyNames",
}
MAX_PROBLEMS = 10


def dictionary_type(schema: Mapping[str, Any], tool: str) -> tuple[Any, dict[str, Any]]:
    """Return a type that pydantic validates against the schema, and the schema as the model sees it.

    Unknown fields are refused, as for every tool, unless the schema itself speaks of them.

    Raises:
        ToolDefinitionError: For a schema that is none, is not of an object, or refers to something outside itself.
    """
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - 70 ms, only for tools with a dict
    from jsonschema.validators import validator_for  # noqa: PLC0415

    own = copy.deepcopy(dict(schema))  # what its author changes later must not change what was checked
    if own.setdefault("type", "object") != "object":
        raise ToolDefinitionError(
            f'[thena] The schema of the tool "{tool}" is of type {own["type"]!r}: arguments are an "object".'
        )
    for reference in _references(own):
        if not reference.startswith("#"):
            raise ToolDefinitionError(
                f'[thena] The schema of the tool "{tool}" refers to {reference!r}: only references inside the schema '
                f'("#/$defs/…") are followed; put the definition into it.'
            )
    if not _OPEN_ENDED & own.keys():
        own["additionalProperties"] = False
    cls: Any = validator_for(own, default=Draft202012Validator)
    try:
        cls.check_schema(own)
    except SchemaError as error:
        raise ToolDefinitionError(
            f'[thena] The schema of the tool "{tool}" is not a JSON Schema: {error.json_path}: {error.message}'
        ) from error
    validator: Any = cls(own)

    def check(value: dict[str, Any]) -> dict[str, Any]:
        try:
            problems = sorted(validator.iter_errors(value), key=lambda found: list(map(str, found.absolute_path)))
        except RecursionError:
            raise PydanticCustomError("too_deep", "nested too deep") from None
        if not problems and not _is_finite(value):
            raise PydanticCustomError("not_finite", "NaN and Infinity are no JSON numbers")
        if problems:
            # the paths travel along, so that a list sent as text can be decoded where the schema wants a list
            raise PydanticCustomError("json_schema", "{text}", _facts(problems))
        return value

    return Annotated[dict[str, Any], AfterValidator(check)], own


def _is_finite(value: Any) -> bool:
    """Whether every number is one; `NaN` passes as a number with every schema."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, cast("dict[str, Any]", value).values()))
    return not isinstance(value, list) or all(map(_is_finite, cast("list[Any]", value)))


def _facts(problems: list[Any]) -> dict[str, Any]:
    lines = list(dict.fromkeys(line for problem in problems for line in _lines(problem)))
    if len(lines) > MAX_PROBLEMS:
        lines[MAX_PROBLEMS:] = [f"and {len(lines) - MAX_PROBLEMS} more"]
    # `type` within a union is reported by the union: what may be decoded or left out is looked for in both
    leaves = [leaf for problem in problems for leaf in (problem, *(problem.context or ()))]
    return {
        "text": "; ".join(lines).encode("utf-8", "replace").decode("utf-8"),
        "texts": [list(leaf.absolute_path) for leaf in leaves if isinstance(leaf.instance, str)],
        "nulls": [list(leaf.absolute_path) for leaf in leaves if leaf.instance is None and leaf.absolute_path],
    }


def _lines(problem: Any) -> Iterator[str]:
    """Word one problem as pydantic's are worded: `path: expected integer, received string "x"`."""
    path = [str(part) for part in problem.absolute_path]
    instance, wanted = problem.instance, problem.validator_value
    if problem.validator == "required":
        for name in wanted:
            if name not in instance:
                yield f"{'.'.join([*path, name])}: missing"
    elif problem.validator == "additionalProperties" and wanted is False:
        known = problem.schema.get("properties", {})
        for name in instance:
            if name not in known:
                yield f"{'.'.join([*path, name])}: unknown argument{accepted(name, known) if not path else ''}"
    elif problem.validator == "type":
        expected = wanted if isinstance(wanted, str) else " or ".join(wanted)
        yield f"{'.'.join(path)}: expected {expected}, received {received(instance)}"
    else:
        message = shortened(problem.message, 300)
        yield f"{'.'.join(path)}: {message}" if path else message


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in cast("Mapping[str, Any]", node).items():
            if key in {"$ref", "$dynamicRef", "$recursiveRef"} and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for part in cast("list[Any]", node):
            yield from _references(part)
