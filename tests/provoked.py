"""One mistake for each text on the page of errors: the smallest app, tool or run that provokes it."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from pydantic import BaseModel

from tests import wrong_parts as w
from tests.providers.loopback import Answer, Loopback
from thena_core import (
    BuildError,
    FatalToolError,
    Prompt,
    RunScoped,
    Thena,
    ThenaError,
    ToolRequest,
    WorkflowRuntime,
    agent,
    current_context,
    tool,
    workflow,
)
from thena_core.providers import OllamaProvider, OpenAIProvider
from thena_core.testing import FakeProvider, overridden

Provoke = Callable[[], Awaitable[object]]

MODULE = "explorer"
AGENT_FILE = Path("app", "explorer.py").absolute()


@tool
async def read_file(path: str) -> str:
    """Reads a file."""
    return path


@tool
async def delete_all() -> str:
    """Deletes everything."""
    raise FatalToolError("database unavailable")


def execute_on(
    execute: Any, name: str = "SearchTool", *, schema: Any = None, strict: bool | None = None, init: Any = None
) -> type:
    """Make a tool class with this `execute`, and this constructor."""
    members = {"__module__": MODULE, "execute": execute}
    if init is not None:
        members["__init__"] = init
    return tool(name="search", description="Searches.", schema=schema, strict=strict)(type(name, (), members))


def agent_of(members: Mapping[str, Any] | None = None, turns: Any = ("done",), **options: Any) -> type:
    """Make an agent class with these methods."""
    options = {"provider": FakeProvider(turns), "prompt": Prompt("Be brief."), "tools": [read_file], **options}
    return agent(**options)(type("Explorer", (), {"__module__": MODULE, **(members or {})}))


def in_tools(item: Any, **options: Any) -> Provoke:
    """Build an app with one tool."""
    return built(lambda: Thena(tools=[item], **options))


def serving(execute: Any, make: Callable[[], Any], *, init: Any = None) -> Provoke:
    """Build an app with one tool, and a container made for it."""
    return built(lambda: Thena(tools=[execute_on(execute, init=init)], container=make()))


async def bad_close() -> None:
    """Call a tool that uses a service which cannot be closed."""
    services = w.services(clock=RunScoped(w.closing_badly))
    async with Thena(tools=[execute_on(w.takes_clock)], container=services) as app:
        await app.call("search", {"path": "a"})


async def handle_outside() -> None:
    """Call the handle of a service of a run where no run is."""
    w.services(clock=RunScoped(w.Clock)).clock()


async def override_nothing() -> None:
    """Override a service that is not there."""
    with overridden(w.OneClock(), clcok=w.Clock()):
        pass


async def runtime_outside() -> None:
    """Start a nested run where no run is."""
    kept: list[WorkflowRuntime] = []

    @tool
    async def keep(runtime: WorkflowRuntime) -> str:
        """Keeps it."""
        kept.append(runtime)
        return ""

    async with Thena(tools=[keep]) as app:
        await app.call("keep")
        await kept[0].run(agent_of())


async def nesting() -> None:
    """Run a workflow that starts itself."""

    @tool
    async def again(runtime: WorkflowRuntime) -> str:
        """Starts it again."""
        await runtime.run(clerk, message="go")
        return ""

    clerk = agent_of(turns=[ToolRequest("c1", "again", "{}")], tools=[again])
    async with Thena(clerk) as app:
        await app.run("go")


class Verdict(BaseModel):
    """What an agent shall answer."""

    safe: bool


async def an_answer_that_does_not_fit() -> None:
    """Run an agent whose model writes something else than its output, twice."""
    async with Thena(agent_of(turns=["I am sure."], output=Verdict)) as app:
        await app.run("go")


def built(make: Callable[[], Thena]) -> Provoke:
    """Build an app, and raise the first of its problems."""

    async def provoke() -> None:
        try:
            async with make():
                pass
        except BuildError as error:
            raise error.exceptions[0] from None

    return provoke


async def aborted() -> None:
    """Abort a run before it has taken a step."""
    async with Thena(agent_of()) as app:
        handle = app.start("go")
        handle.abort("the client left")
        await handle.result()


async def run_after_close() -> None:
    """Run an app that was closed."""
    async with Thena(agent_of()) as app:
        pass
    await app.run("go")


async def close_inside_a_run() -> None:
    """Close an app from a hook of its own run."""

    async def before_tool(self: Any, call: Any) -> None:
        try:
            await apps[0].close()
        except ThenaError as error:
            refused.append(error)

    apps: list[Thena] = []
    refused: list[ThenaError] = []
    members = {"before_tool": before_tool}
    async with Thena(agent_of(members, [ToolRequest("c1", "read_file", '{"path": "a"}'), "done"])) as app:
        apps.append(app)
        await app.run("go")
    raise refused[0]


async def context_afterwards() -> None:
    """Ask a call for its context when its run is over."""
    calls: list[Any] = []

    async def before_tool(self: Any, call: Any) -> None:
        calls.append(call)

    members = {"before_tool": before_tool}
    async with Thena(agent_of(members, [ToolRequest("c1", "read_file", '{"path": "a"}'), "done"])) as app:
        await app.run("go", run_id="r1")
    _ = calls[0].ctx


def running(members: Mapping[str, Any] | None = None, *, call: str = '{"path": "a"}', **options: Any) -> Provoke:
    """Run an agent that asks for `read_file` once, with these hooks."""
    use, budget = options.pop("use", None), options.pop("budget", None)
    turns = [ToolRequest("c1", "read_file", call), "done"]

    async def provoke() -> None:
        async with Thena(agent_of(members, turns, **options)) as app:
            await app.run("go", budget=budget)

    async def with_middleware() -> None:
        app = Thena(agent_of(members, turns, **options))
        app.use(tool=use)
        async with app:
            await app.run("go")

    return with_middleware if use is not None else provoke


async def a_missing_prompt() -> None:
    """Build an agent whose prompt file is not there; the module's folder stands for any."""
    module = ModuleType(MODULE)
    module.__file__ = str(AGENT_FILE)
    with mock.patch.dict(sys.modules, {MODULE: module}):
        await built(lambda: Thena(agent_of(prompt="./explorer.agent.md")))()


