"""From an answer to a turn: ids, names, thoughts and rescued calls, the same for every wire."""

from __future__ import annotations

import pytest

from thena_core.definition import ToolDefinition
from thena_core.messages import ChatTurn, ToolRequest, Usage
from thena_core.providers import ChatRequest
from thena_core.providers.answer import Answer, AskedCall, turn_of
from thena_core.providers.rescue import Rescue

TOOLS = [ToolDefinition("ping", "Pings."), ToolDefinition("Bash", "Runs."), ToolDefinition("bash", "Runs.")]
WRITTEN = '<think>hm</think>\n<tool_call>{"name": "ping", "arguments": {}}</tool_call>'


def turn(answer: Answer, rescue: Rescue = True, taken: set[str] | None = None, attempts: int = 1) -> ChatTurn:
    request = ChatRequest([], tools=TOOLS)
    return turn_of(answer, request, provider="test", rescue=rescue, attempts=attempts, taken=taken or set())


def test_keeps_what_was_read() -> None:
    """Text, usage, finish reason and attempts stay as they were read."""
    usage = Usage(1, 2)
    assert turn(Answer("hi", (), usage, "stop"), attempts=3) == ChatTurn("hi", [], usage, "stop", meta={"attempts": 3})


@pytest.mark.behaviour("V04")
def test_a_written_call_becomes_a_call() -> None:
    """A call that is the whole answer behind the thoughts is made, with an own id, and the node says so (case A25)."""
    made = turn(Answer(WRITTEN), taken={"call_1"})
    assert (made.content, made.tool_requests) == ("", [ToolRequest("call_2", "ping", {})])
    assert made.meta == {"attempts": 1, "tool_call_source": "rescued"}


@pytest.mark.behaviour("V04")
def test_a_written_call_can_stay_text() -> None:
    """With `rescue=False` it is the answer, and the node says what it looks like (case A25)."""
    made = turn(Answer(WRITTEN), rescue=False)
    assert made.tool_requests == []
    assert made.content.startswith("<tool_call>")
    assert "unread_tool_call" in (made.meta or {})


@pytest.mark.behaviour("V04")
def test_calls_of_the_service_come_first() -> None:
    """Beside calls that the service read, none is looked for in the text."""
    made = turn(Answer('{"name": "ping"}', [AskedCall("a", "ping")]))
    assert (made.content, len(made.tool_requests), made.meta) == ('{"name": "ping"}', 1, {"attempts": 1})


@pytest.mark.behaviour("V04")
def test_lenient_looks_inside_text() -> None:
    """With `rescue="lenient"` the text around a call stays the content."""
    made = turn(Answer('I ping: {"name": "ping", "arguments": {}}'), rescue="lenient")
    assert (made.content, [call.name for call in made.tool_requests]) == ("I ping:", ["ping"])


def test_names_become_those_of_the_tools() -> None:
    """Hooks, middleware and history get the tool's name, and the node keeps what the model wrote (case A23)."""
    made = turn(Answer(calls=[AskedCall("a", "functions.ping"), AskedCall("b", "BASH"), AskedCall("c", "ping")]))
    assert [call.name for call in made.tool_requests] == ["ping", "BASH", "ping"]
    assert (made.meta or {})["renamed"] == {"a": "functions.ping"}


def test_what_goes_back_is_kept_under_the_providers_name() -> None:
    """Reasoning is kept with the message, and what belongs to a call under the id that the call has in the end."""
    calls = [AskedCall("", "ping", "{}", {"signature": "s"}), AskedCall("b", "ping")]
    made = turn(Answer(calls=calls, extra={"reasoning_content": "hm"}))
    assert made.extra == {"test": {"reasoning_content": "hm", "calls": {"call_1": {"signature": "s"}}}}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        pytest.param(["call_1", "call_1", "", ""], ["call_1", "call_2", "call_3", "call_4"], id="A22"),
        pytest.param(["", "call_1"], ["call_2", "call_1"], id="own-before-given"),
        pytest.param(["x\ud83d"], ["x\ufffd"], id="half-a-pair"),
        pytest.param(["old", "new"], ["call_2", "new"], id="taken-in-the-history"),
    ],
)
def test_ids_are_unique_and_stable(ids: list[str], expected: list[str]) -> None:
    """Missing, repeated and taken ids are replaced, the same way each time (case A22)."""
    answer = Answer(calls=[AskedCall(call_id, "ping") for call_id in ids])
    taken = {"old"} if "old" in ids else set[str]()
    made = [[call.id for call in turn(answer, taken=taken).tool_requests] for _ in range(2)]
    assert made == [expected, expected]
