"""Ollama's JSON, without HTTP: messages, calls without ids, thinking, options, lines of an answer, usage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thena_core.definition import ToolDefinition
from thena_core.messages import Message, ToolRequest, Usage
from thena_core.providers import Price, Sampling
from thena_core.providers.answer import Answer, AskedCall
from thena_core.providers.client import BrokenOff
from thena_core.providers.ollama_wire import (
    ChatLines,
    OllamaError,
    encode_message,
    encode_options,
    encode_tool,
    read_usage,
)

ASKED = Message("assistant", "", [ToolRequest("c1", "read", '{"path": "é"}'), ToolRequest("c2", "no tool!", "")])


@pytest.mark.parametrize(
    ("message", "entry"),
    [
        pytest.param(Message("user", "hi"), {"role": "user", "content": "hi"}, id="user"),
        pytest.param(Message("system", "s"), {"role": "system", "content": "s"}, id="system"),
        pytest.param(Message("assistant", "a"), {"role": "assistant", "content": "a"}, id="assistant"),
        pytest.param(
            ASKED,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "c1", "function": {"name": "read", "arguments": {"path": "é"}}},
                    {"id": "c2", "function": {"name": "no_tool_", "arguments": {}}},
                ],
            },
            id="calls-with-objects",
        ),
        pytest.param(
            Message("tool", "ok", tool_call_id="c1"),
            {"role": "tool", "content": "ok", "tool_name": "read", "tool_call_id": "c1"},
            id="result-names-the-tool",
        ),
        pytest.param(
            Message("tool", "ok", tool_call_id="gone"),
            {"role": "tool", "content": "ok", "tool_call_id": "gone"},
            id="result-without-its-call",
        ),
        pytest.param(Message("tool", "ok"), {"role": "tool", "content": "ok"}, id="result-without-id"),
        pytest.param(
            Message("assistant", "a", extra={"ollama": {"thinking": "hm"}}),
            {"role": "assistant", "content": "a", "thinking": "hm"},
            id="thinking-goes-back",
        ),
        pytest.param(
            Message("assistant", "a", extra={"ollama": "?", "openai": {"thinking": "x"}}),
            {"role": "assistant", "content": "a"},
            id="nonsense-and-others",
        ),
        pytest.param(
            Message("user", "a\ud83d\x00\u2028"), {"role": "user", "content": "a\ufffd\x00\u2028"}, id="A26-odd-text"
        ),
    ],
)
def test_writes_messages(message: Message, entry: dict[str, Any]) -> None:
    """Each message has the form that Ollama reads: arguments are objects, results say whose they are."""
    assert json.loads(encode_message(message, [ASKED], 1)) == entry


def test_the_newest_call_of_an_id_counts() -> None:
    """Where an id was used twice, a result belongs to the call before it."""
    again = Message("assistant", "", [ToolRequest("c1", "list", "{}")])
    history = [ASKED, again, ASKED]
    assert '"tool_name":"list"' in encode_message(Message("tool", "ok", tool_call_id="c1"), history, 2)


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        pytest.param('{"n": 1e400}', '{"n": 1e400}', id="as-it-came"),
        pytest.param({"n": 1}, '{"n": 1}', id="mapping"),
        pytest.param("null", "{}", id="A02-null"),
        pytest.param('{"path": "a', "{}", id="A06-cut-off"),
    ],
)
def test_arguments_go_out_as_an_object(arguments: Any, sent: str) -> None:
    """What the model sent stays as it is where it is an object, and becomes an empty one where it is none."""
    written = encode_message(Message("assistant", "", [ToolRequest("c1", "read", arguments)]), [], 0)
    assert written.endswith(f'"function":{{"name":"read","arguments":{sent}}}}}]}}')


def test_tools_are_functions() -> None:
    """A tool goes out as a function with its schema, and one without parameters with an empty one."""
    assert encode_tool(ToolDefinition("ping", "Pings.")) == {
        "type": "function",
        "function": {"name": "ping", "description": "Pings.", "parameters": {"type": "object", "properties": {}}},
    }


@pytest.mark.behaviour("V02")
@pytest.mark.parametrize(
    ("sampling", "options"),
    [
        pytest.param(None, {}, id="nothing"),
        pytest.param(Sampling(), {}, id="empty"),
        pytest.param(
            Sampling(temperature=0, top_p=0.5, max_tokens=7, stop=("A", "B"), seed=0),
            {"temperature": 0, "top_p": 0.5, "num_predict": 7, "stop": ["A", "B"], "seed": 0},
            id="names",
        ),
        pytest.param(Sampling(stop="END"), {"stop": ["END"]}, id="one-stop-text"),
    ],
)
def test_sampling_becomes_options(sampling: Sampling | None, options: dict[str, Any]) -> None:
    """Settings have the names of Ollama's model files, and what is not given is not sent."""
    assert encode_options(sampling) == options


