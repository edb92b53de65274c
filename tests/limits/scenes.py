"""Runs that wait at a chosen place until they are stopped, and workflows that tools start: for tests of limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.hooks.scripted import NoHooks, Scripted, ask, scripted
from thena_core import Budget, Context, Prompt, RunResult, Thena, ToolDefinition, WorkflowRuntime, agent
from thena_core.providers import ChatRequest, ChatTurn, Provider
from thena_core.testing import FakeProvider
from thena_core.testing.provider import ScriptedTurn
from thena_tools import ParallelTool

PLACES = ["model", "one", "all", "packed", "nested", "nested batch", "before_tool", "after_tool", "middleware"]
"""Where a run can wait for something."""


def actor(tools: Sequence[Any], *turns: ScriptedTurn, tool_calls: Any = "one", then: str = "done") -> Any:
    """Make an agent class whose model plays `turns`; its `.provider` keeps what was asked."""
    provider = FakeProvider([*turns, then])
    made = type("Inner", (NoHooks,), {"__module__": __name__, "provider": provider})
    return agent(provider=provider, tools=tools, prompt=Prompt("You act."), tool_calls=tool_calls)(made)


def starts(workflow: Any, name: str = "nested", budget: Budget | None = None) -> ToolDefinition:
    """Make a tool that runs a workflow and returns its output."""

    async def execute(runtime: WorkflowRuntime) -> RunResult:
        return await runtime.run(workflow, message="go", budget=budget)

    return ToolDefinition(name, "Starts a workflow.", None, execute)


@dataclass
class Scene:
    """A run that waits, what it opened, and what it closed again.

    Attributes:
        begun: Set when the run is where it waits.
        contexts: The run's contexts, to look at its history in the end.
        opened: How often something began to wait.
        closed: How often that was ended, by its own clean-up.
    """

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    contexts: list[Context] = field(default_factory=list)
    opened: int = 0
    closed: int = 0
    model: Scripted = field(init=False)

    async def wait(self) -> None:
        """Wait until somebody cancels, and clean up."""
        self.opened += 1
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.closed += 1


class Waiting(Provider):
    """A model that never answers."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    async def chat(self, request: ChatRequest) -> ChatTurn:
        await self.scene.wait()
        return ChatTurn("late")


def scene(place: str, **options: Any) -> Scene:
    """Make a run that waits at a place."""
    made = Scene()

    async def at(here: str) -> None:
        if here == place:
            await made.wait()

    async def waits(ctx: Context) -> str:
        made.contexts.append(ctx)
        await made.wait()
        return "late"

    async def quick(ctx: Context) -> str:
        made.contexts.append(ctx)
        return "quick"

    class Hooks:
        async def before_prompt(self, prompt: str, ctx: Context) -> None:
            made.contexts.append(ctx)

        async def before_tool(self) -> None:
            await at("before_tool")

        async def after_tool(self) -> None:
            await at("after_tool")

    async def around(call: Any, call_next: Any) -> Any:
        await at("middleware")
        return await call_next(call)

    slow, fast = ToolDefinition("waits", "d", None, waits), ToolDefinition("quick", "d", None, quick)
    several = [ask("quick"), ask("waits", None, "c2"), ask("waits", None, "c3")]
    asked: dict[str, Any] = {
        "one": ask("waits"),
        "all": several,
        "packed": ask("parallel", {"calls": [{"name": "quick"}, {"name": "waits"}, {"name": "waits"}]}),
        "nested": ask("nested"),
        "nested batch": ask("nested"),
    }
    inner = actor([slow, fast], several if place == "nested batch" else ask("waits"), tool_calls="all")
    tools = [slow, fast, starts(inner), ParallelTool]
    made.model = scripted(
        tools, asked.get(place, ask("quick")), hooks=Hooks, tool_calls="all", around=[around], **options
    )
    if place == "model":
        waiting = agent(provider=Waiting(made), tools=tools, prompt=Prompt("p"))(
            type("Model", (Hooks,), {"__module__": __name__})
        )
        made.model.app = Thena(waiting, log=made.model.events.append, **options)
    return made
