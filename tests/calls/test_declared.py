"""What may stand in `tools=[…]`, and what the build says of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.schema.trial import answer, problems
from thena_core import Prompt, Thena, ToolDefinition, agent, tool
from thena_core.build import BuildError
from thena_core.definition import Declared, FunctionTool
from thena_core.errors import ToolDefinitionError
from thena_core.testing import FakeProvider


class MyTool:
    async def execute(self, path: str) -> str:
        return path


def undecorated(path: str) -> str:
    return path


@pytest.mark.behaviour("T02")
async def test_undecorated_class() -> None:
    """The error names the class and gives the line to add."""
    assert await problems(MyTool) == [
        '[thena] The class "MyTool" is not decorated with @tool().\nAdd above it: @tool(name="my", description="…")'
    ]


@pytest.mark.behaviour("T02")
async def test_undecorated_class_of_an_agent() -> None:
    """The same in an agent's tools, with the agent named, and as a `ToolDefinitionError`."""

    @agent(provider=FakeProvider(), tools=[MyTool], prompt=Prompt(""))
    class Reader: ...

    with pytest.raises(BuildError) as caught:
        async with Thena(Reader):
            pass
    [problem] = caught.value.exceptions
    assert isinstance(problem, ToolDefinitionError)
    assert str(problem).startswith('[thena] The class "MyTool" is not decorated with @tool().')
    assert "Reader" in " ".join(problem.__notes__)


@pytest.mark.behaviour("T02")
@pytest.mark.parametrize(
    ("item", "says"),
    [
        (undecorated, '[thena] The function "undecorated" is not decorated with @tool.\nAdd above it: @tool'),
        (len, '[thena] The function "len" is not decorated with @tool.'),
        (MyTool(), '[thena] The class "MyTool" is not decorated with @tool().'),
        (3, '[thena] The class "int" is not decorated with @tool().'),
        (None, '[thena] The class "None'),
        ({"name": "t"}, '[thena] The class "dict" is not decorated with @tool().'),
        ("no_such_tool", '[thena] No installed package brings a tool named "no_such_tool".'),
    ],
    ids=["function", "builtin", "instance", "int", "None", "dict", "name"],
)
async def test_what_is_no_tool(item: Any, says: str) -> None:
    """Anything else is refused by name, never with a traceback of the framework's."""
    [problem] = await problems(item)
    assert problem.startswith(says)


@pytest.mark.behaviour("T03")
async def test_class_without_execute() -> None:
    """The error says what is missing."""

    @tool(name="t", description="d")
    class MyTool:
        pass

    [problem] = await problems(MyTool)
    assert problem.startswith('[thena] The class "MyTool" does not implement execute(input).')
    assert "rename" not in problem


@pytest.mark.behaviour("T03")
@pytest.mark.parametrize("wrong", ["run", "__call__"])
@pytest.mark.parametrize("inherited", [False, True], ids=["own", "inherited"])
async def test_execute_under_another_name(wrong: str, inherited: bool) -> None:
    """Who wrote `run` or `__call__` is told to rename it, also where a base class has it."""
    owner = type("Base", (), {wrong: lambda self, path: path})
    made = type("MyTool", (owner,) if inherited else (), {} if inherited else dict(vars(owner)))
    [problem] = await problems(tool(name="t", description="d")(made))
    assert problem.startswith('[thena] The class "MyTool" does not implement execute(input).')
    assert f"`{wrong}`: rename it to `execute`" in problem


@pytest.mark.behaviour("T03")
@pytest.mark.parametrize("value", [None, "text", 3], ids=["None", "text", "number"])
async def test_execute_that_cannot_be_called(value: Any) -> None:
    """An attribute called `execute` is not enough."""
    [problem] = await problems(tool(name="t", description="d")(type("MyTool", (), {"execute": value})))
    assert problem.startswith('[thena] The class "MyTool" does not implement execute(input).')


@pytest.mark.behaviour("T04")
async def test_definition_beside_a_class() -> None:
    """A `ToolDefinition` and a class work side by side, through the same layers."""

    @tool(name="one", description="d")
    class One:
        def execute(self, n: int) -> str:
            return f"class {n}"

    two = ToolDefinition("two", "d", None, lambda n: f"definition {n}")
    seen: list[str] = []

    async def watch(call: Any, call_next: Any) -> Any:
        seen.append(call.name)
        return await call_next(call)

    app = Thena(tools=[One, two])
    app.use(tool=watch)
    async with app:
        assert (await app.call("one", {"n": 1})).content == "class 1"
        assert (await app.call("two", {"n": 2})).content == "definition 2"
        assert (await app.call("two", {"m": 2})).is_error
    assert seen == ["one", "two"]


@pytest.mark.behaviour("T04")
async def test_definition_without_execute() -> None:
    """What the framework hands out has no `execute`, and cannot be passed back as a tool."""
    [problem] = await problems(ToolDefinition("t", "d", None))
    assert problem == '[thena] The ToolDefinition "t" has no execute: give the function that does the work.'


@pytest.mark.behaviour("T04")
async def test_the_handed_out_definition_does_not_run_the_tool() -> None:
    """No hook, middleware or provider gets hold of the function itself."""
    made = ToolDefinition("t", "d", None, lambda: "x")
    handed: list[Any] = []

    async def keep(call: Any, call_next: Any) -> Any:
        handed.append(call.definition)
        return await call_next(call)

    app = Thena(tools=[made])
    app.use(tool=keep)
    async with app:
        await app.call("t")
        handed.append(app.explain("t", show=False).definition)
    assert [definition.execute for definition in handed] == [None, None]


