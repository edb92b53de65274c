"""A streamed chat completion, put together from deltas with every oddity in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thena_core.providers.answer import Answer
from thena_core.providers.client import BrokenOff
from thena_core.providers.openai_stream import CompletionStream, joined_reasoning
from thena_core.providers.sse import ServerEvent

TOOLS = ["read_file", "edit_existing_file", "ping"]
A, B = ("call_a", "read_file", '{"path": "a"}'), ("call_b", "read_file", '{"path": "b"}')


def stream(*chunks: Any) -> CompletionStream:
    """Feed chunks: a dict is JSON, a text is data as it is."""
    made = CompletionStream([].append)
    for data in chunks:
        made.take(ServerEvent(data if isinstance(data, str) else json.dumps(data)))
    return made


def chunk(finish: Any = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(index: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """Make one fragment of a call; what is `None` is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return ({} if index is None else {"index": index}) | {"function": function} | more


def calls(*pieces: Any) -> list[tuple[Any, ...]]:
    """Feed each fragment in a chunk of its own; a list is several in one chunk."""
    chunks = [chunk(tool_calls=entry if isinstance(entry, list) else [entry]) for entry in pieces]
    answer = stream(*chunks, chunk("tool_calls"), "[DONE]").answer(TOOLS, None)
    return [(call.id, call.name, call.arguments) for call in answer.calls]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param(
            [piece(0, "read_file", "", id="call_a"), piece(0, None, '{"path"'), piece(0, None, ': "a"}')],
            [A],
            id="plain",
        ),
        pytest.param(
            [piece(0, "read_file", '{"path": "a"}', id="call_a"), piece(0, "read_file", '{"path": "b"}', id="call_b")],
            [A, B],
            id="A09-one-index",
        ),
        pytest.param(
            [
                piece(1, "read_file", '{"path": ', id="call_a"),
                piece(1, None, '"a"}'),
                piece(3, "read_file", '{"path": "b"}', id="call_b"),
            ],
            [A, B],
            id="A10-gaps",
        ),
        pytest.param(
            [
                piece(0, "read_file", '{"pa', id="call_a"),
                piece(0, "read_file", 'th": "a', id="call_a"),
                piece(0, "read_file", '"}', id="call_a"),
            ],
            [A],
            id="A11-name-and-id-repeated",
        ),
        pytest.param(
            [piece(0, "edit_ex", "", id="call_a"), piece(0, "isting_file", '{"path": "a"}')],
            [("call_a", "edit_existing_file", '{"path": "a"}')],
            id="A11-name-split",
        ),
        pytest.param(
            [piece(0, "read_file", '{"path": "a"}', id="call_a"), piece(0, "", "", id="")], [A], id="A11-empty-repeats"
        ),
        pytest.param(
            [piece(0, "edit_ex", "", id="call_a"), piece(0, "edit_existing_file", '{"path": "a"}')],
            [("call_a", "edit_existing_file", '{"path": "a"}')],
            id="name-grows",
        ),
        pytest.param(
            [
                piece(0, "read_file", '{"path"', id="call_a"),
                piece(1, "read_file", '{"pa', id="call_b"),
                piece(0, None, ': "a"}'),
                piece(1, None, 'th": "b"}'),
            ],
            [A, B],
            id="interleaved",
        ),
        pytest.param(
            [piece(1, "read_file", '{"path": "b"}', id="call_b"), piece(0, "read_file", '{"path": "a"}', id="call_a")],
            [A, B],
            id="out-of-order",
        ),
        pytest.param(
            [
                [
                    piece(0, "read_file", '{"path": "a"}', id="call_a"),
                    piece(1, "read_file", '{"path": "b"}', id="call_b"),
                ]
            ],
            [A, B],
            id="two-in-a-chunk",
        ),
        pytest.param(
            [[piece(None, "read_file", '{"path": "a"}'), piece(None, "read_file", '{"path": "b"}')]],
            [("", *A[1:]), ("", *B[1:])],
            id="no-index-no-id-in-a-chunk",
        ),
        pytest.param(
            [piece(None, "read_file", '{"path": "a"}'), piece(None, "read_file", '{"path": "b"}')],
            [("", *A[1:]), ("", *B[1:])],
            id="no-index-no-id",
        ),
        pytest.param(
            [piece(0, "read_file", '{"path": "a"}'), piece(0, "read_file", '{"path": "b"}')],
            [("", *A[1:]), ("", *B[1:])],
            id="one-index-no-id",
        ),
        pytest.param(
            [
                piece(None, "read_file", '{"path"', id="call_a"),
                piece(None, None, ': "a"}', id="call_a"),
                piece(None, "read_file", '{"path": "b"}', id="call_b"),
            ],
            [A, B],
            id="ids-only",
        ),
        pytest.param([piece(0, "read_file", '{"path"'), piece(0, None, ': "a"}', id="call_a")], [A], id="late-id"),
        pytest.param(
            [piece(0, "read_file", '{"path": "a"}', id="same"), piece(1, "read_file", '{"path": "b"}', id="same")],
            [("same", *A[1:]), ("same", *B[1:])],
            id="shared-id",
        ),
        pytest.param(
            [piece("0", "read_file", '{"path"', id="call_a"), piece("0", None, ': "a"}')], [A], id="index-as-text"
        ),
        pytest.param([piece(True, "read_file", '{"path": "a"}', id="call_a")], [A], id="index-is-no-number"),
        pytest.param([piece(0, "ping", id="call_a")], [("call_a", "ping", "{}")], id="A02-absent-arguments"),
        pytest.param([piece(0, "ping", "", id="call_a")], [("call_a", "ping", "{}")], id="A01-empty-arguments"),
        pytest.param(
            [{"index": 0, "id": "call_a", "function": {"name": "ping", "arguments": None}}],
            [("call_a", "ping", "{}")],
            id="A02-null-arguments",
        ),
        pytest.param([piece(0, "ping", "null", id="call_a")], [("call_a", "ping", "null")], id="A02-the-text-null"),
        pytest.param(
            [piece(0, "read_file", {"path": "a"}, id="call_a")], [(*A[:2], {"path": "a"})], id="arguments-as-object"
        ),
        pytest.param(
            [piece(0, "read_file", '"{\\"path\\": \\"a\\"}"', id="call_a")],
            [(*A[:2], '"{\\"path\\": \\"a\\"}"')],
            id="A03-encoded-twice",
        ),
        pytest.param(
            [piece(0, "read_file", "{}", id="call_a"), piece(0, None, '{"path": "a"}')], [A], id="empty-object-first"
        ),
        pytest.param(
            [piece(0, "read_file", '{"path": "a"}', id="call_a"), piece(0, None, '{"path": "a"}')],
            [A],
            id="arguments-repeated-at-the-end",
        ),
        pytest.param(
            [piece(0, "", "", id="f"), [None, 3, {}], piece(1, "read_file", '{"path": "a"}', id="call_a")],
            [A],
            id="fillers",
        ),
    ],
)
def test_puts_calls_together(pieces: list[Any], expected: list[tuple[Any, ...]]) -> None:
    """Fragments find their call by index and id, whichever of the two can be relied on (cases A09, A10, A11)."""
    assert calls(*pieces) == expected


