"""Workflows that tools start: by `workflow_tool`, or by a `WorkflowRuntime` in a constructor."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.hooks.scripted import ask, packed, scripted
from tests.limits.scenes import actor
from thena_core import (
    Budget,
    BuildError,
    CallNext,
    Context,
    NestingError,
    RunResult,
    Thena,
    ToolCall,
    ToolDefinition,
    ToolOutput,
    WorkflowRuntime,
    agent,
    tool,
    workflow,
)
from thena_core.agents import Prompt
from thena_core.providers import ChatTurn, Provider
from thena_tools import ParallelTool, workflow_tool


@tool
async def echo(text: str) -> str:
    """Echoes."""
    return text


@tool
async def tenant(ctx: Context[Any]) -> str:
    """Says whose run it is."""
    return f"{ctx.data} in {ctx.run_id}"


EMPTY = '[thena] The workflow "Empty" has no steps. Write: steps=[MyAgent]'


def nested(inner: Any, **options: Any) -> ToolDefinition:
    """Make a tool of a workflow."""
    return workflow_tool(inner, name="research", description="Researches one question.", **options)


def research(message: str = "why?") -> Any:
    """Call it."""
    return ask("research", {"message": message})


@pytest.mark.behaviour("W07")
async def test_a_workflow_as_a_tool() -> None:
    """Its message begins a history of its own; its output is the observation, its nodes stand under the tool's."""
    inner = actor([echo], ask("echo", {"text": "found"}), then="because")
    ended = await scripted([nested(inner)], research()).run()
    assert ended.observation == "because"
    first = inner.provider.requests[0]
    assert [(message.role, message.content) for message in first.messages] == [("user", "why?")]
    [run] = [event for event in ended.events if event.kind == "workflow" and event.phase == "end" and event.depth]
    assert run.parent_id == ended.node("research").id
    assert ended.result is not None
    assert [message.content for message in ended.result.history] == ["go", "", "because", "done"]


@pytest.mark.behaviour("W07")
async def test_a_runtime_in_a_constructor_passes_memory() -> None:
    """Only what is passed is known inside: the memory, then the message."""
    inner = actor([], then="because")

    @tool(name="research", description="Researches.", workflows=[inner])
    class Research:
        def __init__(self, runtime: WorkflowRuntime) -> None:
            self._runtime = runtime

        async def execute(self, question: str) -> RunResult:
            return await self._runtime.run(inner, message=question, memory="Answer in Latin.")

    ended = await scripted([Research], ask("research", {"question": "why?"})).run()
    assert ended.observation == "because"
    assert [message.content for message in inner.provider.requests[0].messages] == ["Answer in Latin.", "why?"]


@pytest.mark.behaviour("W07", "M02", "M07")
async def test_the_outer_run_reaches_inside() -> None:
    """Middleware, data, budget and events of the outer run hold inside; the run id is the nested one's."""
    seen: list[str] = []

    async def middleware(call: ToolCall, call_next: CallNext) -> ToolOutput:
        seen.append(f"{call.name} {call.ctx.data}")
        return await call_next(call)

    inner = actor([tenant], ask("tenant"), ask("tenant"))
    model = scripted([nested(inner)], research(), around=[middleware])
    ended = await model.run(data="acme", run_id="r1", budget=Budget(max_tool_calls=2))
    assert seen == ["research acme", "tenant acme", "tenant acme"]
    assert [node.outcome for node in ended.nodes("tenant")] == ["ok", "over_budget"]
    assert ended.nodes("tenant")[0].output == "acme in r1.1"
    assert ended.result is not None
    assert ended.result.stopped_by == "budget"


@pytest.mark.behaviour("W07")
async def test_ten_at_once_do_not_lock_each_other() -> None:
    """Ten nested runs of one batch are in flight together: none gets past the barrier before all are there."""
    barrier = asyncio.Barrier(10)

    async def meet() -> str:
        await barrier.wait()
        return "met"

    class Meets(Provider):
        async def chat(self, request: Any) -> ChatTurn:
            return ChatTurn(await meet())

    @agent(provider=Meets(), prompt=Prompt("p"))
    class Inner: ...

    calls = packed(*[("research", {"message": str(number)}) for number in range(10)])
    ended = await scripted([nested(Inner), ParallelTool], calls).run()
    assert ended.observation.count("→ ok\nmet") == 10


@pytest.mark.behaviour("W11", "B03")
@pytest.mark.parametrize("limit", [None, 3])
async def test_recursion_is_stopped(limit: int | None) -> None:
    """A workflow that starts itself is stopped by the top budget, and at depth 16 at the latest, in clear words."""

    class Again(Provider):
        async def chat(self, request: Any) -> ChatTurn:
            return ChatTurn("", [research()])

    @tool(name="research", description="Starts itself.")
    class Itself:
        def __init__(self, runtime: WorkflowRuntime) -> None:
            self._runtime = runtime

        async def execute(self, message: str) -> RunResult:
            return await self._runtime.run(Endless, message=message)

    @agent(provider=Again(), tools=[Itself], prompt=Prompt("p"))
    class Endless: ...

    async with Thena(Endless) as app:
        if limit is not None:
            result = await app.run("go", budget=Budget(max_tool_calls=limit))
            assert (result.stopped_by, result.usage.tool_calls) == ("budget", limit)
            return
        with pytest.raises(NestingError, match="nested 16 deep, and no deeper; does one of them start itself"):
            await app.run("go")


@pytest.mark.behaviour("W07")
@pytest.mark.parametrize("where", ["an agent's tool", "the app's tool", "deep inside"])
async def test_a_workflow_that_a_tool_names_is_checked_at_build(where: str) -> None:
    """What is wrong with it is known before the first run, however deep it is started."""

    @workflow(steps=[])
    class Empty: ...

    wrong = nested(Empty)
    if where == "the app's tool":
        app = Thena(tools=[wrong])
    else:
        app = Thena(actor([nested(actor([wrong])) if where == "deep inside" else wrong]))
    with pytest.raises(BuildError) as caught:
        async with app:
            raise AssertionError("built")
    assert [str(problem) for problem in caught.value.exceptions] == [EMPTY]


async def test_one_that_was_not_named_is_refused_the_same_way_twice() -> None:
    """A workflow that is built when a tool starts it, and cannot be, says why each time."""

    @workflow(steps=[])
    class Empty: ...

    @tool(name="research", description="Starts it.")
    async def starts(message: str, runtime: WorkflowRuntime) -> RunResult:
        return await runtime.run(Empty, message=message)

    async with Thena(actor([starts], research(), research())) as app:
        for _ in range(2):
            with pytest.raises(BuildError) as caught:
                await app.run("go")
            assert [str(problem) for problem in caught.value.exceptions] == [EMPTY]
