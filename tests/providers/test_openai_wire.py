"""OpenAI's words: what is written of a history, and what is read of answers with every oddity in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.providers.loopback import completion, tool_call
from thena_core.errors import ProviderError
from thena_core.messages import ChatTurn, Message, ToolRequest, Usage
from thena_core.providers import ChatRequest, Price
from thena_core.providers.answer import turn_of
from thena_core.providers.openai_wire import effective_status, encode_message, read_answer
from thena_core.providers.reply import Reply


def read(body: Any, history: tuple[Message, ...] = (), price: Price | None = None, status: int = 200) -> ChatTurn:
    text = body if isinstance(body, str) else json.dumps(body)
    answer = read_answer(Reply(status, {}, text.encode()), price, "openai", "")
    taken = {wanted.id for message in history for wanted in message.tool_requests}
    return turn_of(answer, ChatRequest([]), provider="openai", rescue=True, attempts=1, taken=taken)


def calls_of(*entries: Any, history: tuple[Message, ...] = ()) -> list[ToolRequest]:
    return list(read(completion(None, list(entries), "tool_calls"), history).tool_requests)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("hi ", "hi ", id="text"),
        pytest.param(None, "", id="null"),
        pytest.param([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab", id="parts"),
        pytest.param([{"type": "output_text", "text": "a"}, "b", None, 3], "ab", id="odd-parts"),
        pytest.param(
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}],
            "a",
            id="reasoning-part",
        ),
        pytest.param({"type": "text", "text": "a"}, "a", id="one-part"),
        pytest.param("half \ud83d", "half \ufffd", id="half-a-pair"),
    ],
)
def test_reads_content(content: Any, text: str) -> None:
    """The text for the reader is found in every form of `content`, and nothing else with it."""
    assert read(completion(content)).content == text


def test_a_message_without_content_is_empty() -> None:
    """The key `content` may be missing (Groq, Cerebras, Gemini)."""
    turn = read(
        {"choices": [{"message": {"role": "assistant", "tool_calls": [tool_call(id="x")]}, "finish_reason": ""}]}
    )
    assert (turn.content, turn.finish_reason, turn.usage) == ("", "", None)
    assert turn.tool_requests[0].id == "x"


def test_a_refusal_is_the_answer() -> None:
    """Where the model refuses, its words for that are what it said."""
    body = {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "I cannot."}}]}
    assert read(body).content == "I cannot."


def test_calls_count_whatever_the_finish_reason_says() -> None:
    """Calls beside text and under `stop` are calls, and an empty list is none (case A21)."""
    turn = read(completion("Checking.", [tool_call(id="c")], "stop"))
    assert (turn.content, [wanted.name for wanted in turn.tool_requests]) == ("Checking.", ["read_file"])
    assert read(completion("All done.", [], "tool_calls")).tool_requests == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(None, "{}", id="null"),
        pytest.param("", "", id="empty"),
        pytest.param({"path": "a"}, {"path": "a"}, id="mapping"),
        pytest.param('"{\\"a\\": 1}"', '"{\\"a\\": 1}"', id="encoded-twice"),
        pytest.param('{"a": ', '{"a": ', id="cut-off"),
        pytest.param([1], "[1]", id="list"),
        pytest.param('{"t": "\ud83d"}', '{"t": "\ufffd"}', id="half-a-pair"),
    ],
)
def test_arguments_are_handed_on(arguments: Any, expected: Any) -> None:
    """What the model sent reaches the core as it is; only nothing at all becomes an empty object."""
    assert calls_of(tool_call(arguments=arguments, id="c"))[0].arguments == expected


def test_absent_arguments_are_empty() -> None:
    """A call without the key `arguments` has none (OpenRouter)."""
    assert calls_of({"id": "c", "function": {"name": "ping"}}) == [ToolRequest("c", "ping", "{}")]


def test_fillers_are_no_calls() -> None:
    """Entries without a name and arguments, and other kinds of entries, are left out."""
    fillers = [{"id": "f", "function": {"name": "", "arguments": ""}}, {"custom": {"name": "", "input": ""}}, None, 3]
    assert [wanted.id for wanted in calls_of(*fillers, tool_call(id="c"))] == ["c"]


def test_ids_are_made_unique_and_stable() -> None:
    """Missing, empty and repeated ids are replaced, the same way each time, and good ones stay (case A22)."""
    entries = [tool_call(id="call_1"), tool_call(id="call_1"), tool_call(id=""), tool_call()]
    first, second = calls_of(*entries), calls_of(*entries)
    assert [wanted.id for wanted in first] == ["call_1", "call_2", "call_3", "call_4"]
    assert first == second


def test_own_ids_leave_room_for_later_ones() -> None:
    """An own id is never one that a later call of the same answer brings, nor a number an error."""
    assert [wanted.id for wanted in calls_of(tool_call(), tool_call(id="call_1"), tool_call(id=7))] == [
        "call_2",
        "call_1",
        "7",
    ]


def test_ids_are_unique_in_the_history() -> None:
    """A service that counts from 0 in each answer gets its repeated ids replaced."""
    history = (Message("assistant", "", [ToolRequest("call_0", "a"), ToolRequest("call_3", "b")]),)
    assert [wanted.id for wanted in calls_of(tool_call(id="call_0"), history=history)] == ["call_4"]


@pytest.mark.behaviour("V07")
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(9, 2, 4),
            id="openai",
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 2, "num_cached_tokens": 4}, Usage(9, 2, 4), id="mistral"
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4, "prompt_tokens_details": None},
            Usage(9, 2, 4),
            id="top-level",
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(9, 2, 4), id="deepseek"
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.25}, Usage(9, 2, 0, 0.25), id="cost-reported"
        ),
        pytest.param({"prompt_tokens": None, "completion_tokens": "2", "cost": "free"}, Usage(0, 0, 0), id="odd"),
        pytest.param(
            {"prompt_tokens": -1, "completion_tokens": 10**400, "cost": True}, Usage(0, 0, 0), id="impossible"
        ),
        pytest.param(None, None, id="null"),
        pytest.param([], None, id="list"),
    ],
)
def test_reads_usage(usage: Any, expected: Usage | None) -> None:
    """Tokens, cached ones and cost are found where services put them; what is no number counts as none."""
    assert read(completion("x", usage=usage)).usage == expected


@pytest.mark.behaviour("V07")
def test_a_given_price_beats_the_reported_cost() -> None:
    """The user's price is what counts, with cached tokens apart."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "num_cached_tokens": 500, "cost": 9}
    turn = read(completion("x", usage=usage), price=Price(1.0, 10.0, cached=0.1))
    assert turn.usage is not None
    assert turn.usage.cost_usd == pytest.approx(0.00155)


