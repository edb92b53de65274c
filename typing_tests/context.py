"""What type checkers know of a `Context`: `Context[Tenant].data` is a `Tenant`, and `Context` alone holds anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_type

from thena_core import Context, Message, RunUsage, ToolCall, ToolResult, current_context, tool, until_answered


@dataclass(frozen=True)
class Tenant:
    name: str


@tool(name="greet", description="Greets the tenant.")
class Greet:
    async def execute(self, greeting: str, ctx: Context[Tenant]) -> str:
        assert_type(ctx.data, Tenant)
        assert_type(ctx.data.name, str)
        len(ctx.data.age)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
        return f"{greeting}, {ctx.data.name}"


def facts_of_a_run(ctx: Context[Tenant]) -> None:
    assert_type(ctx.run_id, str)
    assert_type(ctx.history, Sequence[Message])
    assert_type(ctx.usage(), RunUsage)
    assert_type(ctx.turn.called_tool, bool)
    assert_type(ctx.turn.tool_names, Sequence[str])
    ctx.meta(step="reading")
    ctx.run_id = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    ctx.data = Tenant("other")  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def without_a_type(ctx: Context) -> None:
    assert_type(ctx.data, Any)
    assert_type(current_context().data, Any)


def of_another_type(ctx: Context[int]) -> None:
    facts_of_a_run(ctx)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(until_answered(ctx), bool)


def a_hook_sees_read_only_values(call: ToolCall, result: ToolResult) -> None:
    assert_type(call.name, str)
    assert_type(call.replace(arguments={"path": "a"}), ToolCall)
    assert_type(result.output.content, str)
    call.name = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    call.arguments["path"] = "b"  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    call.replace({"path": "a"})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    result.output.content = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
