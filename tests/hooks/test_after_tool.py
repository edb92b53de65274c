"""`after_tool`: it sees every observation once, may replace what the model reads, and never loses a result."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal, scripted
from thena_core import HookError, Report, Toolbox, ToolOutput, ToolResult, hookimpl, tool

paid: list[str] = []


@tool
async def pay() -> ToolOutput:
    """Pays."""
    paid.append("paid")
    return ToolOutput("paid", data={"receipt": 7})


@tool
async def fails() -> str:
    """Fails."""
    raise ValueError("x")


@tool
async def outer(toolbox: Toolbox) -> str:
    """Pays through the toolbox, whatever happens."""
    try:
        return (await toolbox["pay"]()).content
    except Exception:  # noqa: BLE001 - that is the case
        return "nothing happened"


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    """Each test starts with no payment."""
    paid.clear()


def answering(answer: Any) -> type:
    """Make an agent whose `after_tool` returns or raises `answer`."""

    class Answering:
        def after_tool(self, result: ToolResult) -> Any:
            if isinstance(answer, BaseException):
                raise answer
            return answer

    return Answering


@pytest.mark.behaviour("H06")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
@pytest.mark.parametrize(
    ("name", "answer", "expected", "is_error", "outcome"),
    [
        pytest.param("pay", None, "paid", False, "ok", id="keeps"),
        pytest.param("pay", "PAID", "PAID", False, "ok", id="text-of-ok"),
        pytest.param("fails", "sorry", "sorry", True, "error", id="text-keeps-error"),
        pytest.param("nope", "no such tool", "no such tool", True, "unknown", id="text-keeps-unknown"),
        pytest.param("fails", ToolOutput("a default"), "a default", False, "ok", id="output-mends"),
        pytest.param("pay", ToolOutput("refused", is_error=True), "refused", True, "error", id="output-fails"),
    ],
)
async def test_what_after_tool_returns(
    name: str, answer: Any, expected: str, is_error: bool, outcome: str, observed: bool
) -> None:
    """A string replaces the text and keeps `is_error`; a `ToolOutput` replaces both; node and history agree."""
    made = scripted([pay, fails], ask(name), hooks=answering(answer), observed=observed)
    ended = await made.run()
    message = made.provider.requests[1].messages[-1]
    assert (message.content, message.is_error) == (expected, is_error)
    if observed:
        node = ended.node(name)
        assert (node.output, node.outcome, node.status) == (expected, outcome, "error" if is_error else "ok")
        assert ("changed_by" in node.meta) == (answer is not None)


@pytest.mark.behaviour("H06")
async def test_a_replaced_text_keeps_the_data() -> None:
    """`data`, which the model never reads, stays with the call; the next hook sees the new text."""
    seen: list[ToolOutput] = []

    class Outer:
        @hookimpl
        def after_tool(self, result: ToolResult) -> None:
            seen.append(result.output)

    class Inner:
        @hookimpl
        async def after_tool(self, result: ToolResult) -> str:
            return "shortened"

    ended = await scripted([pay], ask("pay"), plugins=[Outer(), Inner()]).run()
    assert seen == [ToolOutput("shortened", data={"receipt": 7})]
    assert ended.node("pay").meta["data"] == {"receipt": 7}


@pytest.mark.behaviour("H06", "H07")
@pytest.mark.parametrize(
    ("name", "answer", "outcome"),
    [("fails", ToolOutput("a default"), "ok"), ("pay", ToolOutput("refused", is_error=True), "error")],
    ids=["mended", "failed"],
)
async def test_the_next_hook_sees_the_outcome_that_agrees(name: str, answer: ToolOutput, outcome: str) -> None:
    """What one hook made of output and outcome is what the next one is shown."""
    seen: list[tuple[str, str]] = []

    class Outer:
        @hookimpl
        def after_tool(self, result: ToolResult) -> None:
            seen.append((result.output.content, result.outcome))

    class Inner:
        @hookimpl
        def after_tool(self, result: ToolResult) -> ToolOutput:
            return answer

    await scripted([pay, fails], ask(name), plugins=[Outer(), Inner()]).run()
    assert seen == [(answer.content, outcome)]


@pytest.mark.behaviour("H06")
async def test_ctx_turn_counts_what_the_model_reads() -> None:
    """A mended failure is no failed turn, and a failed success is one."""
    turns: list[bool] = []

    class Hooks:
        def before_prompt(self, prompt: str, ctx: Any) -> None:
            turns.append(ctx.turn.tool_error)

        def after_tool(self, result: ToolResult) -> ToolOutput:
            return ToolOutput("swapped", is_error=not result.output.is_error)

    await scripted([pay, fails], ask("pay"), ask("fails", None, "c2"), hooks=Hooks).run()
    assert turns == [False, True, False]


@pytest.mark.behaviour("H06")
@pytest.mark.parametrize("answer", [1, b"x", ["a"], {"content": "x"}, False], ids=lambda value: type(value).__name__)
async def test_any_other_answer_ends_the_run_and_keeps_the_result(answer: Any) -> None:
    """`after_tool` returns `None`, a string or a `ToolOutput`; the rest is a `HookError` and loses nothing."""
    ended = await scripted([pay], ask("pay"), hooks=answering(answer)).run()
    assert isinstance(ended.error, HookError)
    assert type(answer).__name__ in str(ended.error)
    assert ended.observation == "paid"


@pytest.mark.behaviour("H07")
async def test_order_of_the_hooks_is_a_mirror() -> None:
    """In: the agent's, then the plugins' in order; out: the mirror image."""
    order: list[str] = []

    def plugin(name: str) -> Any:
        class Plugin:
            __name__ = name

            @hookimpl
            def before_tool(self) -> None:
                order.append(f"before {name}")

            @hookimpl
            def after_tool(self) -> None:
                order.append(f"after {name}")

        return Plugin()

    class Hooks:
        def before_tool(self) -> None:
            order.append("before agent")

        def after_tool(self) -> None:
            order.append("after agent")

    await scripted([pay], ask("pay"), hooks=Hooks, plugins=[plugin("one"), plugin("two")]).run()
    assert order == ["before agent", "before one", "before two", "after two", "after one", "after agent"]


RAISED = [
    pytest.param(RuntimeError("metrics down"), id="exception"),
    pytest.param(asyncio.CancelledError(), id="cancelled"),
    pytest.param(StopIteration(), id="stop-iteration"),
    pytest.param(ExceptionGroup("g", [OSError("disk full")]), id="group"),
    pytest.param(BaseExceptionGroup("g", [asyncio.CancelledError(), OSError("disk full")]), id="base-group"),
]


@pytest.mark.behaviour("H08", "F12")
@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("calls", ["one", "all"])
async def test_an_after_tool_that_raises_keeps_the_result(error: BaseException, calls: str, tmp_path: Path) -> None:
    """C13 (strands-agents/harness-sdk#4338): the run ends; history and report hold the result of what was done."""
    asked: Any = ask("pay") if calls == "one" else [ask("pay"), ask("nope", None, "c2")]

    class Hooks:
        def after_tool(self, result: ToolResult) -> None:
            if result.call.name == "pay":
                raise error

    made = scripted([pay], asked, hooks=Hooks, tool_calls=calls, report=Report(folder=tmp_path))
    ended = await made.run()
    assert isinstance(ended.error, HookError)
    assert str(ended.error).startswith('after_tool of Hooks failed for the tool "pay": ')
    assert_legal(ended.history)
    assert ended.observations[0] == "paid"
    assert not ended.history[2].is_error
    assert (ended.node("pay").status, ended.node("pay").output) == ("error", "paid")
    report = json.loads((ended.error.run.report_path / "report.json").read_text(encoding="utf-8"))
    node = report["root"]["children"][0]["children"][0]["children"][1]
    assert (node["name"], node["output"], node["error"]) == ("pay", "paid", str(ended.error))
    again = scripted([pay])
    await again.run(history=ended.history)
    assert paid == ["paid"]
    assert again.provider.requests[0].messages[2].content == "paid"


@pytest.mark.behaviour("H06", "F12")
@pytest.mark.parametrize("content", [None, 5, {"a": 1}], ids=["none", "number", "object"])
@pytest.mark.parametrize("calls", ["one", "all"])
async def test_an_output_without_text_loses_nothing(content: Any, calls: str) -> None:
    """A `ToolOutput` whose content is no text is worded or refused; either way each call has its answer."""
    asked: Any = ask("pay") if calls == "one" else [ask("pay"), ask("pay", None, "c2")]
    ended = await scripted([pay], asked, hooks=answering(ToolOutput(content)), tool_calls=calls).run()
    assert ended.error is None or isinstance(ended.error, HookError)
    assert_legal(ended.history)


@pytest.mark.behaviour("H08")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
async def test_the_result_is_what_the_earlier_hooks_made_of_it(observed: bool) -> None:
    """A later hook that raises does not undo what an earlier one (a masker, say) made of the text."""

    class Raises:
        @hookimpl
        def after_tool(self, result: ToolResult) -> None:
            raise RuntimeError("metrics down")

    class Masks:
        @hookimpl
        def after_tool(self, result: ToolResult) -> str:
            return "p***"

    ended = await scripted([pay], ask("pay"), plugins=[Raises(), Masks()], observed=observed).run()
    assert ended.observation == "p***"


@pytest.mark.behaviour("H08", "F08")
async def test_an_after_tool_that_raises_inside_a_packed_call_ends_the_run() -> None:
    """The tool around it cannot hide it, and the inner node holds the result."""

    class Hooks:
        def after_tool(self, result: ToolResult) -> None:
            if result.call.name == "pay":
                raise RuntimeError("metrics down")

    ended = await scripted([pay, outer], ask("outer"), hooks=Hooks).run()
    assert isinstance(ended.error, HookError)
    assert ended.node("pay").output == "paid"
    assert_legal(ended.history)


@pytest.mark.behaviour("H07")
async def test_a_failed_tool_reaches_after_tool() -> None:
    """C13 (agno-agi/agno#4925): an observer sees failures as it sees successes."""
    seen: list[tuple[str, str]] = []

    class Observer:
        @hookimpl
        def after_tool(self, result: ToolResult) -> None:
            seen.append((result.call.name, result.outcome))

    await scripted([fails], ask("fails"), plugins=[Observer()]).run()
    assert seen == [("fails", "error")]


@pytest.mark.behaviour("H07")
async def test_after_tool_sees_no_call_that_ended_the_run() -> None:
    """What a guard stopped is no observation: `after_tool` is not asked about it, nor about the tool around it."""
    seen: list[str] = []

    class Hooks:
        def before_tool(self, call: Any) -> None:
            if call.name == "pay":
                raise PermissionError("no")

        def after_tool(self, result: ToolResult) -> None:
            seen.append(result.call.name)

    await scripted([pay, outer], ask("outer"), hooks=Hooks).run()
    assert seen == []