async def asking(service: str, **environment: str) -> None:
    """Run an agent whose model answers at `service`, without what this machine's environment says of it."""
    kept = {name: value for name, value in os.environ.items() if "OPENAI" not in name and "PROXY" not in name.upper()}
    with mock.patch.dict(os.environ, {**kept, **environment}, clear=True):
        async with Thena(agent_of(provider=OpenAIProvider("gpt-5-mini", base_url=service))) as app:
            await app.run("hello")


async def without_a_key() -> None:
    """Run with a model service whose key nobody gave."""
    await asking("https://api.openai.com/v1")


async def with_a_wrong_key() -> None:
    """Run with a model service that refuses the key."""
    service = Loopback()
    service.script(Answer({"error": {"message": "Incorrect API key provided."}}, 401, {"x-request-id": "req_7f3a"}))
    try:
        await asking(service.url, OPENAI_API_KEY="sk-wrong")
    finally:
        service.close()


async def with_a_model_that_is_not_there() -> None:
    """Run with an Ollama that does not have the model."""
    service = Loopback()
    service.script(Answer({"error": "model 'qwen3' not found"}, 404))
    try:
        async with Thena(agent_of(provider=OllamaProvider("qwen3", service.url))) as app:
            await app.run("hello")
    finally:
        service.close()


async def without_ollama() -> None:
    """Run with an Ollama that was not started; port 1 stands for its own."""
    async with Thena(agent_of(provider=OllamaProvider("qwen3", "127.0.0.1:1", retry=False))) as app:
        await app.run("hello")


INSTALLED = EntryPoints(
    [
        EntryPoint("parallel", "thena_tools.parallel:ParallelTool", "thena.tools"),
        EntryPoint("broken", "thena_broken.tool:Tool", "thena.tools"),
        EntryPoint("audit", "acme_audit.plugin", "thena.plugins"),
    ]
)


def with_installed(provoke: Provoke) -> Provoke:
    """Do it on a machine where certain packages, and no others, bring tools and plugins."""

    async def provoke_there() -> None:
        with mock.patch("importlib.metadata.entry_points", INSTALLED.select):
            await provoke()

    return provoke_there


async def use_after_build() -> None:
    """Add a middleware to an app that is built."""
    async with Thena(tools=[read_file]) as app:
        app.use(tool=lambda call, call_next: call_next(call))


async def misspelt_tool() -> None:
    """Ask for the explanation of a tool that is not there."""
    async with Thena(tools=[read_file]) as app:
        app.explain("raed_file")


async def misspelt_agent() -> None:
    """Call a tool of an agent that is not there."""
    async with Thena(agent_of()) as app:
        await app.call("read_file", {"path": "a"}, agent="Exporer")


async def whose_tool() -> None:
    """Call a tool that two agents have."""
    second = agent(provider=FakeProvider(), prompt=Prompt(""), tools=[read_file], name="Reviewer")(type("B", (), {}))
    flow = workflow(steps=[agent_of(), second])(type("Flow", (), {}))
    async with Thena(flow) as app:
        await app.call("read_file", {"path": "a"})


async def run_sync_in_a_loop() -> None:
    """Call the script's form of `run` from a coroutine."""
    Thena(agent_of()).run_sync("go")


async def context_outside() -> None:
    """Ask for the run where there is none."""
    current_context()


async def two_problems() -> None:
    """Build an app with two mistakes."""
    async with Thena(tools=[type("ReadFile", (), {}), type("ListDir", (), {})]):
        pass


async def one_problem() -> None:
    """Build an app with one mistake."""
    async with Thena(tools=[type("ReadFile", (), {})]):
        pass


def flow_of(*steps: Any, **options: Any) -> Provoke:
    """Build a workflow."""
    return built(lambda: Thena(workflow(steps=steps, **options)(type("ReviewFlow", (), {}))))