NAMES = {
    "space": "read file",
    "dot": "fs.read",
    "slash": "fs/read",
    "empty": "",
    "too long": "a" * 65,
    "accent": "lésen",
    "line end": "read\n",
    "digit of another script": "read٣",
    "colon": "mcp:read",
}


@pytest.mark.behaviour("T08")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("style", ["class", "function", "definition"])
async def test_refused_names(name: str, style: str) -> None:
    """A name that a big service refuses is a build error that names the tool's place."""
    if style == "definition":
        made: Any = ToolDefinition(name, "d", None, undecorated)
    elif style == "class":
        made = tool(name=name, description="d")(type("Named", (MyTool,), {}))
    else:
        made = FunctionTool(undecorated, Declared(ToolDefinition(name, "d"), {}))
    [problem] = await problems(made)
    assert repr(name)[1:-1] in problem or name in problem
    assert ("Named" if style == "class" else "undecorated") in problem
    assert "1 to 64" in problem


@pytest.mark.behaviour("T08")
@pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 64, "9", "-", "_"])
async def test_accepted_names(name: str) -> None:
    """All of `[a-zA-Z0-9_-]{1,64}` is fine."""
    made = ToolDefinition(name, "d", None, lambda: "ok")
    assert (await answer(made, {}, name=name)).content == "ok"


class Careful:
    def execute(self) -> str:
        return "careful"


class Careless:
    def execute(self) -> str:
        return "careless"


@pytest.mark.behaviour("T08")
async def test_case_b17() -> None:
    """B17: two tools of one name are a build error naming both, whichever comes first (strands-agents/harness-sdk#3779, amd/gaia#3506)."""
    one = tool(name="read_file", description="limited")(type("One", (Careful,), {}))
    two = tool(name="read_file", description="unlimited")(type("Two", (Careless,), {}))
    for pair in ([one, two], [two, one]):
        [problem] = await problems(*pair)
        assert '"read_file"' in problem
        for cls in (one, two):
            assert f"{cls.__module__}.{cls.__qualname__}" in problem


@pytest.mark.behaviour("T08")
@pytest.mark.parametrize("second", ["function", "definition", "instance"])
async def test_duplicates_of_every_kind(second: str) -> None:
    """A class, a function and a definition of one name collide with each other as well."""
    one = tool(name="t", description="d")(type("One", (Careful,), {}))
    other: Any = {
        "function": tool(name="t", description="d")(undecorated),
        "definition": ToolDefinition("t", "d", None, undecorated),
        "instance": one(),
    }[second]
    [problem] = await problems(one, other)
    assert "One" in problem
    assert second == "instance" or "undecorated" in problem


@pytest.mark.behaviour("T08")
async def test_duplicates_in_an_agent_name_the_agent() -> None:
    """The message says in whose tools the two stand; two agents may each have one of that name."""
    one = tool(name="t", description="d")(type("One", (Careful,), {}))
    two = tool(name="t", description="d")(type("Two", (Careless,), {}))

    @agent(provider=FakeProvider(), tools=[one, two], prompt=Prompt(""))
    class Both: ...

    with pytest.raises(BuildError) as caught:
        async with Thena(Both):
            pass
    [problem] = caught.value.exceptions
    assert "Both" in str(problem)
    assert "One" in str(problem)
    assert "Two" in str(problem)


@pytest.mark.behaviour("T08")
async def test_one_tool_listed_twice_is_kept_once() -> None:
    """B17: the very same tool twice is no error (agno-agi/agno#7829)."""
    one = tool(name="t", description="d")(type("One", (Careful,), {}))
    provider = FakeProvider(["done"])

    @agent(provider=provider, tools=[one, one], prompt=Prompt(""))
    class Twice: ...

    async with Thena(Twice) as app:
        await app.run("go")
    assert [definition.name for definition in provider.requests[0].tools] == ["t"]


@pytest.mark.behaviour("T08")
async def test_the_same_function_under_one_name_with_other_options_collides() -> None:
    """Two declarations of one function are two tools: under one name they collide, never silently the first wins."""
    one = tool(name="t", description="First.")(undecorated)
    two = tool(name="t", description="Second.")(undecorated)
    [problem] = await problems(one, two)
    assert '"t"' in problem


@pytest.mark.behaviour("T09")
@pytest.mark.parametrize("description", [None, "", "  \n\t "], ids=["none", "empty", "blank"])
@pytest.mark.parametrize("style", ["class", "function", "definition"])
async def test_missing_description(description: str | None, style: str) -> None:
    """A tool that does not say what it is for is a build error naming it and the cure."""
    made: Any = {
        "class": tool(name="t", description=description)(type("Named", (Careful,), {})),
        "function": tool(name="t", description=description)(undecorated),
        "definition": ToolDefinition("t", description or "", None, undecorated),
    }[style]
    [problem] = await problems(made)
    assert '"t"' in problem
    assert ("Named" if style == "class" else "undecorated") in problem
    assert "description=" in problem


@pytest.mark.behaviour("T02", "T03", "T08", "T09")
async def test_everything_wrong_is_said_at_once() -> None:
    """The problems of all tools come together in one error."""

    @tool(name="no_execute", description="d")
    class NoExecute: ...

    found = await problems(
        MyTool,
        NoExecute,
        ToolDefinition("bad name", "d", None, undecorated),
        ToolDefinition("silent", "", None, undecorated),
        tool(name="fine", description="d")(undecorated),
    )
    assert len(found) == 4
    for part, text in zip(("MyTool", "NoExecute", "bad name", "silent"), found, strict=True):
        assert part in text
