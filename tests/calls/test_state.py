"""A workflow's state: one instance per run, shared by tools, hooks and `until`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.calls.boards import PATIENCE, Board, Note, noting
from thena_core import (
    BuildError,
    Context,
    Prompt,
    SignatureError,
    Thena,
    ToolCall,
    ToolOutput,
    ToolRequest,
    ToolResult,
    agent,
    loop,
    workflow,
)
from thena_core.testing import FakeProvider


@pytest.mark.behaviour("I06")
@pytest.mark.parametrize("parameters", [1, 2], ids=["until(ctx)", "until(ctx, state)"])
async def test_state_is_the_instance_that_until_reads(parameters: int) -> None:
    """What a tool writes into the state, `until` reads in the same object, and ends the loop by it."""
    seen: list[Any] = []

    def by_context(ctx: Context) -> bool:
        seen.append(ctx.state)
        return "stop" in ctx.state.notes

    def by_state(ctx: Context, state: Board) -> bool:
        seen.append(state)
        return "stop" in state.notes

    turns = [ToolRequest("1", "note", '{"text": "go"}'), ToolRequest("2", "note", '{"text": "stop"}'), "never"]
    async with Thena(noting(turns, by_context if parameters == 1 else by_state)) as app:
        result = await app.run("go")
    assert result.stopped_by == "until"
    assert {id(state) for state in seen} == {int(result.history[2].content)} == {int(result.history[4].content)}
    assert seen[0].notes == ["go", "stop"]


@pytest.mark.behaviour("I06")
async def test_one_instance_per_run() -> None:
    """Runs after each other and beside each other never share a state."""
    Board.made.clear()
    waiting = asyncio.Barrier(2)

    async def meet(call: ToolCall, call_next: Any) -> ToolOutput:
        await asyncio.wait_for(waiting.wait(), PATIENCE)
        output: ToolOutput = await call_next(call)
        await asyncio.wait_for(waiting.wait(), PATIENCE)
        return output

    app = Thena(noting([ToolRequest("1", "note", '{"text": "x"}'), "done"], lambda ctx: not ctx.turn.called_tool))
    app.use(tool=meet)
    async with app:
        assert Board.made == []
        await asyncio.gather(app.run("a"), app.run("b"))
        await asyncio.gather(app.run("c"), app.run("d"))
    assert len(Board.made) == 4
    assert [board.notes for board in Board.made] == [["x"]] * 4


@pytest.mark.behaviour("I06")
async def test_hooks_and_tools_share_the_state() -> None:
    """`ctx.state` in a hook is the tool's state."""
    seen: list[Any] = []

    @agent(provider=FakeProvider([ToolRequest("1", "note", '{"text": "x"}'), "done"]), tools=[Note], prompt=Prompt(""))
    class Writer:
        def after_tool(self, result: ToolResult, ctx: Context) -> None:
            seen.append((id(ctx.state), result.output.content, list(ctx.state.notes)))

    @workflow(steps=[loop([Writer])], state=Board)
    class Writing: ...

    async with Thena(Writing) as app:
        await app.run("go")
    [(identity, content, notes)] = seen
    assert (str(identity), notes) == (content, ["x"])


@pytest.mark.behaviour("I06")
async def test_app_call_gives_the_state_it_was_given() -> None:
    """`app.call(state=…)` is the tool's state."""
    board = Board()
    async with Thena(noting(["done"], lambda ctx: True)) as app:
        assert (await app.call("note", {"text": "x"}, state=board)).content == str(id(board))
    assert board.notes == ["x"]


@pytest.mark.behaviour("I07")
async def test_state_without_one_is_a_build_error() -> None:
    """It names the class, the parameter and the line to add."""

    @agent(provider=FakeProvider(), tools=[Note], prompt=Prompt(""))
    class Writer: ...

    @workflow(steps=[Writer])
    class Stateless: ...

    for target in (Stateless, Writer):
        with pytest.raises(BuildError) as caught:
            async with Thena(target):
                pass
        [problem] = caught.value.exceptions
        assert isinstance(problem, SignatureError)
        assert (problem.where, problem.parameter) == ("Note.execute", "board")
        assert "[thena] Note.execute, parameter `board`" in str(problem)
        assert "state=Board" in str(problem)
        assert "Writer" in str(problem)


@pytest.mark.behaviour("I07")
async def test_state_of_another_class_is_a_build_error() -> None:
    """A workflow whose state is something else is told apart, a subclass is fine."""

    class Other: ...

    class Wider(Board): ...

    @agent(provider=FakeProvider([ToolRequest("1", "note", '{"text": "x"}'), "done"]), tools=[Note], prompt=Prompt(""))
    class Writer: ...

    @workflow(steps=[loop([Writer])], state=Other)
    class Wrong: ...

    @workflow(steps=[loop([Writer])], state=Wider)
    class Right: ...

    with pytest.raises(BuildError) as caught:
        async with Thena(Wrong):
            pass
    assert "it asks for the state as Board, but the workflow's state is Other" in str(caught.value)
    async with Thena(Right) as app:
        assert (await app.run("go")).output == "done"


@pytest.mark.behaviour("I07")
async def test_one_agent_in_two_workflows() -> None:
    """An agent whose tool asks for state is right in the workflow that has it and wrong in the one that has none."""

    @agent(provider=FakeProvider(["done"]), tools=[Note], prompt=Prompt(""))
    class Writer: ...

    @workflow(steps=[Writer], state=Board)
    class Good: ...

    @workflow(steps=[Writer])
    class Bad: ...

    with pytest.raises(BuildError) as caught:
        async with Thena(Good, workflows=[Bad]):
            pass
    assert len(caught.value.exceptions) == 1
    async with Thena(Good) as app:
        assert (await app.run("go")).output == "done"
