"""What a plugin goes through in the conformance suite: calls of every kind, and of every way in which one can end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thena_core.agents import Prompt, agent
from thena_core.app import Thena
from thena_core.budget import Budget
from thena_core.call import CallNext, ToolCall
from thena_core.calls.toolset import Toolbox
from thena_core.definition import ToolDefinition
from thena_core.errors import EndsRun, FatalToolError, RunAborted
from thena_core.execution import WorkflowRuntime
from thena_core.handle import RunHandle
from thena_core.messages import ToolRequest
from thena_core.output import ToolOutput
from thena_core.testing.provider import FakeProvider, ScriptedTurn
from thena_core.testing.recorded import Record

Asked = tuple[str, Mapping[str, Any] | str]
"""What the scripted model asks for: a tool's name, and its arguments as a mapping or as the text that it writes."""

LOOK: Asked = ("look", {"path": "a.txt", "lines": [1, 2]})


@dataclass(slots=True)
class Stage:
    """One app for one scene, and what its tools say of themselves.

    Attributes:
        plugins: The plugins that the app uses.
        data: The run's data.
        container: The app's container.
        ran: The tools that were executed.
        record: What happened.
        waiting: How many calls of `wait` are in flight.
        tools: The tools of the suite, which say when they are executed.
        inner: What `delegate` runs.
    """

    plugins: Sequence[Any]
    data: Any
    container: Any
    ran: list[str] = field(default_factory=list[str])
    record: Record = field(default_factory=Record)
    waiting: int = 0
    tools: Sequence[ToolDefinition] = ()
    inner: type = object
    _begun: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        # made once: the app, its agent and the nested one share them, and each tool is inspected once
        self.tools = self._tools()
        self.inner = _agent("ConformanceInner", self.tools, [LOOK, ("fail", {})])

    def app(self, *turns: Sequence[Asked], around: Sequence[Any] = ()) -> Thena:
        """Make an app whose model asks for these calls, a turn each, and then answers."""
        made = Thena(
            _agent("ConformanceAgent", self.tools, *turns),
            tools=self.tools,
            workflows=[self.inner],
            container=self.container,
            plugins=self.plugins,
            log=self.record,
        )
        for function in around:
            made.use(tool=function)
        return made

    def _tools(self) -> list[ToolDefinition]:
        ran = self.ran

        async def look(path: str, lines: list[int]) -> str:
            ran.append("look")
            return f"{path}: {len(lines)} lines"

        async def write(path: str) -> ToolOutput:
            ran.append("write")
            return ToolOutput(f"wrote {path}", data={"path": path})

        def remove(path: str) -> str:
            ran.append("remove")
            return f"removed {path}"

        async def fail() -> str:
            ran.append("fail")
            raise OSError("no such file")

        async def ruin() -> str:
            ran.append("ruin")
            raise FatalToolError("the disk is gone")

        async def wait() -> str:
            ran.append("wait")
            async with self._begun:
                self.waiting += 1
                self._begun.notify_all()
            await asyncio.Event().wait()
            return "never"

        async def pack(calls: list[dict[str, Any]], toolbox: Toolbox) -> str:
            ran.append("pack")
            results = await toolbox.batch([(call["name"], call["arguments"]) for call in calls])
            return "; ".join(result.output.content for result in results)

        async def delegate(task: str, runtime: WorkflowRuntime) -> str:
            ran.append("delegate")
            return str((await runtime.run(self.inner, message=task)).output)

        return [
            ToolDefinition("look", "Looks into a file.", None, look, effect="read", idempotent=True),
            ToolDefinition("write", "Writes a file.", None, write, effect="write"),
            ToolDefinition("remove", "Removes a file.", None, remove, effect="destructive"),
            ToolDefinition("fail", "Fails.", None, fail),
            ToolDefinition("ruin", "Ends the run.", None, ruin),
            ToolDefinition("wait", "Waits until it is cancelled.", None, wait, effect="read"),
            ToolDefinition("late", "Takes too long.", None, wait, timeout=0.01),
            ToolDefinition("pack", "Makes several calls.", None, pack),
            ToolDefinition("delegate", "Starts a workflow.", None, delegate),
        ]

    async def in_flight(self, handle: RunHandle, number: int = 1) -> None:
        """Wait until so many calls of `wait` are in flight, or the run has ended, where a plugin answers for them."""

        async def begun() -> None:
            async with self._begun:
                await self._begun.wait_for(lambda: self.waiting >= number)

        tasks = [asyncio.create_task(begun()), asyncio.create_task(_ended(handle))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Scene:
    """One kind of calls.

    Attributes:
        name: How messages name it.
        play: Plays it.
        ends: What the run ends with.
        by: The tool that must have been executed for it to end so: a plugin may answer in its place.
        cancels: Whether something is cancelled in it.
        abort_in: The hook in which the run is aborted; the scene is played for plugins that have this hook.
    """

    name: str
    play: Callable[[Stage], Awaitable[Any]]
    ends: type[EndsRun] | None = None
    by: str | None = None
    cancels: bool = False
    abort_in: str | None = None


async def _run(stage: Stage, app: Thena, **options: Any) -> None:
    async with app:
        await app.run("go", data=stage.data, **options)


async def _direct(stage: Stage) -> None:
    async with stage.app([LOOK], [("write", {"path": "b"})], [("remove", '{"path": "b"}')]) as app:
        await app.call(*LOOK, data=stage.data)
        await app.run("go", data=stage.data)


async def _batched(stage: Stage) -> None:
    await _run(stage, stage.app([LOOK, ("fail", {}), ("write", {"path": "b"}), LOOK, ("remove", {"path": "b"})]))


async def _packed(stage: Stage) -> None:
    inside: list[Asked] = [LOOK, ("fail", {}), ("no_such_tool", {}), ("look", {"path": 7}), ("pack", {"calls": []})]
    await _run(stage, stage.app([_pack(inside)]))


async def _nested(stage: Stage) -> None:
    await _run(stage, stage.app([("delegate", {"task": "look"}), _pack([("delegate", {"task": "look"}), LOOK])]))


async def _beside(stage: Stage) -> None:
    async with stage.app([LOOK]) as app:
        await asyncio.gather(*(app.run("go", data=stage.data) for _ in range(3)))


async def _failing(stage: Stage) -> None:
    await _run(stage, stage.app([("fail", {})], [("late", {})]))


async def _invalid(stage: Stage) -> None:
    wrong: list[Asked] = [("look", {"path": "a"}), ("look", '{"path": "a", "lines": ['), ("look", "null")]
    await _run(stage, stage.app(wrong, [("no_such_tool", {"x": 1}), ("", "")]))


async def _refused(stage: Stage) -> None:
    async def refuse(call: ToolCall, _call_next: CallNext) -> ToolOutput:
        return ToolOutput(f"Not allowed: {call.name}.", is_error=True)

    await _run(stage, stage.app([LOOK, ("remove", {"path": "b"})], around=[refuse]))


async def _over_budget(stage: Stage) -> None:
    await _run(stage, stage.app([LOOK, LOOK], [LOOK]), budget=Budget(max_tool_calls=1))


async def _fatal(stage: Stage) -> None:
    await _run(stage, stage.app([("wait", {}), ("ruin", {})]))


async def _fatal_packed(stage: Stage) -> None:
    await _run(stage, stage.app([_pack([("wait", {}), ("ruin", {})])]))


async def _cancelled_call(stage: Stage) -> None:
    async with stage.app([("wait", {}), LOOK]) as app, app.start("go", data=stage.data) as handle:
        await stage.in_flight(handle)
        handle.cancel_call("c0")
        await handle.result()


async def _aborted(stage: Stage) -> None:
    packed = _pack([("wait", {}), ("wait", {})])
    async with stage.app([("wait", {}), packed]) as app, app.start("go", data=stage.data) as handle:
        await stage.in_flight(handle, 3)
        handle.abort("the suite aborts it")
        await handle.result()


async def _out_of_time(stage: Stage) -> None:
    await _run(stage, stage.app([("wait", {})]), budget=Budget(max_duration=0.05))


async def _closed(stage: Stage) -> None:
    app = stage.app([("wait", {})])
    handle = app.start("go", data=stage.data)
    await stage.in_flight(handle)
    await app.close()
    await handle.result()


async def _aborted_inside(stage: Stage) -> None:
    await _run(stage, stage.app([LOOK, ("write", {"path": "b"})], [("remove", {"path": "b"})]))


SCENES = (
    Scene("direct calls", _direct),
    Scene("calls of one turn", _batched),
    Scene("packed calls", _packed),
    Scene("calls of nested runs", _nested),
    Scene("runs beside each other", _beside),
    Scene("failing calls", _failing),
    Scene("invalid calls", _invalid),
    Scene("refused calls", _refused),
    Scene("calls over the budget", _over_budget),
    Scene("a fatal call", _fatal, FatalToolError, "ruin", cancels=True),
    Scene("a fatal call in a pack", _fatal_packed, FatalToolError, "ruin", cancels=True),
    Scene("a call cancelled by its id", _cancelled_call, cancels=True),
    Scene("a run out of time", _out_of_time, cancels=True),
    Scene("an aborted run", _aborted, RunAborted, "wait", cancels=True),
    Scene("an app closed in a run", _closed, RunAborted, "wait", cancels=True),
    *(
        Scene(f"a run aborted in {hook}", _aborted_inside, RunAborted, cancels=True, abort_in=hook)
        for hook in ("before_tool", "after_tool", "tool_middleware", "chat_middleware")
    ),
)
"""Every scene; each one gets an app of its own, so that the plugin is started and shut down once in each."""


def _agent(name: str, tools: Sequence[Any], *turns: Sequence[Asked]) -> type:
    script: list[ScriptedTurn] = [_requests(turn) for turn in turns]

    def provider() -> FakeProvider:  # each run begins the script anew
        return FakeProvider([*script, "done"])

    return agent(provider=provider, tools=tools, prompt=Prompt("You act."), tool_calls="all")(type(name, (), {}))


def _requests(asked: Sequence[Asked]) -> list[ToolRequest]:
    return [ToolRequest(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(asked)]


def _pack(calls: Sequence[Asked]) -> Asked:
    return "pack", {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


async def _ended(handle: RunHandle) -> None:
    await asyncio.gather(handle.result(), return_exceptions=True)