def taken(*lines: dict[str, Any] | str) -> tuple[ChatLines, list[str]]:
    """Take lines and return the answer with the pieces of text that they gave."""
    answer = ChatLines()
    texts = [answer.take(line if isinstance(line, str) else json.dumps(line)) for line in lines]
    return answer, [text for text in texts if text]


def line(content: Any = "", *, done: bool = False, **more: Any) -> dict[str, Any]:
    """Make a line; what is no field of the answer is one of its message."""
    outside = {"done_reason", "prompt_eval_count", "eval_count"}
    message = {"role": "assistant", "content": content, **{k: v for k, v in more.items() if k not in outside}}
    return {"model": "m", "message": message, "done": done, **{k: v for k, v in more.items() if k in outside}}


def test_puts_lines_together() -> None:
    """Text and thinking come in pieces, calls whole and in any line, counts and reason at the end."""
    first, second = ({"function": {"name": name, "arguments": {"p": 1}}} for name in "ab")
    lines, texts = taken(
        line(thinking="Hm"),
        line(thinking="."),
        line("Lo"),
        line("ok", tool_calls=[first]),
        line(None, tool_calls=[second]),
        line(done=True, done_reason="stop", prompt_eval_count=5, eval_count=7),
    )
    calls = [AskedCall("", "a", {"p": 1}), AskedCall("", "b", {"p": 1})]
    assert (texts, lines.done) == (["Lo", "ok"], True)
    assert lines.answer(None) == Answer("Look", calls, Usage(5, 7), "stop", {"thinking": "Hm."})


@pytest.mark.parametrize(
    ("ending", "done", "reason"),
    [
        pytest.param([], False, None, id="A18-none"),
        pytest.param([line(done=True)], True, None, id="A18-without-a-reason"),
        pytest.param([line(done=True, done_reason="length")], True, "length", id="A07-length"),
    ],
)
def test_knows_its_end(ending: list[Any], done: bool, reason: str | None) -> None:
    """Only a line that says `done` ends an answer; it may do so without a reason (case A18, pydantic/pydantic-ai#6610)."""
    answer, _ = taken(line("a"), *ending)
    assert (answer.done, answer.reason) == (done, reason)


@pytest.mark.parametrize("error", ["an error was encountered while running the model", {"message": "x"}])
def test_an_error_in_place_of_a_line_is_one(error: Any) -> None:
    """An error object in mid-stream stops the reading."""
    with pytest.raises(OllamaError) as caught:
        taken(line("a"), {"error": error})
    assert caught.value.error == error


@pytest.mark.parametrize("cut", ['{"message": {"content": "a', "[1]", "null", "data: {}"])
def test_a_line_that_is_no_object_breaks_the_stream(cut: str) -> None:
    """A line that was cut off or is something else is not passed over: a call may have stood in it."""
    with pytest.raises(BrokenOff, match="not a JSON object"):
        taken(cut)


@pytest.mark.behaviour("V07")
@pytest.mark.parametrize(
    ("usage", "read"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"prompt_eval_count": 5, "eval_count": 7}, Usage(5, 7, 0, 19e-6), id="both"),
        pytest.param({"eval_count": 7}, Usage(0, 7, 0, 14e-6), id="prompt-from-the-cache"),
        pytest.param({"eval_count": "7"}, Usage(0, 0, 0, 0.0), id="nonsense"),
    ],
)
def test_reads_usage(usage: dict[str, Any], read: Usage | None) -> None:
    """Counts are read where they stand, and cost what the price says."""
    assert read_usage(usage, Price(1.0, 2.0)) == read
