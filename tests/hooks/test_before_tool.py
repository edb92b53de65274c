"""`before_tool`: it may rewrite the arguments, answer in the tool's place, or end the run by raising."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tests.hooks.scripted import ask, assert_legal, scripted
from thena_core import HookError, ThenaError, ToolCall, ToolOutput, hookimpl, tool


class Pay(BaseModel):
    amount: int = Field(ge=0)
    to: str = "me"


paid: list[tuple[int, str]] = []


@tool(name="pay", description="Pays.", schema=Pay)
class PayTool:
    async def execute(self, args: Pay) -> str:
        paid.append((args.amount, args.to))
        return f"paid {args.amount} to {args.to}"


@tool
async def note(text: str) -> str:
    """Notes."""
    return text


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    """Each test starts with no payment."""
    paid.clear()


def hooking(before: Callable[..., Any]) -> type:
    """Make an agent with that `before_tool`."""
    return type("Hooking", (), {"before_tool": before, "__module__": __name__})


@pytest.mark.behaviour("H02")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
async def test_order_around_one_call(observed: bool) -> None:
    """Schema, `before_tool`, `execute`, `after_tool`, then the result as a `tool` message; invalid calls skip two."""
    order: list[str] = []

    class Ordered:
        async def before_tool(self, call: ToolCall) -> None:
            order.append(f"before {type(call.args).__name__} {dict(call.arguments)}")
            assert call.ctx.history[-1].role == "assistant"

        async def after_tool(self, result: Any) -> None:
            order.append(f"after {result.output.content[:7]}")
            assert result.call.ctx.history[-1].role == "assistant"

    @tool(name="pay", description="Pays.", schema=Pay)
    class Ordering:
        async def execute(self, args: Pay) -> str:
            order.append("execute")
            return "ok"

    asked = [ask("pay", '{"amount": 1}'), ask("pay", '{"amount": -1}', "c2")]
    ended = await scripted([Ordering], *asked, hooks=Ordered, observed=observed).run()
    assert order == ["before Pay {'amount': 1, 'to': 'me'}", "execute", "after ok", "after invalid"]
    assert [message.role for message in ended.history] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.behaviour("H02")
async def test_the_node_is_open_while_hooks_run() -> None:
    """The record is the outermost layer: what a hook notes with `call.meta` and its time are part of the node."""
    open_nodes: list[list[str]] = []

    class Looking:
        def before_tool(self, call: ToolCall) -> None:
            call.meta(checked_by="policy 7")
            open_nodes.append([event.phase for event in made.events if event.name == "pay"])

        def after_tool(self, result: Any) -> None:
            open_nodes.append([event.phase for event in made.events if event.name == "pay"])

    made = scripted([PayTool], ask("pay", {"amount": 1}), hooks=Looking)
    ended = await made.run()
    assert open_nodes == [["start"], ["start"]]
    assert ended.node("pay").meta["checked_by"] == "policy 7"


@pytest.mark.behaviour("H03")
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
async def test_replaced_arguments_are_what_runs(sync: bool) -> None:
    """`call.replace(arguments=…)` gives the whole mapping; the tool, middleware and `after_tool` see only that."""
    seen: list[Any] = []

    def cap(_self: Any, call: ToolCall) -> ToolCall:
        return call.replace(arguments={"amount": 10})

    async def cap_async(_self: Any, call: ToolCall) -> ToolCall:
        return call.replace(arguments={"amount": 10})

    async def looking(call: ToolCall, call_next: Any) -> ToolOutput:
        seen.append((call.args, dict(call.arguments)))
        return await call_next(call)

    hooks = hooking(cap if sync else cap_async)
    hooks.after_tool = lambda _self, result: seen.append(result.call.args)  # type: ignore[attr-defined]
    ended = await scripted([PayTool], ask("pay", {"amount": 999, "to": "x"}), hooks=hooks, around=[looking]).run()
    assert ended.observation == "paid 10 to me"
    assert seen == [(Pay(amount=10), {"amount": 10, "to": "me"}), Pay(amount=10)]
    [change] = ended.node("pay").meta["changed_by"]
    assert (change["by"], change["what"]) == ("Hooking", "arguments")
    assert (dict(change["before"])["amount"], dict(change["after"])["amount"]) == (999, 10)
    assert ended.node("pay").input == {"amount": 999, "to": "x"}


@pytest.mark.behaviour("H03")
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"amount": "lots"}, id="wrong-type"),
        pytest.param({"amount": -1}, id="constraint"),
        pytest.param({}, id="missing"),
        pytest.param({"amount": 1, "tip": 1}, id="extra"),
    ],
)
@pytest.mark.parametrize("swallowed", [False, True], ids=["raised", "and-returned-after"])
async def test_wrong_new_arguments_are_the_authors_error(arguments: Any, swallowed: bool) -> None:
    """A replacement that does not fit is a `HookError` naming hook, agent, tool and field, raised at once."""
    raised: list[HookError] = []

    def before(_self: Any, call: ToolCall) -> ToolCall:
        try:
            return call.replace(arguments=arguments)
        except HookError as error:
            raised.append(error)
            if swallowed:
                return call
            raise

    ended = await scripted([PayTool], ask("pay", {"amount": 1}), hooks=hooking(before)).run()
    assert len(raised) == 1
    if swallowed:
        assert ended.observation == "paid 1 to me"
    else:
        assert isinstance(ended.error, HookError)
        assert str(ended.error).startswith('before_tool of Hooking failed for the tool "pay": ')
        assert ("amount" in str(ended.error)) or ("tip" in str(ended.error))
        assert not paid
        assert_legal(ended.history)


@pytest.mark.behaviour("H03")
async def test_a_call_is_read_only() -> None:
    """Nothing of a call can be set; the only way to change it is `replace`."""
    problems: list[str] = []

    def before(_self: Any, call: ToolCall) -> None:
        for change in (
            lambda: setattr(call, "args", Pay(amount=9)),
            lambda: setattr(call, "arguments", {"amount": 9}),
            lambda: setattr(call, "name", "note"),
            lambda: call.arguments.__setitem__("amount", 9),  # type: ignore[attr-defined]
        ):
            with pytest.raises((AttributeError, TypeError)) as caught:
                change()
            problems.append(type(caught.value).__name__)

    ended = await scripted([PayTool], ask("pay", {"amount": 1}), hooks=hooking(before)).run()
    assert len(problems) == 4
    assert ended.observation == "paid 1 to me"


@pytest.mark.behaviour("H03")
async def test_another_call_is_refused_also_with_the_same_id() -> None:
    """A hook that returns a call that it kept from before (ids repeat with some services) ends the run."""
    kept: list[ToolCall] = []

    def before(_self: Any, call: ToolCall) -> ToolCall:
        kept.append(call)
        return kept[0]

    ended = await scripted(
        [PayTool, note], ask("note", {"text": "a"}), ask("pay", {"amount": 1}), hooks=hooking(before)
    ).run()
    assert isinstance(ended.error, HookError)
    assert "of the call that it got" in str(ended.error)
    assert not paid


@pytest.mark.behaviour("H03")
@pytest.mark.parametrize(
    "answer", ["text", 1, {"amount": 1}, Pay(amount=1), True], ids=lambda value: type(value).__name__
)
async def test_any_other_answer_is_refused(answer: Any) -> None:
    """`before_tool` returns `None`, the call, a replaced call or a `ToolOutput`; the rest ends the run."""
    ended = await scripted([PayTool], ask("pay", {"amount": 1}), hooks=hooking(lambda _self, call: answer)).run()
    assert isinstance(ended.error, HookError)
    assert not paid


@pytest.mark.behaviour("H04", "F05")
@pytest.mark.parametrize(
    ("answer", "outcome", "status"),
    [
        pytest.param(ToolOutput("cached", data={"hit": 1}), "ok", "ok", id="answer"),
        pytest.param(ToolOutput("not today", is_error=True), "denied", "error", id="refusal"),
    ],
)
async def test_an_output_answers_in_the_tools_place(answer: ToolOutput, outcome: str, status: str) -> None:
    """The tool and the middleware do not run, nothing is counted, `after_tool` sees it, and the model reads it."""
    reached: list[str] = []

    async def looking(call: ToolCall, call_next: Any) -> ToolOutput:
        reached.append("middleware")
        return await call_next(call)

    hooks = hooking(lambda _self, call: answer)
    hooks.after_tool = lambda _self, result: reached.append(result.outcome)  # type: ignore[attr-defined]
    ended = await scripted([PayTool], ask("pay", {"amount": 1}), hooks=hooks, around=[looking]).run()
    assert ended.observation == answer.content
    assert reached == [outcome]
    assert not paid
    assert ended.result is not None
    assert ended.result.usage.tool_calls == 0
    node = ended.node("pay")
    assert (node.outcome, node.status, node.meta["answered_by"]) == (outcome, status, "Hooking")


@pytest.mark.behaviour("H04")
async def test_later_guards_do_not_see_an_answered_call() -> None:
    """The agent's hook comes first, then the plugins in order; the first answer is the answer."""
    order: list[str] = []

    class First:
        @hookimpl
        def before_tool(self, call: ToolCall) -> ToolOutput:
            order.append("first")
            return ToolOutput("from first")

    class Second:
        @hookimpl
        def before_tool(self, call: ToolCall) -> None:
            order.append("second")

    hooks = hooking(lambda _self, call: order.append("agent"))
    ended = await scripted([PayTool], ask("pay", {"amount": 1}), hooks=hooks, plugins=[First(), Second()]).run()
    assert order == ["agent", "first"]
    assert ended.observation == "from first"


