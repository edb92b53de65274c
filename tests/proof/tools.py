"""The tools of a drawn app, in every form that a tool can have: leaves, one that packs calls, one that asks others."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from tests.proof.model import ENDING, OUTER, PACKED, Call, Leaf, identify, shown
from tests.proof.world import Answer, Nested, Session, World
from thena_core import (
    Budget,
    Context,
    EndsRun,
    FatalToolError,
    Inject,
    Input,
    Toolbox,
    ToolDefinition,
    ToolOutput,
    ToolResult,
    Tools,
    WorkflowRuntime,
    tool,
)
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
        try:
            await _waited(call)
        finally:
            world.leave(str(key))
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


async def _waited(call: Call) -> None:
    for _ in range(call.wait):
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if call.what != "stubborn":
                raise
            for _ in range(40):
                await asyncio.sleep(0)


def _sync_forms(world: World, name: str) -> tuple[Any, Any, Any, Any]:
    def plain(key: int, value: int) -> str:
        call = _started(world, name, key, value)
        if call.wait and threading.current_thread() is not threading.main_thread():
            world.wait_at_gate(call.wait)
        world.leave(str(key))
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
    world.enter(str(key))
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
