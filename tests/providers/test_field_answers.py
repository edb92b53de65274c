"""Field cases of the wire (category A) about what an answer means: what public bug reports show, through a whole run."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.providers.field_bench import BOTH, ran, replayed, said
from tests.providers.loopback import Answer, Loopback, completion, streamed, tool_call
from thena_core.errors import ProviderError


@pytest.mark.behaviour("V06", "V03")
async def test_a19_the_caller_learns_how_long_to_wait(loopback: Loopback) -> None:
    """A wait beyond the cap is the caller's to decide on, and the error says how long (A19 IBM/mcp-context-forge#5674)."""
    with pytest.raises(ProviderError, match="asks to wait 3600 s") as caught:
        await ran(loopback, [], Answer({"error": {"message": "slow down"}}, 429, {"retry-after": "3600"}))
    assert (caught.value.retry_after, caught.value.status) == (3600, 429)


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize("reason", ["stop", None, ""], ids=["stop", "null", "empty"])
async def test_a21_calls_count_and_not_the_reason(loopback: Loopback, reason: Any, streams: bool) -> None:
    """Calls run whatever the finish reason says, with their text beside them (A21 Mirascope/mirascope#257)."""
    first = said([tool_call("ping", "{}", id="call_1")], streams=streams, content="Checking.", finish_reason=reason)
    outcome = await ran(loopback, ["ping"], first, streams=streams)
    assert outcome.calls == [("ping", {})]
    assert [entry["content"] for entry in outcome.requests[1]["messages"] if entry["role"] == "assistant"] == [
        "Checking."
    ]


@pytest.mark.behaviour("V06")
@BOTH
async def test_a21_a_reason_without_calls(loopback: Loopback, streams: bool) -> None:
    """The reason `tool_calls` without any is an answer (A21 ENTERPILOT/GoModel#124)."""
    first = said([], streams=streams, content="All done.", finish_reason="tool_calls")
    outcome = await ran(loopback, ["ping"], first, streams=streams)
    assert (outcome.result.output, len(outcome.requests)) == ("All done.", 1)


@pytest.mark.behaviour("V06")
@BOTH
async def test_a22_ids(loopback: Loopback, streams: bool) -> None:
    """Each call runs once under an id of its own, the same in every run (A22 NousResearch/hermes-agent#67777)."""
    ids: list[Any] = ["call_1", "call_1", "", None]
    calls = [
        tool_call("read_file", json.dumps({"path": path}), id=call_id)
        for path, call_id in zip("abcd", ids, strict=True)
    ]
    outcome = await ran(loopback, ["read_file"], said(calls, streams=streams), streams=streams)
    assert outcome.calls == [("read_file", {"path": path}) for path in "abcd"]
    assert [call_id for call_id, _, _ in replayed(outcome)] == ["call_1", "call_2", "call_3", "call_4"]
    answers = [(message.tool_call_id, message.content) for message in outcome.observations]
    assert answers == [(f"call_{number}", f"content of {path}") for number, path in enumerate("abcd", 1)]


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    "name", ["functions.read_file", "Read_File", " read_file\n"], ids=["namespace", "case", "space"]
)
async def test_a23_names_that_can_be_meant_one_way(loopback: Loopback, name: str, streams: bool) -> None:
    """A name in other clothes is the tool's, also in the history (A23 tontinton/maki#518)."""
    first = said([tool_call(name, '{"path": "a"}', id="c")], streams=streams)
    outcome = await ran(loopback, ["read_file", "Bash", "bash"], first, streams=streams)
    assert outcome.calls == [("read_file", {"path": "a"})]
    assert replayed(outcome)[0][1] == "read_file"


@pytest.mark.behaviour("V06")
async def test_a23_ambiguous_and_similar_names(loopback: Loopback) -> None:
    """Between two tools nothing is guessed, nor from what is only similar (A23 lijunzh/koda#49)."""
    calls = [tool_call("BASH", '{"cmd": "ls"}', id="a"), tool_call("read_fil", '{"path": "a"}', id="b")]
    outcome = await ran(loopback, ["read_file", "Bash", "bash"], said(calls, streams=False))
    assert outcome.calls == []
    ambiguous, similar = (message.content for message in outcome.observations)
    assert "ambiguous: Bash, bash" in ambiguous
    assert similar.startswith('unknown tool "read_fil"')


@pytest.mark.behaviour("V06", "V04", "V05")
@BOTH
@pytest.mark.parametrize(
    ("text", "n"),
    [
        pytest.param(
            "<tool_call>\n<function=square>\n<parameter=n>\n1024\n</parameter>\n</function>\n</tool_call>",
            1024,
            id="xml",
        ),
        pytest.param(
            '<think>hm</think>\n<tool_call>\n{"name": "square", "arguments": {"n": 3}}\n</tool_call>', 3, id="json"
        ),
    ],
)
async def test_a25_a_call_that_is_the_whole_answer(loopback: Loopback, text: str, n: int, streams: bool) -> None:
    """It runs like any call, and nobody sees its text (A25 vllm-project/vllm#21571, as amended by V04)."""
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    first = streamed(*pieces) if streams else Answer(completion(text))
    outcome = await ran(loopback, ["square"], first, streams=streams)
    assert outcome.calls == [("square", {"n": n})]
    assert outcome.heard == ("done" if streams else "")
    assert replayed(outcome) == [("call_1", "square", {"n": n})]


