"""Field cases of the wire (category A) about arguments: what public bug reports show, through a whole run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.field_bench import BOTH, Item, ran, replayed, said
from tests.providers.loopback import Loopback, tool_call


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    "arguments", ["", "   ", "\n", "null", None], ids=["empty", "blank", "line", "null", "nothing"]
)
async def test_a01_a02_no_arguments(loopback: Loopback, arguments: Any, streams: bool) -> None:
    """A call without arguments runs, and goes back with `{}` (A01 vllm-project/vllm#19419; A02 langchain-ai/langchain#33896)."""
    outcome = await ran(
        loopback, ["ping"], said([tool_call("ping", arguments, id="call_1")], streams=streams), streams=streams
    )
    assert outcome.calls == [("ping", {})]
    assert not outcome.observations[0].is_error
    assert replayed(outcome) == [("call_1", "ping", {})]


@pytest.mark.behaviour("V06")
@BOTH
async def test_a02_missing_arguments(loopback: Loopback, streams: bool) -> None:
    """An absent key means no arguments, and `null` for a tool that wants some names the field (A02 ogx-ai/ogx#3560)."""
    call = {"id": "call_1", "type": "function", "function": {"name": "ping"}}
    assert (await ran(loopback, ["ping"], said([call], streams=streams), streams=streams)).calls == [("ping", {})]
    loopback.asked.clear()
    refused = await ran(loopback, ["echo"], said([tool_call("echo", "null", id="c")], streams=streams), streams=streams)
    assert refused.calls == []
    assert refused.observations[0].is_error
    assert "text" in refused.observations[0].content
    assert "NoneType" not in refused.observations[0].content


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    ("name", "arguments", "calls"),
    [
        pytest.param(
            "total",
            '{"values": "[1, 2, 3]", "note_": "[4, 5]"}',
            [("total", {"values": [1, 2, 3], "note_": "[4, 5]"})],
            id="list",
        ),
        pytest.param(
            "put",
            '{"item": "{\\"name\\": \\"a\\", \\"n\\": 1}"}',
            [("put", {"item": Item(name="a", n=1)})],
            id="object",
        ),
        pytest.param(
            "total", '"{\\"values\\": [1, 2, 3]}"', [("total", {"values": [1, 2, 3], "note_": ""})], id="all-of-it"
        ),
        pytest.param("total", '{"values": "1,2,3"}', [], id="no-json"),
    ],
)
async def test_a03_arguments_encoded_twice(
    loopback: Loopback, name: str, arguments: str, calls: Any, streams: bool
) -> None:
    """A list or object in a text is decoded one level where the schema wants it (A03 pydantic/pydantic-ai#5259)."""
    outcome = await ran(loopback, [name], said([tool_call(name, arguments, id="c")], streams=streams), streams=streams)
    assert outcome.calls == calls
    assert outcome.observations[0].is_error is (not calls)
    assert all(isinstance(arguments, dict) for _, _, arguments in replayed(outcome))
    if not calls:
        assert "values" in outcome.observations[0].content


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize(
    ("before", "calls"),
    [("", [("save", {"facts": ["uses ```json fences", "b"]})]), ("Sure:\n", [])],
    ids=["fenced", "text-before"],
)
async def test_a05_fenced_arguments(loopback: Loopback, before: str, calls: Any) -> None:
    """A fence around the arguments is taken off, one with text before it is not (A05 vectorize-io/hindsight#2542)."""
    arguments = before + '```json\n{"facts": ["uses ```json fences", "b"]}\n```'
    outcome = await ran(loopback, ["save"], said([tool_call("save", arguments, id="c")], streams=False))
    assert outcome.calls == calls
    assert outcome.observations[0].is_error is (not calls)


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    "arguments",
    ['{"path": "a.txt", "content": "x', '["a.txt", "x"]', '{"path": "' + "x" * 5000],
    ids=["unclosed", "list", "long"],
)
async def test_a06_malformed_arguments(loopback: Loopback, arguments: str, streams: bool) -> None:
    """What is no object is not run, told briefly, and goes back as a legal one (A06 pydantic/pydantic-ai#7092)."""
    outcome = await ran(
        loopback, ["write"], said([tool_call("write", arguments, id="call_1")], streams=streams), streams=streams
    )
    assert outcome.calls == []
    assert replayed(outcome) == [("call_1", "write", {})]
    answer = outcome.observations[0]
    assert (answer.tool_call_id, answer.is_error, len(answer.content) < 600) == ("call_1", True, True)
    asked = next(message for message in outcome.result.history if message.tool_requests)
    assert asked.tool_requests[0].arguments == arguments


@pytest.mark.behaviour("V06", "F06")
async def test_a06_a_repaired_call_stays_as_it_was_sent(loopback: Loopback) -> None:
    """After a repair the history keeps what the model sent, and the service gets JSON (A06 su-kaka/gcli2api#406)."""
    arguments = '{"path": "a.txt", "content": "x",}'
    outcome = await ran(loopback, ["write"], said([tool_call("write", arguments, id="c")], streams=False))
    assert outcome.calls == [("write", {"path": "a.txt", "content": "x"})]
    asked = next(message for message in outcome.result.history if message.tool_requests)
    assert asked.tool_requests[0].arguments == arguments
    assert isinstance(replayed(outcome)[0][2], dict)


@pytest.mark.behaviour("V06", "F07")
@BOTH
@pytest.mark.parametrize("reason", ["length", "max_tokens", "max_output_tokens", "content_filter"])
async def test_a07_a_call_that_was_cut_off(loopback: Loopback, reason: str, streams: bool) -> None:
    """No call of an answer that hit its limit is run, though its JSON is valid (A07 NousResearch/hermes-agent#7693)."""
    calls = [tool_call("write", '{"path": "x.txt"}', id="a"), tool_call("ping", "{}", id="b")]
    outcome = await ran(
        loopback, ["write", "ping"], said(calls, streams=streams, finish_reason=reason), streams=streams
    )
    assert outcome.calls == []
    assert [message.tool_call_id for message in outcome.observations] == ["a", "b"]
    for message in outcome.observations:
        assert message.is_error
        assert "output limit" in message.content
        assert "smaller" in message.content
    loopback.asked.clear()
    alone = await ran(loopback, ["write"], said(calls[:1], streams=streams, finish_reason=reason), streams=streams)
    assert (alone.calls, alone.observations[0].is_error) == ([], True)
