"""What type checkers know of declaring agents and workflows, of running an app, and of what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, assert_type

from thena_core import (
    AgentHooks,
    Budget,
    BudgetExceededError,
    BuildError,
    Context,
    EndsRun,
    History,
    HookError,
    MiddlewareError,
    Prompt,
    RunAborted,
    RunResult,
    RunUsage,
    Thena,
    ToolCall,
    ToolDefinition,
    ToolOutput,
    ToolRequest,
    agent,
    loop,
    until_answered,
    workflow,
)
from thena_core.calls.explain import Explanation
from thena_core.providers import ChatRequest, ChatTurn, Message, Provider


class Silent(Provider):
    async def chat(self, request: ChatRequest) -> ChatTurn:
        assert_type(request.messages, list[Message])
        assert_type(request.tools, Sequence[ToolDefinition])
        return ChatTurn("", [ToolRequest("c1", "read_file", '{"path": "a"}')])


# Decorators keep the class.


@agent(provider=Silent(), prompt=Prompt("Be brief."))
class Explorer(AgentHooks):
    limit = 3

    async def before_tool(self, call: ToolCall, ctx: Context[Any]) -> ToolCall | ToolOutput | None:
        return call if len(ctx.history) < self.limit else ToolOutput("enough", is_error=True)


class Progress:
    done = False


def finished(ctx: Context[Any], state: Progress) -> bool:
    return state.done or not ctx.turn.called_tool


@workflow(steps=[loop([Explorer], until=until_answered, max_iterations=3), loop([Explorer], until=finished)])
class Flow:
    steps_done = 0


assert_type(Explorer(), Explorer)
assert_type(Explorer.limit, int)
assert_type(Flow(), Flow)
agent(provider=Silent(), prompt=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent(provider="openai", prompt="a.md")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent(provider=Silent, prompt="a.md", tool_calls="two")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent(prompt="a.md")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
workflow()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


class NoProvider(Provider):
    pass


NoProvider()  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]


# A run gives a `RunResult`, and nothing in it can be set.


async def running() -> None:
    async with Thena(Flow, plugins=["audit"], log=True) as app:
        assert_type(app, Thena)
        result = await app.run("hello", budget=Budget(max_tool_calls=3), data={"any": "thing"})
        assert_type(result, RunResult)
        assert_type(result.output, Any)
        assert_type(result.usage, RunUsage)
        assert_type(result.usage.tool_calls, int)
        assert_type(result.usage.cost_usd, float | None)
        assert_type(result.stopped_by, Literal["answered", "until", "exhausted", "fails", "budget", "stop"])
        assert_type(result.history, History)
        assert_type(result.run_id, str)
        assert_type(result.report_path, Path | None)
        result.output = ""  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
        again = await app.run("and then?", history=result.history)
        assert_type(again, RunResult)
        output = await app.call("read_file", {"path": "a"}, agent=Explorer)
        assert_type(output, ToolOutput)
        assert_type(await app.call("read_file", '{"path": "a"}'), ToolOutput)
        assert_type(app.explain("read_file"), Explanation)
        await app.run(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await app.run("hello", budget=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await app.run("hello", bugdet=Budget())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        await app.call("read_file", ["a"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


assert_type(Thena(Flow).run_sync("hello"), RunResult)
Budget(mode="warn")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Thena(Flow, on_plugin_error="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# Errors keep their data in typed attributes.


def facts_of_errors(error: EndsRun) -> str:
    match error:
        case BudgetExceededError():
            assert_type(error.limit, str)
            assert_type(error.allowed, float)
        case HookError():
            assert_type(error.tool, str | None)
        case MiddlewareError():
            assert_type(error.step, str)
        case RunAborted():
            assert_type(error.reason, str)
        case BuildError():
            assert_type(error.exceptions[0], Exception | ExceptionGroup[Exception])
        case _:
            pass
    return str(error)
