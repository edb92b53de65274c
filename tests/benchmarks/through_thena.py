"""The same agent in Thena, with its default layers and a budget that counts."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.workload import ANSWER, QUESTION, SYSTEM, TOOL, Counts, Shape, make_body, script
from thena_core import Budget, Event, Prompt, Thena, agent, hookimpl, loop, tool, until_answered, workflow
from thena_core.budget import Tracker
from thena_core.messages import ChatTurn, ToolRequest
from thena_core.providers import ChatRequest, Provider
from thena_core.record.tree import Recorder
from thena_tools import ParallelTool

PLENTY = 1_000_000_000


def ignore(_event: Event) -> None:
    """Watch, and look at nothing."""


def recorded(run_id: str, _log: Any, _report: Any, _plugins: Any, tracker: Tracker | None = None) -> Recorder:
    """Make a recorder that keeps the run's tree and has nobody to tell."""
    return Recorder(run_id, keeps=True, tracker=tracker)


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

        self._app = Thena(
            Flow, plugins=[Counting(shape.counts)] if shape.hooks else [], log=ignore if shape.watched else False
        )
        if shape.recorded:  # as with a report, but without its files: those are written when a run has ended
            self._app._observers.recorder = recorded  # type: ignore[method-assign]

    async def run(self) -> str:
        """Run the workflow once."""
        return str((await self._app.run(QUESTION, budget=Budget(max_tool_calls=PLENTY))).output)
