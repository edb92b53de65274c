"""Model text to arguments: strict first, then only the repair that can be read one way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from tests.schema.trial import answers, node_of
from thena_core import tool
from thena_core.schema.model import ArgumentsSchema, schema_from_type
from thena_core.schema.parse import InvalidArgumentsError, recover


class Everything(BaseModel):
    text: str = ""
    number: float = 0
    flag: bool = False
    nothing: None = None
    items: list[Any] = []
    more: dict[str, Any] = Field(default={})


class Open(BaseModel):
    value: Any


ANY = schema_from_type(Open, tool="t")
EVERYTHING = schema_from_type(Everything, tool="t")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
raws = (
    st.text(max_size=60)
    | st.text("{}[]\"':,\\ntrue1. `", max_size=60)
    | values
    | st.dictionaries(st.text(max_size=5), values, max_size=4)
    | st.binary(max_size=20)
)


def read(schema: ArgumentsSchema, raw: Any) -> tuple[Any, bool]:
    """Do what the validating layer does."""
    try:
        return (schema.validate_json(raw) if isinstance(raw, str) else schema.validate_python(raw)), False
    except ValidationError as error:
        return recover(schema, raw, error)


def refused(schema: ArgumentsSchema, raw: Any) -> str:
    """Return the observation of a refusal, or nothing where it was read."""
    try:
        read(schema, raw)
    except InvalidArgumentsError as error:
        return str(error)
    return ""


@settings(max_examples=500, deadline=None)
@given(raw=raws)
@pytest.mark.behaviour("T05", "F06")
def test_reading_never_raises_anything_else(raw: Any) -> None:
    """Whatever was sent is read, or refused with the documented error, in a bounded text that can be encoded."""
    for schema in (ANY, EVERYTHING):
        said = refused(schema, raw)
        assert said == "" or said.startswith(("invalid arguments — ", "malformed arguments — "))
        assert len(said) <= 2_100
        said.encode()


@settings(max_examples=300, deadline=None)
@given(value=values)
@pytest.mark.behaviour("F06")
def test_valid_text_is_read_as_it_is(value: Any) -> None:
    """Strict JSON is never touched."""
    assert read(ANY, json.dumps({"value": value})) == (Open(value=value), False)


def python_text(value: Any) -> str:
    """Write a value as a model does that thinks in Python."""
    return repr({"value": value})


def fenced(value: Any) -> str:
    return f"```json\n{json.dumps({'value': value}, indent=1)}\n```"


def trailing(value: Any) -> str:
    return json.dumps({"value": value})[:-1] + " , }"


def twice(value: Any) -> str:
    return json.dumps(json.dumps({"value": value}))


@settings(max_examples=300, deadline=None)
@given(value=values)
@pytest.mark.parametrize("spoil", [python_text, fenced, trailing, twice])
@pytest.mark.behaviour("F06")
def test_repaired_text_equals_the_strict_reading(spoil: Any, value: Any) -> None:
    """A repair gives exactly what the strict text would have given, and says that it was one."""
    text = spoil(value)
    args, repaired = read(ANY, text)
    assert args == Open(value=value)
    assert repaired or _is_json(text)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@settings(max_examples=300, deadline=None)
@given(text=texts | st.sampled_from([",}", "True", "None,", "'", "{'a': True,}", "```json\n{}\n```", ", ]"]))
@pytest.mark.behaviour("F06")
def test_repairs_never_touch_what_is_inside_a_text(text: str) -> None:
    """What looks like a mistake inside a string is the string."""
    # neither JSON (None, the comma) nor Python (true): only a repair of the text itself can read it
    spoiled = f'{{"value": {json.dumps(text)}, "other": true, "third": None,}}'

    class Both(BaseModel):
        value: str
        other: bool
        third: None

    assert read(schema_from_type(Both, tool="t"), spoiled) == (Both(value=text, other=True, third=None), True)


REPAIRED = {
    "fence": '```json\n{"text": "a", "items": [1]}\n```',
    "fence without a word": '```\n{"text": "a", "items": [1]}\n```',
    "fence on one line": '```json {"text": "a", "items": [1]} ```',
    "trailing comma": '{"text": "a", "items": [1,],}',
    "Python dict": "{'text': 'a', 'items': [1]}",
    "Python tuple": "{'text': 'a', 'items': (1,)}",
    "Python words": '{"text": "a", "items": [1], "flag": False, "nothing": None}',
    "encoded twice": json.dumps('{"text": "a", "items": [1]}'),
    "list as a text": '{"text": "a", "items": "[1]"}',
    "fence and comma": '```json\n{"text": "a", "items": [1],}\n```',
}


@pytest.mark.behaviour("F06")
@pytest.mark.parametrize("text", REPAIRED.values(), ids=REPAIRED)
async def test_unambiguous_mistakes_are_repaired_and_said(text: str) -> None:
    """The call runs, and its node says `repaired`."""

    @tool(name="t", description="d", schema=Everything)
    def t(args: Everything) -> str:
        return args.text + repr(args.items)

    assert await answers(t, [text]) == ["a[1]"]
    assert (await node_of(t, text)).meta["repaired"] is True


AMBIGUOUS = {
    "two objects": '{"text": "a"} {"text": "b"}',
    "words before": 'Sure: {"text": "a"}',
    "words after": '{"text": "a"} is it',
    "cut off": '{"text": "a", "items": [1',
    "no quotes": "{text: a}",
    "no comma": '{"text": "a" "items": [1]}',
    "comment": '{"text": "a" /* b */}',
    "arithmetic": "{'number': 1 + 1}",
    "call": "dict(text='a')",
    "two fences": '```json\n{"text": "a"}\n```\n```json\n{"text": "b"}\n```',
    "single-quoted with a comma": '{"text": \'it\'s\', "number": 1}',
}


@pytest.mark.behaviour("F06")
@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_ambiguous_mistakes_are_refused(text: str) -> None:
    """The tool does not run, and the model reads what was wrong."""
    ran: list[Any] = []

    @tool(name="t", description="d", schema=Everything)
    def t(args: Everything) -> str:
        ran.append(args)
        return ""

    [said] = await answers(t, [text])
    assert said.startswith("malformed arguments — not valid JSON: ")
    assert ran == []


@pytest.mark.behaviour("F06")
async def test_lists_in_texts_are_decoded_once_and_only_where_a_list_is_due() -> None:
    """One level, after plain validation failed, never for a `str` field."""

    @tool(name="t", description="d")
    def t(
        text: str = "", both: str | list[int] = "", many: list[str] | None = None, deep: list[list[int]] | None = None
    ) -> str:
        return f"{text!r} {both!r} {many!r} {deep!r}"

    calls = [
        {"text": "[1]"},
        {"both": "[1]"},
        {"many": '["a"]'},
        {"many": json.dumps(json.dumps(["a"]))},
        {"deep": ["[1]"]},
        {"many": "a"},
    ]
    text, both, many, twice_encoded, deep, plain = await answers(t, calls)
    assert text == "'[1]' '' None None"
    assert both == "'' '[1]' None None"
    assert many == "'' '' ['a'] None"
    assert twice_encoded.startswith("invalid arguments — many")
    assert deep == "'' '' None [[1]]"
    assert plain.startswith("invalid arguments — many")
