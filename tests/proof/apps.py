"""From a drawn app to a real one: its tools, hooks, middlewares and agents, each writing down what it sees."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Annotated, Any

from dependency_injector import containers
from pydantic import BaseModel, ConfigDict

from tests.proof.model import ENDING, OUTER, PACKED, AppSpec, Call, Layer, Leaf, PluginSpec, identify
from tests.proof.world import Answer, Nested, Session, World
from thena_core import (
    Budget,
    Context,
    EndsRun,
    FatalToolError,
    Inject,
    Input,
    Prompt,
    RunScoped,
    Thena,
    Toolbox,
    ToolCall,
    ToolDefinition,
    ToolOutput,
    ToolRequest,
    ToolResult,
    Tools,
    WorkflowRuntime,
    agent,
    hookimpl,
    tool,
)
from thena_core.providers import ChatRequest, ChatTurn, Provider
from thena_tools import ParallelTool
from thena_tools.parallel import Batch

LONG = 50.0
"""Seconds of the fake clock that no call takes, unless the clock is moved."""


class Args(BaseModel):
    """What every tool here accepts."""

    model_config = ConfigDict(extra="forbid")
    key: int
    value: int


AS_DICT = {
    "type": "object",
    "properties": {"key": {"type": "integer"}, "value": {"type": "integer"}},
    "required": ["key", "value"],
    "additionalProperties": False,
}


def shown(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a call's arguments, those of packed calls as they were written."""
    return {name: [dict(part) for part in value] if name == "calls" else value for name, value in arguments.items()}


def build(world: World, spec: AppSpec, log: Any) -> tuple[Thena, type, type]:
    """Make the app, its agent and the agent that nested runs start."""
    leaves = [leaf_tool(world, f"t{number}", leaf) for number, leaf in enumerate(spec.leaves)]
    inner = type("InnerAgent", (), {"__module__": __name__})
    tools = [*leaves, packed_tool(world), outer_tool(world, inner)]
    provider = Script(world)
    agent(provider=provider, tools=tools, prompt=Prompt("You act."), tool_calls="all")(inner)
    main = type("MainAgent", (), {"__module__": __name__, **agent_hooks(world, spec)})
    calls: Any = "all" if spec.every_call else "one"
    agent(provider=provider, tools=tools, prompt=Prompt("You act."), tool_calls=calls)(main)

    class Services(containers.DeclarativeContainer):
        session = RunScoped(world.session)

    plugins = [plugin(world, f"plugin{number}", part) for number, part in enumerate(spec.plugins)]
    app = Thena(main, workflows=[inner], container=Services(), plugins=plugins, log=log)
    for number, layer in enumerate(spec.around):
        app.use(tool=middleware(world, layer, f"app{number}"))
    return app, main, inner


class Script(Provider):
    """A model that asks for what the run's message names, turn by turn, and then says that it is done."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Play the next turn of the newest message's script."""
        said = list(request.messages)
        newest = max(n for n, message in enumerate(said) if message.role == "user")
        script = said[newest].content
        number = sum(message.role == "assistant" for message in said[newest:])
        self._world.chats[script] += 1
        self._world.note(script, "chat")
        await asyncio.sleep(0)
        turns = self._world.scripts[script]
        if number >= len(turns):
            return ChatTurn("done")
        return ChatTurn("", [ToolRequest(f"c{call.key}", call.asked_name, call.raw) for call in turns[number]])


def leaf_tool(world: World, name: str, leaf: Leaf) -> Any:
    """Declare a tool in the form drawn."""
    plain, taking_args, taking_dict, scoped = (_async_forms if leaf.kind == "async" else _sync_forms)(world, name)
    given: dict[str, Any] = {"effect": leaf.effect, "blocking": leaf.kind != "inline"}
    given["timeout"] = LONG if leaf.limited else None
    if leaf.form == "function":
        return tool(name=name, description="Does.", **given)(plain)
    if leaf.form in ("definition", "dict"):
        schema, execute = (AS_DICT, taking_dict) if leaf.form == "dict" else (None, plain)
        return ToolDefinition(name, "Does.", schema, execute, **given)
    method = {"class": taking_args, "scoped": scoped}.get(leaf.form, plain)
    made = type(f"Tool{name}", (), {"__module__": __name__, "execute": staticmethod(method)})
    schema = None if leaf.form == "parameters" else Args
    declared = tool(name=name, description="Does.", schema=schema, **given)(made)
    return declared() if leaf.form == "instance" else declared


