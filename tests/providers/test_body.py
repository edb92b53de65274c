"""The JSON of requests: strict UTF-8, no `NaN`, and arguments that are objects."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from thena_core.providers.body import argument_text, encoded, whole


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param('{"a": 1,  "b": 2}', '{"a": 1,  "b": 2}', id="kept-byte-for-byte"),
        pytest.param("", "{}", id="A01-empty"),
        pytest.param(" \n", "{}", id="A01-blank"),
        pytest.param("null", "{}", id="A02-null"),
        pytest.param('{"path": "a.txt", "content": "x', "{}", id="A06-cut-off"),
        pytest.param("[1]", "{}", id="A06-list"),
        pytest.param('{"x": NaN}', "{}", id="A30-nan"),
        pytest.param('"{\\"a\\": 1}"', '{"a": 1}', id="A03-encoded-twice"),
        pytest.param('{"id": 9007199254740993}', '{"id": 9007199254740993}', id="A30-big-integer"),
        pytest.param('{"t": "\\ud83d\\ude00 \\ud83d"}', '{"t": "\U0001f600 \ufffd"}', id="A26-half-a-pair"),
        pytest.param("[" * 100_000, "{}", id="too-deep"),
        pytest.param({"a": [1]}, '{"a": [1]}', id="mapping"),
        pytest.param(MappingProxyType({"a": 1}), '{"a": 1}', id="read-only-mapping"),
        pytest.param({"a": float("inf")}, "{}", id="mapping-with-infinity"),
    ],
)
def test_past_arguments_are_objects(arguments: Any, expected: str) -> None:
    """Whatever the model sent, the history that goes back holds a JSON object that strict servers accept."""
    assert argument_text(arguments) == expected
    assert isinstance(json.loads(argument_text(arguments)), dict)


def test_half_a_surrogate_pair_does_not_break_the_body() -> None:
    """A lone half becomes U+FFFD and a whole pair its character (case A26)."""
    assert json.loads(encoded({"t": "a\ud83d\ude00b\ud83dc"})) == {"t": "a\U0001f600b\ufffdc"}
    assert whole("plain é\u2028") == "plain é\u2028"


@pytest.mark.parametrize(
    ("value", "error"),
    [(float("nan"), ValueError), (object(), TypeError), (b"x", TypeError)],
    ids=["nan", "object", "bytes"],
)
def test_refuses_what_is_not_json(value: Any, error: type[Exception]) -> None:
    """A value that JSON does not have is an error and never a guess."""
    with pytest.raises(error):
        encoded({"x": value})
