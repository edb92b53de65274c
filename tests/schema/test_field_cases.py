"""Schemas that other frameworks got wrong, each with the public report of it."""

from __future__ import annotations

import datetime as dt
import enum
import json
import uuid
import warnings
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field

from tests.schema.kinds import KINDS, Received
from tests.schema.trial import answer, answers, node_of, schema_of, sent
from thena_core import Context, Input, Thena, Toolbox, ToolDefinition, tool

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class Unit(enum.Enum):
    METRE = "m"
    FOOT = "ft"


class Spot(BaseModel):
    """About spots."""

    street: str = Field(description="street words")


async def test_case_b05() -> None:
    """B05: a field's text survives when its type is a model or enum (langchain-ai/langchain#31808, openai/openai-python#1637)."""

    @tool(name="t", description="d")
    class Route:
        def execute(
            self,
            start: Annotated[Spot, Input(description="start words")],
            goal: Annotated[Spot, Input(description="goal words")],
            unit: Annotated[Unit, Input(description="unit words")] = Unit.METRE,
        ) -> str:
            return f"{start.street}>{goal.street}:{unit.name}"

    schema = await schema_of(Route)
    for name, text in {"start": "start words", "goal": "goal words", "unit": "unit words"}.items():
        assert schema["properties"][name]["description"] == text
    assert "street words" in json.dumps(schema)
    assert (
        await answer(Route, {"start": {"street": "a"}, "goal": {"street": "b"}, "unit": "ft"})
    ).content == "a>b:FOOT"


class Filters(BaseModel):
    max_depth: int = Field(alias="maxDepth")


async def test_case_b09() -> None:
    """B09: the schema and the errors say the name on the wire, `execute` gets the Python name (modelcontextprotocol/python-sdk#3099)."""

    @tool(name="t", description="d")
    class Walk:
        def execute(
            self,
            class_: Annotated[str, Input(alias="class"), Field(min_length=2)],
            filters: Annotated[Filters, Input],
        ) -> str:
            return f"{class_}:{filters.max_depth}"

    schema = await schema_of(Walk)
    assert set(schema["properties"]) == {"class", "filters"}
    assert schema["required"] == ["class", "filters"]
    assert "maxDepth" in json.dumps(schema)
    assert "max_depth" not in json.dumps(schema)
    good, short, python = await answers(
        Walk,
        [
            {"class": "xy", "filters": {"maxDepth": 2}},
            {"class": "x", "filters": {"maxDepth": 2}},
            '{"class_": "xy", "filters": {"maxDepth": 2}}',
        ],
    )
    assert good == "xy:2"
    assert short.startswith("invalid arguments — class: ")
    assert "class_:" in python
    assert "class: missing" in python


@pytest.mark.parametrize("alias", ["alias", "validation_alias"], ids=["alias", "validation_alias"])
async def test_alias_of_a_field_in_annotated(alias: str) -> None:
    """B09: an alias given with pydantic's own `Field` is the name on the wire, too (modelcontextprotocol/python-sdk#3119)."""
    info = Field(**{alias: "from"})

    async def t(start: Any) -> str:
        """D."""
        return start

    t.__annotations__["start"] = Annotated[str, info]
    made = tool(t)
    assert set((await schema_of(made))["properties"]) == {"from"}
    assert (await answer(made, {"from": "x"})).content == "x"


async def test_alias_of_a_whole_model() -> None:
    """B09: a model's field is received by its Python name, and sent by its alias."""

    @tool(name="t", description="d", schema=Filters)
    async def t(max_depth: int) -> str:
        return str(max_depth)

    assert set((await schema_of(t))["properties"]) == {"maxDepth"}
    assert (await answer(t, {"maxDepth": 4})).content == "4"