def _async_forms(world: World, name: str) -> tuple[Any, Any, Any, Any]:
    async def plain(key: int, value: int) -> str:
        call = _started(world, name, key, value)
        for _ in range(call.wait):
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if call.what != "stubborn":
                    raise
                for _ in range(40):
                    await asyncio.sleep(0)
        return _ended(world, call, name, value)

    async def taking_args(args: Args, ctx: Context) -> str:
        world.meet(str(args.key), ctx)
        return await plain(args.key, args.value)

    async def taking_dict(arguments: dict[str, Any]) -> str:
        return await plain(**arguments)

    async def scoped(args: Annotated[Args, Input], session: Annotated[Session, Inject]) -> str:
        world.used_closed += session.number not in world.sessions
        return await plain(args.key, args.value)

    return plain, taking_args, taking_dict, scoped


def _sync_forms(world: World, name: str) -> tuple[Any, Any, Any, Any]:
    def plain(key: int, value: int) -> str:
        call = _started(world, name, key, value)
        if call.wait and threading.current_thread() is not threading.main_thread():
            world.wait_at_gate(call.wait)
        return _ended(world, call, name, value)

    def taking_args(args: Args, ctx: Context) -> str:
        world.meet(str(args.key), ctx)
        return plain(args.key, args.value)

    def taking_dict(arguments: dict[str, Any]) -> str:
        return plain(**arguments)

    def scoped(args: Annotated[Args, Input], session: Annotated[Session, Inject]) -> str:
        world.used_closed += session.number not in world.sessions
        return plain(args.key, args.value)

    return plain, taking_args, taking_dict, scoped


def _started(world: World, name: str, key: int, value: int) -> Call:
    world.note(str(key), "execute", name=name, arguments={"key": key, "value": value})
    return world.calls[key]


def _ended(world: World, call: Call, name: str, value: int) -> str:
    if call.what == "cancels":
        raise asyncio.CancelledError
    if call.what in ENDING:
        world.ends(call.ident)
        fatal = FatalToolError("no more")
        raise fatal if call.what == "fatal" else ExceptionGroup("several", [ValueError("a"), fatal])
    if call.what == "fail":
        raise ValueError(f"{name} failed")
    if call.what == "group":
        raise ExceptionGroup("several", [ValueError(f"{name} failed"), KeyError(name)])
    return f"{name} did {call.key} with {value}"


class Watched:
    """A toolbox that keeps what its batches return, for a tool that does not tell."""

    def __init__(self, world: World, toolbox: Toolbox) -> None:
        self._world = world
        self._toolbox = toolbox

    async def batch(self, calls: Any) -> list[ToolResult]:
        """Pass the calls on."""
        results = await self._toolbox.batch(calls)
        for result in results:
            _keep(self._world, result)
        return results


def _keep(world: World, result: ToolResult) -> None:
    ident = identify(result.call.name, result.call.raw)
    world.answers[ident].append(Answer(result.output.content, result.output.is_error, result.outcome))


def packed_tool(world: World) -> Any:
    """Make a `ParallelTool` that says when it runs."""

    @tool(name=PACKED, description="Several at once.", schema=Batch)
    class Packed(ParallelTool):
        async def execute(self, batch: Annotated[Batch, Input], toolbox: Annotated[Toolbox, Tools]) -> ToolOutput:
            ident = f"p{batch.calls[0].arguments['key']}"
            world.note(ident, "execute", name=PACKED, arguments=shown({"calls": batch.calls}))
            watched: Any = Watched(world, toolbox)
            return await super().execute(batch, watched)

    return Packed


def outer_tool(world: World, inner: type) -> Any:
    """Make a tool that calls others: one by one, in a batch, or in a nested run."""

    @tool(name=OUTER, description="Asks others.", schema=Args)
    class Outer:
        def __init__(self, runtime: WorkflowRuntime) -> None:
            self._runtime = runtime

        async def execute(self, key: int, value: int, ctx: Context, toolbox: Toolbox) -> str:
            world.note(str(key), "execute", name=OUTER, arguments={"key": key, "value": value})
            world.meet(str(key), ctx)
            call = world.calls[key]
            try:
                await self._ask(call, toolbox)
            except EndsRun:
                if not call.catches:
                    raise
            return f"{OUTER} did {key} with {value}"

        async def _ask(self, call: Call, toolbox: Toolbox) -> None:
            if call.what == "nested":
                await self._nest(call)
            elif call.what == "batch":
                asked = [(part.asked_name, part.raw) for part in call.inner]
                limit, seconds = (1, LONG) if call.bounded else (None, None)
                for result in await toolbox.batch(asked, concurrency=limit, timeout=seconds):
                    _keep(world, result)
            else:
                for part in call.inner:
                    output = await toolbox[part.asked_name](part.raw)
                    world.answers[part.ident].append(Answer(output.content, output.is_error))

        async def _nest(self, call: Call) -> None:
            message = f"s{call.key}"
            world.scripts[message] = call.turns
            budget = None if call.limit is None else Budget(max_tool_calls=call.limit)
            result = await self._runtime.run(inner, message=message, budget=budget)
            world.nested[call.key] = Nested(result.history, result.usage)

    return Outer


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
