"""Arguments for every kind of schema: valid, invalid, missing, extra and hostile."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict

from tests.schema.kinds import JSON_SCHEMA, KINDS, Received
from tests.schema.trial import answer, problems, schema_of, sent
from thena_core import Thena, tool

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)

BOUND = 2_100
"""No observation about arguments is longer: 2,000 characters and a few words before them."""


@pytest.mark.behaviour("T05")
@every_kind
async def test_valid_arguments_reach_execute_as_the_authors_type(kind: Any) -> None:
    """The tool gets its own type, with the values that were sent."""
    received = Received(kind)
    said = await answer(received.definition, '{"path": "a", "limit": 3, "tags": ["x"]}')
    assert said.content == "ran"
    assert (received.path, received.field("limit"), received.field("tags")) == ("a", 3, ["x"])
    assert type(received.args[0]) is (kind if kind not in (JSON_SCHEMA, KINDS["typed dict"]) else dict)


@pytest.mark.behaviour("T05")
@every_kind
async def test_optional_arguments_may_be_left_out(kind: Any) -> None:
    """Only what is required must be sent."""
    received = Received(kind)
    assert (await answer(received.definition, '{"path": "a"}')).content == "ran"
    if kind in (KINDS["model"], KINDS["dataclass"]):
        assert (received.field("limit"), received.field("tags")) == (10, [])


@pytest.mark.behaviour("T05")
@every_kind
async def test_the_schema_is_an_object_that_is_closed(kind: Any) -> None:
    """Every kind becomes the same schema: an object with its fields, the required ones named, nothing else allowed."""
    schema = await schema_of(Received(kind).definition)
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["path"], False)
    assert {name: part["type"] for name, part in schema["properties"].items()} == {
        "path": "string",
        "limit": "integer",
        "tags": "array",
    }


INVALID = {
    "wrong type": ('{"path": 1}', ["path", "string"]),
    "null": ('{"path": null}', ["path", "string"]),
    "not a number": ('{"path": "a", "limit": "many"}', ["limit", "integer", "many"]),
    "not a list": ('{"path": "a", "tags": 5}', ["tags", "array"]),
    "wrong inside": ('{"path": "a", "tags": ["x", 5]}', ["tags.1", "string"]),
    "fraction": ('{"path": "a", "limit": 1.5}', ["limit", "integer"]),
    "nested for flat": ('{"path": {"path": "a"}}', ["path", "string"]),
    "missing": ('{"limit": 1}', ["path: missing"]),
    "nothing": ("{}", ["path: missing"]),
    "empty text": ("", ["path: missing"]),
    "extra": ('{"path": "a", "depth": 1}', ["depth: unknown argument", "path, limit, tags"]),
    "misspelt": ('{"path": "a", "limits": 1}', ["limits: unknown argument", 'Did you mean "limit"?']),
    "two at once": ('{"limit": "many"}', ["path", "limit"]),
    "list": ("[]", ["object", "array"]),
    "number": ("3", ["object", "number"]),
    "true": ("true", ["object", "boolean"]),
    "text": ('"a"', ["object", "string"]),
}


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize(("sent_text", "words"), INVALID.values(), ids=INVALID)
@every_kind
async def test_invalid_arguments_never_reach_execute(kind: Any, sent_text: str, words: list[str]) -> None:
    """What does not fit is an observation that names the field and what was wrong, the same words for every kind."""
    received = Received(kind)
    said = await answer(received.definition, sent_text)
    assert received.args == []
    assert said.is_error
    assert said.content.startswith("invalid arguments — ")
    assert [word for word in words if word not in said.content] == []
    assert "pydantic" not in said.content


LONG = "x" * 100_000
HOSTILE: dict[str, str] = {
    "not JSON": "path = a",
    "broken off": '{"path": "a',
    "two objects": '{"path": "a"}{"path": "b"}',
    "NUL alone": "\0",
    "lone surrogate": '{"path": "\ud800"}',
    "escaped lone surrogate": '{"path": "\\ud800"}',
    "lone surrogate as a name": '{"path": "a", "\ud800": 1}',
    "byte order mark inside": '{\ufeff"path": 1}',
    "deep list": f'{{"path": "a", "tags": {"[" * 20_000}{"]" * 20_000}}}',
    "deep object": '{"path":' * 20_000 + "1" + "}" * 20_000,
    "nearly too deep": f'{{"path": "a", "tags": {"[" * 900}{"]" * 900}}}',
    "deep and broken": "[" * 100_000,
    "deep as a text": json.dumps({"path": "a", "tags": "[" * 100_000}),
    "deep Python": "{'path': " * 3_000 + "1" + "}" * 3_000,
    "long wrong value": json.dumps({"path": "a", "limit": LONG}),
    "long name": json.dumps({"path": "a", LONG: 1}),
    "long names and values": json.dumps({"path": "a", **{f"{LONG}{n}": LONG for n in range(5)}}),
    "many names": json.dumps({"path": "a", **{f"n{n}": n for n in range(5_000)}}),
    "many wrong items": json.dumps({"path": "a", "tags": list(range(5_000))}),
    "long garbage": "{" * 100_000,
    "long number": f'{{"path": "a", "limit": {"9" * 50_000}e}}',
    "long number beside a repair": f'{{"path": "a", "tags": "[1]", "limit": {"9" * 5_000}}}',
    "infinite": '{"path": "a", "limit": 1e999}',
    "not a number": '{"path": "a", "limit": NaN}',
    "__class__": '{"path": "a", "__class__": "x"}',
    "__proto__": '{"path": "a", "__proto__": {"admin": true}}',
    "__dict__": '{"path": "a", "__dict__": {"path": "b"}}',
    "__init__": '{"path": "a", "__init__": null}',
    "constructor": '{"path": "a", "constructor": {"prototype": {}}}',
    "model_fields_set": '{"path": "a", "model_fields_set": ["limit"]}',
    "self": '{"path": "a", "self": 1}',
    "args": '{"path": "a", "args": 1}',
    "$ref": '{"path": {"$ref": "#/secret"}}',
    "code": "__import__('os').system('true')",
    "set display": "{'path', 'a'}",
    "f-string": "{'path': f'{1+1}'}",
    "concatenation": "{'path': 'a' + 'b'}",
    "regex trap": '{"path": "' + "\\" * 50_001,
    "commas": '{"path": "a"' + "," * 50_000 + "}",
    "spaces before a comma": '{"path": "a"' + ", " + " " * 50_000 + "x}",
}


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@every_kind
async def test_hostile_arguments_are_refused(kind: Any, text: str) -> None:
    """Nothing that a model can write crashes, hangs, or reaches `execute` wrongly; what it reads of it is bounded."""
    received = Received(kind)
    said = await answer(received.definition, text)
    assert received.args == []
    assert said.is_error
    assert said.content.startswith(("invalid arguments — ", "malformed arguments — "))
    assert len(said.content) <= BOUND
    said.content.encode()


TOLERATED: dict[str, tuple[str, str]] = {
    "duplicate keys": ('{"path": "a", "path": "b"}', "b"),
    "NUL in a text": ('{"path": "a\\u0000b"}', "a\0b"),
    "long text": (json.dumps({"path": LONG}), LONG),
    "surrogate pair": ('{"path": "\\ud83d\\ude00"}', "😀"),
    "control characters": (json.dumps({"path": "a\x1b[31m\x7f"}), "a\x1b[31m\x7f"),
    "names of methods": ('{"path": "__class__"}', "__class__"),
    "JSON in a text": (json.dumps({"path": '{"path": "b"}'}), '{"path": "b"}'),
    "list in a text": (json.dumps({"path": "[1]"}), "[1]"),
    "fence in a text": (json.dumps({"path": "```json\n{}\n```"}), "```json\n{}\n```"),
    "format signs": (json.dumps({"path": "%s {0} {path} $x"}), "%s {0} {path} $x"),
    "spaces around": (' \n\t{"path": "a"}\r\n ', "a"),
}


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize(("text", "path"), TOLERATED.values(), ids=TOLERATED)
@every_kind
async def test_strange_but_valid_arguments_arrive_unchanged(kind: Any, text: str, path: str) -> None:
    """A valid text is a valid text, whatever is in it: the tool gets exactly what was sent."""
    received = Received(kind)
    assert (await answer(received.definition, text)).content == "ran"
    assert received.path == path


class Circular(dict[str, Any]):
    """A mapping that holds itself."""

    def __init__(self) -> None:
        super().__init__()
        self["path"] = self


def nested(depth: int) -> Any:
    """Make a list in a list, in a list, and so on."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


