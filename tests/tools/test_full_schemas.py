"""Schemas that depend on the agent's other tools: `schema_for`, and `ParallelTool(schemas="full")`; aliases of tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from tests.hooks.scripted import ask, packed, scripted
from thena_core import Budget, BuildError, Thena, ToolDefinition, tool
from thena_tools import ParallelTool


class Leaf(BaseModel):
    """A branch's end."""

    kind: Literal["leaf"]
    size: int


class Tree(BaseModel):
    """A branch, which holds branches."""

    kind: Literal["tree"]
    parts: list[Tree | Leaf] = Field(default_factory=list)


@tool
async def plant(tree: Tree, where: str = "garden") -> str:
    """Plants a tree."""
    return f"{len(tree.parts)} in {where}"


@tool
async def echo(text: str) -> str:
    """Echoes."""
    return text


async def plain(**_: Any) -> str:
    """Take anything."""
    return "x"


POINTS_INTO_ITSELF = {"type": "object", "properties": {"next": {"$ref": "#/properties/next"}}}


async def seen(*tools: Any) -> Mapping[str, Any]:
    """Return the schema of `parallel` as the model sees it, beside these tools."""
    model = scripted([*tools, ParallelTool("full")])
    await model.run()
    [schema] = [one.json_schema for one in model.provider.requests[0].tools if one.name == "parallel"]
    return schema


def batch(*calls: tuple[str, Any]) -> dict[str, Any]:
    """Write a batch as a model does."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


TREE = {"kind": "tree", "parts": [{"kind": "leaf", "size": 3}, {"kind": "tree", "parts": []}]}


@pytest.mark.behaviour("L09")
@pytest.mark.parametrize(
    ("calls", "fits"),
    [
        ([("echo", {"text": "a"}), ("plant", {"tree": TREE})], True),
        ([("echo", {"text": "a"})], False),
        ([("echo", {"text": 3}), ("echo", {"text": "a"})], False),
        ([("echo", {"tree": TREE}), ("echo", {"text": "a"})], False),
        ([("plant", {"tree": {"kind": "tree", "parts": [{"kind": "leaf"}]}}), ("echo", {"text": "a"})], False),
        ([("parallel", {"calls": []}), ("echo", {"text": "a"})], False),
        ([("other", {}), ("echo", {"text": "a"})], False),
    ],
    ids=["right", "one call", "a wrong type", "another tool's", "wrong deep inside", "itself", "unknown"],
)
async def test_a_batch_fits_exactly_when_its_calls_fit(calls: Any, fits: bool) -> None:
    """The schema in front of the model is a JSON Schema that each call is held to by its tool's own."""
    schema = await seen(plant, echo)
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid(batch(*calls)) is fits


@pytest.mark.behaviour("L09")
async def test_definitions_of_one_name_do_not_meet() -> None:
    """Two tools whose models share a name keep theirs; every reference finds its target."""

    def make(name: str, kind: type) -> ToolDefinition:
        inner = type("Inner", (BaseModel,), {"__annotations__": {"value": kind}, "__module__": __name__})
        outer = type("Args", (BaseModel,), {"__annotations__": {"inner": inner}, "__module__": __name__})
        return ToolDefinition(name, "d", outer, plain)

    validator = Draft202012Validator(await seen(make("one", int), make("two", str)))
    assert validator.is_valid(batch(("one", {"inner": {"value": 1}}), ("two", {"inner": {"value": "1"}})))
    assert not validator.is_valid(batch(("one", {"inner": {"value": "1"}}), ("two", {"inner": {"value": "1"}})))


@pytest.mark.behaviour("L09")
async def test_a_schema_that_points_into_itself() -> None:
    """What cannot be moved is shown as any object; its own validation still holds."""
    schema = await seen(ToolDefinition("odd", "d", POINTS_INTO_ITSELF, plain), echo)
    [odd] = [
        one for one in schema["properties"]["calls"]["items"]["anyOf"] if one["properties"]["name"]["enum"] == ["odd"]
    ]
    assert odd["properties"]["arguments"] == {"type": "object"}
    assert Draft202012Validator(schema).is_valid(batch(("odd", {"next": 1}), ("echo", {"text": "a"})))


