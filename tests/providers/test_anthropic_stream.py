"""Anthropic's events, without HTTP: blocks put together, usage revised, errors, ends, and what compatible servers do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thena_core.providers.anthropic_stream import MessageStream, StreamedError
from thena_core.providers.client import BrokenOff
from thena_core.providers.sse import ServerEvent


def taken(*events: dict[str, Any] | str) -> tuple[MessageStream, list[str]]:
    """Take events and return the stream with the pieces of text that it gave."""
    stream = MessageStream()
    texts = [
        stream.take(ServerEvent(event) if isinstance(event, str) else ServerEvent(json.dumps(event), event["type"]))
        for event in events
    ]
    return stream, [text for text in texts if text]


def start(index: Any = 0, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any = 0, **change: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": change}


def stop(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def piece(text: str, index: int = 0) -> dict[str, Any]:
    return delta(index, type="text_delta", text=text)


def part(text: str, index: int = 0) -> dict[str, Any]:
    return delta(index, type="input_json_delta", partial_json=text)


def ended(reason: Any = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


STOP = {"type": "message_stop"}


def test_text_comes_piece_by_piece() -> None:
    """Each piece is given as it comes, what stands in the beginning of a block included."""
    stream, texts = taken(start(type="text", text="A"), piece("b"), piece("c"), stop(), ended(), STOP)
    assert texts == ["A", "b", "c"]
    assert stream.blocks == [{"type": "text", "text": "Abc"}]
    assert (stream.stop_reason, stream.ended) == ("end_turn", True)


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        pytest.param([start(type="tool_use", id="t", name="ping", input={})], {}, id="A27-no-delta"),
        pytest.param([start(type="tool_use", id="t", name="ping", input={}), part("")], {}, id="A27-empty-delta"),
        pytest.param(
            [start(type="tool_use", id="t", name="bash", input={"cmd": "ls"})], {"cmd": "ls"}, id="A27-all-in-the-start"
        ),
        pytest.param(
            [start(type="tool_use", id="t", name="bash", input={}), part(""), part('{"cmd"'), part(': "pwd"}')],
            '{"cmd": "pwd"}',
            id="A27-pieces",
        ),
        pytest.param(
            [start(type="tool_use", id="t", name="bash", input={"cmd": "x"}), part('{"cmd": "ls"}')],
            '{"cmd": "ls"}',
            id="pieces-win",
        ),
        pytest.param(
            [start(type="tool_use", id="t", name="bash", input={}), part('{"cmd": "l')], '{"cmd": "l', id="cut"
        ),
    ],
)
def test_arguments_are_put_together(events: list[dict[str, Any]], arguments: Any) -> None:
    """Pieces, once one is not empty, are the input, as text; else it is what the start says (case A27).

    Sources: langchain-ai/langchain#23911, BerriAI/litellm#5063, Yeachan-Heo/gajae-code#1895.
    """
    stream, texts = taken(*events, stop(), ended("tool_use"), STOP)
    assert [block["input"] for block in stream.blocks] == [arguments]
    assert texts == []


def test_blocks_may_interleave() -> None:
    """Deltas find their block by its index, in whatever order they come and with gaps between the numbers."""
    stream, _ = taken(
        start(3, type="tool_use", id="a", name="read", input={}),
        start(7, type="tool_use", id="b", name="read", input={}),
        part('{"p": 2}', 7),
        part('{"p":', 3),
        part(" 1}", 3),
    )
    assert [(block["id"], block["input"]) for block in stream.blocks] == [("a", '{"p": 1}'), ("b", '{"p": 2}')]


def test_one_index_for_all_blocks() -> None:
    """A server that numbers every block 0 loses none: a new start is a new block (cases A09, A10)."""
    stream, _ = taken(
        start(type="tool_use", id="a", name="read", input={}),
        part('{"p": 1}'),
        start(type="tool_use", id="b", name="read", input={}),
        part('{"p": 2}'),
    )
    assert [(block["id"], block["input"]) for block in stream.blocks] == [("a", '{"p": 1}'), ("b", '{"p": 2}')]


def test_thinking_is_kept_and_not_said() -> None:
    """Thinking with its signature, redacted thinking and citations become the blocks of an answer in one piece."""
    stream, texts = taken(
        start(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="Hm"),
        delta(0, type="thinking_delta", thinking="."),
        delta(0, type="signature_delta", signature="c2ln"),
        stop(0),
        start(1, type="redacted_thinking", data="eA=="),
        stop(1),
        start(2, type="text", text=""),
        delta(2, type="citations_delta", citation={"url": "u"}),
        piece("a", 2),
    )
    assert texts == ["a"]
    assert stream.blocks == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "text", "text": "a", "citations": [{"url": "u"}]},
    ]


def test_tools_of_the_service_are_kept_whole() -> None:
    """The input of the service's own tools is an object again, as it must be sent back."""
    stream, _ = taken(
        start(0, type="server_tool_use", id="s", name="search", input={}),
        part('{"q":', 0),
        part(' "x"}', 0),
        start(1, type="web_search_tool_result", tool_use_id="s", content=[1]),
    )
    assert stream.blocks == [
        {"type": "server_tool_use", "id": "s", "name": "search", "input": {"q": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [1]},
    ]


def test_a_missing_start_loses_no_text() -> None:
    """Text and thinking without a start, or under the index of another kind, begin a block of their own."""
    stream, texts = taken(piece("a"), delta(0, type="thinking_delta", thinking="h"), piece("b"), part("{}", 9))
    assert texts == ["a", "b"]
    assert [block["type"] for block in stream.blocks] == ["text", "thinking", "text"]


@pytest.mark.behaviour("V07")
@pytest.mark.parametrize(
    ("first", "last", "counts"),
    [
        pytest.param({"input_tokens": 3, "output_tokens": 1}, {"output_tokens": 9}, (3, 9), id="A27-two-halves"),
        pytest.param(
            {"input_tokens": 702, "output_tokens": 1},
            {"input_tokens": 1591, "output_tokens": 9},
            (1591, 9),
            id="revised",
        ),
        pytest.param(
            {"input_tokens": 5, "output_tokens": 1}, {"input_tokens": None, "output_tokens": 9}, (5, 9), id="null"
        ),
        pytest.param(
            {"input_tokens": 5, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 9}, (5, 9), id="zero"
        ),
        pytest.param({}, {"input_tokens": 5, "output_tokens": 9}, (5, 9), id="only-at-the-end"),
        pytest.param(None, None, (None, None), id="never"),
    ],
)
def test_usage_is_revised(first: Any, last: Any, counts: tuple[int | None, int | None]) -> None:
    """Later counts replace earlier ones; an empty one replaces nothing."""
    stream, _ = taken({"type": "message_start", "message": {"usage": first}}, ended() | {"usage": last}, STOP)
    assert (stream.usage.get("input_tokens"), stream.usage.get("output_tokens")) == counts


@pytest.mark.parametrize(
    ("events", "complete"),
    [
        pytest.param([start(type="text", text="a"), stop()], False, id="A18-neither"),
        pytest.param([start(type="text", text="a"), ended()], False, id="A18-reason-without-terminator"),
        pytest.param([start(type="text", text="a"), ended(None), STOP], True, id="A18-terminator-without-reason"),
        pytest.param([start(type="text", text="a"), "[DONE]"], True, id="done"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_knows_whether_it_is_complete(events: list[Any], complete: bool) -> None:
    """Without its terminator an answer is not complete, and with it also where the reason is missing (case A18).

    Sources: pydantic/pydantic-ai#6610, griffinwork40/agent-afk#635, anthropics/anthropic-sdk-python#1470.
    """
    assert taken(*events)[0].ended is complete


@pytest.mark.parametrize(
    "event",
    [
        pytest.param({"type": "ping"}, id="ping"),
        pytest.param({"type": "message_sparkle", "x": 1}, id="unknown-event"),
        pytest.param(delta(type="sparkle_delta", text="x"), id="unknown-delta"),
        pytest.param(delta(type="text_delta", text=None), id="null-text"),
        pytest.param(delta(type="citations_delta", citation=1), id="citation-of-nothing"),
        pytest.param(": keepalive", id="A14-keep-alive-as-data"),
        pytest.param("[1]", id="list"),
        pytest.param("null", id="null"),
    ],
)
def test_passes_over_what_says_nothing(event: Any) -> None:
    """Pings, kinds that are not known yet and keep-alives add nothing and break nothing (case A14)."""
    stream, texts = taken(event)
    assert (texts, stream.blocks, stream.ended) == ([], [], False)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        pytest.param(
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            {"type": "overloaded_error", "message": "Overloaded"},
            id="anthropic",
        ),
        pytest.param({"type": "x", "error": "boom"}, "boom", id="text"),
        pytest.param({"type": "error", "message": "boom"}, {"type": "error", "message": "boom"}, id="flat"),
    ],
)
def test_an_error_in_the_stream_is_one(event: dict[str, Any], error: Any) -> None:
    """An error event, in any shape, stops the reading."""
    with pytest.raises(StreamedError) as caught:
        taken(event)
    assert caught.value.error == error


def test_an_error_event_without_json() -> None:
    """An error event whose data is plain text keeps its words."""
    with pytest.raises(StreamedError) as caught:
        MessageStream().take(ServerEvent("upstream died", "error"))
    assert caught.value.error == "upstream died"


def test_half_an_event_breaks_the_stream() -> None:
    """Data that begins as an object and is none was cut off; passing it over could lose a piece of a call."""
    with pytest.raises(BrokenOff, match="not JSON"):
        taken('{"type": "content_block_delta", "index": 0, "delta": {"ty')