MAPPINGS: dict[str, Any] = {
    "set": {"path": {"a"}},
    "bytes that are no text": {"path": b"\xff"},
    "object": {"path": object()},
    "class": {"path": "a", "tags": [str]},
    "circular": Circular(),
    "deep": {"path": "a", "tags": nested(100_000)},
    "nearly too deep": {"path": "a", "tags": nested(850)},
    "number as a name": {1: 2},
    "tuple as a name": {("path",): "a"},
    "None as a name": {"path": "a", None: 1},
    "lone surrogate as a name": {"path": "a", "\ud800": 1},
    "list": [],
    "tuple": (),
    "number": 3,
    "bytes": b"path",
    "None": None,
    "infinite": {"path": "a", "limit": math.inf},
}


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize("raw", MAPPINGS.values(), ids=MAPPINGS)
@every_kind
async def test_hostile_mappings_are_refused(kind: Any, raw: Any) -> None:
    """Where a provider or a caller hands over objects, what is no JSON is refused, never turned into a text."""
    received = Received(kind)
    async with Thena(tools=[received.definition]) as app:
        said = await sent(app, raw)
    assert received.args == []
    assert said.is_error
    assert said.content.startswith(("invalid arguments — ", "malformed arguments — "))
    assert len(said.content) <= BOUND
    said.content.encode()