@pytest.mark.behaviour("T06")
async def test_case_b10() -> None:
    """B10: no parameter name collides with a generated model (modelcontextprotocol/python-sdk#1123, openai/openai-agents-python#4715)."""
    names = [
        "schema",
        "json",
        "copy",
        "model_dump",
        "model_config",
        "_id",
        "__x",
        "fields",
        "validate",
        "dict",
        "args",
        "cls",
        "items",
        "keys",
        "get",
    ]
    source = f"async def t({', '.join(f'{name}: str' for name in names)}):\n    'D.'\n    return ' '.join([{', '.join(names)}])"
    scope: dict[str, Any] = {}
    exec(source, scope)  # noqa: S102 - our own text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = tool(scope["t"])
        schema = await schema_of(made)
        said = await answer(made, {name: name.upper() for name in names})
    assert set(schema["properties"]) == set(names)
    assert said.content == " ".join(name.upper() for name in names)


class Item(BaseModel):
    code: str
    count: int = 1


async def test_case_b13() -> None:
    """B13: typed values at every depth, decimals exact (strands-agents/harness-sdk#4388, camel-ai/camel#3916)."""
    got: list[Any] = []

    @tool(name="t", description="d")
    class Order:
        def execute(
            self,
            day: dt.date,
            key: uuid.UUID,
            price: Decimal,
            folder: Path,
            items: list[Item],
            named: dict[str, Item],
        ) -> str:
            got.extend([day, key, price, folder, items[0], named["n"]])
            return "ok"

    arguments = {
        "day": "2031-07-09",
        "key": "00000000-0000-4000-8000-000000000001",
        "price": "1.10",
        "folder": "/srv/y",
        "items": [{"code": "c1"}],
        "named": {"n": {"code": "c2", "count": 3}},
    }
    for sent_as in (json.dumps(arguments), arguments):
        got.clear()
        assert (await answer(Order, sent_as)).content == "ok"
        assert got == [
            dt.date(2031, 7, 9),
            uuid.UUID("00000000-0000-4000-8000-000000000001"),
            Decimal("1.10"),
            Path("/srv/y"),
            Item(code="c1"),
            Item(code="c2", count=3),
        ]
        assert str(got[2]) == "1.10"
    schema = await schema_of(Order)
    assert schema["properties"]["day"]["format"] == "date"
    assert schema["properties"]["key"]["format"] == "uuid"
    assert _references(schema) <= {f"#/$defs/{name}" for name in schema.get("$defs", {})}
    node = await node_of(Order, json.dumps(arguments))
    assert json.loads(node.input) == arguments


def _references(node: Any) -> set[str]:
    if isinstance(node, Mapping):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(_references, node.values()))
    return set().union(*map(_references, node)) if isinstance(node, list) else set()


class Colour(enum.Enum):
    GREEN = "green"
    WHITE = "white"


async def test_case_b14() -> None:
    """B14: enum members and not texts, "false" is False, a near miss is explained (google/adk-python#625, guardrails-ai/guardrails#1620)."""

    @tool(name="t", description="d")
    class Mark:
        def execute(self, colour: Colour, bold: bool = True) -> str:
            return f"{colour.name}:{bold}"

    assert (await schema_of(Mark))["$defs"]["Colour"]["enum"] == ["green", "white"]
    said = await answers(
        Mark,
        [
            {"colour": "green", "bold": "false"},
            {"colour": "GREEN"},
            {"colour": "red"},
            {"colour": "green", "bold": "perhaps"},
        ],
    )
    assert said[0] == "GREEN:False"
    for text in said[1:3]:
        assert text.startswith("invalid arguments — colour: ")
        assert "green" in text
        assert "white" in text
    assert said[3].startswith("invalid arguments — bold: ")