@pytest.mark.behaviour("L09", "L05")
async def test_the_calls_are_still_validated_one_by_one() -> None:
    """A call that does not fit is an error in its place, as without `full`."""
    ended = await scripted(
        [plant, echo, ParallelTool("full")], packed(("echo", {"text": 3}), ("plant", {"tree": TREE}))
    ).run()
    assert ended.observation.split("\n\n") == [
        "[1] echo → error\ninvalid arguments — text: expected string, received number 3",
        "[2] plant → ok\n2 in garden",
    ]


@pytest.mark.behaviour("L09")
async def test_alone_it_has_the_short_form() -> None:
    """With no other tool there is nothing to unite."""
    assert "anyOf" not in json.dumps(await seen())


def asks(answer: Any) -> type:
    """Make a tool with this `schema_for`."""

    class Asks:
        def schema_for(self, tools: Sequence[ToolDefinition]) -> Any:
            return answer(tools) if callable(answer) else answer

        async def execute(self, text: str = "") -> str:
            return text

    return tool(name="asks", description="d")(Asks)


async def test_schema_for_is_asked_with_the_others() -> None:
    """It gets the other tools' definitions, with their schemas, once per agent and when the app is built."""
    asked: list[list[tuple[str, bool]]] = []

    def answer(tools: Sequence[ToolDefinition]) -> None:
        asked.append([(one.name, bool(one.json_schema)) for one in tools])

    model = scripted([echo, asks(answer), plant], ask("asks"), ask("asks"))
    await model.run()
    assert asked == [[("echo", True), ("plant", True)]]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (3, "returned no JSON Schema of an object"),
        ({"type": "array"}, "returned no JSON Schema of an object"),
        (lambda tools: tools[7], "failed: IndexError"),
    ],
    ids=["a number", "an array", "it raises"],
)
async def test_a_wrong_schema_for_fails_the_build(answer: Any, text: str) -> None:
    """What is wrong with it is a build error that names the tool."""
    with pytest.raises(BuildError) as caught:
        async with Thena(tools=[asks(answer)]):
            raise AssertionError("built")
    [problem] = caught.value.exceptions
    assert str(problem).startswith(f"[thena] schema_for of {__name__}.asks.<locals>.Asks {text}")


def named(name: str, *aliases: str) -> ToolDefinition:
    """Make a tool with aliases."""
    return ToolDefinition(name, "d", None, plain_text, aliases=aliases)


async def plain_text(text: str = "x") -> str:
    """Echo."""
    return text


@pytest.mark.behaviour("L11", "M02")
@pytest.mark.parametrize("tool_calls", ["one", "all"])
async def test_an_alias_is_the_tool(tool_calls: Any) -> None:
    """A call under an alias counts for the tool's quota and has its name everywhere, also beside others."""
    calls = [ask("repl", call_id="c1"), ask("python", call_id="c2")]
    model = scripted([named("python", "repl")], calls if tool_calls == "all" else calls[0], tool_calls=tool_calls)
    ended = await model.run(budget=Budget(tools={"python": 1}))
    assert ended.observations[0] == "x"
    assert {request.name for message in ended.history for request in message.tool_requests} == {"python"}
    assert {node.name for node in ended.events if node.kind == "tool"} == {"python"}
    if tool_calls == "all":
        assert ended.observations[1] == 'not run: the budget\'s tools["python"] is used up'


@pytest.mark.behaviour("L11")
async def test_an_alias_reaches_a_tool_from_everywhere() -> None:
    """`app.call` and a packed call know aliases, too."""
    async with Thena(tools=[named("python", "repl")]) as app:
        assert (await app.call("repl", {"text": "a"})).content == "a"
    ended = await scripted([named("python", "repl"), ParallelTool], packed(("repl", {}), ("python", {}))).run()
    assert ended.observation == "[1] python → ok\nx\n\n[2] python → ok\nx"


@pytest.mark.parametrize("second", [named("b", "x"), named("x")], ids=["an alias", "a name"])
async def test_an_alias_that_is_taken_fails_the_build(second: ToolDefinition) -> None:
    """Two owners of one name are a build error that names both."""
    with pytest.raises(BuildError) as caught:
        async with Thena(tools=[named("a", "x"), second]):
            raise AssertionError("built")
    place = f"{__name__}.plain_text"
    [problem] = caught.value.exceptions
    assert str(problem).startswith(f'[thena] "x" is an alias of {place} and already means {place}. ')
