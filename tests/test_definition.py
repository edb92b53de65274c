"""Declaring tools: `@tool` on classes and functions, and what it leaves on them."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tests.schema.trial import answer, problems, schema_of
from thena_core import Context, Prompt, Thena, ThenaError, ToolDefinition, agent, tool
from thena_core.definition import FunctionTool, first_paragraph
from thena_core.messages import ToolRequest
from thena_core.testing import FakeProvider


class Place(BaseModel):
    street: str = Field(description="with its number")
    town: str = Field(description="as the post writes it")


class Visit(BaseModel):
    place: Place = Field(description="where to")
    guests: int = Field(default=1, description="how many come", ge=1)


TEXT = "Plans a visit. Use it önce — “always” 訪問.\n\nSecond paragraph,   odd   spaces. "


@pytest.mark.behaviour("T01")
async def test_name_description_and_schema_reach_the_model_unchanged() -> None:
    """What the class declares is, word for word, what the provider is given."""

    @tool(name="plan-visit_2", description=TEXT, schema=Visit)
    class PlanVisit:
        async def execute(self, args: Visit) -> str:
            return f"{args.guests} to {args.place.town}"

    provider = FakeProvider(
        [ToolRequest("c1", "plan-visit_2", '{"place": {"street": "a", "town": "b"}, "guests": 2}'), "done"]
    )

    @agent(provider=provider, tools=[PlanVisit], prompt=Prompt(""))
    class Planner: ...

    async with Thena(Planner) as app:
        result = await app.run("go")
    [definition] = provider.requests[0].tools
    assert (definition.name, definition.description) == ("plan-visit_2", TEXT)
    text = str(definition.json_schema)
    for words in ("with its number", "as the post writes it", "where to", "how many come"):
        assert words in text
    assert definition.json_schema["required"] == ["place"]
    assert result.history[2].content == "2 to b"


@pytest.mark.behaviour("T01")
async def test_descriptions_of_every_field_are_in_their_places() -> None:
    """Each `Field(description=…)` stands at its own field, inner models included."""

    @tool(name="t", description="d", schema=Visit)
    class T:
        async def execute(self, args: Visit) -> str:
            return ""

    schema = await schema_of(T)
    assert schema["properties"]["place"]["description"] == "where to"
    assert schema["properties"]["guests"] == {
        "default": 1,
        "description": "how many come",
        "minimum": 1,
        "type": "integer",
    }
    inner = schema["$defs"]["Place"]["properties"]
    assert inner["street"]["description"] == "with its number"
    assert inner["town"]["description"] == "as the post writes it"


@pytest.mark.behaviour("T01")
def test_the_class_stays_the_authors_own() -> None:
    """`@tool` returns the very class, with its constructor and methods."""

    class Plain:
        def __init__(self, n: int) -> None:
            self.n = n

        def execute(self) -> int:
            return self.n

    before = set(vars(Plain))
    declared = tool(name="t", description="d")(Plain)
    assert declared is Plain
    assert declared(3).execute() == 3
    assert set(vars(Plain)) - before == {"__thena_tool__"}


@pytest.mark.behaviour("T07")
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
async def test_function_bare(sync: bool) -> None:
    """`@tool` alone takes the name from the function and the description from its docstring."""
    if sync:

        @tool
        def add(a: int, b: int = 1) -> int:
            """Adds two.

            Or more
            numbers.

            Args:
                a: The first.
                b: The second.
            """
            return a + b
    else:

        @tool
        async def add(a: int, b: int = 1) -> int:
            """Adds two.

            Or more
            numbers.

            Args:
                a: The first.
                b: The second.
            """
            return a + b

    async with Thena(tools=[add]) as app:
        definition = app.explain("add", show=False).definition
        assert (await app.call("add", {"a": 2})).content == "3"
    assert (definition.name, definition.description) == ("add", "Adds two. Or more numbers.")
    assert definition.json_schema["properties"]["a"] == {"type": "integer", "description": "The first."}


@pytest.mark.behaviour("T07")
async def test_function_with_arguments() -> None:
    """Arguments of the decorator win over name and docstring."""

    @tool(name="sum", description="Sums.", schema=Visit)
    def add(guests: int, ctx: Context) -> str:
        """Not this."""
        return f"{guests} {bool(ctx.run_id)}"

    async with Thena(tools=[add]) as app:
        definition = app.explain("sum", show=False).definition
        said = await app.call("sum", {"place": {"street": "a", "town": "b"}})
    assert (definition.name, definition.description) == ("sum", "Sums.")
    assert said.content == "1 True"


@pytest.mark.behaviour("T07")
async def test_calling_the_tool_calls_the_function() -> None:
    """A unit test needs no app, and no validation stands in between."""

    @tool
    def double(n: int) -> int:
        """D."""
        return n * 2

    @tool(name="later", description="d")
    async def later(n: int) -> int:
        return n * 2

    assert double(4) == 8
    assert double(n="ab") == "abab"
    coroutine = later(4)
    assert inspect.iscoroutine(coroutine)
    assert await coroutine == 8
    with pytest.raises(TypeError):
        double()


@pytest.mark.behaviour("T07")
async def test_one_function_twice_gives_two_tools() -> None:
    """Decorating a function again leaves the first tool as it was."""

    def say(word: str) -> str:
        return word

    one = tool(name="one", description="First.")(say)
    two = tool(name="two", description="Second.", max_output_chars=3)(say)
    assert one is not two
    async with Thena(tools=[one, two]) as app:
        assert (await app.call("one", {"word": "hello"})).content == "hello"
        assert (await app.call("two", {"word": "hello"})).content.startswith("hel\n")
        first = app.explain("one", show=False).definition
    assert first.description == "First."
    assert not hasattr(say, "__thena_tool__")


@pytest.mark.behaviour("T07")
def test_the_function_keeps_its_face() -> None:
    """Name, docstring, module and signature are the function's own."""

    @tool
    def named(a: int) -> int:
        """Says."""
        return a

    assert isinstance(named, FunctionTool)
    assert (named.__name__, named.__doc__, named.__module__) == ("named", "Says.", __name__)
    assert list(inspect.signature(named).parameters) == ["a"]
    assert "named" in repr(named)