@pytest.mark.parametrize("style", ["class", "function", "model", "json schema", "empty dict"])
async def test_case_b15(style: str) -> None:
    """B15: a tool without parameters has one canonical schema, and takes what services send for none (vercel/ai#15249, Effect-TS/effect-smol#2540)."""

    @tool(name="t", description="d")
    class ByClass:
        def execute(self) -> str:
            return "noon"

    @tool(name="t", description="d")
    def by_function() -> str:
        return "noon"

    class Nothing(BaseModel):
        pass

    def with_args(args: Any) -> str:
        return "noon"

    made = {
        "class": ByClass,
        "function": by_function,
        "model": ToolDefinition("t", "d", Nothing, with_args),
        "json schema": ToolDefinition("t", "d", {"type": "object", "properties": {}}, with_args),
        "empty dict": ToolDefinition("t", "d", {}, with_args),
    }[style]
    schema = dict(await schema_of(made))
    schema.pop("required", None)
    assert schema == {"type": "object", "properties": {}, "additionalProperties": False}
    async with Thena(tools=[made]) as app:
        for nothing in ("", "null", "{}", "  ", {}, None):
            assert (await sent(app, nothing)).content == "noon"
        extra = await sent(app, '{"description": "x"}')
    assert extra.is_error
    assert "description: unknown argument (the tool takes none)" in extra.content


def upper(text: str) -> str:
    return text.upper()


Town = Annotated[str, Field(min_length=3), AfterValidator(upper)]


async def test_case_b18() -> None:
    """B18: the order of metadata does not matter, inner `Annotated`s count, injection by keyword works (vercel-labs/ai-python#270, livekit/agents#4283)."""

    @tool(name="t", description="d")
    class Report:
        def execute(
            self,
            *,
            ctx: Annotated[Context, Context],
            town: Annotated[Town, Input(description="Which town")],
            hours: Annotated[int, Field(ge=2, le=8), Input(description="How long")] = 4,
            turned: Annotated[int, Input(description="Turned"), Field(le=9)] = 0,
        ) -> str:
            return f"{town}:{hours}"

    schema = await schema_of(Report)
    town, hours, turned = (schema["properties"][name] for name in ("town", "hours", "turned"))
    assert (town["description"], town["minLength"]) == ("Which town", 3)
    assert (hours["minimum"], hours["maximum"], hours["default"], hours["description"]) == (2, 8, 4, "How long")
    assert (turned["maximum"], turned["description"]) == (9, "Turned")
    good, wrong = await answers(Report, [{"town": "bonn", "hours": 3}, {"town": "bonn", "hours": 9}])
    assert good == "BONN:3"
    assert "hours" in wrong
    assert "8" in wrong


@every_kind
async def test_case_b19(kind: Any) -> None:
    """B19: an invented argument never lets a tool run with its defaults (modelcontextprotocol/python-sdk#3067, cactus-compute/needle#79)."""
    received = Received(kind)
    said = await answer(received.definition, {"path": "*", "glob": "*.bak"})
    assert received.args == []
    assert "glob: unknown argument (accepted: path, limit, tags)" in said.content
    assert (await schema_of(received.definition))["additionalProperties"] is False


@pytest.mark.behaviour("I05")
@pytest.mark.parametrize("name", ["ctx", "toolbox", "state", "self"])
async def test_case_b03(name: str) -> None:
    """B03: the model can neither see nor set an injected parameter (langchain-ai/langchain#33614, apache/flink-agents#854)."""
    seen: list[Any] = []

    @tool(name="t", description="d")
    class Orders:
        def execute(self, limit: int, ctx: Context[dict[str, str]], toolbox: Toolbox) -> str:
            seen.append((limit, ctx.data))
            return f"{ctx.data['user']}:{limit}"

    async with Thena(tools=[Orders]) as app:
        data = {"user": "u-9c1b-PRIVATE"}
        assert set(app.explain("t", show=False).definition.json_schema["properties"]) == {"limit"}
        forged = await app.call("t", {"limit": 3, name: "admin"}, data=data)
        wrong = await app.call("t", {"limit": "several"}, data=data)
        right = await app.call("t", {"limit": 3}, data=data)
    assert forged.content == f"invalid arguments — {name}: unknown argument (accepted: limit)"
    assert "limit" in wrong.content
    assert "PRIVATE" not in wrong.content + forged.content
    assert right.content == "u-9c1b-PRIVATE:3"
    assert seen == [(3, data)]