@pytest.mark.behaviour("H05")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
@pytest.mark.parametrize("who", ["agent", "plugin"])
async def test_a_guard_that_raises_ends_the_run(who: str, observed: bool) -> None:
    """C13 (earendil-works/pi#9599): the tool does not run, the run ends with the guard's error, the call is answered."""

    def before(_self: Any, call: ToolCall) -> None:
        raise PermissionError("not allowed")

    class Plugin:
        before_tool = hookimpl(before)

    options: dict[str, Any] = {"plugins": [Plugin()]} if who == "plugin" else {"hooks": hooking(before)}
    made = scripted([PayTool], ask("pay", {"amount": 1}), observed=observed, **options)
    ended = await made.run()
    error = ended.error
    assert isinstance(error, HookError)
    owner = "Plugin" if who == "plugin" else "Hooking"
    assert (error.hook, error.owner, error.tool) == ("before_tool", owner, "pay")
    assert "PermissionError: not allowed" in str(error)
    assert isinstance(error.__cause__, PermissionError)
    assert not paid
    assert len(made.provider.requests) == 1
    assert_legal(ended.history)
    if observed:
        assert (ended.node("pay").status, ended.node("pay").error) == ("error", str(error))


@pytest.mark.behaviour("H05")
async def test_on_error_does_not_see_a_guards_failure() -> None:
    """The agent's `on_error` cannot turn a failed guard into an answer."""

    class Hooks:
        def before_tool(self, call: ToolCall) -> None:
            raise PermissionError("not allowed")

        def on_error(self, error: Exception) -> str:
            return "all is well"

    assert isinstance((await scripted([PayTool], ask("pay", {"amount": 1}), hooks=Hooks).run()).error, HookError)