class Adder:
    """Adds."""

    def __init__(self, by: int) -> None:
        self.by = by

    def add(self, n: int) -> int:
        """Adds to a number."""
        return n + self.by

    def __call__(self, n: int) -> int:
        """Adds to a number."""
        return n + self.by


class AsyncAdder(Adder):
    async def __call__(self, n: int) -> int:  # type: ignore[override]
        """Adds to a number."""
        await asyncio.sleep(0)
        return n + self.by


CALLABLES: dict[str, Any] = {
    "bound method": Adder(3).add,
    "callable object": Adder(3),
    "async callable object": AsyncAdder(3),
    "partial": functools.partial(lambda n, by: n + by, by=3),
    "lambda": lambda n: int(n) + 3,
}


@pytest.mark.behaviour("T07")
@pytest.mark.parametrize("function", CALLABLES.values(), ids=CALLABLES)
async def test_any_callable_is_a_function(function: Any) -> None:
    """Methods, partials and callable objects are decorated like functions."""
    said = await answer(tool(name="t", description="Adds.")(function), {"n": 4})
    assert (said.content, said.is_error) == ("7", False)


@pytest.mark.behaviour("T04")
@pytest.mark.parametrize("function", CALLABLES.values(), ids=CALLABLES)
async def test_definition_of_any_callable(function: Any) -> None:
    """A `ToolDefinition` takes any callable."""
    said = await answer(ToolDefinition("t", "Adds.", None, function), {"n": 4})
    assert (said.content, said.is_error) == ("7", False)


@pytest.mark.parametrize("target", [3, "read", None, [1]], ids=["int", "str", "None", "list"])
def test_decorating_what_is_no_tool(target: Any) -> None:
    """`@tool(…)` on something that cannot be called says so."""
    with pytest.raises(ThenaError, match=r"^\[thena\] @tool goes on a class or a function, not on "):
        tool(name="t", description="d")(target)


def test_unknown_argument() -> None:
    """A misspelt argument of `@tool` fails where it stands."""
    with pytest.raises(TypeError, match="max_output"):
        tool(name="t", description="d", max_output=3)


@pytest.mark.behaviour("T09")
@pytest.mark.parametrize(
    ("docstring", "text"),
    [
        (None, ""),
        ("One line.", "One line."),
        ("  One\n   two.  \n\n   Three.\n\n   Args:\n      a: No.\n", "One two. Three."),
        ("Args:\n    a: Only this.", ""),
        ("Says.\n\nReturns:\n    The word.", "Says."),
        ("Says: this.\nArgs are fine here.", "Says: this. Args are fine here."),
    ],
    ids=["none", "line", "paragraphs", "only a section", "returns", "a word that looks like one"],
)
def test_description_from_the_docstring(docstring: str | None, text: str) -> None:
    """The description is what stands before the sections."""
    assert first_paragraph(docstring) == text


@pytest.mark.behaviour("T13")
async def test_nothing_is_inspected_when_it_is_declared() -> None:
    """A tool with wrong annotations can be declared and imported; the build says what is wrong."""

    @tool(name="t", description="d")
    class Wrong:
        def execute(self, a: Annotated[Missing, "x"]) -> str:  # noqa: F821
            return ""

    [problem] = await problems(Wrong)
    assert "`Missing`" in problem
