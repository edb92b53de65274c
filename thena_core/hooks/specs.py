"""The whole contract between Thena and its plugins, on one screen.

A plugin is any module or object with functions marked `@hookimpl`. Each may leave out parameters that it does not
need, and those that are awaited may be `async def` or `def`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from dependency_injector.containers import Container

    from thena_core.app import Thena
    from thena_core.call import ToolCall, ToolMiddleware, ToolResult
    from thena_core.context import Context
    from thena_core.definition import ToolDefinition
    from thena_core.output import ToolOutput
    from thena_core.providers.base import ChatMiddleware
    from thena_core.record.event import Event

hookspec = pluggy.HookspecMarker("thena")
hookimpl = pluggy.HookimplMarker("thena")


class Specs:
    """The hooks that exist. First named plugin outermost: its `before_tool` first, its `after_tool` last."""

    @hookspec
    async def before_tool(self, call: ToolCall, ctx: Context[Any]) -> ToolCall | ToolOutput | None:
        """Keep the call, return `call.replace(arguments=…)`, or answer with a `ToolOutput`; raising ends the run."""

    @hookspec
    async def after_tool(self, result: ToolResult, ctx: Context[Any]) -> str | ToolOutput | None:
        """See every observation, failed ones included; what is returned replaces what the model reads."""

    @hookspec
    def tool_middleware(self, tool: ToolDefinition) -> ToolMiddleware | None:
        """Return a middleware for this tool, or `None`; asked once per tool, when the app is built."""

    @hookspec
    def chat_middleware(self, agent: type) -> ChatMiddleware | None:
        """Return a middleware for this agent's model calls, or `None`; asked once per agent, at build."""

    @hookspec
    def on_event(self, event: Event) -> None:
        """Observe; what is raised is isolated and reported once."""

    @hookspec
    def services(self) -> Container | None:
        """Return a container of providers that the plugin adds; the app's own shadow them."""

    @hookspec
    async def startup(self, app: Thena) -> None:
        """Prepare; in the order of the plugins, before the first run."""

    @hookspec
    async def shutdown(self, app: Thena) -> None:
        """Clean up; in reverse order, also where a later start-up failed."""
