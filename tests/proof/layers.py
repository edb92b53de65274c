"""The hooks, middlewares and plugins of a drawn app, each writing down what it sees before it does its thing."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.proof.model import AppSpec, Layer, PluginSpec, identify, shown
from tests.proof.world import World
from thena_core import Context, EndsRun, ToolCall, ToolDefinition, ToolOutput, ToolResult, hookimpl


def before_hook(world: World, layer: Layer, who: str) -> Any:
    """Make a `before_tool`."""

    async def before_tool(call: ToolCall, ctx: Context) -> ToolCall | ToolOutput | None:
        arguments = shown(call.arguments)
        ident = identify(call.name, call.raw)
        world.note(ident, "before", who, name=call.name, arguments=arguments)
        world.meet(ident, ctx)
        if layer.waits:
            await asyncio.sleep(0)
        if not layer.picks(arguments):
            return None
        if layer.mode == "raise":
            world.ends(ident)
            raise ValueError("a guard that fails")
        if layer.mode == "rewrite" and "value" in arguments:
            return call.replace(arguments={**arguments, "value": arguments["value"] + 1})
        return ToolOutput("answered", is_error=layer.mode == "deny") if layer.mode in ("answer", "deny") else None

    return before_tool


def after_hook(world: World, layer: Layer, who: str) -> Any:
    """Make an `after_tool`; it is called with a plain function's ways where it need not wait."""

    def look(result: ToolResult) -> str | ToolOutput | None:
        call, output = result.call, result.output
        ident = identify(call.name, call.raw)
        facts = {"outcome": result.outcome, "content": output.content, "is_error": output.is_error}
        world.note(ident, "after", who, name=call.name, arguments=shown(call.arguments), **facts)
        if not layer.picks_result(ident):
            return None
        if layer.mode == "raise":
            world.ends(ident)
            raise ValueError("an auditor that fails")
        if layer.mode == "reword":
            return f"{output.content} ({who})"
        if layer.mode in ("flag", "mend"):
            return ToolOutput(output.content, is_error=layer.mode == "flag")
        return None

    async def after_tool(result: ToolResult, ctx: Context) -> str | ToolOutput | None:
        await asyncio.sleep(0)
        return look(result)

    def after_tool_at_once(result: ToolResult, ctx: Context) -> str | ToolOutput | None:
        return look(result)

    return after_tool if layer.waits else after_tool_at_once


def middleware(world: World, layer: Layer, who: str) -> Any:
    """Make a tool middleware."""

    async def around(call: ToolCall, call_next: Any) -> Any:
        arguments = shown(call.arguments)
        ident = identify(call.name, call.raw)
        world.note(ident, "around", who, name=call.name, arguments=arguments)
        world.meet(ident, call.ctx)
        if layer.waits:
            await asyncio.sleep(0)
        if not layer.picks(arguments):
            return await call_next(call)
        return await _around(world, layer.mode, ident, call, call_next)

    return around


async def _around(world: World, mode: str, ident: str, call: ToolCall, call_next: Any) -> Any:
    if mode in ("answer", "deny"):
        return ToolOutput("answered", is_error=mode == "deny")
    if mode == "raise":
        world.ends(ident)
        raise ValueError("a middleware that fails")
    if mode == "hide":
        try:
            return await call_next(call)
        except EndsRun:
            return ToolOutput("nothing happened")
    output = await call_next(call)
    if mode in ("twice", "nonsense"):
        world.ends(ident)
        return await call_next(call) if mode == "twice" else "no output"
    return output


def agent_hooks(world: World, spec: AppSpec) -> dict[str, Any]:
    """Make the hooks of the agent, as an agent class has them."""
    made = {
        "before_tool": None if spec.before is None else before_hook(world, spec.before, "agent"),
        "after_tool": None if spec.after is None else after_hook(world, spec.after, "agent"),
    }
    return {name: staticmethod(function) for name, function in made.items() if function is not None}


def plugin(world: World, who: str, spec: PluginSpec) -> Any:
    """Make a plugin; one without any hook observes."""

    class Plugin:
        @hookimpl
        def startup(self) -> None:
            """Have one hook at least."""

        if spec.around is not None:

            @hookimpl
            def tool_middleware(self, tool: ToolDefinition) -> Any:
                layer = spec.around
                assert layer is not None
                return middleware(world, layer, who) if tool.name == "t0" or not spec.only_one else None

    for name, layer, make in (("before_tool", spec.before, before_hook), ("after_tool", spec.after, after_hook)):
        if layer is not None:
            setattr(Plugin, name, staticmethod(hookimpl(make(world, layer, who))))
    Plugin.__name__ = who
    return Plugin()