@pytest.mark.behaviour("V08")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(
            {"error": {"message": "Provider returned error", "code": 502}},
            "Provider returned error",
            id="A17-error-in-200",
        ),
        pytest.param({"error": {"code": 502}}, '{"error": {"code": 502}}', id="error-without-words"),
        pytest.param({"id": None, "choices": None}, "no choices in the answer", id="A17-null-choices"),
        pytest.param({"id": "c1", "choices": []}, "no choices in the answer", id="A17-empty-choices"),
        pytest.param({"choices": [None]}, "no choices in the answer", id="null-choice"),
        pytest.param({"choices": [{"index": 0}]}, "no message in the first choice", id="no-message"),
        pytest.param(
            {"choices": [{"error": {"message": "filtered"}, "finish_reason": "error"}]},
            "filtered",
            id="error-in-choice",
        ),
        pytest.param("<html><body>502 Bad Gateway</body></html>", "not a JSON object: 502 Bad Gateway", id="A17-html"),
        pytest.param("data: {}\n\n", "not a JSON object: data: {}", id="stream"),
        pytest.param("", "an empty answer, 200 OK", id="empty"),
        pytest.param("[]", "not a JSON object: []", id="list"),
    ],
)
def test_an_unusable_answer_is_an_error(body: Any, words: str) -> None:
    """An answer with status 200 that is none becomes an error with what it says."""
    with pytest.raises(ProviderError) as caught:
        read(body)
    assert words in caught.value.message
    assert caught.value.__context__ is None


def test_a_null_error_is_no_error() -> None:
    """Some services send `error: null` with every answer."""
    assert read(completion("fine", error=None)).content == "fine"


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({"error": {"code": 502}}, 200, 502),
        ({"error": {"code": "429"}}, 200, 429),
        ({"error": {"code": "model_not_found"}}, 200, 200),
        ({"error": "x"}, 200, 200),
        ({"error": {"code": 502}}, 400, 400),
        (completion('the "error" is here'), 200, 200),
    ],
    ids=["number", "text", "word", "no-object", "own-status", "only-mentioned"],
)
def test_the_status_inside_the_body_counts(body: Any, status: int, expected: int) -> None:
    """A router's status 200 does not hide the status in its error (case A17)."""
    assert effective_status(Reply(status, {}, json.dumps(body, separators=(",", ":")).encode())) == expected


def test_writes_a_history() -> None:
    """Each role has its form: text, calls with `content` null, and results under their id."""
    history = [
        Message("user", "hi"),
        Message("assistant", "", [ToolRequest("c1", "functions.read file", ""), ToolRequest("c2", "", {"a": 1})]),
        Message("tool", "no such file", tool_call_id="c1", is_error=True),
        Message("assistant", "So.", [ToolRequest("c3", "x" * 70)]),
        Message("assistant", "Done."),
    ]
    assert [encode_message(message) for message in history] == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "functions_read_file", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "unnamed", "arguments": '{"a": 1}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "no such file"},
        {
            "role": "assistant",
            "content": "So.",
            "tool_calls": [{"id": "c3", "type": "function", "function": {"name": "x" * 64, "arguments": "{}"}}],
        },
        {"role": "assistant", "content": "Done."},
    ]
