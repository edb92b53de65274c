"""The tools of an agent: wrapped once, called through one door, sharing the run's state."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from thena_core import (
    BuildError,
    Context,
    FatalToolError,
    Prompt,
    SignatureError,
    State,
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
    tool,
    workflow,
)
from thena_core.testing import FakeProvider

PATIENCE = 10


class Board:
    made: ClassVar[list[Board]] = []

    def __init__(self) -> None:
        self.notes: list[str] = []
        Board.made.append(self)


@tool(name="note", description="Notes.")
class Note:
    async def execute(self, text: str, board: Annotated[Board, State]) -> str:
        board.notes.append(text)
        return f"{id(board)}"


def noting(turns: list[Any], until: Any, **options: Any) -> type:
    """Make a workflow whose model plays `turns`, with a board as state."""

    @agent(provider=lambda: FakeProvider(turns), tools=[Note], prompt=Prompt(""), **options)
    class Writer: ...

    @workflow(steps=[loop([Writer], until=until)], state=Board)
    class Writing: ...

    return Writing


@pytest.mark.behaviour("I06")
@pytest.mark.parametrize("parameters", [1, 2], ids=["until(ctx)", "until(ctx, state)"])
async def test_state_is_the_instance_that_until_reads(parameters: int) -> None:
    """What a tool writes into the state, `until` reads in the same object, and ends the loop by it."""
    seen: list[Any] = []

    def by_context(ctx: Context) -> bool:
        seen.append(ctx.state)
        return "stop" in ctx.state.notes

    def by_state(ctx: Context, state: Board) -> bool:
        seen.append(state)
        return "stop" in state.notes

    turns = [ToolRequest("1", "note", '{"text": "go"}'), ToolRequest("2", "note", '{"text": "stop"}'), "never"]
    async with Thena(noting(turns, by_context if parameters == 1 else by_state)) as app:
        result = await app.run("go")
    assert result.stopped_by == "until"
    assert {id(state) for state in seen} == {int(result.history[2].content)} == {int(result.history[4].content)}
    assert seen[0].notes == ["go", "stop"]


@pytest.mark.behaviour("I06")
async def test_one_instance_per_run() -> None:
    """Runs after each other and beside each other never share a state."""
    Board.made.clear()
    waiting = asyncio.Barrier(2)

    async def meet(call: ToolCall, call_next: Any) -> ToolOutput:
        await asyncio.wait_for(waiting.wait(), PATIENCE)
        output: ToolOutput = await call_next(call)
        await asyncio.wait_for(waiting.wait(), PATIENCE)
        return output

    app = Thena(noting([ToolRequest("1", "note", '{"text": "x"}'), "done"], lambda ctx: not ctx.turn.called_tool))
    app.use(tool=meet)
    async with app:
        assert Board.made == []
        await asyncio.gather(app.run("a"), app.run("b"))
        await asyncio.gather(app.run("c"), app.run("d"))
    assert len(Board.made) == 4
    assert [board.notes for board in Board.made] == [["x"]] * 4


@pytest.mark.behaviour("I06")
async def test_hooks_and_tools_share_the_state() -> None:
    """`ctx.state` in a hook is the tool's state."""
    seen: list[Any] = []

    @agent(provider=FakeProvider([ToolRequest("1", "note", '{"text": "x"}'), "done"]), tools=[Note], prompt=Prompt(""))
    class Writer:
        def after_tool(self, result: ToolResult, ctx: Context) -> None:
            seen.append((id(ctx.state), result.output.content, list(ctx.state.notes)))

    @workflow(steps=[loop([Writer])], state=Board)
    class Writing: ...

    async with Thena(Writing) as app:
        await app.run("go")
    [(identity, content, notes)] = seen
    assert (str(identity), notes) == (content, ["x"])


@pytest.mark.behaviour("I06")
async def test_app_call_gives_the_state_it_was_given() -> None:
    """`app.call(state=…)` is the tool's state."""
    board = Board()
    async with Thena(noting(["done"], lambda ctx: True)) as app:
        assert (await app.call("note", {"text": "x"}, state=board)).content == str(id(board))
    assert board.notes == ["x"]


