"""The layers around one call: every call opens a node, ends with its outcome, and reaches `after_tool` once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from tests.hooks.scripted import ask, assert_legal, scripted
from thena_core import Budget, Context, FatalToolError, State, Toolbox, ToolOutput, ToolResult, tool, workflow
from thena_core.workflows import loop


@tool
async def add(a: int, b: int = 1) -> str:
    """Adds."""
    return str(a + b)


@tool
async def boom() -> str:
    """Raises."""
    raise ValueError("no such row")


@tool
async def refuse() -> ToolOutput:
    """Fails without raising."""
    return ToolOutput("not found", is_error=True, data={"tried": 3})


@tool(timeout=0.01)
async def slow() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return "late"


async def deny(call: Any, call_next: Any) -> ToolOutput:
    """A middleware that refuses `add(99)`."""
    if call.arguments.get("a") == 99:
        return ToolOutput("not allowed", is_error=True)
    return await call_next(call)


TOOLS = [add, boom, refuse, slow]

OUTCOMES = [
    pytest.param("add", {"a": 1}, "ok", id="ok"),
    pytest.param("add", '{"a": 1}', "ok", id="ok-json"),
    pytest.param("boom", {}, "error", id="raised"),
    pytest.param("refuse", {}, "error", id="is_error"),
    pytest.param("nope", {"a": 1}, "unknown", id="unknown"),
    pytest.param("nope", '{"a": ', "unknown", id="unknown-and-malformed"),
    pytest.param("add", {"a": "x"}, "invalid", id="invalid"),
    pytest.param("add", '{"a": [}', "invalid", id="malformed"),
    pytest.param("add", {"a": 99}, "denied", id="denied"),
    pytest.param("slow", {}, "timeout", id="timed-out"),
]


def auditing() -> tuple[type, list[ToolResult]]:
    """An agent that keeps what its `after_tool` saw."""
    seen: list[ToolResult] = []

    class Auditing:
        async def after_tool(self, result: ToolResult) -> None:
            seen.append(result)

    return Auditing, seen


@pytest.mark.behaviour("F05", "H07")
@pytest.mark.parametrize(("name", "arguments", "outcome"), OUTCOMES)
async def test_every_outcome_has_one_node_and_reaches_after_tool_once(
    name: str, arguments: Mapping[str, Any] | str, outcome: str
) -> None:
    """Whatever becomes of a call: one node with its outcome and status, one `after_tool` with the same outcome."""
    hooks, seen = auditing()
    ended = await scripted(TOOLS, ask(name, arguments), hooks=hooks, around=[deny]).run()
    node = ended.node(name)
    assert (node.kind, node.outcome, node.status) == ("tool", outcome, "ok" if outcome == "ok" else "error")
    assert [(result.call.name, result.outcome) for result in seen] == [(name, outcome)]
    assert seen[0].output.content == ended.observation == node.output
    assert seen[0].output.is_error == (outcome != "ok")
    assert node.error == (None if outcome == "ok" else ended.observation)
    assert [event.phase for event in ended.events if event.name == name] == ["start", "end"]
    assert ended.result is not None
    assert ended.result.output == "done"


@pytest.mark.behaviour("F05", "H07")
@pytest.mark.parametrize(("name", "arguments", "outcome"), OUTCOMES)
async def test_packed_calls_have_the_same_nodes_and_hooks(
    name: str, arguments: Mapping[str, Any] | str, outcome: str
) -> None:
    """Called by another tool, each outcome has its own node below that tool's, and reaches `after_tool` once."""

    @tool
    async def outer(toolbox: Toolbox) -> str:
        """Calls another."""
        return (await toolbox[name](arguments)).content

    hooks, seen = auditing()
    ended = await scripted([*TOOLS, outer], ask("outer"), hooks=hooks, around=[deny]).run()
    node = ended.node(name)
    assert (node.outcome, node.parent_id) == (outcome, ended.node("outer").id)
    assert [(result.call.name, result.outcome) for result in seen] == [(name, outcome), ("outer", "ok")]


@pytest.mark.behaviour("H07")
@pytest.mark.parametrize(("name", "arguments", "outcome"), OUTCOMES)
async def test_after_tool_sees_the_same_when_nobody_observes(
    name: str, arguments: Mapping[str, Any] | str, outcome: str
) -> None:
    """Without log and report the outcome that `after_tool` gets is the same."""
    hooks, seen = auditing()
    await scripted(TOOLS, ask(name, arguments), hooks=hooks, around=[deny], observed=False).run()
    assert [result.outcome for result in seen] == [outcome]


