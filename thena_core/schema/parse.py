"""From model text to arguments: strict first; where that failed, a repair that can only be read one way."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from thena_core.schema.describe import describe, json_type
from thena_core.schema.model import ArgumentsSchema

MAX_REPAIRED = 200_000
"""Characters of malformed text that a repair looks at; longer text is refused as it is."""

Problems = Sequence[Any]
"""What `ValidationError.errors()` returns, read once."""

_DECODABLE = {
    "list_type",
    "tuple_type",
    "set_type",
    "frozen_set_type",
    "dict_type",
    "mapping_type",
    "model_type",
    "model_attributes_type",
    "dataclass_type",
}
_FENCE = re.compile(r"^\s*```[a-zA-Z0-9]*\s*\n?(.*?)\n?\s*```\s*$", re.DOTALL)
_OUTSIDE_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"|,\s*(?=[}\]])|\b(?:True|False|None)\b', re.DOTALL)
_LITERALS = {"True": "true", "False": "false", "None": "null"}


class InvalidArgumentsError(Exception):
    """What the model sent is not what the tool accepts; the text is the observation."""


def recover(schema: ArgumentsSchema, raw: Any, error: ValidationError) -> tuple[Any, bool]:
    """Read what strict validation refused.

    Args:
        schema: What the tool accepts.
        raw: What the model sent: a text, a mapping, or nothing.
        error: Why it was refused.

    Returns:
        The arguments, and whether anything had to be repaired.

    Raises:
        InvalidArgumentsError: With the observation for the model.
    """
    problems = error.errors(include_url=False)
    if isinstance(raw, str) and problems[0]["loc"]:  # an object, with wrong fields
        if not any(_is_repairable(problem, schema) for problem in problems):
            raise _refused(schema, problems)
        return _repaired(schema, json.loads(raw), problems), True
    if raw is None or (isinstance(raw, str) and raw.strip() in {"", "null"}):
        # services send nothing, "" or null for a call without arguments
        return _validated(schema, {}), False
    value, repaired = _object(raw, problems)
    try:
        return schema.validate_json(json.dumps(value)), repaired
    except ValidationError as second:
        return _repaired(schema, value, second.errors(include_url=False)), True


def _object(raw: Any, problems: Problems) -> tuple[dict[str, Any], bool]:
    """Find the object in what the model sent, and say whether finding it was a repair."""
    if isinstance(raw, str | bytes):
        value = _loaded(raw)
    elif isinstance(raw, Mapping):
        value = json.loads(json.dumps(dict(cast("Mapping[str, Any]", raw)), default=str))
    else:
        value = raw
    repaired = problems[0]["type"] == "json_invalid"
    if isinstance(value, str):
        decoded = _decoded(value)
        value, repaired = (value, repaired) if decoded is None else (decoded, True)
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"invalid arguments — expected object, received {json_type(value)}")
    return cast("dict[str, Any]", value), repaired


def _repaired(schema: ArgumentsSchema, arguments: dict[str, Any], problems: Problems) -> Any:
    """Repair single fields, where each can only have been meant one way."""
    changed = _without_nulls(schema, arguments, problems) | _decode_inside(arguments, problems)
    if not changed:
        raise _refused(schema, problems)
    return _validated(schema, arguments)


def _validated(schema: ArgumentsSchema, value: Any) -> Any:
    try:
        return schema.validate_json(json.dumps(value))
    except ValidationError as error:
        raise _refused(schema, error.errors(include_url=False)) from None


def _refused(schema: ArgumentsSchema, problems: Problems) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"invalid arguments — {describe(problems, schema.fields)}")


def _is_repairable(problem: Any, schema: ArgumentsSchema) -> bool:
    kind = problem["type"]
    if kind in _DECODABLE or kind == "json_schema":
        return True
    return problem["input"] is None and bool(schema.fields.get(problem["loc"][0]))


def _loaded(raw: str | bytes) -> Any:
    """Parse a text as JSON, then as what it can only have been meant to be."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = error
    if len(text) <= MAX_REPAIRED:
        fenced = _FENCE.match(text)
        text = fenced.group(1) if fenced else text
        for attempt in (_loads, _loads_amended, _literal):
            value = attempt(text)
            if isinstance(value, dict):
                return cast("dict[str, Any]", value)
    raise InvalidArgumentsError(f"malformed arguments — not valid JSON: {problem}") from None


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _loads_amended(text: str) -> Any:
    """Drop trailing commas and translate Python's literals, never inside a string."""

    def amended(found: re.Match[str]) -> str:
        token = found.group()
        return token if token[0] == '"' else _LITERALS.get(token, "")

    return _loads(_OUTSIDE_STRINGS.sub(amended, text))


def _literal(text: str) -> Any:
    """Read a Python dict with single quotes; `literal_eval` runs nothing."""
    try:
        value = ast.literal_eval(text.strip())
        json.dumps(value, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value


def _decoded(text: str) -> Any:
    """Decode one level of a list or object that arrived as a text."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[")):
        return None
    value = _loads(stripped)
    return cast("Any", value) if isinstance(value, dict | list) else None


def _decode_inside(arguments: dict[str, Any], problems: Problems) -> bool:
    """Decode, in place, each list or object that was sent as a text where the schema wants the thing itself."""
    changed = False
    for path in _paths(problems):
        holder, key = _locate(arguments, path)
        if holder is None or not isinstance(holder[key], str):
            continue
        value = _decoded(holder[key])
        if value is not None:
            holder[key] = value
            changed = True
    return changed


def _paths(problems: Problems) -> list[Sequence[Any]]:
    found: list[Sequence[Any]] = []
    for problem in problems:
        if problem["type"] == "json_schema":
            found.extend(problem.get("ctx", {}).get("paths", ()))
        elif problem["type"] in _DECODABLE:
            found.append(problem["loc"])
    return found


def _locate(arguments: Any, path: Sequence[Any]) -> tuple[Any, Any]:
    """Find the value that an error speaks of; parts that name a branch of a union are not in the data."""
    holder, key, value = None, None, arguments
    for part in path:
        if _holds(value, part):
            holder, key = value, part
            value = value[part]
    return holder, key


def _holds(value: Any, part: Any) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(cast("list[Any]", value))


def _without_nulls(schema: ArgumentsSchema, arguments: dict[str, Any], problems: Problems) -> bool:
    """Drop, in place, a `null` sent for a field that has a default: it means the default."""
    changed = False
    for problem in problems:
        name = problem["loc"][0] if problem["loc"] else None
        if isinstance(name, str) and schema.fields.get(name) and arguments.get(name, "") is None:
            del arguments[name]
            changed = True
    return changed
