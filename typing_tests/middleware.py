"""What type checkers say of middleware: `app.use` takes the right shape, for tools and for model calls."""

from __future__ import annotations

from typing import Any, assert_type

from thena_core import (
    CallNext,
    ChatCall,
    ChatMiddleware,
    ChatNext,
    Context,
    Thena,
    ToolCall,
    ToolDefinition,
    ToolMiddleware,
    ToolOutput,
    hookimpl,
)
from thena_core.providers import ChatTurn

app = Thena()


async def around_tool(call: ToolCall, call_next: CallNext) -> ToolOutput:
    assert_type(call.ctx, Context[Any])
    assert_type(call.definition, ToolDefinition | None)
    output = await call_next(call)
    assert_type(output, ToolOutput)
    return output


async def around_chat(call: ChatCall, call_next: ChatNext) -> ChatTurn:
    turn = await call_next(call)
    assert_type(turn, ChatTurn)
    return turn


class Quota:
    """A middleware may be an object."""

    async def __call__(self, call: ToolCall, call_next: CallNext) -> ToolOutput:
        return await call_next(call)

    async def method(self, call: ToolCall, call_next: CallNext) -> ToolOutput:
        return await call_next(call)


app.use(tool=around_tool)
app.use(tool=Quota())
app.use(tool=Quota().method)
app.use(chat=around_chat)
app.use("audit", tool=around_tool, chat=around_chat)


# The wrong shape is refused.


async def one_parameter(call: ToolCall) -> ToolOutput:
    return ToolOutput(call.name)


async def returns_text(call: ToolCall, call_next: CallNext) -> str:
    return (await call_next(call)).content


def not_async(call: ToolCall, call_next: CallNext) -> ToolOutput:
    return ToolOutput(call.name)


async def no_result(call: ToolCall, call_next: CallNext) -> None:
    await call_next(call)


app.use(tool=one_parameter)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.use(tool=returns_text)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.use(tool=not_async)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.use(tool=no_result)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.use(tool=around_chat)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.use(chat=around_tool)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.use(tool=Quota)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.use(around=around_tool)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def passes_on_something_else(call: ToolCall, call_next: CallNext) -> ToolOutput:
    return await call_next(call.arguments)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# A plugin that brings middleware keeps the types of its functions.


class Plugin:
    @hookimpl
    def tool_middleware(self, tool: ToolDefinition) -> ToolMiddleware | None:
        return around_tool if tool.effect == "write" else None

    @hookimpl
    def chat_middleware(self, agent: type) -> ChatMiddleware | None:
        return around_chat


def of_a_plugin(definition: ToolDefinition) -> None:
    assert_type(Plugin().tool_middleware(definition), ToolMiddleware | None)
    Plugin().tool_middleware("read_file")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