@pytest.mark.behaviour("F05", "H07")
@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        pytest.param(Budget(max_tool_calls=1), "max_tool_calls", id="all"),
        pytest.param(Budget(tools={"add": 1}), 'tools["add"]', id="quota"),
    ],
)
async def test_over_the_budget_is_an_observation(budget: Budget, limit: str) -> None:
    """A call beyond the budget does not run; its node says `over_budget`, and `after_tool` sees it."""
    hooks, seen = auditing()
    asked = [ask("add", {"a": 1}), ask("add", {"a": 2}, "c2")]
    ended = await scripted(TOOLS, asked, hooks=hooks, tool_calls="all").run(budget=budget)
    assert ended.observations == ["2", f"not run: the budget's {limit} is used up"]
    assert [node.outcome for node in ended.nodes("add")] == ["ok", "over_budget"]
    assert [node.status for node in ended.nodes("add")] == ["ok", "error"]
    assert [result.outcome for result in seen] == ["ok", "over_budget"]


@pytest.mark.behaviour("F02")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({}, "invalid arguments — a: missing", id="missing"),
        pytest.param({"a": 1, "c": 2}, "invalid arguments — c: unknown argument (accepted: a, b)", id="extra"),
        pytest.param(
            {"a": "x", "b": None},
            'invalid arguments — a: expected integer, received string "x"',
            id="wrong-and-null",
        ),
        pytest.param('{"a": "x"}', 'invalid arguments — a: expected integer, received string "x"', id="json"),
        pytest.param("[1]", "invalid arguments — expected object, received array", id="array"),
    ],
)
async def test_invalid_arguments_never_reach_execute(arguments: Any, expected: str) -> None:
    """What does not fit the schema is told to the model field by field, and `execute` is not called."""
    reached: list[Any] = []

    @tool(name="add")
    async def watched(a: int, b: int = 1) -> str:
        """Adds."""
        reached.append((a, b))
        return "ran"

    ended = await scripted([watched], ask("add", arguments)).run()
    assert ended.observation.startswith(expected)
    assert not reached


@pytest.mark.behaviour("F02")
async def test_invalid_arguments_are_bounded_and_hold_no_injected_value() -> None:
    """Hundreds of wrong fields make a short text, and nothing of the run's data or state is in it."""

    class Kept:
        secret = "STATE-VALUE"

        def __repr__(self) -> str:
            return self.secret

    @tool(name="add")
    async def stateful(a: int, ctx: Context, kept: Annotated[Kept, State]) -> str:
        """Adds."""
        return str(a)

    made = scripted([stateful], ask("add", {"a": "x" * 10_000, "ctx": 1, **{f"f{n}": "y" * 500 for n in range(500)}}))

    @workflow(steps=[loop([made.app._given[0]])], state=Kept)
    class Flow: ...

    made.app._given = (Flow, *made.app._given[1:])
    ended = await made.run(data="DATA-VALUE")
    assert len(ended.observation) <= 2_100
    assert "a: expected integer" in ended.observation
    assert "more" in ended.observation
    assert "-VALUE" not in ended.observation


@pytest.mark.behaviour("F03")
async def test_an_unknown_name_is_answered_with_the_names_that_exist() -> None:
    """The model reads which tools there are, and goes on."""
    ended = await scripted(TOOLS, ask("ad"), ask("add", {"a": 1}, "c2")).run()
    assert ended.observations == ['unknown tool "ad" — the tools are: add, boom, refuse, slow', "2"]


@pytest.mark.behaviour("F06")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param('```json\n{"a": 1, "b": 2}\n```', id="fence"),
        pytest.param('{"a": 1, "b": 2,}', id="trailing-comma"),
        pytest.param("{'a': 1, 'b': 2}", id="python-dict"),
    ],
)
async def test_unambiguous_repair_is_noted(text: str) -> None:
    """Text that can only be read one way is repaired, and the node says so."""
    ended = await scripted(TOOLS, ask("add", text)).run()
    assert ended.observation == "3"
    assert ended.node("add").meta["repaired"] is True


@pytest.mark.behaviour("F06")
async def test_right_arguments_are_not_called_repaired() -> None:
    """The node of a call that needed no repair does not speak of one."""
    ended = await scripted(TOOLS, ask("add", '{"a": 1}')).run()
    assert "repaired" not in ended.node("add").meta


@pytest.mark.behaviour("F06")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a": 1, "b": ', id="cut-off"),
        pytest.param('{"a": 1} {"a": 2}', id="two-objects"),
        pytest.param("a=1, b=2", id="no-object"),
        pytest.param('{"a": 1 "b": 2}', id="missing-comma"),
    ],
)
async def test_ambiguous_text_is_not_repaired(text: str) -> None:
    """Where it could be read in more than one way, the model reads what was wrong, and the tool does not run."""
    ended = await scripted(TOOLS, ask("add", text)).run()
    assert ended.observation.startswith(("malformed arguments — not valid JSON: ", "invalid arguments — "))
    assert ended.node("add").outcome == "invalid"


