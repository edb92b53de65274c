"""Strict mode: what services hold a model to, and what a `null` then means."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.schema.kinds import KINDS, Received
from tests.schema.trial import answers, node_of, problems, schema_of
from thena_core import Input, tool


def objects(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every schema inside a schema."""
    if isinstance(node, Mapping):
        yield node
        for part in node.values():
            yield from objects(part)
    elif isinstance(node, list):
        for part in node:
            yield from objects(part)


def assert_strict(schema: Mapping[str, Any]) -> None:
    """Check OpenAI's documented rules for structured outputs."""
    text = json.dumps(schema)
    assert "oneOf" not in text
    assert "discriminator" not in text
    for node in objects(schema):
        assert "$ref" not in node or set(node) == {"$ref"}
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
            assert all("default" not in part for part in node["properties"].values())


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_null_is_the_default_for_every_kind(kind: Any) -> None:
    """B07: where strict mode makes a field nullable, `null` means that it was left out (openai/openai-agents-python#4391)."""
    received = Received(kind, strict=True)
    schema = await schema_of(received.definition)
    assert_strict(schema)
    assert schema["required"] == ["path", "limit", "tags"]
    assert await answers(received.definition, ['{"path": "a", "limit": null, "tags": null}']) == ["ran"]
    assert received.field("limit") == (10 if kind in (KINDS["model"], KINDS["dataclass"]) else None)


@pytest.mark.behaviour("T05")
async def test_inner_objects_of_a_json_schema_are_closed() -> None:
    """Strict mode closes the objects that the author's dict left open without saying so."""
    inner = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
    schema = {"type": "object", "properties": {"one": inner, "many": {"type": "array", "items": inner}}}
    received = Received(schema, strict=True)
    assert_strict(await schema_of(received.definition))
    text = '{"one": {"a": 1, "b": null}, "many": [{"a": 2, "b": null}, {"a": 3, "b": "x"}]}'
    assert await answers(received.definition, [text]) == ["ran"]
    assert received.args == [{"one": {"a": 1}, "many": [{"a": 2}, {"a": 3, "b": "x"}]}]


async def test_case_b07() -> None:
    """B07: defaults survive strict mode (openai/openai-agents-python#4391, nerdai/llm-agents-from-scratch#861)."""

    @tool(name="t", description="d", strict=True)
    class Find:
        def execute(self, word: str, most: Annotated[int, Input] = 25) -> str:
            return f"{word}:{most}"

    schema = await schema_of(Find)
    assert_strict(schema)
    assert schema["required"] == ["word", "most"]
    assert {"type": "null"} in schema["properties"]["most"]["anyOf"]
    calls: list[Any] = [{"word": "x", "most": None}, {"word": "x"}, '{"word": "x", "most": 4}']
    assert await answers(Find, [*calls, '{"word": "x", "most": null}']) == ["x:25", "x:25", "x:4", "x:25"]


async def test_null_in_strict_mode_is_no_repair() -> None:
    """B07: what the contract asks for is not noted as a repair; outside of strict mode it is."""

    @tool(name="t", description="d", strict=True)
    def strict(most: int = 25) -> str:
        return str(most)

    @tool(name="t", description="d")
    def loose(most: int = 25) -> str:
        return str(most)

    assert "repaired" not in (await node_of(strict, '{"most": null}')).meta
    assert (await node_of(loose, '{"most": null}')).meta["repaired"] is True


class Page(BaseModel):
    number: int = 1
    size: int = 20


@dataclass
class Sorting:
    by: str = "name"
    down: bool = False


async def test_null_inside_is_the_default_too() -> None:
    """B07: the same at every depth: strict mode made those fields nullable, too."""

    @tool(name="t", description="d", strict=True)
    def t(pages: list[Page], sorting: Sorting) -> str:
        return f"{pages[0].number}:{pages[0].size}:{sorting.by}:{sorting.down}"

    assert_strict(await schema_of(t))
    calls = [
        '{"pages": [{"number": null, "size": 5}], "sorting": {"by": null, "down": true}}',
        '{"pages": [{"number": null, "size": null}], "sorting": {"by": "x", "down": null}}',
    ]
    assert await answers(t, calls) == ["1:5:name:True", "1:20:x:False"]