@pytest.mark.behaviour("T05")
@every_kind
@pytest.mark.parametrize("make", [dict, MappingProxyType], ids=["dict", "mapping"])
async def test_mappings_are_validated_like_text(kind: Any, make: Any) -> None:
    """A provider that parses the JSON itself gets the same validation, and its mapping is left alone."""
    received = Received(kind)
    given = {"path": "a", "tags": ["x"]}
    async with Thena(tools=[received.definition]) as app:
        assert (await sent(app, make(given))).content == "ran"
    assert (received.path, received.field("tags")) == ("a", ["x"])
    assert given == {"path": "a", "tags": ["x"]}


class Extras(BaseModel):
    model_config = ConfigDict(extra="ignore")
    path: str


class Kept(BaseModel):
    model_config = ConfigDict(extra="allow")
    path: str


class Inner(BaseModel):
    a: int


class Outer(BaseModel):
    inner: Inner
    open: Extras


@pytest.mark.behaviour("T05")
async def test_extra_is_the_authors_choice() -> None:
    """Unknown fields are refused unless the author's own model sets `extra`."""
    ignoring, keeping = Received(Extras), Received(Kept)
    assert (await answer(ignoring.definition, '{"path": "a", "x": 1}')).content == "ran"
    assert ignoring.args[0] == Extras(path="a")
    assert (await answer(keeping.definition, '{"path": "a", "x": 1}')).content == "ran"
    assert keeping.field("x") == 1
    assert "additionalProperties" not in await schema_of(ignoring.definition)


@pytest.mark.behaviour("T05")
async def test_inner_objects_are_closed_too() -> None:
    """An unknown field is refused at every depth, and only where the author did not open it."""
    received = Received(Outer)
    assert (await answer(received.definition, {"inner": {"a": 1}, "open": {"path": "x", "y": 1}})).content == "ran"
    said = await answer(received.definition, {"inner": {"a": 1, "b": 2}, "open": {"path": "x"}})
    assert said.content == "invalid arguments — inner.b: unknown argument"


@pytest.mark.behaviour("T05")
async def test_the_authors_own_class_is_left_as_it_was() -> None:
    """Closing the schema for the model does not change the author's class elsewhere."""
    await schema_of(Received(Inner).definition)
    assert Inner.model_validate({"a": 1, "b": 2}) == Inner(a=1)
    assert "additionalProperties" not in Inner.model_json_schema()


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize(
    "schema",
    [int, "path", 3, list[str], object(), object, str | None],
    ids=["int", "str", "3", "list", "instance", "object", "union"],
)
async def test_anything_else_is_no_schema(schema: Any) -> None:
    """A schema that is none of the four kinds is a build error naming the tool and the kinds."""

    @tool(name="t", description="d", schema=schema)
    async def t(args: Any) -> str:
        return ""

    [problem] = await problems(t)
    assert '"t"' in problem
    assert "pydantic model, a dataclass, a TypedDict, or a JSON Schema" in problem


@pytest.mark.behaviour("T05")
async def test_validators_of_the_author_run() -> None:
    """A rule in the author's own model refuses the call with the author's words."""

    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    class Rule(BaseModel):
        n: Annotated[int, AfterValidator(even)]

    received = Received(Rule)
    said = await answer(received.definition, '{"n": 3}')
    assert said.content == "invalid arguments — n: value error, must be even, received number 3"
    assert received.args == []


@pytest.mark.behaviour("T05")
async def test_recursive_models() -> None:
    """A model that contains itself keeps its definition, and its depth is validated."""
    received = Received(Tree)
    schema = await schema_of(received.definition)
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert set(schema["properties"]) == {"name", "children"}
    assert schema["required"] == ["name"]
    assert (await answer(received.definition, {"name": "a", "children": [{"name": "b"}]})).content == "ran"
    assert received.args[0].children[0].name == "b"
    said = await answer(received.definition, {"name": "a", "children": [{"nome": "b"}]})
    assert "children.0.name: missing" in said.content
    assert "children.0.nome: unknown argument" in said.content


class Tree(BaseModel):
    name: str
    children: list[Tree] = []
