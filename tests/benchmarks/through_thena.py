"""The same agent in Thena, with its default layers and a budget that counts."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.workload import ANSWER, QUESTION, SYSTEM, TOOL, Counts, Shape, make_body, script
from thena_core import Budget, Prompt, Thena, agent, hookimpl, loop, tool, until_answered, workflow
from thena_core.messages import ChatTurn, ToolRequest
from thena_core.providers import ChatRequest, Provider
from thena_tools import ParallelTool

PLENTY = 1_000_000_000


class ScriptedProvider(Provider):
    """A model that follows the run's script, and asks for one tool."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Play the next turn."""
        calls = script.get().advance()
        if not calls:
            return ChatTurn(ANSWER)
        return ChatTurn("", [ToolRequest(call_id, self._name, arguments) for call_id, arguments in calls])


class Counting:
    """A plugin with a hook before and one after each call."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    @hookimpl
    async def before_tool(self, call: Any, ctx: Any) -> None:
        """Count."""
        self._counts.before += 1

    @hookimpl
    async def after_tool(self, result: Any, ctx: Any) -> None:
        """Count."""
        self._counts.after += 1


class ThroughThena:
    """An app with one agent and one tool."""

    def __init__(self, shape: Shape) -> None:
        self.counts = shape.counts
        read_file = tool(name=TOOL, description="Reads the first lines of a file.")(
            make_body(shape.counts, yields=shape.yields, waits=shape.waits)
        )

        provider = ScriptedProvider("parallel" if shape.packs else TOOL)
        tools = [read_file, ParallelTool] if shape.packs else [read_file]

        @agent(provider=provider, tools=tools, prompt=Prompt(SYSTEM), tool_calls="all")
        class Reader: ...

        @workflow(steps=[loop([Reader], until=until_answered, max_iterations=PLENTY, max_fails=PLENTY)])
        class Flow: ...

        self._app = Thena(Flow, plugins=[Counting(shape.counts)] if shape.hooks else [])

    async def run(self) -> str:
        """Run the workflow once."""
        return str((await self._app.run(QUESTION, budget=Budget(max_tool_calls=PLENTY))).output)