@pytest.mark.behaviour("I07")
async def test_state_without_one_is_a_build_error() -> None:
    """It names the class, the parameter and the line to add."""

    @agent(provider=FakeProvider(), tools=[Note], prompt=Prompt(""))
    class Writer: ...

    @workflow(steps=[Writer])
    class Stateless: ...

    for target in (Stateless, Writer):
        with pytest.raises(BuildError) as caught:
            async with Thena(target):
                pass
        [problem] = caught.value.exceptions
        assert isinstance(problem, SignatureError)
        assert (problem.where, problem.parameter) == ("Note.execute", "board")
        assert "[thena] Note.execute, parameter `board`" in str(problem)
        assert "state=Board" in str(problem)
        assert "Writer" in str(problem)


@pytest.mark.behaviour("I07")
async def test_state_of_another_class_is_a_build_error() -> None:
    """A workflow whose state is something else is told apart, a subclass is fine."""

    class Other: ...

    class Wider(Board): ...

    @agent(provider=FakeProvider([ToolRequest("1", "note", '{"text": "x"}'), "done"]), tools=[Note], prompt=Prompt(""))
    class Writer: ...

    @workflow(steps=[loop([Writer])], state=Other)
    class Wrong: ...

    @workflow(steps=[loop([Writer])], state=Wider)
    class Right: ...

    with pytest.raises(BuildError) as caught:
        async with Thena(Wrong):
            pass
    assert "it asks for the state as Board, but the workflow's state is Other" in str(caught.value)
    async with Thena(Right) as app:
        assert (await app.run("go")).output == "done"


@pytest.mark.behaviour("I07")
async def test_one_agent_in_two_workflows() -> None:
    """An agent whose tool asks for state is right in the workflow that has it and wrong in the one that has none."""

    @agent(provider=FakeProvider(["done"]), tools=[Note], prompt=Prompt(""))
    class Writer: ...

    @workflow(steps=[Writer], state=Board)
    class Good: ...

    @workflow(steps=[Writer])
    class Bad: ...

    with pytest.raises(BuildError) as caught:
        async with Thena(Good, workflows=[Bad]):
            pass
    assert len(caught.value.exceptions) == 1
    async with Thena(Good) as app:
        assert (await app.run("go")).output == "done"


# The toolbox


def outer(function: Any, name: str = "outer") -> ToolDefinition:
    """Make a tool that uses its toolbox."""
    return ToolDefinition(name, "d", None, function)


async def inner(n: int) -> str:
    return f"inner {n}"


INNER = ToolDefinition("inner", "d", None, inner)


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


# Definitions, effects, schemas


@pytest.mark.behaviour("T10")
@pytest.mark.parametrize("effect", ["read", "write", "destructive", None])
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
async def test_effect_and_idempotent_are_visible(effect: Any, idempotent: bool) -> None:
    """Hooks and middleware read them from the call's definition, and can decide by them."""
    seen: list[Any] = []

    async def watch(call: ToolCall, call_next: Any) -> ToolOutput:
        assert call.definition is not None
        seen.append((call.definition.effect, call.definition.idempotent, call.definition.metadata))
        if call.definition.effect == "destructive":
            return ToolOutput("Not allowed.", is_error=True)
        return await call_next(call)  # type: ignore[no-any-return]

    @tool(name="t", description="d", effect=effect, idempotent=idempotent, metadata={"team": "x"})
    class T:
        def execute(self) -> str:
            return "ran"

    @agent(provider=FakeProvider([ToolRequest("c", "t", "{}"), "done"]), tools=[T], prompt=Prompt(""))
    class Caller:
        def before_tool(self, call: ToolCall, ctx: Context) -> None:
            assert call.definition is not None
            seen.append((call.definition.effect, call.definition.idempotent, call.definition.metadata))

        def after_tool(self, result: ToolResult, ctx: Context) -> None:
            assert result.call.definition is not None
            seen.append(
                (result.call.definition.effect, result.call.definition.idempotent, result.call.definition.metadata)
            )

    app = Thena(Caller)
    app.use(tool=watch)
    async with app:
        result = await app.run("go")
    assert seen == [(effect, idempotent, {"team": "x"})] * 3
    assert result.history[2].content == ("Not allowed." if effect == "destructive" else "ran")


