"""Field cases of the wire (category A) about streams and their ends: what public bug reports show, through a whole run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.providers.field_bench import BOTH, ran, replayed
from tests.providers.loopback import DONE, Answer, Loopback, chunk, streamed, tool_call
from thena_core.errors import ProviderError


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([(0, "call_a", "a"), (0, "call_b", "b")], ["call_a", "call_b"], id="A09-one-index"),
        pytest.param([(1, "call_a", "a"), (3, "call_b", "b")], ["call_a", "call_b"], id="A10-gaps"),
    ],
)
async def test_a09_a10_indices(loopback: Loopback, entries: Any, expected: list[str]) -> None:
    """An index is a key and no position, and a new id begins a call (A09 huggingface/smolagents#1958; A10 pipecat-ai/pipecat#5342)."""
    deltas = [
        {"tool_calls": [{"index": index, **tool_call("read_file", json.dumps({"path": path}), id=call_id)}]}
        for index, call_id, path in entries
    ]
    first = streamed("Let me look.", *deltas, finish_reason="tool_calls")
    outcome = await ran(loopback, ["read_file"], first, streams=True)
    assert outcome.calls == [("read_file", {"path": "a"}), ("read_file", {"path": "b"})]
    assert [message.tool_call_id for message in outcome.observations] == expected
    assert outcome.result.history[1].content == "Let me look."
    assert outcome.heard == "Let me look.done"


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize(
    ("fragments", "name"),
    [
        pytest.param(
            [("call_a", "read_file", '{"pa'), ("call_a", "read_file", 'th": "a'), ("call_a", "read_file", '"}')],
            "read_file",
            id="repeated",
        ),
        pytest.param(
            [("call_a", "edit_ex", ""), (None, "isting_file", '{"path": "a"}')], "edit_existing_file", id="split"
        ),
        pytest.param([("call_a", "read_file", '{"path": "a"}'), ("", "", "")], "read_file", id="empty"),
    ],
)
async def test_a11_names_in_fragments(loopback: Loopback, fragments: Any, name: str) -> None:
    """A repeated name is one name, a split one is joined where that is a tool (A11 continuedev/continue#5849)."""
    deltas = [
        {"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": {"name": part, "arguments": text}}]}
        for call_id, part, text in fragments
    ]
    outcome = await ran(
        loopback, ["read_file", "edit_existing_file"], streamed(*deltas, finish_reason="tool_calls"), streams=True
    )
    assert outcome.calls == [(name, {"path": "a"})]
    assert [call_id for call_id, _, _ in replayed(outcome)] == ["call_a"]


@pytest.mark.behaviour("V06", "V07")
@pytest.mark.parametrize("choices", [[], None], ids=["empty", "null"])
async def test_a13_chunks_without_choices(loopback: Loopback, choices: Any) -> None:
    """A chunk without choices is no answer and may hold the usage (A13 BerriAI/litellm#32519)."""
    pieces = [
        chunk() + chunk({"tool_calls": [{"index": 0, **tool_call("ping", "{}", id="call_1")}]}),
        chunk({}, "tool_calls", usage=None),
        chunk(choices=choices, usage={"prompt_tokens": 5, "completion_tokens": 7}),
        DONE,
    ]
    outcome = await ran(loopback, ["ping"], Answer(pieces=pieces), streams=True)
    assert outcome.calls == [("ping", {})]
    assert outcome.result.usage.prompt_tokens == 5 + 12


@pytest.mark.behaviour("V06")
async def test_a13_nothing_but_the_terminator(loopback: Loopback) -> None:
    """A stream with nothing in it is an error in words (A13 deepset-ai/haystack#12721)."""
    with pytest.raises(ProviderError, match="empty answer"):
        await ran(loopback, ["ping"], Answer(pieces=[DONE]), streams=True)