@pytest.mark.behaviour("V06", "V04")
@BOTH
async def test_a25_a_call_inside_text(loopback: Loopback, streams: bool) -> None:
    """Inside text it is text, unless the user is lenient (A25 zavora-ai/adk-rust#290)."""
    text = 'The log contains <tool_call>{"name": "square", "arguments": {"n": 3}}</tool_call> as an example.'
    first = streamed(text) if streams else Answer(completion(text))
    outcome = await ran(loopback, ["square"], first, streams=streams)
    assert (outcome.calls, outcome.result.output) == ([], text)
    assert outcome.heard == (text if streams else "")
    loopback.asked.clear()
    lenient = await ran(loopback, ["square"], first, streams=streams, rescue="lenient")
    assert lenient.calls == [("square", {"n": 3})]
    assert "tool_call" not in lenient.heard
    loopback.asked.clear()
    never = await ran(loopback, ["square"], first, streams=streams, rescue=False)
    assert (never.calls, never.result.output) == ([], text)


@pytest.mark.behaviour("V06")
@BOTH
async def test_a26_lone_surrogates_and_nul(loopback: Loopback, streams: bool) -> None:
    """Whole pairs survive, halves become U+FFFD, and every request is strict UTF-8 (A26 HKUDS/nanobot#4952)."""
    arguments = '{"text": "ok \\ud83d\\ude00 bad \\ud83d end\\u0000"}'
    outcome = await ran(
        loopback, ["echo"], said([tool_call("echo", arguments, id="c")], streams=streams), streams=streams
    )
    good = [("echo", {"text": "ok \U0001f600 bad \ufffd end\x00"})]
    assert outcome.calls == good or (outcome.calls == [] and outcome.observations[0].is_error)
    assert outcome.result.output == "done"
    assert loopback.asked[1].raw.decode("utf-8", "strict")


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    ("settings", "content", "reasoning"),
    [
        pytest.param({}, None, "I should ping.", id="goes-back"),
        pytest.param({"reasoning": False, "empty_content": ""}, "", None, id="refused-by-the-service"),
    ],
)
async def test_a29_reasoning_beside_calls(
    loopback: Loopback, settings: Any, content: Any, reasoning: Any, streams: bool
) -> None:
    """The key `content` is always there; its empty form and the reasoning are settings (A29 openclaw/openclaw#71050)."""
    call = tool_call("ping", "{}", id="call_1")
    if streams:
        delta = {"tool_calls": [{"index": 0, **call}]}
        first = streamed(
            {"reasoning_content": "I should "}, {"reasoning_content": "ping."}, delta, finish_reason="tool_calls"
        )
    else:
        body = completion(None, [call], "tool_calls")
        body["choices"][0]["message"]["reasoning_content"] = "I should ping."
        first = Answer(body)
    outcome = await ran(loopback, ["ping"], first, streams=streams, **settings)
    asked = outcome.requests[1]["messages"][2]
    assert outcome.calls == [("ping", {})]
    assert (asked["content"], asked.get("reasoning_content")) == (content, reasoning)
    assert outcome.heard == ("done" if streams else "")


@pytest.mark.behaviour("V06")
async def test_a29_no_content_key(loopback: Loopback) -> None:
    """A message without the key gets it when it goes back (A29 abetlen/llama-cpp-python#1805)."""
    body = {"choices": [{"message": {"tool_calls": [tool_call("ping", "{}", id="c")]}, "finish_reason": "tool_calls"}]}
    outcome = await ran(loopback, ["ping"], Answer(body))
    assert "content" in outcome.requests[1]["messages"][2]


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    ("name", "arguments", "calls"),
    [
        pytest.param(
            "delete", '{"message_id": 9007199254740993}', [("delete", {"message_id": 9007199254740993})], id="big"
        ),
        pytest.param(
            "delete",
            '{"message_id": "1234567890123456789"}',
            [("delete", {"message_id": 1234567890123456789})],
            id="text",
        ),
        pytest.param("delete", '{"message_id": 12.5}', [], id="fraction"),
        pytest.param("scale", '{"x": NaN}', [], id="nan"),
        pytest.param("delete", '{"message_id": ' + "9" * 5000 + "}", [], id="absurd"),
    ],
)
async def test_a30_numbers(loopback: Loopback, name: str, arguments: str, calls: Any, streams: bool) -> None:
    """Integers stay exact, and what is no number of the kind is told (A30 langchain4j/langchain4j#5754)."""
    started = time.perf_counter()
    outcome = await ran(loopback, [name], said([tool_call(name, arguments, id="c")], streams=streams), streams=streams)
    assert outcome.calls == calls
    assert outcome.observations[0].is_error is (not calls)
    assert "4300" not in outcome.observations[0].content
    assert time.perf_counter() - started < 5
    assert json.loads(loopback.asked[1].raw)