async def test_a_null_that_means_null_stays() -> None:
    """A field whose own type allows `null` gets it."""

    @tool(name="t", description="d", strict=True)
    def t(word: str | None = "x") -> str:
        return str(word)

    assert await answers(t, ['{"word": null}', "{}"]) == ["None", "x"]


@pytest.mark.parametrize(
    "annotation", [dict[str, Any], dict[str, int], dict, list[dict[str, int]]], ids=["any", "int", "bare", "inside"]
)
async def test_open_objects_are_refused(annotation: Any) -> None:
    """B07: an open dictionary cannot be strict: a build error naming tool, field and ways out (openai/openai-agents-python#4863)."""

    def keep(values: Any) -> str:
        return ""

    keep.__annotations__["values"] = annotation
    [problem] = await problems(tool(name="keep", description="d", strict=True)(keep))
    assert [word for word in ('"keep"', "values", "strict=False", "model") if word not in problem] == []


class Bus(BaseModel):
    sort: Literal["bus"]
    seats: int


class Tram(BaseModel):
    sort: Literal["tram"]
    cars: int


Ride = Annotated[Bus | Tram, Field(discriminator="sort", description="which ride")]


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "loose"])
async def test_case_b06(strict: bool) -> None:
    """B06: a discriminated union loses its keyword, not its discrimination (livekit/agents#5302, livekit/agents#5324)."""

    @tool(name="t", description="d", strict=strict)
    class Take:
        def execute(self, ride: Annotated[Ride, Input]) -> str:
            return type(ride).__name__

    schema = await schema_of(Take)
    if strict:
        assert_strict(schema)
    assert schema["properties"]["ride"]["description"] == "which ride"
    calls = [
        {"ride": {"sort": "tram", "cars": 2}},
        {"ride": {"sort": "boat", "cars": 2}},
        {"ride": '{"sort": "bus", "seats": 40}'},
        {"ride": {"sort": "bus", "cars": 2}},
    ]
    tram, boat, text, wrong = await answers(Take, calls)
    assert tram == "Tram"
    assert boat.count("ride") == 1
    assert "bus" in boat
    assert "tram" in boat
    assert len(boat) < 200
    assert text == "Bus"
    assert "seats: missing" in wrong


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Shop(BaseModel):
    """About shops."""

    street: str = Field(description="street words")


class Twig(BaseModel):
    name: str
    twigs: list[Twig] = Field(default=[], description="more twigs")


async def test_case_b05_strict() -> None:
    """B05: in strict mode a reference has no siblings, and no text is lost (openai/openai-python#1637, GREsau/schemars#473)."""

    @tool(name="t", description="d", strict=True)
    class Buy:
        def execute(
            self,
            here: Annotated[Shop, Input(description="here words")],
            there: Annotated[Shop, Input(description="there words")],
            size: Annotated[Size, Input(description="size words")] = Size.SMALL,
        ) -> str:
            return size.name

    schema = await schema_of(Buy)
    assert_strict(schema)
    text = json.dumps(schema)
    assert [word for word in ("here words", "there words", "size words", "street words") if word not in text] == []
    calls = [{"here": {"street": "a"}, "there": {"street": "b"}, "size": None}]
    assert await answers(Buy, calls) == ["SMALL"]


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "loose"])
async def test_recursive_model(strict: bool) -> None:
    """A recursive model has an object at its root, where services want one, and no dangling reference."""
    received = Received(Twig, strict=strict)
    schema = await schema_of(received.definition)
    if strict:
        assert_strict(schema)
    assert (schema["type"], set(schema["properties"])) == ("object", {"name", "twigs"})
    known = {"#", *(f"#/$defs/{name}" for name in schema.get("$defs", {}))}
    assert {node["$ref"] for node in objects(schema) if "$ref" in node} <= known
    assert await answers(received.definition, [{"name": "a", "twigs": [{"name": "b", "twigs": []}]}]) == ["ran"]
    assert received.args[0].twigs[0].name == "b"
