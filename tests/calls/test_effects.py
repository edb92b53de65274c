"""What a definition says to others: effects and what they order, and a schema computed once."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from tests.calls.boards import INNER, outer
from thena_core import (
    Context,
    Prompt,
    Thena,
    Toolbox,
    ToolCall,
    ToolDefinition,
    ToolOutput,
    ToolRequest,
    ToolResult,
    agent,
    tool,
)
from thena_core.testing import FakeProvider


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
