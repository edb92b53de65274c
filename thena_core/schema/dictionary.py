"""A JSON Schema given as a `dict`: checked at build, remote references refused, then a validator like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from thena_core._render import shortened
from thena_core.errors import ToolDefinitionError

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

    own = dict(schema)
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
        problems = sorted(validator.iter_errors(value), key=lambda found: list(map(str, found.absolute_path)))
        if problems:
            # the paths travel along, so that a list sent as text can be decoded where the schema wants a list
            raise PydanticCustomError("json_schema", "{text}", _facts(problems))
        return value

    return Annotated[dict[str, Any], AfterValidator(check)], own


def _facts(problems: list[Any]) -> dict[str, Any]:
    lines = [_line(problem) for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"and {len(problems) - MAX_PROBLEMS} more")
    wanted = [
        list(problem.absolute_path)
        for problem in problems
        if problem.validator == "type" and isinstance(problem.instance, str)
    ]
    return {"text": "; ".join(lines), "paths": wanted}


def _line(problem: Any) -> str:
    path = ".".join(str(part) for part in problem.absolute_path)
    message = shortened(problem.message, 300)
    return f"{path}: {message}" if path else message


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
