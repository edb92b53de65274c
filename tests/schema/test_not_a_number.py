"""`NaN` and numbers without end: no JSON, so no arguments."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import BaseModel, Field

from thena_core import Thena, ToolDefinition, tool


class Model(BaseModel):
    x: float


class Tolerant(BaseModel):
    x: float = Field(allow_inf_nan=True)


DICTIONARY = {"type": "object", "properties": {"x": {"type": "number"}, "more": {"type": "array"}}}


@tool
def plain(x: float) -> str:
    """Takes a number."""
    return f"ran {x}"


@tool
def optional(x: float | None = None) -> str:
    """Takes a number or nothing."""
    return f"ran {x}"


@tool
def model(args: Model) -> str:
    """Takes a model."""
    return f"ran {args.x}"


@tool
def tolerant(args: Tolerant) -> str:
    """Takes a model that says what it allows."""
    return f"ran {args.x}"


def ran(args: Any) -> str:
    return f"ran {args}"


ALL = [plain, optional, model, tolerant, ToolDefinition("dictionary", "Takes a dict.", DICTIONARY, ran)]


@pytest.mark.behaviour("F02", "V06")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("name", ["plain", "optional", "model", "dictionary"])
async def test_what_is_no_number_is_refused(name: str, number: str) -> None:
    """The literals that JSON does not have reach no tool, whatever describes its arguments (A30 google/adk-python#3592)."""
    async with Thena(tools=ALL) as app:
        output = await app.call(name, f'{{"x": {number}}}')  # type: ignore[arg-type]  # as a model sends it
    assert output.is_error
    assert "finite" in output.content or "NaN" in output.content


@pytest.mark.behaviour("F02")
async def test_the_author_may_allow_it() -> None:
    """A field that says `allow_inf_nan=True` means it."""
    async with Thena(tools=ALL) as app:
        assert (await app.call("tolerant", '{"x": NaN}')).content == "ran nan"  # type: ignore[arg-type]
        assert (await app.call("plain", '{"x": 1.5}')).content == "ran 1.5"  # type: ignore[arg-type]
        nested = await app.call("dictionary", '{"x": 1, "more": [[{"a": NaN}]]}')  # type: ignore[arg-type]
        assert nested.is_error


@pytest.mark.behaviour("F02", "V06")
async def test_a_number_without_end_names_its_field() -> None:
    """Too many digits are told in words, quickly (A30 NousResearch/hermes-agent#55314)."""
    started = time.perf_counter()
    async with Thena(tools=ALL) as app:
        output = await app.call("plain", '{"x": ' + "9" * 5000 + "}")  # type: ignore[arg-type]
    assert time.perf_counter() - started < 5
    assert output.is_error
    assert output.content == "invalid arguments — x: a number with too many digits"