@pytest.mark.behaviour("F06")
async def test_repair_takes_no_time_on_hostile_text() -> None:
    """A fence that never closes is refused at once: looking for its end is linear in the text."""
    before = time.process_time()
    ended = await scripted(TOOLS, ask("add", "```" + "\n" * 1_000 + "x")).run()
    assert ended.node("add").outcome == "invalid"
    assert time.process_time() - before < 0.5


class Checked(BaseModel):
    """Arguments whose validator has a fault of its own."""

    kind: str

    @field_validator("kind")
    @classmethod
    def look_up(cls, value: str) -> str:
        if value == "fatal":
            raise FatalToolError("the catalogue is gone")
        return {"known": value}[value]


@tool(name="checked", description="Checks.", schema=Checked)
class CheckedTool:
    async def execute(self, args: Checked) -> str:
        return args.kind


@pytest.mark.behaviour("F01", "F05", "F08")
async def test_a_validator_that_fails_is_a_failure_of_its_tool() -> None:
    """An exception in the author's own validator is an observation naming its class; the run goes on."""
    ended = await scripted(
        [CheckedTool], ask("checked", {"kind": "odd"}), ask("checked", {"kind": "known"}, "c2")
    ).run()
    assert ended.error is None
    assert "KeyError" in ended.observations[0]
    assert ended.observations[1] == "known"
    assert [node.status for node in ended.nodes("checked")] == ["error", "ok"]


@pytest.mark.behaviour("F08")
async def test_a_fatal_error_in_a_validator_ends_the_run_through_a_tool_that_catches_it() -> None:
    """`FatalToolError` is noted where it arises, also outside of `execute`."""

    @tool
    async def outer(toolbox: Toolbox) -> str:
        """Catches everything."""
        try:
            return (await toolbox["checked"]({"kind": "fatal"})).content
        except Exception:  # noqa: BLE001 - that is the case
            return "nothing happened"

    ended = await scripted([CheckedTool, outer], ask("outer")).run()
    assert isinstance(ended.error, FatalToolError)


HOSTILE = st.one_of(
    st.text(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ).map(json.dumps),
    st.dictionaries(
        st.sampled_from(["a", "b", "c", ""]), st.none() | st.integers() | st.floats() | st.text() | st.binary()
    ),
)


@pytest.mark.behaviour("F02", "F05", "F12", "H07")
@settings(max_examples=150, deadline=None)
@given(arguments=HOSTILE, name=st.sampled_from(["add", "boom", "refuse"]) | st.text(max_size=20))
async def test_whatever_a_model_sends_is_one_call(arguments: Any, name: str) -> None:
    """Any name with any arguments: one node, one `after_tool`, one answer in a legal history, and the run goes on."""
    hooks, seen = auditing()
    ended = await scripted([add, boom, refuse], ask(name, arguments), hooks=hooks).run()
    assert ended.error is None
    assert_legal(ended.history)
    assert len(seen) == 1
    nodes = [event for event in ended.events if event.kind == "tool" and event.phase == "end"]
    assert [node.outcome for node in nodes] == [seen[0].outcome]
    assert (nodes[0].status == "ok") == (nodes[0].outcome == "ok")


def circular() -> dict[str, Any]:
    """A mapping that holds itself."""
    made: dict[str, Any] = {}
    made["a"] = made
    return made


def deep() -> dict[str, Any]:
    """A mapping nested far beyond what a parser follows."""
    made: dict[str, Any] = {}
    for _ in range(5_000):
        made = {"a": made}
    return made


@pytest.mark.behaviour("F02", "F05")
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(circular(), id="circular"),
        pytest.param(deep(), id="deep"),
        pytest.param({"a": 10**5_000}, id="huge-number"),
        pytest.param('{"a": ' + "9" * 5_000 + "}", id="huge-number-text"),
        pytest.param('{"a": ' + "[" * 50_000, id="deep-text"),
    ],
)
async def test_arguments_that_json_cannot_carry_are_invalid(arguments: Any) -> None:
    """Arguments from code or a provider that no JSON can hold are refused as any others, also beside a good call."""

    @tool
    async def echo(a: str) -> str:
        """Repeats."""
        return a

    made = scripted([echo], [ask("echo", arguments), ask("echo", {"a": "x"}, "c2")], tool_calls="all")
    ended = await made.run()
    assert ended.error is None
    assert [node.outcome for node in sorted(ended.nodes("echo"), key=lambda node: node.id)] == ["invalid", "ok"]
    assert len(ended.observations[0]) < 2_100
