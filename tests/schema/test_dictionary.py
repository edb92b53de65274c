"""A JSON Schema as a dict: checked at build, closed to the outside, its own rules applied."""

from __future__ import annotations

from typing import Any

import pytest

from tests.schema.kinds import Received
from tests.schema.trial import answers, problems, schema_of

REMOTE = {
    "http": {"$ref": "https://example.org/s.json"},
    "file": {"$ref": "file:///etc/passwd"},
    "relative": {"$ref": "other.json#/x"},
    "dynamic": {"$dynamicRef": "https://example.org/s.json#x"},
}


def of(part: Any, **more: Any) -> dict[str, Any]:
    """Make an object schema with one field."""
    return {"type": "object", "properties": {"a": part}, **more}


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize("part", REMOTE.values(), ids=REMOTE)
@pytest.mark.parametrize("depth", ["field", "items", "definition"])
async def test_remote_references_are_refused(part: Any, depth: str) -> None:
    """A reference to anything outside the schema is a build error that names it; nothing is fetched."""
    schema = {
        "field": of(part),
        "items": of({"type": "array", "items": {"anyOf": [part]}}),
        "definition": of({}, **{"$defs": {"x": part}}),
    }[depth]
    [problem] = await problems(Received(schema).definition)
    assert '"t"' in problem
    assert next(iter(part.values())) in problem


@pytest.mark.behaviour("T05")
async def test_a_base_address_does_not_open_the_door() -> None:
    """`$id` does not turn a local reference into a remote one that is fetched."""
    schema = of({"$ref": "#/$defs/x"}, **{"$id": "https://example.org/base.json", "$defs": {"x": {"type": "integer"}}})
    assert await answers(Received(schema).definition, [{"a": 1}]) == ["ran"]


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize("name", ["$ref", "$dynamicRef"])
async def test_a_field_named_like_a_keyword(name: str) -> None:
    """A property may have any name, also that of a keyword."""
    received = Received({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
    assert await answers(received.definition, [{name: "https://example.org"}]) == ["ran"]
    assert received.args == [{name: "https://example.org"}]


@pytest.mark.behaviour("T05")
async def test_local_references_and_rules_are_applied() -> None:
    """`$defs`, `enum`, `minimum` and `pattern` are the schema's own rules, and are held."""
    schema = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/n"}, "s": {"enum": ["x", "y"]}, "p": {"type": "string", "pattern": "^a"}},
        "$defs": {"n": {"type": "integer", "minimum": 3}},
    }
    received = Received(schema)
    calls = [{"n": 3, "s": "x", "p": "ab"}, {"n": 2}, {"s": "z"}, {"p": "b"}]
    good, small, other, wrong = await answers(received.definition, calls)
    assert good == "ran"
    assert received.args == [{"n": 3, "s": "x", "p": "ab"}]
    for text, name in ((small, "n"), (other, "s"), (wrong, "p")):
        assert text.startswith(f"invalid arguments — {name}: ")


@pytest.mark.behaviour("T05")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"type": "array"},
        {"type": "string"},
        of({"type": 3}),
        of({}, required="a"),
        of({"minimum": "x"}),
    ],
    ids=["misspelt", "array", "string", "type is a number", "required is a text", "minimum is a text"],
)
async def test_what_is_no_schema_of_an_object(schema: Any) -> None:
    """A dict that is no JSON Schema of an object is a build error naming the tool."""
    [problem] = await problems(Received(schema).definition)
    assert '"t"' in problem


@pytest.mark.behaviour("T05")
async def test_the_schema_decides_about_unknown_fields_where_it_speaks_of_them() -> None:
    """`additionalProperties` in the author's schema is kept; without it the schema is closed."""
    open_schema = of({"type": "integer"}, additionalProperties={"type": "string"})
    received = Received(open_schema)
    assert await schema_of(received.definition) == open_schema
    ran, wrong = await answers(received.definition, [{"b": "x"}, {"b": 1}])
    assert ran == "ran"
    assert wrong.startswith("invalid arguments — b: ")


@pytest.mark.behaviour("T05")
async def test_the_authors_dict_is_left_as_it_was() -> None:
    """The schema is copied before it is closed, and changing it later changes nothing."""
    schema = of({"type": "integer"})
    received = Received(schema)
    closed = await schema_of(received.definition)
    assert closed["additionalProperties"] is False
    assert schema == of({"type": "integer"})


@pytest.mark.behaviour("T05")
async def test_changing_the_dict_after_the_build_changes_nothing() -> None:
    """What was checked at build is what validates."""
    from thena_core import Thena

    schema = of({"type": "integer"})
    received = Received(schema)
    async with Thena(tools=[received.definition]) as app:
        assert (await app.call("t", {"a": "x"})).is_error
        schema["properties"]["a"]["type"] = "string"
        assert (await app.call("t", {"a": "x"})).is_error
