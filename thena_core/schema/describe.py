"""What was wrong with arguments, in one bounded line that the model can act on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from thena_core._render import did_you_mean, listed, shortened

MAX_PROBLEMS = 10
MAX_TEXT = 2_000
MAX_VALUE = 60
MAX_BITS = 128

_EXPECTED = {
    "string_type": "string",
    "int_type": "integer",
    "int_parsing": "integer",
    "int_from_float": "integer",
    "float_type": "number",
    "float_parsing": "number",
    "bool_type": "boolean",
    "bool_parsing": "boolean",
    "list_type": "array",
    "tuple_type": "array",
    "set_type": "array",
    "dict_type": "object",
    "model_type": "object",
    "model_attributes_type": "object",
    "dataclass_type": "object",
    "none_required": "null",
}


def describe(problems: Sequence[Any], fields: Mapping[str, bool]) -> str:
    """Name each field and what was wrong with it.

    Args:
        problems: What pydantic found (`ValidationError.errors()`); only what the model itself sent is in it.
        fields: The names that are accepted at the top.

    Returns:
        At most 10 problems and 2,000 characters; no address of pydantic's documentation.
    """
    if len(problems) == 1:
        return shortened(_one(problems[0], fields), MAX_TEXT)
    parts = [_one(problem, fields) for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        parts.append(f"and {len(problems) - MAX_PROBLEMS} more")
    return shortened("; ".join(parts), MAX_TEXT)


def json_type(value: Any) -> str:
    """Name a value as JSON does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str | bytes):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _one(problem: Any, fields: Mapping[str, bool]) -> str:
    location = problem["loc"]
    path = str(location[0]) if len(location) == 1 else ".".join(map(str, location))
    kind = problem["type"]
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{path}: unknown argument{accepted(str(location[0]), fields) if len(location) == 1 else ''}"
    if kind == "missing":
        return f"{path}: missing"
    if kind in _EXPECTED:
        said = f"expected {_EXPECTED[kind]}, received {received(problem['input'])}"
    elif not path:
        return shortened(problem["msg"], MAX_TEXT)
    else:
        message = problem["msg"]
        said = f"{message[0].lower()}{message[1:]}, received {received(problem['input'])}"
    return f"{path}: {said}" if path else said


def accepted(name: str, fields: Collection[str]) -> str:
    """List the names that are accepted where an unknown one came."""
    if not fields:
        return " (the tool takes none)"
    return f" (accepted: {listed(fields)}){did_you_mean(name, fields)}"


def received(value: Any) -> str:
    """Name what came: its JSON type, and a short form of a plain value."""
    if isinstance(value, str):
        return f'string "{shortened(value, MAX_VALUE)}"'
    kind = json_type(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return kind  # Python refuses to print integers of thousands of digits
    return f"{kind} {value}" if isinstance(value, int | float) else kind