@pytest.mark.parametrize(
    ("chunks", "tokens"),
    [
        pytest.param(
            [{"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}}], (5, 7), id="A13-usage-only"
        ),
        pytest.param(
            [{"choices": None, "usage": {"prompt_tokens": 5, "completion_tokens": 7}}], (5, 7), id="A13-null-choices"
        ),
        pytest.param(
            [
                {"usage": {"prompt_tokens": 5, "completion_tokens": 1}},
                {"usage": {"prompt_tokens": 5, "completion_tokens": 7}},
            ],
            (5, 7),
            id="revised",
        ),
        pytest.param(
            [{"usage": {"prompt_tokens": 5, "completion_tokens": 7}}, {"choices": [], "usage": None}],
            (5, 7),
            id="null-after-it",
        ),
        pytest.param(
            [
                {"usage": {"prompt_tokens": 5, "completion_tokens": 7}},
                {"usage": {"prompt_tokens": 0, "completion_tokens": 0}},
            ],
            (5, 7),
            id="zeros-after-it",
        ),
        pytest.param([{"x_groq": {"usage": {"prompt_tokens": 5, "completion_tokens": 7}}}], (5, 7), id="groq"),
        pytest.param(
            [{"choices": [{"delta": {}, "usage": {"prompt_tokens": 5, "completion_tokens": 7}}]}],
            (5, 7),
            id="in-the-choice",
        ),
    ],
)
def test_keeps_the_newest_usage(chunks: list[Any], tokens: tuple[int, int]) -> None:
    """Usage is found wherever it stands, and what says nothing does not take it away (case A13)."""
    usage = (
        stream({"choices": [], "prompt_filter_results": []}, chunk(content="a"), *chunks, "[DONE]")
        .answer([], None)
        .usage
    )
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == tokens


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([chunk(content="a"), chunk(content=None), chunk(content="b")], Answer("ab"), id="text"),
        pytest.param(
            [chunk(content=[{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}])],
            Answer("a"),
            id="parts",
        ),
        pytest.param([chunk(refusal="I "), chunk(refusal="cannot.")], Answer("I cannot."), id="refusal"),
        pytest.param(
            [chunk(reasoning_content="a"), chunk(reasoning_content="b"), chunk(content="c")],
            Answer("c", extra={"reasoning_content": "ab"}),
            id="reasoning",
        ),
        pytest.param(
            [{"choices": [{"index": 1, "delta": {"content": "x"}}]}, chunk(content="a")],
            Answer("a"),
            id="second-choice",
        ),
        pytest.param([{"choices": [{"message": {"content": "a"}}]}], Answer("a"), id="whole-message"),
        pytest.param(
            [chunk(content="a"), {"choices": [{"message": {"content": "a"}}]}],
            Answer("a"),
            id="message-repeated-at-the-end",
        ),
        pytest.param([": keepalive", chunk(content="a")], Answer("a"), id="A14-comment-as-data"),
        pytest.param([{"type": "ping"}, chunk(content="a")], Answer("a"), id="A14-ping"),
        pytest.param(
            [json.dumps(chunk(content="a")) + "\n" + json.dumps(chunk(content="b"))],
            Answer("ab"),
            id="no-blank-line-between",
        ),
    ],
)
def test_puts_the_rest_together(chunks: list[Any], expected: Answer) -> None:
    """Text is for the reader and reasoning is not, in every form."""
    assert stream(*chunks, "[DONE]").answer([], None) == Answer(expected.content, [], extra=expected.extra)


