"""From model text to arguments: strict first; where that failed, a repair that can only be read one way."""

from __future__ import annotations

import ast
import json
import re
import string
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
_OUTSIDE_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|,\s*+(?=[}\]])|\b(?:True|False|None)\b', re.DOTALL)
"""A string is taken whole, to the end of the text where it is not closed: no place is read twice."""
_LONG_NUMBER = re.compile(r'"([^"\\]{1,100})"\s*:\s*-?\d{4000}')
_LITERALS = {"True": "true", "False": "false", "None": "null"}


class InvalidArgumentsError(Exception):
    """What the model sent is not what the tool accepts; the text is the observation."""


def recover(schema: ArgumentsSchema, raw: Any, error: ValidationError) -> tuple[Any, bool] | str:
    """Read what strict validation refused.

    Args:
        schema: What the tool accepts.
        raw: What the model sent: a text, a mapping, or nothing.
        error: Why it was refused.

    Returns:
        The arguments, and whether anything had to be repaired; or the observation for the model.
    """
    problems = error.errors(include_url=False)
    if isinstance(raw, str) and problems[0]["loc"]:  # an object, with wrong fields
        for problem in problems:
            if _is_repairable(problem, schema):
                break
        else:
            return f"invalid arguments — {describe(problems, schema.fields)}"
    try:
        return _read_again(schema, raw, problems)
    except InvalidArgumentsError as refused:
        return str(refused)


def _read_again(schema: ArgumentsSchema, raw: Any, problems: Problems) -> tuple[Any, bool]:
    if raw is None or (isinstance(raw, str) and raw.strip() in {"", "null"}):
        # services send nothing, "" or null for a call without arguments
        return _validated(schema, {}), False
    if isinstance(raw, str) and problems[0]["loc"]:
        return _repaired(schema, json.loads(raw), problems), True
    value, repaired = _object(schema, raw, problems)
    try:
        return schema.validate_json(_text(value)), repaired
    except ValidationError as second:
        return _repaired(schema, value, second.errors(include_url=False)), True


def _object(schema: ArgumentsSchema, raw: Any, problems: Problems) -> tuple[dict[str, Any], bool]:
    """Find the object in what the model sent, and say whether finding it was a repair."""
    if isinstance(raw, str | bytes):
        value = _loaded(raw)
    elif isinstance(raw, Mapping):
        value = _as_json(schema, dict(cast("Mapping[str, Any]", raw)), problems)
    else:
        value = raw
    repaired = problems[0]["type"] == "json_invalid"
    if isinstance(value, str):
        decoded = _decoded(value)
        value, repaired = (value, repaired) if decoded is None else (decoded, True)
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"invalid arguments — expected object, received {json_type(value)}")
    return cast("dict[str, Any]", value), repaired


def _as_json(schema: ArgumentsSchema, value: Any, problems: Problems) -> Any:
    """Read a mapping as the JSON that it stands for; one that holds other things is refused for what was wrong."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        raise _refused(schema, problems) from None


def _repaired(schema: ArgumentsSchema, arguments: dict[str, Any], problems: Problems) -> Any:
    """Repair single fields, where each can only have been meant one way."""
    changed = _without_nulls(schema, arguments, problems) | _decode_inside(arguments, problems)
    if not changed:
        raise _refused(schema, problems)
    return _validated(schema, arguments)


def _validated(schema: ArgumentsSchema, value: Any) -> Any:
    try:
        return schema.validate_json(_text(value))
    except ValidationError as error:
        raise _refused(schema, error.errors(include_url=False)) from None


def _text(value: Any) -> str:
    try:
        return json.dumps(value)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentsError(f"invalid arguments — they cannot be written as JSON: {error}") from None


def _refused(schema: ArgumentsSchema, problems: Problems) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"invalid arguments — {describe(problems, schema.fields)}")


def _is_repairable(problem: Any, schema: ArgumentsSchema) -> bool:
    kind = problem["type"]
    if kind in _DECODABLE or kind == "json_schema":
        return True
    return problem["input"] is None and (schema.strict or bool(schema.fields.get(problem["loc"][0])))


def _loaded(raw: str | bytes) -> Any:
    """Parse a text as JSON, then as what it can only have been meant to be."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = error
    if len(text) <= MAX_REPAIRED:
        text = _unfenced(text)
        for attempt in (_loads, _loads_amended, _literal):
            value = attempt(text)
            if isinstance(value, dict):
                return cast("dict[str, Any]", value)
    long = _LONG_NUMBER.search(text) if isinstance(problem, ValueError) else None
    if long is not None and not isinstance(problem, json.JSONDecodeError):  # Python's own limit, worded for its users
        raise InvalidArgumentsError(f"invalid arguments — {long[1]}: a number with too many digits") from None
    raise InvalidArgumentsError(f"malformed arguments — not valid JSON: {problem}") from None


def _unfenced(text: str) -> str:
    """Take a text out of a Markdown fence: three backticks, perhaps a language, and three at the end."""
    stripped = text.strip()
    if len(stripped) < 6 or not (stripped.startswith("```") and stripped.endswith("```")):  # noqa: PLR2004 - 3 and 3
        return text
    return stripped[3:-3].lstrip(string.ascii_letters + string.digits)


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
            found.extend(problem["ctx"]["texts"])
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
    """Drop, in place, each `null` sent for a field that has a default: it means the default.

    Only in strict mode is every field that may be left out known to be nullable, at any depth.
    """
    changed = False
    for path in _null_paths(schema, problems):
        holder, key = _locate(arguments, path)
        if isinstance(holder, dict) and holder[key] is None:
            del holder[key]
            changed = True
    return changed


def _null_paths(schema: ArgumentsSchema, problems: Problems) -> list[Sequence[Any]]:
    found: list[Sequence[Any]] = []
    for problem in problems:
        if problem["type"] == "json_schema":
            found.extend(path for path in problem["ctx"]["nulls"] if schema.strict or schema.fields.get(path[0]))
        elif problem["input"] is None and problem["loc"] and (schema.strict or schema.fields.get(problem["loc"][0])):
            found.append(problem["loc"])
    return found
