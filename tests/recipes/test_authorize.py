"""The recipe for authorisation: nobody, too little and unknown are refused, on every way to a tool."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recipes.recipe import recipe
from thena_core import Prompt, Thena, ToolOutput, ToolRequest, agent, tool
from thena_core.testing import FakeProvider
from thena_tools import ParallelTool, workflow_tool

authorize = recipe("authorize")
ran: list[str] = []


def made(name: str, **options: Any) -> Any:
    """Make a tool that says that it ran."""

    async def run() -> str:
        ran.append(name)
        return "done"

    return tool(name=name, description=f"Does {name}.", **options)(run)


TOOLS = [
    made("look", effect="read"),
    made("save", effect="write"),
    made("drop", effect="destructive"),
    made("silent"),
    made("refund", effect="write", metadata={"permission": "refund"}),
]


def app_of(*turns: Any, tools: list[Any] = TOOLS) -> Thena:
    """Make an app whose model plays a script."""
    ran.clear()

    @agent(provider=FakeProvider([*turns, "done"]), tools=[*tools, ParallelTool], prompt=Prompt("Do."))
    class Doer: ...

    app = Thena(Doer)
    app.use(tool=authorize.authorize)
    return app


def user(*may: str) -> Any:
    """Make a user."""
    return authorize.User("ana", frozenset(may))


@pytest.mark.parametrize(
    ("data", "allowed"),
    [
        pytest.param(user("read"), ["look"], id="read"),
        pytest.param(user("read", "write"), ["look", "save"], id="write"),
        pytest.param(user("read", "write", "destructive"), ["look", "save", "drop", "silent"], id="destructive"),
        pytest.param(user("write", "refund"), ["save", "refund"], id="a permission"),
        pytest.param(user("refund"), [], id="a permission without the effect"),
        pytest.param(user(), [], id="nothing"),
        pytest.param(None, [], id="nobody"),
        pytest.param({"name": "ana", "may": {"read"}}, [], id="something else"),
        pytest.param("admin", [], id="a word"),
    ],
)
async def test_who_may_what(data: Any, allowed: list[str]) -> None:
    """Each tool runs for those who have its effect and its permission; the rest is refused, and never runs."""
    async with app_of() as app:
        for one in ("look", "save", "drop", "silent", "refund"):
            output = await app.call(one, {}, data=data)
            assert output.is_error == (one not in allowed)
            assert output.content.startswith("done" if one in allowed else f"Not allowed: {one}.")
    assert ran == allowed


async def test_ways_around() -> None:
    """Packed calls and calls of a nested run are asked, too; packing itself is nobody's secret."""

    @agent(provider=FakeProvider([ToolRequest("n1", "drop", {}), "inner is done"]), tools=TOOLS, prompt=Prompt("Do."))
    class Inner: ...

    nested = workflow_tool(Inner, name="research", description="Researches.", effect="read")
    batch = [
        {"name": "look"},
        {"name": "drop"},
        {"name": "parallel", "arguments": {"calls": []}},
        {"name": "research", "arguments": {"message": "x"}},
    ]
    async with app_of(ToolRequest("c1", "parallel", {"calls": batch}), tools=[*TOOLS, nested]) as app:
        result = await app.run("go", data=user("read"))
    assert ran == ["look"]
    text = next(message.content for message in result.history if message.role == "tool")
    assert "[1] look → ok" in text
    assert "[2] drop → error\nNot allowed: drop." in text


async def test_the_outcome() -> None:
    """The model reads why, the call counts as denied, and the run goes on."""
    async with app_of(ToolRequest("c1", "drop", {})) as app:
        result = await app.run("go", data=user("read"))
    assert (result.output, ran) == ("done", [])
    assert only_text(result) == "Not allowed: drop."


def only_text(result: Any) -> str:
    """Return the text of the one tool message."""
    [text] = [message.content for message in result.history if message.role == "tool"]
    return text


async def test_nothing_is_said_of_the_user() -> None:
    """What the user may do does not reach the model."""
    async with app_of() as app:
        assert await app.call("drop", {}, data=user("launch_codes")) == ToolOutput("Not allowed: drop.", is_error=True)
