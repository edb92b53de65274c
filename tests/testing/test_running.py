"""`run_tool`: one tool, built and called alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from dependency_injector import containers, providers
from pydantic import BaseModel

from thena_core import (
    BuildError,
    Context,
    FatalToolError,
    Inject,
    RunScoped,
    State,
    Toolbox,
    ToolDefinition,
    ToolOutput,
    tool,
)
from thena_core.testing import overridden, run_tool


class Files:
    """A service."""

    def __init__(self, text: str = "real") -> None:
        self.text = text


class Progress:
    """A workflow's state."""

    def __init__(self) -> None:
        self.read: list[str] = []


class Arguments(BaseModel):
    """What the tool takes."""

    path: str


@tool(name="read", description="Reads.", schema=Arguments)
class Read:
    """A tool that takes everything."""

    def __init__(self, files: Files) -> None:
        self.files = files

    async def execute(self, args: Arguments, ctx: Context[str], progress: Annotated[Progress, State]) -> ToolOutput:
        progress.read.append(args.path)
        return ToolOutput(f"{self.files.text} {args.path} {ctx.data}", data=7)


class Services(containers.DeclarativeContainer):
    """The container."""

    files = providers.Singleton(Files)


async def test_everything_reaches_the_tool() -> None:
    """Arguments, state, data and services arrive, and the result holds call, output and outcome."""
    progress = Progress()
    result = await run_tool(Read, {"path": "a"}, state=progress, data="tenant", container=Services())
    assert result.output == ToolOutput("real a tenant", data=7)
    assert (result.outcome, result.call.name, result.call.args) == ("ok", "read", Arguments(path="a"))
    assert progress.read == ["a"]


@pytest.mark.behaviour("D07")
async def test_with_other_services() -> None:
    """`overridden` around it gives the tool the other service."""
    services = Services()
    with overridden(services, files=Files("fake")):
        result = await run_tool(Read, {"path": "a"}, state=Progress(), container=services)
    assert result.output.content == "fake a None"


async def add(number: int) -> int:
    """Adds."""
    return number + 1


@pytest.mark.parametrize("item", [tool(add), ToolDefinition("add", "Adds.", None, add)], ids=["function", "definition"])
async def test_whatever_is_a_tool(item: Any) -> None:
    """A decorated function and a definition are run as a class is, with JSON text, too."""
    assert (await run_tool(item, '{"number": 6}')).output.content == "7"


async def test_wrong_arguments_are_an_observation() -> None:
    """Arguments that do not fit never reach the tool; the result says what was wrong."""
    progress = Progress()
    result = await run_tool(Read, {"paht": "a"}, state=progress, container=Services())
    assert (result.outcome, result.output.is_error, progress.read) == ("invalid", True, [])


async def test_a_failure_is_an_observation() -> None:
    """An exception of the tool is what the model would read."""

    @tool
    async def fail() -> str:
        """Fails."""
        raise OSError("disk full")

    result = await run_tool(fail)
    assert (result.outcome, result.output.content) == ("error", "OSError: disk full")


async def test_what_ends_the_run_is_raised() -> None:
    """A fatal error leaves it, after the services of the run were closed."""
    log: list[str] = []

    def opened() -> Iterator[Files]:
        try:
            yield Files()
        finally:
            log.append("closed")

    @tool
    async def ruin(files: Annotated[Files, Inject]) -> str:
        """Ends the run."""
        raise FatalToolError("ruined")

    services = containers.DynamicContainer()
    services.files = RunScoped(opened)
    with pytest.raises(FatalToolError, match=r"^ruined$"):
        await run_tool(ruin, container=services)
    assert log == ["closed"]


async def test_a_tool_that_cannot_be_built() -> None:
    """What is wrong with the tool is told as the build of an app tells it."""
    with pytest.raises(BuildError) as caught:
        await run_tool(Read, {"path": "a"})
    assert str(caught.value).startswith("[thena] Read.__init__, parameter `files`: nothing in the container provides")


async def test_there_are_no_other_tools() -> None:
    """A tool that asks for the others finds none."""

    @tool
    async def look(toolbox: Toolbox) -> str:
        """Looks."""
        return f"{len(list(toolbox))} others"

    assert (await run_tool(look)).output.content == "0 others"


def test_it_is_loaded_when_asked_for() -> None:
    """Importing `thena_core.testing` loads neither pluggy nor dependency-injector."""
    program = (
        "import sys, thena_core.testing\n"
        "print([name for name in ('pluggy', 'dependency_injector') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_tool_that_calls_others() -> None:
    """The result is that of the tool, also where it called others before it ended."""

    @tool
    async def ask_around(toolbox: Toolbox) -> str:
        """Asks a tool that there is not."""
        return (await toolbox["other"]({})).content

    result = await run_tool(ask_around)
    assert (result.call.name, result.outcome) == ("ask_around", "ok")
    assert result.output.content.startswith('unknown tool "other"')