@pytest.mark.behaviour("V06")
async def test_a14_comments_and_keep_alives(loopback: Loopback) -> None:
    """Comments, blank data, pings and a missing space are no trouble (A14 anomalyco/opencode#50871)."""
    call = chunk({"tool_calls": [{"index": 0, **tool_call("ping", "{}", id="call_1")}]}).removeprefix(b"data: ")
    pieces = [
        b': PROCESSING\n\n: x-cost=0.1\nevent: ping\ndata: {"type": "ping"}\n\ndata: : keepalive\n\ndata:\n\n',
        b"data:" + call,
        b"id: 7\nretry: 100\n" + chunk({}, "tool_calls"),
        b": bye\n\ndata:[DONE]\n\n",
    ]
    assert (await ran(loopback, ["ping"], Answer(pieces=pieces), streams=True)).calls == [("ping", {})]


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize("size", [1, 2, 3, 50])
async def test_a15_characters_and_lines_in_pieces(loopback: Loopback, size: int) -> None:
    """Separators inside texts end no line, and no character is lost in between (A15 florimondmanca/httpx-sse#34)."""
    text = "a\u2028b\u0085c ✅ 😀"
    whole = chunk(
        {"tool_calls": [{"index": 0, **tool_call("echo", json.dumps({"text": text}, ensure_ascii=False), id="c")}]}
    )
    body = whole.replace(b"\n\n", b"\r\n\r\n") + chunk({}, "tool_calls").replace(b"\n\n", b"\r\r") + DONE
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    outcome = await ran(loopback, ["echo"], Answer(pieces=pieces), streams=True)
    assert outcome.calls == [("echo", {"text": text})]


@pytest.mark.behaviour("V06", "V08")
@pytest.mark.parametrize("streams", [False, True], ids=["asked-whole", "asked-streamed"])
@pytest.mark.parametrize(
    ("answer", "words", "status"),
    [
        pytest.param(
            Answer(
                {"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "upstream timeout"}}}
            ),
            "upstream timeout",
            502,
            id="error",
        ),
        pytest.param(Answer({"id": None, "choices": None}), "no choices in the answer", 200, id="null-choices"),
        pytest.param(Answer({"id": "c1", "choices": []}), "no choices in the answer", 200, id="no-choices"),
    ],
)
async def test_a17_an_error_under_status_200(
    loopback: Loopback, answer: Answer, words: str, status: int, streams: bool
) -> None:
    """An error in a good answer is one, with its own status (A17 pydantic/pydantic-ai#6885; langchain-ai/langchain#35236)."""
    with pytest.raises(ProviderError, match=words) as caught:
        await ran(loopback, ["ping"], answer, streams=streams)
    assert caught.value.status == status


@pytest.mark.behaviour("V06", "V08")
@BOTH
async def test_a17_a_page_under_status_200(loopback: Loopback, streams: bool) -> None:
    """An HTML page is no answer, asked for whole or streamed (A17 BerriAI/litellm#2395)."""
    page = Answer("<html><body>502 Bad Gateway</body></html>", 200, {"content-type": "text/html"})
    with pytest.raises(ProviderError, match="502 Bad Gateway"):
        await ran(loopback, ["ping"], page, streams=streams)


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize("drop", [False, True], ids=["closed", "dropped"])
@pytest.mark.parametrize("arguments", ['{"path": "a"}', '{"path": '], ids=["valid", "cut"])
async def test_a18_a_stream_without_an_end(loopback: Loopback, drop: bool, arguments: str) -> None:
    """A stream that ends before it says so is an error, and no call of it runs (A18 pydantic/pydantic-ai#6610)."""
    first = Answer(pieces=[chunk({"tool_calls": [{"index": 0, **tool_call("write", arguments, id="c")}]})], drop=drop)
    with pytest.raises(ProviderError, match=r"ended before the answer was complete|broke off"):
        await ran(loopback, ["write"], first, streams=True)
    assert len(loopback.asked) == 1


@pytest.mark.behaviour("V06")
async def test_a18_a_terminator_without_a_reason(loopback: Loopback) -> None:
    """The terminator alone is an end (A18 anthropics/anthropic-sdk-python#1470)."""
    call = chunk({"tool_calls": [{"index": 0, **tool_call("write", '{"path": "a"}', id="c")}]})
    outcome = await ran(loopback, ["write"], Answer(pieces=[call, chunk({}, None), DONE]), streams=True)
    assert outcome.calls == [("write", {"path": "a", "content": ""})]
