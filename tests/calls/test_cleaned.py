"""Whatever a tool returns, raises or is called, the next request is valid."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calls.returning import read_by_the_model, returning
from tests.schema.trial import answer
from thena_core import (
    Prompt,
    Thena,
    ToolDefinition,
    ToolOutput,
    ToolRequest,
    agent,
)
from thena_core.calls.observe import clean
from thena_core.testing import FakeProvider


@pytest.mark.behaviour("R05")
async def test_an_empty_error_is_not_empty_either() -> None:
    """An error without words gets words, and stays an error."""
    said = await read_by_the_model(returning(ToolOutput("", is_error=True)))
    assert said.content
    assert said.is_error


INVALID: dict[str, Any] = {
    "NaN": math.nan,
    "Infinity": [math.inf, -math.inf],
    "Decimal NaN": {"a": Decimal("NaN")},
    "lone surrogate": "a\ud800b",
    "lone surrogate inside": {"a": "\udfff"},
    "lone surrogate as a name": {"\ud800": 1},
    "NUL": "a\0b",
    "NUL inside": {"a": "\0"},
    "in an output": ToolOutput("\ud800\0"),
    "in an error": ToolOutput("\ud800\0", is_error=True),
    "reversed pair": "\udc00\ud800",
    "in bytes": b"\x00\xed\xa0\x80",
}


@pytest.mark.behaviour("R06")
@pytest.mark.parametrize("value", INVALID.values(), ids=INVALID)
async def test_the_next_request_is_valid(value: Any) -> None:
    """Whatever was returned, the message to the model encodes as UTF-8 and strict JSON, without NUL."""
    said = await read_by_the_model(returning(value))
    assert "\0" not in said.content
    assert json.loads(json.dumps({"content": said.content}, allow_nan=False, ensure_ascii=False).encode()) == {
        "content": said.content
    }
    if not isinstance(value, str | bytes | ToolOutput):
        json.loads(said.content, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.behaviour("R06")
@pytest.mark.parametrize("message", ["bad \ud800\0 value", "\ud800"], ids=["mixed", "alone"])
async def test_exceptions_are_cleaned_too(message: str) -> None:
    """The text of an exception is a result like any other."""

    async def execute() -> str:
        raise ValueError(message)

    said = await read_by_the_model(ToolDefinition("t", "d", None, execute))
    assert "\0" not in said.content
    said.content.encode()


@pytest.mark.behaviour("R06")
async def test_names_that_the_model_invents_are_cleaned_too() -> None:
    """An unknown name with a lone surrogate does not come back as one."""
    provider = FakeProvider([ToolRequest("c1", "no\ud800\0", "{}"), "done"])

    @agent(provider=provider, tools=[returning("x")], prompt=Prompt(""))
    class Caller: ...

    async with Thena(Caller) as app:
        await app.run("go")
    content = provider.requests[1].messages[-1].content
    content.encode()
    assert "\0" not in content


@settings(max_examples=300, deadline=None)
@given(text=st.text())
@pytest.mark.behaviour("R06")
def test_cleaned_text_can_always_be_encoded(text: str) -> None:
    """Cleaning makes any text encodable, keeps what was valid, and is done once and for all."""
    cleaned = clean(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert cleaned
    assert clean(cleaned) == cleaned
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert "\0" in text or not text or cleaned == text


class Untyped:
    """Something that no serialiser knows."""


results = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.uuids()
    | st.decimals()
    | st.builds(Untyped),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.tuples(inner)
        | st.builds(ToolOutput, inner)
    ),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(result=results)
@pytest.mark.behaviour("R03", "R06")
async def test_no_result_ever_breaks_the_conversation(result: Any) -> None:
    """Anything that Python can return gives a text that can be sent, and is never empty."""
    said = clean((await answer(returning(result))).content)
    assert said
    said.encode()
    assert "object at 0x" not in said