async def test_cancelling_a_run_in_a_guard_is_a_cancellation() -> None:
    """A guard that waits when its run is cancelled lets the cancellation through, with no chain that bites its tail."""
    inside = asyncio.Event()

    async def waits(_self: Any, call: ToolCall) -> None:
        inside.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(scripted([PayTool], ask("pay", {"amount": 1}), hooks=hooking(waits)).run())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    links, link = [], caught.value
    while link is not None:
        assert link not in links, "the error is its own cause"
        links.append(link)
        link = link.__cause__
    assert not paid


@pytest.mark.behaviour("H07")
async def test_before_tool_runs_once_for_valid_calls_only() -> None:
    """It is asked once per call that can run: not for unknown names, not for invalid arguments."""
    seen: list[str] = []
    hooks = hooking(lambda _self, call: seen.append(call.id))
    asked = [
        ask("pay", {"amount": 1}),
        ask("pay", {"amount": "x"}, "c2"),
        ask("nope", {}, "c3"),
        ask("pay", '{"amount": 2,}', "c4"),
    ]
    await scripted([PayTool], asked, hooks=hooks, tool_calls="all").run()
    assert sorted(seen) == ["c1", "c4"]


@pytest.mark.behaviour("H03")
async def test_replace_of_an_unknown_call_says_why() -> None:
    """`after_tool` of an unknown name cannot rewrite it: there is nothing to check against."""

    class Hooks:
        def after_tool(self, result: Any) -> None:
            result.call.replace(arguments={})

    ended = await scripted([PayTool], ask("nope"), hooks=Hooks).run()
    assert isinstance(ended.error, ThenaError)
    assert "unknown tool" in str(ended.error)
