"""Anthropic's JSON, without HTTP: blocks in legal order, ids, kept blocks, tools, sampling, content, usage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thena_core.definition import ToolDefinition
from thena_core.messages import History, Message, ToolRequest, Usage
from thena_core.providers import Price, Sampling
from thena_core.providers.answer import Answer, AskedCall
from thena_core.providers.anthropic_wire import (
    encode_message,
    encode_settings,
    encode_tool,
    finish_reason,
    join_messages,
    legal_id,
    read_answer,
    read_usage,
    split_system,
)

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "eA=="}


def written(*messages: Message) -> Any:
    """Return the list of messages as the service reads it."""
    return json.loads(join_messages(messages, map(encode_message, messages)))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str = "c1", name: str = "read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str = "c1", content: str = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def asked(*calls: tuple[str, str], content: str = "", extra: Any = None) -> Message:
    requests = [ToolRequest(call_id, "read", arguments) for call_id, arguments in calls]
    return Message("assistant", content, requests, extra=extra)


def told(call_id: str = "c1", content: str = "ok", *, failed: bool = False) -> Message:
    return Message("tool", content, tool_call_id=call_id, is_error=failed)


def test_results_of_one_turn_share_one_message() -> None:
    """All results of a turn stand in one message of the user, in order, with what the user then says behind them."""
    history = [
        Message("user", "Look."),
        asked(("c1", '{"path": "a"}'), ("c2", '{"path": "b"}'), content="I look."),
        told("c1", "A"),
        told("c2", "no such file", failed=True),
        Message("user", "And now?"),
    ]
    assert written(*history) == [
        {"role": "user", "content": [text("Look.")]},
        {"role": "assistant", "content": [text("I look."), use("c1", path="a"), use("c2", path="b")]},
        {
            "role": "user",
            "content": [result("c1", "A"), result("c2", "no such file", is_error=True), text("And now?")],
        },
    ]


@pytest.mark.parametrize(
    ("history", "roles"),
    [
        pytest.param([Message("user", "a"), Message("user", "b")], ["user:2"], id="two-users"),
        pytest.param(
            [Message("user", "a"), Message("assistant", "b"), asked(("c1", "{}")), told()],
            ["user:1", "assistant:2", "user:1"],
            id="two-assistants",
        ),
        pytest.param(
            [Message("assistant", "a"), Message("user", "b")], ["user:1", "assistant:1", "user:1"], id="opens"
        ),
        pytest.param([Message("user", "a"), Message("assistant", "b")], ["user:1", "assistant:1", "user:1"], id="ends"),
        pytest.param([], ["user:1"], id="nothing"),
        pytest.param([Message("user", " \n"), Message("assistant", "")], ["user:1"], id="blank"),
        pytest.param([Message("user", "a"), Message("system", "note")], ["user:2"], id="late-system"),
    ],
)
def test_every_history_becomes_a_legal_one(history: list[Message], roles: list[str]) -> None:
    """Roles alternate, the user has the first and the last word, and no message and no text is empty."""
    messages = written(*history)
    assert [f"{message['role']}:{len(message['content'])}" for message in messages] == roles
    assert all(block.get("text", "x").strip() for message in messages for block in message["content"])


def test_results_come_before_words() -> None:
    """A result that stands behind words of the user is put before them, where the service wants it."""
    messages = written(asked(("c1", "{}"), ("c2", "{}")), told("c1"), Message("user", "wait"), told("c2"))
    assert messages[-1]["content"] == [result("c1"), result("c2"), text("wait")]


def test_an_empty_result_has_no_content() -> None:
    """A result without text is sent as one, since the service takes no empty text."""
    assert json.loads(encode_message(told(content=""))) == {"type": "tool_result", "tool_use_id": "c1"}


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        pytest.param('{"path": "a", "n": 1e400}', '{"path": "a", "n": 1e400}', id="as-it-came"),
        pytest.param({"path": "a"}, '{"path": "a"}', id="mapping"),
        pytest.param("", "{}", id="A01-empty"),
        pytest.param("null", "{}", id="A02-null"),
        pytest.param('{"path": "a', "{}", id="A06-cut-off"),
        pytest.param("[1]", "{}", id="A06-list"),
    ],
)
def test_arguments_go_out_as_an_object(arguments: Any, sent: str) -> None:
    """What the model sent stays as it is where it is an object, and becomes an empty one where it is none."""
    blocks = encode_message(Message("assistant", "", [ToolRequest("c1", "read", arguments)]))
    assert blocks == f'{{"type":"tool_use","id":"c1","name":"read","input":{sent}}}'


@pytest.mark.parametrize(
    ("call_id", "legal"),
    [
        pytest.param("toolu_01-a", "toolu_01-a", id="legal"),
        pytest.param("functions.read:0", "functions_read_0_9a062ddf", id="of-another-service"),
        pytest.param("", "_00000000", id="none"),
    ],
)
def test_ids_are_made_legal(call_id: str, legal: str) -> None:
    """An id that the service refuses becomes one that it takes, in the call and in its result alike."""
    assert legal_id(call_id) == legal
    call, answer = written(asked((call_id, "{}")), told(call_id))[1:]
    assert call["content"][0]["id"] == answer["content"][0]["tool_use_id"] == legal


def test_different_ids_stay_different() -> None:
    """Two ids that differ only in characters that are refused do not become one."""
    assert legal_id("a.b") != legal_id("a:b")


def test_invented_names_and_odd_text_do_not_break_the_history() -> None:
    """A name that no tool has, half a surrogate pair and NUL reach the service as legal JSON (case A26)."""
    message = Message("assistant", "a\ud83d\x00", [ToolRequest("c1", "no such tool!", '{"t": "\ud83d"}')])
    assert json.loads(f"[{encode_message(message)}]") == [
        text("a\ufffd\x00"),
        use("c1", "no_such_tool_", t="\ufffd"),
    ]


def kept(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"anthropic": {"content": list(blocks)}}


CALL = {"type": "tool_use"}
"""What is kept of a call: its place."""


def test_thinking_goes_back_as_it_came() -> None:
    """Thinking with its signature and redacted thinking stand before the text and the calls, unchanged."""
    extra = kept(THOUGHT, REDACTED, text("I look."), CALL)
    message = asked(("c1", '{"path": "a"}'), content="I look.", extra=extra)
    assert written(Message("user", "x"), message, told())[1]["content"] == [
        THOUGHT,
        REDACTED,
        text("I look."),
        use("c1", path="a"),
    ]


@pytest.mark.parametrize(
    ("message", "blocks"),
    [
        pytest.param(
            asked(("c1", "{}"), content="mine", extra=kept(THOUGHT, text("a"), text("b"), CALL)),
            [THOUGHT, text("mine"), use("c1")],
            id="a-hook-rewrote-the-text",
        ),
        pytest.param(
            asked(("c1", "{}"), content="mine", extra=kept(THOUGHT, CALL)),
            [THOUGHT, text("mine"), use("c1")],
            id="a-hook-added-text",
        ),
        pytest.param(
            asked(("c1", "{}"), extra=kept(THOUGHT, CALL, CALL)), [THOUGHT, use("c1")], id="one-call-was-kept"
        ),
        pytest.param(
            asked(("call_1", "{}"), extra=kept(THOUGHT, text('{"name": "read"}'))),
            [THOUGHT, use("call_1")],
            id="the-call-was-rescued-from-the-text",
        ),
        pytest.param(
            Message("assistant", "ab", extra=kept(text("a"), {"type": "server_tool_use", "id": "s"}, text("b"))),
            [text("a"), {"type": "server_tool_use", "id": "s"}, text("b")],
            id="text-around-a-tool-of-the-service",
        ),
        pytest.param(
            asked(("c1", "{}"), ("c2", "{}"), extra=kept(THOUGHT, CALL, REDACTED, CALL | {"caller": {"type": "x"}})),
            [THOUGHT, use("c1"), REDACTED, use("c2") | {"caller": {"type": "x"}}],
            id="thoughts-between-calls",
        ),
        pytest.param(Message("assistant", "a", extra=kept(THOUGHT, text(" "))), [THOUGHT, text("a")], id="blank-text"),
        pytest.param(Message("assistant", "a", extra={"openai": {"x": 1}}), [text("a")], id="of-another-provider"),
        pytest.param(Message("assistant", "a", extra={"anthropic": "?"}), [text("a")], id="nonsense"),
    ],
)
def test_kept_blocks_follow_the_history(message: Message, blocks: list[Any]) -> None:
    """Where hooks or the agent changed what the model said, the history counts and the thinking stays."""
    assert json.loads(f"[{encode_message(message)}]") == blocks


def test_a_stored_history_is_sent_the_same() -> None:
    """Kept blocks survive being stored: the bytes sent after it are the same."""
    history = History([Message("user", "x"), asked(("c1", "{}"), extra=kept(THOUGHT, CALL)), told()])
    again = History.from_json(history.to_json())
    assert list(map(encode_message, again)) == list(map(encode_message, history))


def test_the_system_prompt_takes_what_opens_the_history() -> None:
    """System messages that open the history join the prompt; later ones stay where they are."""
    opening = [Message("system", "a"), Message("system", " "), Message("user", "b"), Message("system", "c")]
    assert split_system("prompt", opening) == ("prompt\n\na", 2)
    assert split_system("", [Message("system", "a")]) == ("a", 1)


@pytest.mark.behaviour("V02")
@pytest.mark.parametrize(
    ("sampling", "fields"),
    [
        pytest.param(None, {"max_tokens": 100}, id="nothing"),
        pytest.param(Sampling(temperature=0, seed=1), {"max_tokens": 100, "temperature": 0}, id="no-seed-there"),
        pytest.param(
            Sampling(top_p=0.5, max_tokens=7, stop=("A", "B")),
            {"max_tokens": 7, "top_p": 0.5, "stop_sequences": ["A", "B"]},
            id="names",
        ),
        pytest.param(Sampling(stop="END"), {"max_tokens": 100, "stop_sequences": ["END"]}, id="one-stop-text"),
    ],
)
def test_sampling_is_translated(sampling: Sampling | None, fields: dict[str, Any]) -> None:
    """Settings have the service's names; only the limit, which it insists on, is sent unasked."""
    assert encode_settings(sampling, (), "one", 100) == fields


