"""What becomes of a tool's result: texts, outputs, data that the model never sees, errors."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from tests.calls.returning import read_by_the_model, returning
from tests.schema.trial import answer, node_of
from thena_core import (
    Context,
    Event,
    Prompt,
    Thena,
    ToolOutput,
    ToolRequest,
    ToolResult,
    agent,
    loop,
    tool,
    workflow,
)
from thena_core.testing import FakeProvider


@pytest.mark.behaviour("R01")
@pytest.mark.parametrize("text", ["a", "null", '"quoted"', "{}", " spaces \n", "日本 😀", "<b>&amp;</b>", "\x1b[31m"])
async def test_a_string_is_the_observation(text: str) -> None:
    """The model reads exactly the string, never a JSON form of it."""
    said = await read_by_the_model(returning(text))
    assert (said.role, said.content, said.tool_call_id, said.is_error) == ("tool", text, "c1", False)


class Shouting(str):
    """A string with a face of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return "not this"


class Level(str, enum.Enum):  # noqa: UP042 - what authors of older code have
    HIGH = "high"


@pytest.mark.behaviour("R01", "R03")
@pytest.mark.parametrize("value", [Level.HIGH, ToolOutput(Level.HIGH)], ids=["alone", "in an output"])
async def test_an_enum_of_texts_is_its_value(value: Any) -> None:
    """A member of `class Level(str, Enum)` is read as its value, not as `Level.HIGH`."""
    said = await read_by_the_model(returning(value))
    assert str.__str__(said.content) == "high"
    assert f"{said.content}" == "high"


@pytest.mark.behaviour("R01")
async def test_a_subclass_of_str_is_its_own_text() -> None:
    """What a string holds is read, whatever its class does; the observation is a plain `str`."""
    said = await answer(returning(Shouting("this")))
    assert said.content == "this"


SECRET = "data-4f7e"


@pytest.mark.behaviour("R02")
async def test_data_is_seen_by_all_but_the_model() -> None:
    """Hooks, middleware and events get `data`; no message to the model holds it."""
    seen: dict[str, Any] = {}
    events: list[Event] = []
    provider = FakeProvider([ToolRequest("c1", "t", "{}"), "done"])
    data = {"rows": [SECRET]}

    async def watch(call: Any, call_next: Any) -> ToolOutput:
        output: ToolOutput = await call_next(call)
        seen["middleware"] = output.data
        return output

    @agent(provider=provider, tools=[returning(ToolOutput("two rows", data=data))], prompt=Prompt(""))
    class Caller:
        def after_tool(self, result: ToolResult, ctx: Context[Any]) -> None:
            seen["hook"] = result.output.data

    app = Thena(Caller, log=events.append)
    app.use(tool=watch)
    async with app:
        result = await app.run("go")
    assert seen == {"middleware": data, "hook": data}
    [node] = [event for event in events if event.kind == "tool" and event.phase == "end"]
    assert node.meta["data"] == data
    assert result.history[2].content == "two rows"
    assert SECRET not in repr(provider.requests[1].messages)
    assert SECRET not in repr(result.history)


@pytest.mark.behaviour("R02")
async def test_an_output_is_taken_as_it_is() -> None:
    """`app.call` returns the tool's own output: content, error mark and data."""
    said = await answer(returning(ToolOutput("no", is_error=True, data=3)))
    assert said == ToolOutput("no", is_error=True, data=3)


@pytest.mark.behaviour("R02", "R03")
async def test_an_output_whose_content_is_no_text() -> None:
    """A `ToolOutput` around an object is serialised like the object, and keeps its data and its error mark."""
    said = await answer(returning(ToolOutput({"a": 1}, is_error=True, data=3)))  # type: ignore[arg-type]
    assert said == ToolOutput('{"a":1}', is_error=True, data=3)


@pytest.mark.behaviour("R04")
async def test_is_error_marks_the_node() -> None:
    """The node of a failed call has `status="error"`, of a good one `ok`."""
    failed = await node_of(returning(ToolOutput("no", is_error=True)))
    assert (failed.status, failed.outcome, failed.error) == ("error", "error", "no")
    good = await node_of(returning(ToolOutput("yes")))
    assert (good.status, good.outcome, good.error) == ("ok", "ok", None)


@pytest.mark.behaviour("R04")
@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (["bad"], True),
        (["good"], False),
        (["bad", "bad"], True),
        (["bad", "good"], False),
        (["good", "bad"], False),
        (["gone", "raising"], True),
        ([], False),
    ],
    ids=["one bad", "one good", "all bad", "bad first", "bad last", "unknown and raised", "none"],
)
async def test_tool_error_means_that_every_call_failed(turn: list[str], expected: bool) -> None:
    """`ctx.turn.tool_error` is true when every top-level call of the turn failed, and only then."""
    seen: list[tuple[bool, bool, list[str]]] = []

    def until(ctx: Context[Any]) -> bool:
        seen.append((ctx.turn.tool_error, ctx.turn.called_tool, list(ctx.turn.tool_names)))
        return True

    async def good() -> str:
        return "ok"

    async def bad() -> ToolOutput:
        return ToolOutput("no", is_error=True)

    async def raising() -> str:
        raise ValueError("x")

    requests = [ToolRequest(f"c{number}", name, "{}") for number, name in enumerate(turn)]
    tools = [tool(name=made.__name__, description="d")(made) for made in (good, bad, raising)]

    @agent(provider=FakeProvider([requests or "done"]), tools=tools, prompt=Prompt(""), tool_calls="all")
    class Caller: ...

    @workflow(steps=[loop([Caller], until=until)])
    class Flow: ...

    async with Thena(Flow) as app:
        await app.run("go")
    assert seen == [(expected, bool(turn), turn)]


@pytest.mark.behaviour("R05")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("", "(the tool returned nothing)"),
        ([], "[]"),
        ({}, "{}"),
        (False, "false"),
        (0, "0"),
        (ToolOutput(""), "(the tool returned nothing)"),
        (ToolOutput(None), "null"),  # type: ignore[arg-type]
        (" ", " "),
    ],
    ids=["None", "empty text", "list", "dict", "False", "0", "empty output", "output of None", "space"],
)
async def test_little_is_never_nothing(value: Any, text: str) -> None:
    """No result is an empty message, which some services refuse."""
    said = await read_by_the_model(returning(value))
    assert (said.content, said.is_error) == (text, False)
    assert (await answer(returning(value))).content == text
