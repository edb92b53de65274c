"""The toolbox: the agent's other tools, wrapped in every layer."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest

from tests.calls.boards import INNER, PATIENCE, outer
from thena_core import (
    Context,
    FatalToolError,
    Prompt,
    Thena,
    Toolbox,
    ToolCall,
    ToolDefinition,
    ToolOutput,
    ToolRequest,
    ToolResult,
    Tools,
    agent,
    loop,
    workflow,
)
from thena_core.testing import FakeProvider


@pytest.mark.behaviour("I03")
@pytest.mark.parametrize(
    "annotation", [Toolbox, Annotated[Toolbox, Tools], Annotated[Any, Tools]], ids=["type", "marker", "marked Any"]
)
async def test_the_toolbox_holds_the_other_tools(annotation: Any) -> None:
    """All tools of the same agent but the one that asks, as definitions that nobody can run past the layers."""

    async def execute(toolbox: Any) -> str:
        assert all(isinstance(definition, ToolDefinition) and definition.execute is None for definition in toolbox)
        return (
            f"{[d.name for d in toolbox]} {len(toolbox)} {'inner' in toolbox} {'outer' in toolbox} {'gone' in toolbox}"
        )

    execute.__annotations__["toolbox"] = annotation
    later = ToolDefinition("later", "d", None, lambda: "")
    for tools in ([outer(execute), INNER, later], [INNER, later, outer(execute)]):
        async with Thena(tools=tools) as app:
            assert (await app.call("outer")).content == "['inner', 'later'] 2 True False False"


@pytest.mark.behaviour("I03")
async def test_the_toolbox_is_the_agents_own() -> None:
    """Another agent's tools are not in it, and the app's own are not either."""

    async def execute(toolbox: Toolbox) -> str:
        return str([definition.name for definition in toolbox])

    @agent(
        provider=FakeProvider([ToolRequest("1", "outer", "{}"), "done"]),
        tools=[outer(execute), INNER],
        prompt=Prompt(""),
    )
    class One: ...

    @agent(provider=FakeProvider(["x"]), tools=[ToolDefinition("foreign", "d", None, lambda: "")], prompt=Prompt(""))
    class Two: ...

    @workflow(steps=[loop([One]), Two])
    class Both: ...

    async with Thena(Both, tools=[ToolDefinition("apps", "d", None, lambda: "")]) as app:
        result = await app.run("go")
    assert result.history[2].content == "['inner']"


@pytest.mark.behaviour("I03")
async def test_inner_calls_go_through_every_layer() -> None:
    """A call by the toolbox is validated, hooked, passed through the middleware and recorded under the outer call."""
    seen: list[Any] = []
    events: list[Any] = []

    async def watch(call: ToolCall, call_next: Any) -> ToolOutput:
        seen.append(("middleware", call.name, dict(call.arguments)))
        return await call_next(call)  # type: ignore[no-any-return]

    async def execute(toolbox: Toolbox) -> str:
        good = await toolbox["inner"]({"n": 1})
        wrong = await toolbox["inner"]({"n": "x"})
        text = await toolbox["inner"]('{"n": 3}')
        gone = await toolbox["gone"]({})
        own = await toolbox["outer"]({})
        return " | ".join(output.content for output in (good, wrong, text, gone, own))

    @agent(
        provider=FakeProvider([ToolRequest("c", "outer", "{}"), "done"]),
        tools=[outer(execute), INNER],
        prompt=Prompt(""),
    )
    class Caller:
        def before_tool(self, call: ToolCall, ctx: Context) -> Any:
            seen.append(("before", call.name))
            return call.replace(arguments={"n": 7}) if call.name == "inner" and call.arguments["n"] == 1 else None

        def after_tool(self, result: ToolResult, ctx: Context) -> None:
            seen.append(("after", result.call.name, result.outcome))

    app = Thena(Caller, log=events.append)
    app.use(tool=watch)
    async with app:
        result = await app.run("go")
    good, wrong, text, gone, own = result.history[2].content.split(" | ")
    assert (good, text) == ("inner 7", "inner 3")
    assert wrong.startswith("invalid arguments — n: ")
    assert gone.startswith('unknown tool "gone"')
    assert own.startswith('unknown tool "outer"')
    assert seen == [
        ("before", "outer"),
        ("middleware", "outer", {}),
        ("before", "inner"),
        ("middleware", "inner", {"n": 7}),
        ("after", "inner", "ok"),
        ("after", "inner", "invalid"),
        ("before", "inner"),
        ("middleware", "inner", {"n": 3}),
        ("after", "inner", "ok"),
        ("after", "gone", "unknown"),
        ("after", "outer", "unknown"),
        ("after", "outer", "ok"),
    ]
    ends = [event for event in events if event.phase == "end" and event.kind == "tool"]
    assert [event.name for event in ends] == ["inner", "inner", "inner", "gone", "outer", "outer"]
    assert {event.parent_id for event in ends[:-1]} == {ends[-1].id}
    assert len({event.id for event in ends}) == 6


@pytest.mark.behaviour("I03")
async def test_under_app_call_the_toolbox_is_the_apps() -> None:
    """`app.call` gives the app's other tools, wrapped in the app's middleware."""
    seen: list[str] = []

    async def watch(call: ToolCall, call_next: Any) -> ToolOutput:
        seen.append(call.name)
        return await call_next(call)  # type: ignore[no-any-return]

    async def execute(toolbox: Toolbox) -> str:
        return (await toolbox["inner"]({"n": 2})).content

    app = Thena(tools=[outer(execute), INNER])
    app.use(tool=watch)
    async with app:
        assert (await app.call("outer")).content == "inner 2"
    assert seen == ["outer", "inner"]


@pytest.mark.behaviour("I03")
async def test_a_fatal_inner_call_ends_the_run_although_it_is_caught() -> None:
    """What an inner tool ends the run with passes the outer tool's own `except` and error policy."""

    async def fatal() -> str:
        raise FatalToolError("gone for good")

    async def execute(toolbox: Toolbox) -> str:
        try:
            await toolbox["fatal"]({})
        except Exception:  # noqa: BLE001 - that is what is tested
            return "swallowed"
        return "went on"

    @agent(
        provider=FakeProvider([ToolRequest("c", "outer", "{}"), "done"]),
        tools=[outer(execute), ToolDefinition("fatal", "d", None, fatal)],
        prompt=Prompt(""),
    )
    class Caller: ...

    async with Thena(Caller) as app:
        with pytest.raises(FatalToolError, match="gone for good"):
            await app.run("go")


