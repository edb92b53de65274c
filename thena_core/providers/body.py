"""Write the JSON of requests so that every server can read it: strict UTF-8, no `NaN`, arguments that are objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast


def encoded(body: Mapping[str, Any]) -> bytes:
    """Write the body of a request.

    Raises:
        TypeError: For a value that JSON does not have.
        ValueError: For `NaN`, or a value that contains itself.
        RecursionError: For values nested beyond Python's depth.
    """
    return compact(body).encode()


def compact(value: Any) -> str:
    """Write a value as JSON without spaces; raises as `encoded` does."""
    return whole(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=as_plain))


def as_plain(value: object) -> Any:
    """Make a mapping that is no `dict`, or a sequence that is no `list`, into one that `json` can write."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return list(cast("Iterable[Any]", value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def whole(text: str) -> str:
    """Replace halves of surrogate pairs, which no UTF-8 can hold, by U+FFFD; whole pairs become their character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def argument_text(arguments: str | Mapping[str, Any]) -> str:
    """Write the arguments of a past call as the JSON object that strict servers want to see.

    What the model sent stays byte for byte where it is one; what is none (empty, `null`, cut off) becomes `{}`: the
    call's result tells the model what was wrong with it.
    """
    if not isinstance(arguments, str):
        try:
            return json.dumps(arguments, ensure_ascii=False, allow_nan=False, default=as_plain)
        except ValueError:
            return "{}"
    value = parsed(arguments)
    twice = isinstance(value, str)
    if twice:
        value = parsed(value)
    if not isinstance(value, dict):
        return "{}"
    # an escaped half of a surrogate pair is legal here and refused by the service that decodes the text
    if twice or "\\ud" in arguments.lower():
        return whole(json.dumps(value, ensure_ascii=False))
    return arguments


def parsed(text: str) -> Any:
    """Parse JSON, strictly; `None` where it is none."""
    try:
        return json.loads(text, parse_constant=refused)
    except (ValueError, RecursionError):
        return None


def refused(constant: str) -> Any:
    """Refuse `NaN` and `Infinity`, which Python reads and JSON does not have."""
    raise ValueError(constant)