@pytest.mark.behaviour("T10")
@pytest.mark.parametrize(
    ("effects", "overlap"),
    [
        (("read", "read"), True),
        ((None, None), True),
        (("read", "write"), True),
        (("write", "write"), False),
        (("destructive", "write"), False),
        (("destructive", "destructive"), False),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("by", ["turn", "batch"])
async def test_effect_decides_what_runs_beside_what(effects: tuple[Any, Any], overlap: bool, by: str) -> None:
    """Calls that only read overlap; those that write run one after the other, in the order asked."""
    running: list[str] = []
    overlapped: list[bool] = []
    order: list[str] = []

    def made(name: str, effect: Any) -> ToolDefinition:
        async def execute() -> str:
            running.append(name)
            order.append(name)
            for _ in range(20):
                await asyncio.sleep(0)
                overlapped.append(len(running) > 1)
            running.remove(name)
            return name

        return ToolDefinition(name, "d", None, execute, effect=effect)

    async def execute(toolbox: Toolbox) -> str:
        return " ".join(result.output.content for result in await toolbox.batch([("a", {}), ("b", {})]))

    tools = [made("a", effects[0]), made("b", effects[1]), outer(execute)]
    requests = (
        [ToolRequest("1", "a", "{}"), ToolRequest("2", "b", "{}")]
        if by == "turn"
        else [ToolRequest("1", "outer", "{}")]
    )

    @agent(provider=FakeProvider([requests, "done"]), tools=tools, prompt=Prompt(""), tool_calls="all")
    class Caller: ...

    async with Thena(Caller) as app:
        result = await app.run("go")
    assert any(overlapped) is overlap
    if not overlap:
        assert order == ["a", "b"]
    assert " ".join(message.content for message in result.history if message.role == "tool") == "a b"


class Costly(BaseModel):
    """A schema that counts how often its JSON schema is made."""

    made: ClassVar[list[str]] = []
    n: int = 0

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        cls.made.append("made")
        return handler(core)


@pytest.mark.behaviour("T12")
async def test_the_json_schema_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made when the app is built; every request of every turn and run carries the same object."""
    providers = [FakeProvider([ToolRequest("c", "t", "{}"), ToolRequest("c", "t", "{}"), "done"]) for _ in range(2)]
    waiting = iter(providers)
    generated: list[Any] = []
    original = GenerateJsonSchema.generate

    def counting(self: Any, *args: Any, **options: Any) -> Any:
        generated.append(args)
        return original(self, *args, **options)

    monkeypatch.setattr(GenerateJsonSchema, "generate", counting)

    @tool(name="t", description="d", schema=Costly)
    class T:
        def execute(self, args: Costly) -> str:
            return ""

    @agent(provider=lambda: next(waiting), tools=[T], prompt=Prompt(""))
    class Caller: ...

    Costly.made.clear()
    async with Thena(Caller) as app:
        await app.run("a")
        await app.run("b")
        await app.call("t")
        explained = app.explain("t", show=False).definition.json_schema
    assert len(generated) == 1
    assert len(Costly.made) == 1
    schemas = [request.tools[0].json_schema for provider in providers for request in provider.requests]
    assert len(schemas) == 6
    assert {id(schema) for schema in schemas} == {id(explained)}


@pytest.mark.behaviour("T12")
async def test_the_definitions_are_the_same_objects_in_every_request() -> None:
    """A provider may keep what it has encoded: the list of tools is one object per agent."""
    provider = FakeProvider([ToolRequest("c", "inner", '{"n": 1}'), "done"])

    @agent(provider=provider, tools=[INNER], prompt=Prompt(""))
    class Caller: ...

    async with Thena(Caller) as app:
        await app.run("go")
    first, second = provider.requests
    assert first.tools is second.tools
    assert first.tools[0] is second.tools[0]