@pytest.mark.behaviour("W08")
@pytest.mark.parametrize(
    ("tool_calls", "choice"),
    [
        pytest.param("one", {"type": "auto", "disable_parallel_tool_use": True}, id="one"),
        pytest.param("all", None, id="all"),
    ],
)
def test_asks_for_one_call(tool_calls: Any, choice: Any) -> None:
    """The service is asked for one call a turn unless the agent honours all."""
    settings = encode_settings(None, [ToolDefinition("a", "A.")], tool_calls, 1)
    assert settings.get("tool_choice") == choice


def test_tools_have_a_schema_of_type_object() -> None:
    """A tool goes out with name, description and schema; `strict` is sent only where it is asked for."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    plain = ToolDefinition("read", "Reads.")
    assert encode_tool(plain)["input_schema"] == {"type": "object", "properties": {}}
    assert encode_tool(ToolDefinition("read", "Reads.", json_schema=schema, strict=True)) == {
        "name": "read",
        "description": "Reads.",
        "input_schema": schema,
        "strict": True,
    }


def read(*blocks: dict[str, Any], stop_reason: str = "end_turn") -> Answer:
    return read_answer(blocks, stop_reason, {}, None)


def test_reads_text_and_calls() -> None:
    """Text blocks are joined, the calls come in order, and nothing is kept beside them."""
    answer = read(text("Look"), text(" here."), use("t1", path="a"), use("t2", "list"), use("", ""))
    calls = [AskedCall("t1", "read", {"path": "a"}), AskedCall("t2", "list", {})]
    assert answer == Answer("Look here.", calls, None, "end_turn")


def test_keeps_what_must_go_back() -> None:
    """Thinking is no answer; it is kept with the places of text and calls, whose names and arguments are kept once."""
    caller = {"type": "code_execution_20250825", "tool_id": "s"}
    answer = read(THOUGHT, text("a"), use("t1", path="x") | {"caller": caller}, use("", ""))
    assert (answer.content, answer.calls) == ("a", [AskedCall("t1", "read", {"path": "x"})])
    assert answer.extra == {"content": [THOUGHT, text("a"), {"type": "tool_use", "caller": caller}]}


def test_thinking_without_signature_is_dropped_where_it_was_cut_off() -> None:
    """Thinking that the limit cut off has no signature, so it would be refused; elsewhere servers have none at all."""
    unsigned = {"type": "thinking", "thinking": "Hm"}
    assert read(unsigned, stop_reason="max_tokens").extra == {}
    assert read(unsigned).extra == {"content": [unsigned]}


@pytest.mark.behaviour("F07")
@pytest.mark.parametrize(
    ("word", "reason"),
    [
        pytest.param("max_tokens", "length", id="A07-max-tokens"),
        pytest.param("model_context_window_exceeded", "length", id="context"),
        pytest.param("tool_use", "tool_use", id="call"),
        pytest.param("refusal", "refusal", id="refusal"),
        pytest.param(None, None, id="none"),
        pytest.param(7, None, id="nonsense"),
    ],
)
def test_being_cut_off_has_one_word(word: Any, reason: str | None) -> None:
    """Every way of being cut off is called `length`, the word that keeps a call from being run."""
    assert finish_reason(word) == reason


@pytest.mark.behaviour("V07")
@pytest.mark.parametrize(
    ("usage", "price", "counted"),
    [
        pytest.param({}, None, None, id="none"),
        pytest.param({"input_tokens": 5, "output_tokens": 7}, None, Usage(5, 7), id="plain"),
        pytest.param(
            {"input_tokens": 5, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 7},
            Price(1.0, 2.0, 0.1),
            Usage(115, 7, 100, (15 + 10 + 14) / 1_000_000),
            id="cache",
        ),
        pytest.param({"input_tokens": "5", "output_tokens": None}, None, Usage(), id="nonsense"),
    ],
)
def test_usage_counts_the_cache(usage: dict[str, Any], price: Price | None, counted: Usage | None) -> None:
    """The prompt's tokens are all that were read, those from the cache apart as well."""
    assert read_usage(usage, price) == counted