@pytest.mark.behaviour("I03")
async def test_a_batch_answers_in_the_order_asked() -> None:
    """`toolbox.batch` overlaps the calls, keeps the order of the results, and has an error in its place."""
    order: list[int] = []
    gate = asyncio.Event()

    async def turn(n: int) -> str:
        if n == 1:
            await asyncio.wait_for(gate.wait(), PATIENCE)
        else:
            gate.set()
        order.append(n)
        return f"n{n}"

    async def execute(toolbox: Toolbox) -> str:
        results = await toolbox.batch(
            [("turn", {"n": 1}), ("turn", {"n": 2}), ("turn", {}), ("gone", {}), ("turn", '{"n": 3}')]
        )
        return " ".join(f"{result.call.name}:{result.outcome}" for result in results) + f" {results[0].output.content}"

    async with Thena(tools=[outer(execute), ToolDefinition("turn", "d", None, turn)]) as app:
        said = await app.call("outer")
    assert said.content == "turn:ok turn:ok turn:invalid gone:unknown turn:ok n1"
    assert order[-1] == 1


@pytest.mark.behaviour("I03")
async def test_inner_calls_have_ids_of_their_own() -> None:
    """Each inner call's id and key are derived from the outer one's, the same in every run."""
    seen: list[tuple[str, str]] = []

    async def watch(call: ToolCall, call_next: Any) -> ToolOutput:
        seen.append((call.id, call.key.partition("/")[2]))
        return await call_next(call)  # type: ignore[no-any-return]

    async def execute(toolbox: Toolbox) -> str:
        await toolbox["inner"]({"n": 1})
        await toolbox.batch([("inner", {"n": 2}), ("inner", {"n": 3})])
        return ""

    @agent(
        provider=lambda: FakeProvider([ToolRequest("c", "outer", "{}"), "x"]),
        tools=[outer(execute), INNER],
        prompt=Prompt(""),
    )
    class Caller: ...

    app = Thena(Caller)
    app.use(tool=watch)
    async with app:
        await app.run("go")
        first = list(seen)
        seen.clear()
        await app.run("go")
    assert first == seen
    assert len({identity for identity, _ in first}) == len({key for _, key in first}) == 4
