"""The demo's app: the agent, the service its tools ask for, and the middleware that lets it only read."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

from dependency_injector import containers, providers

from thena_core.agents import agent
from thena_core.app import Thena
from thena_core.call import CallNext, ToolCall
from thena_core.demo.files import ListDirTool, ReadFileTool, SaveNoteTool, SearchFilesTool
from thena_core.demo.folder import Folder
from thena_core.demo.standin import StandIn
from thena_core.output import ToolOutput
from thena_core.providers.base import Provider
from thena_core.workflows import loop, until_answered, workflow

BATCH_TOOL = "parallel"
"""The installed tool that packs several calls; it comes with thena-tools."""

FILE_TOOLS = (ListDirTool, ReadFileTool, SearchFilesTool, SaveNoteTool)


class Services(containers.DeclarativeContainer):
    """What the demo's tools ask for in their constructors, by type."""

    config = providers.Configuration()
    folder = providers.Singleton(Folder, root=config.root)


async def only_reading(call: ToolCall, call_next: CallNext) -> ToolOutput:
    """Refuse every call that does more than read; the batch passes, for each call in it comes through here too."""
    reads = call.definition is not None and call.definition.effect == "read"
    if reads or call.name == BATCH_TOOL:
        return await call_next(call)
    return ToolOutput(f'Not allowed: "{call.name}" changes something, and this demo only reads.', is_error=True)


def has_batch_tool() -> bool:
    """Whether thena-tools is installed."""
    return bool(entry_points(group="thena.tools", name=BATCH_TOOL))


def build_demo(folder: Path, provider: Provider | None = None, *, log: bool = True, report: bool = True) -> Thena:
    """Return the app that explores `folder`; run it with a question.

    Args:
        folder: What the tools may see.
        provider: The model; the stand-in, which follows fixed rules, unless given.
        log: Print the live tree on stderr.
        report: Write `report/<run_id>/` under the current folder.
    """
    tools = [*FILE_TOOLS, BATCH_TOOL] if has_batch_tool() else [*FILE_TOOLS]

    @agent(provider=provider or StandIn(), tools=tools, prompt="./explorer.agent.md")
    class ExplorerAgent:
        """Answer questions about a folder."""

    @workflow(steps=[loop([ExplorerAgent], until=until_answered, max_iterations=25, max_fails=5)])
    class ExplorerWorkflow:
        """Let the agent look until it answers."""

    services = Services()
    services.config.from_dict({"root": folder})
    app = Thena(ExplorerWorkflow, container=services, log=log, report=report)
    app.use(tool=only_reading)
    return app