@pytest.mark.parametrize(
    ("chunks", "complete"),
    [
        pytest.param([chunk(content="a")], False, id="A18-no-end"),
        pytest.param([chunk(content="a"), chunk("stop")], True, id="finish-reason"),
        pytest.param([chunk(content="a"), chunk(None), "[DONE]"], True, id="A18-done"),
        pytest.param([chunk(content="a"), chunk(""), " [DONE] "], True, id="empty-reason-and-done"),
        pytest.param([chunk(content="a"), chunk("")], False, id="empty-reason"),
    ],
)
def test_knows_its_end(chunks: list[Any], complete: bool) -> None:
    """A finish reason or the terminator ends a stream, and nothing else does (case A18)."""
    assert stream(*chunks).is_complete is complete


@pytest.mark.parametrize(
    "error",
    [
        pytest.param({"error": {"message": "over"}}, id="object"),
        pytest.param({"error": "over"}, id="text"),
        pytest.param({"object": "error", "message": "over"}, id="kind"),
        pytest.param({"choices": [{"error": {"message": "over"}, "delta": {}}]}, id="in-the-choice"),
    ],
)
def test_finds_an_error_in_the_stream(error: dict[str, Any]) -> None:
    """An error in place of a chunk is kept, in each of its forms, and a `null` is none."""
    made = stream(chunk(content="a") | {"error": None}, error)
    assert "over" in json.dumps(made.error)
    assert stream(chunk(content="a") | {"error": None}).error is None


@pytest.mark.parametrize("data", ["{", "[1]", "Internal Server Error", "NaN"])
def test_what_is_no_chunk_breaks_the_stream(data: str) -> None:
    """An event that is no JSON object is not guessed at."""
    with pytest.raises(BrokenOff, match="not a JSON object"):
        stream(data)


def test_details_of_reasoning_are_joined_by_their_index() -> None:
    """Pieces of one detail become one, with the signature that comes last; others stay apart."""
    first = [{"index": 0, "type": "reasoning.text", "text": "a", "signature": None}]
    second = [
        {"index": 0, "type": "reasoning.text", "text": "b", "signature": "s"},
        {"index": 1, "type": "x", "data": "c"},
    ]
    third = [{"index": 0, "type": "reasoning.text", "signature": None}, {"type": "y"}]
    joined = joined_reasoning(joined_reasoning(joined_reasoning(None, first), second), third)
    assert joined == [
        {"index": 0, "type": "reasoning.text", "text": "ab", "signature": "s"},
        {"index": 1, "type": "x", "data": "c"},
        {"type": "y"},
    ]
    assert first[0]["text"] == "a"
