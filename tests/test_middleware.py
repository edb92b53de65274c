"""Middleware around tools and model calls: the order, what it decides, and what it may not do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hooks.payments import outer, paid, passing, pay
from tests.hooks.scripted import ask, scripted
from thena_core import Budget, ChatCall, ToolCall, ToolOutput, ToolResult, hookimpl, tool
from thena_core.messages import ChatTurn


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    """Each test starts with no payment."""
    paid.clear()


@pytest.mark.behaviour("M01")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
async def test_the_first_added_is_the_outermost(observed: bool) -> None:
    """Around a tool: the plugins' middleware, then the app's in the order of `use`, inside of the hooks."""
    order: list[str] = []

    class Plugin:
        @hookimpl
        def tool_middleware(self, tool: Any) -> Any:
            return passing(f"plugin for {tool.name}", order)

    class Hooks:
        def before_tool(self) -> None:
            order.append("before")

        def after_tool(self) -> None:
            order.append("after")

    made = scripted(
        [pay],
        ask("pay", {"amount": 1}),
        hooks=Hooks,
        plugins=[Plugin()],
        observed=observed,
        around=[passing("one", order), passing("two", order)],
    )
    await made.run()
    assert order == [
        "before",
        "plugin for pay in",
        "one in",
        "two in",
        "two out",
        "one out",
        "plugin for pay out",
        "after",
    ]


@pytest.mark.behaviour("M01")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
async def test_chat_middleware_stands_around_each_model_call(observed: bool) -> None:
    """The first added is the outermost; it sees what is sent and may change the answer."""
    order: list[str] = []

    async def shouts(call: ChatCall, call_next: Any) -> ChatTurn:
        assert (call.system, [definition.name for definition in call.tools]) == ("You act.", ["pay"])
        order.append(call.messages[-1].role)
        turn = await call_next(call)
        turn.content = turn.content.upper()
        return turn

    made = scripted([pay], ask("pay", {"amount": 1}), observed=observed)
    for function in (passing("one", order), passing("two", order), shouts):
        made.app.use(chat=function)
    ended = await made.run()
    turn = ["two out", "one out"]
    assert order == ["one in", "two in", "user", *turn, "one in", "two in", "tool", *turn]
    assert ended.history[-1].content == "DONE"


@pytest.mark.behaviour("M01")
async def test_a_middleware_sees_every_valid_call_and_its_final_arguments() -> None:
    """Also calls made by another tool, with the arguments that a hook left; not calls that cannot run."""
    seen: list[tuple[str, Any]] = []

    async def looks(call: ToolCall, call_next: Any) -> ToolOutput:
        seen.append((call.name, dict(call.arguments)))
        return await call_next(call)

    class Hooks:
        def before_tool(self, call: ToolCall) -> Any:
            return call.replace(arguments={"amount": 7}) if call.name == "pay" else None

    asked = [
        ask("pay", {"amount": 1}),
        ask("outer", None, "c2"),
        ask("pay", {"amount": "x"}, "c3"),
        ask("nope", None, "c4"),
    ]
    await scripted([pay, outer], *asked, hooks=Hooks, around=[looks]).run()
    assert seen == [("pay", {"amount": 7}), ("outer", {}), ("pay", {"amount": 7})]
    assert paid == [7, 7]


@pytest.mark.behaviour("M03")
@pytest.mark.parametrize("is_error", [False, True], ids=["cache", "refusal"])
async def test_answering_in_the_tools_place(is_error: bool) -> None:
    """C14 (expressjs/express#2759): without `call_next` nothing runs or is counted; node, hooks and model have the answer."""
    seen: list[ToolResult] = []

    async def answers(call: ToolCall, call_next: Any) -> ToolOutput:
        return ToolOutput("from the cache", is_error=is_error)

    class Hooks:
        def after_tool(self, result: ToolResult) -> None:
            seen.append(result)

    order: list[str] = []
    made = scripted(
        [pay],
        ask("pay", {"amount": 1}),
        ask("pay", {"amount": 2}, "c2"),
        hooks=Hooks,
        around=[answers, passing("inner", order)],
    )
    ended = await made.run(budget=Budget(max_tool_calls=0))
    assert ended.observations == ["from the cache"] * 2
    assert ended.result is not None
    assert (ended.result.usage.tool_calls, ended.result.stopped_by) == (0, "answered")
    assert (paid, order) == ([], [])
    outcome = "denied" if is_error else "ok"
    for node in ended.nodes("pay"):
        assert (node.outcome, node.output) == (outcome, "from the cache")
        assert "answers" in node.meta["answered_by"]
    assert [result.outcome for result in seen] == [outcome] * 2


@pytest.mark.behaviour("M03")
async def test_a_call_that_went_on_is_counted_and_not_called_answered() -> None:
    """What ran says so: it is counted, and its node names no one who answered in its place."""
    ended = await scripted([pay], ask("pay", {"amount": 1}), around=[passing("one", [])]).run()
    assert ended.result is not None
    assert ended.result.usage.tool_calls == 1
    assert "answered_by" not in ended.node("pay").meta


@pytest.mark.behaviour("M03")
async def test_a_chat_middleware_may_answer_for_the_model() -> None:
    """The model is not asked and no call is counted."""

    async def answers(call: ChatCall, call_next: Any) -> ChatTurn:
        return ChatTurn("from the cache")

    made = scripted([pay])
    made.app.use(chat=answers)
    ended = await made.run(budget=Budget(max_chat_calls=0))
    assert ended.result is not None
    assert (ended.result.output, ended.result.usage.chat_calls) == ("from the cache", 0)
    assert made.provider.requests == []
    [node] = [event for event in ended.events if event.kind == "chat" and event.phase == "end"]
    assert "answers" in node.meta["answered_by"]


@pytest.mark.behaviour("M04")
async def test_a_failing_tool_is_no_failure_of_the_middleware_around_it() -> None:
    """The error policy is innermost: a middleware gets an observation of a tool that raised, and may mend it."""
    seen: list[ToolOutput] = []

    @tool
    async def fails() -> str:
        """Fails."""
        raise ValueError("x")

    async def mends(call: ToolCall, call_next: Any) -> ToolOutput:
        seen.append(await call_next(call))
        return ToolOutput("a default")

    ended = await scripted([fails], ask("fails"), around=[mends]).run()
    assert seen == [ToolOutput("ValueError: x", is_error=True)]
    assert (ended.observation, ended.node("fails").outcome) == ("a default", "ok")


@pytest.mark.behaviour("M05")
async def test_two_calls_of_one_tool_each_go_on_once() -> None:
    """The count is per call, not per tool, run or middleware, also where both are in flight."""
    asked = [ask("pay", {"amount": 1}), ask("pay", {"amount": 2}, "c2")]
    ended = await scripted(
        [pay], asked, ask("pay", {"amount": 3}, "c3"), around=[passing("m", [])], tool_calls="all"
    ).run()
    assert ended.observations == ["paid 1", "paid 2", "paid 3"]


class Counting:
    """A middleware with a state, as an object."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, call: ToolCall, call_next: Any) -> ToolOutput:
        self.calls += 1
        return await call_next(call)


@pytest.mark.behaviour("M01")
async def test_an_object_may_be_a_middleware() -> None:
    """Anything that can be called and awaited is one."""
    counting = Counting()
    ended = await scripted([pay], ask("pay", {"amount": 1}), around=[counting]).run()
    assert (ended.observation, counting.calls) == ("paid 1", 1)


@pytest.mark.behaviour("M06")
async def test_meta_is_written_to_the_node_of_its_step() -> None:
    """`call.meta` of tool and chat middleware lands on that call's node, also for a call inside another."""

    async def notes(call: ToolCall, call_next: Any) -> ToolOutput:
        call.meta(cost=len(call.name))
        return await call_next(call)

    async def notes_chat(call: ChatCall, call_next: Any) -> ChatTurn:
        call.meta(cached=len(call.messages))
        return await call_next(call)

    made = scripted([pay, outer], ask("outer"), around=[notes])
    made.app.use(chat=notes_chat)
    ended = await made.run()
    assert (ended.node("outer").meta["cost"], ended.node("pay").meta["cost"]) == (5, 3)
    chats = [event for event in ended.events if event.kind == "chat" and event.phase == "end"]
    assert [chat.meta["cached"] for chat in chats] == [1, 3]


@pytest.mark.behaviour("M06")
async def test_meta_is_a_no_op_when_nobody_observes() -> None:
    """Without log and report it does nothing and costs no error."""

    async def notes(call: Any, call_next: Any) -> Any:
        call.meta(anything=object())
        return await call_next(call)

    made = scripted([pay], ask("pay", {"amount": 1}), around=[notes], observed=False)
    made.app.use(chat=notes)
    assert (await made.run()).observation == "paid 1"


@pytest.mark.behaviour("M01", "M03", "M05")
@settings(max_examples=60, deadline=None)
@given(kinds=st.lists(st.sampled_from(["pass", "answer", "refuse", "mend"]), max_size=6))
async def test_any_stack_of_middleware(kinds: list[str]) -> None:
    """Whatever they decide: entered in order up to the first that answers, left in reverse, the tool runs at most once."""
    order: list[str] = []

    def make(index: int, kind: str) -> Any:
        async def acts(call: ToolCall, call_next: Any) -> ToolOutput:
            order.append(f"in {index}")
            if kind == "answer":
                return ToolOutput(f"answer {index}")
            if kind == "refuse":
                return ToolOutput(f"refusal {index}", is_error=True)
            output = await call_next(call)
            order.append(f"out {index}")
            return ToolOutput(f"mended {index}") if kind == "mend" else output

        return acts

    paid.clear()
    ended = await scripted([pay], ask("pay", {"amount": 1}), around=[make(*item) for item in enumerate(kinds)]).run()
    stops = next((index for index, kind in enumerate(kinds) if kind in ("answer", "refuse")), None)
    entered = len(kinds) if stops is None else stops + 1
    passed = range(len(kinds) if stops is None else stops)
    assert order == [f"in {index}" for index in range(entered)] + [f"out {index}" for index in reversed(passed)]
    mender = next((index for index in passed if kinds[index] == "mend"), None)
    inner = "paid 1" if stops is None else f"{'answer' if kinds[stops] == 'answer' else 'refusal'} {stops}"
    assert ended.observation == (inner if mender is None else f"mended {mender}")
    refused = mender is None and stops is not None and kinds[stops] == "refuse"
    assert ended.node("pay").outcome == ("denied" if refused else "ok")
    assert len(paid) == (stops is None)
