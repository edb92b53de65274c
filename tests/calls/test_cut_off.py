"""Calls of an answer that was cut off: told to the model, kept in the history, and never run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thena_core import Context, Prompt, Thena, ToolCall, ToolResult, agent, tool
from thena_core.messages import CUT_OFF, ChatTurn, CutOff, ToolRequest
from thena_core.record.tree import Event
from thena_core.testing import FakeProvider

ONE = [ToolRequest("a", "write", '{"path": "x"}')]
TWO = [*ONE, ToolRequest("b", "write", {"path": "y"})]


@pytest.mark.behaviour("F07")
@pytest.mark.parametrize("reason", sorted(CUT_OFF))
@pytest.mark.parametrize("requests", [ONE, TWO], ids=["one", "two"])
async def test_a_call_that_was_cut_off_is_never_run(reason: str, requests: list[ToolRequest]) -> None:
    """With any provider, whatever its arguments look like: no guard and no tool sees it, the model and the record do."""
    seen: list[str] = []
    provider = FakeProvider([ChatTurn("", requests, finish_reason=reason), "done"])

    @tool
    def write(path: str) -> str:
        """Writes."""
        seen.append(f"ran {path}")
        return "ok"

    @agent(provider=provider, tools=[write], prompt=Prompt("p"), tool_calls="all")
    class Writer:
        def before_tool(self, call: ToolCall, ctx: Context[Any]) -> None:
            seen.append("before")

        def after_tool(self, result: ToolResult, ctx: Context[Any]) -> None:
            seen.append(f"after {result.outcome}")

    events: list[Event] = []
    async with Thena(Writer) as app, app.start("go") as handle:
        result = await handle.result()
        events = [event async for event in handle.events()]
    assert seen == ["after invalid"] * len(requests)
    answers = [message for message in result.history if message.role == "tool"]
    assert [message.tool_call_id for message in answers] == [request.id for request in requests]
    assert all(message.is_error and "output limit" in message.content for message in answers)
    [kept] = [message.tool_requests for message in result.history if message.tool_requests]
    assert [(one.id, one.name) for one in kept] == [(one.id, one.name) for one in requests]
    assert [json.loads(one.arguments) for one in kept if isinstance(one.arguments, str)] == [
        json.loads(one.arguments) if isinstance(one.arguments, str) else one.arguments for one in requests
    ]
    ended = [event for event in events if event.phase == "end" and event.kind == "tool"]
    assert len(ended) == len(requests)


@pytest.mark.behaviour("F07")
async def test_a_whole_answer_runs() -> None:
    """Every other finish reason leaves the call as it is."""
    ran: list[str] = []

    @tool
    def write(path: str) -> str:
        """Writes."""
        ran.append(path)
        return "ok"

    turns = [ChatTurn("", ONE, finish_reason=reason) for reason in ("stop", "tool_calls", "", None)]

    @agent(provider=FakeProvider([*turns, "done"]), tools=[write], prompt=Prompt("p"))
    class Writer:
        pass

    async with Thena(Writer) as app:
        await app.run("go")
    assert ran == ["x"] * 4


def test_cut_off_arguments_are_text() -> None:
    """The mark keeps what the model sent, also where a service parsed it."""
    assert (CutOff.of('{"a": '), CutOff.of({"a": 1})) == ('{"a": ', '{"a": 1}')
    assert type(CutOff.of("x")) is CutOff
