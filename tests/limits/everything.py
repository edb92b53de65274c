"""An app in which everything that can be awaited is, and the ledger of what it opened: for tests that stop runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from dependency_injector import containers

from tests.hooks.scripted import ask, assert_legal
from tests.limits.scenes import starts
from thena_core import (
    Context,
    Event,
    Inject,
    Prompt,
    RunScoped,
    Thena,
    Toolbox,
    ToolDefinition,
    ToolOutput,
    agent,
    loop,
    parallel,
    workflow,
)
from thena_core.providers import ChatRequest, ChatTurn, Provider
from thena_tools import ParallelTool


async def turn() -> None:
    """Give way to the event loop, twice: between them a cancellation may come."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


@dataclass
class Ledger:
    """What was opened and closed, called and disposed, in all runs of one app."""

    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    registered: int = 0
    disposed: int = 0
    contexts: list[Context] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    def keep(self, ctx: Context) -> None:
        """Register something to be disposed of."""
        self.contexts.append(ctx)
        self.registered += 1
        ctx.on_dispose(self.dispose)

    async def dispose(self) -> None:
        """Take a few turns of the loop to tidy up."""
        self.disposed += 1
        await turn()

    def assert_settled(self) -> None:
        """Check that everything of every run was ended, and each history can be gone on from."""
        assert sorted(self.opened) == sorted(self.closed)
        assert self.registered == self.disposed
        for context in self.contexts:
            assert_legal(context.history)
        begun = sorted(event.id for event in self.events if event.phase == "start")
        assert begun == sorted(event.id for event in self.events if event.phase == "end")


class Session:
    """A run-scoped service that needs another one."""

    def __init__(self, name: str) -> None:
        self.name = name


def container_of(ledger: Ledger) -> Any:
    """Make a container with two services of the run, one inside the other; both take time to open and to close."""

    async def connection() -> AsyncIterator[str]:
        await turn()
        ledger.opened.append("connection")
        try:
            yield "connection"
        finally:
            await turn()
            ledger.closed.append("connection")

    async def session(inner: str) -> AsyncIterator[Session]:
        ledger.opened.append("session")
        try:
            await turn()
            yield Session(inner)
        finally:
            ledger.closed.append("session")
            await turn()

    class Services(containers.DeclarativeContainer):
        inner = RunScoped(connection)
        outer = RunScoped(session, inner)

    return Services()


class Plays(Provider):
    """A model that plays a script for each run apart, and takes its time."""

    def __init__(self, *turns: Any) -> None:
        self.turns = turns

    async def chat(self, request: ChatRequest) -> ChatTurn:
        await turn()
        number = sum(message.role == "assistant" for message in request.messages)
        asked = self.turns[number] if number < len(self.turns) else "done"
        if isinstance(asked, str):
            return ChatTurn(asked)
        return ChatTurn("", asked if isinstance(asked, list) else [asked])


def app_of(ledger: Ledger) -> Thena:
    """Make an app in which everything that can be awaited is."""

    async def touch(ctx: Context, session: Annotated[Session, Inject]) -> str:
        ledger.keep(ctx)
        await turn()
        return session.name

    async def outer(ctx: Context, toolbox: Toolbox) -> str:
        ledger.keep(ctx)
        first = await toolbox["touch"]({})
        rest = await toolbox.batch([("touch", {}), ("write", {})], timeout=60)
        return first.content + "".join(result.output.content for result in rest)

    async def write() -> AsyncIterator[str]:
        await turn()
        yield "written"

    async def deny(call: Any, call_next: Any) -> ToolOutput:
        await turn()
        output = await call_next(call)
        await turn()
        return output

    async def ask_model(call: Any, call_next: Any) -> ChatTurn:
        await turn()
        return await call_next(call)

    class Hooks:
        async def before_prompt(self, prompt: str, ctx: Context) -> None:
            ledger.contexts.append(ctx)
            await turn()

        async def before_tool(self) -> None:
            await turn()

        async def after_tool(self) -> None:
            await turn()

        async def after_response(self, text: str) -> None:
            await turn()

    async def answered(ctx: Context) -> bool:
        await turn()
        return not ctx.turn.called_tool

    tools = [
        ToolDefinition("touch", "d", None, touch),
        ToolDefinition("write", "d", None, write, effect="write", timeout=60),
    ]
    inner = agent(
        provider=Plays([ask("touch"), ask("write", None, "c2")]), tools=tools, prompt=Prompt("p"), tool_calls="all"
    )(type("Inner", (Hooks,), {"__module__": __name__}))
    tools = [*tools, ToolDefinition("outer", "d", None, outer), starts(inner), ParallelTool]
    packed = ask("parallel", {"calls": [{"name": "touch"}, {"name": "write"}, {"name": "write"}, {"name": "nested"}]})
    script = [
        ask("touch"),
        [ask("write"), ask("touch", None, "c2"), ask("write", None, "c3")],
        packed,
        ask("outer"),
        ask("nested"),
    ]
    made = agent(provider=Plays(*script), tools=tools, prompt=Prompt("p"), tool_calls="all")(Hooks)
    flow = workflow(steps=[parallel([loop([inner]), inner]), loop([made], until=answered)])(
        type("Flow", (), {"__module__": __name__})
    )
    app = Thena(flow, container=container_of(ledger), log=ledger.events.append)
    app.use(tool=deny)
    app.use(chat=ask_model)
    return app
