"""A whole conversation on each of the three wires, streamed and not: what is sent is held against golden files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.providers import anthropic_answers, ollama_answers
from tests.providers.conversation import ANSWER, TURNS, Calls, compare, held
from tests.providers.loopback import Answer, Loopback, completion, tool_call
from thena_core.providers import AnthropicProvider, OllamaProvider, OpenAIProvider, Provider


def openai(calls: Calls, content: str, *, stream: bool) -> Answer:
    entries = [
        tool_call(name, json.dumps(arguments, ensure_ascii=False, separators=(",", ":")), id=call_id)
        for call_id, name, arguments in calls
    ]
    if not stream:
        return Answer(completion(content or None, entries or None))
    deltas: list[dict[str, Any]] = [{"content": content}] if content else []
    deltas += [{"tool_calls": [{"index": index, **entry}]} for index, entry in enumerate(entries)]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
    chunks = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)
    return Answer(f"{chunks}data: [DONE]\n\n", headers={"content-type": "text/event-stream"})


def anthropic(calls: Calls, content: str, *, stream: bool) -> Answer:
    blocks = [anthropic_answers.text(content)] if content else []
    blocks += [anthropic_answers.use(call_id, name, **arguments) for call_id, name, arguments in calls]
    reason = "tool_use" if calls else "end_turn"
    return anthropic_answers.answer(*blocks, stream=stream, stop_reason=reason)


def ollama(calls: Calls, content: str, *, stream: bool) -> Answer:
    entries = [ollama_answers.call(name, **arguments) for _, name, arguments in calls]
    return ollama_answers.answer(content, *entries, stream=stream)


WIRES: dict[str, tuple[Callable[..., Answer], Callable[[str], Provider]]] = {
    "openai": (openai, lambda url: OpenAIProvider("m", "k", url)),
    "anthropic": (anthropic, lambda url: AnthropicProvider("m", "k", url)),
    "ollama": (ollama, lambda url: OllamaProvider("m", url)),
}


@pytest.mark.behaviour("V01", "S02")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_list_read_fail_answer(loopback: Loopback, wire: str, stream: bool) -> None:
    """A model lists, reads two files at once, gets over a mistake and answers; each body is the one on record."""
    make, provider = WIRES[wire]
    loopback.script(*(make(calls, "", stream=stream) for calls in TURNS), make([], ANSWER, stream=stream))
    result, heard = await held(provider(loopback.url), stream=stream)
    assert (result.output, result.usage.chat_calls, result.usage.tool_calls) == (ANSWER, 4, 4)
    assert heard == (ANSWER if stream else "")
    bodies = [asked.body for asked in loopback.asked]
    asks_to_stream = [body.pop("stream", False) for body in bodies]
    assert asks_to_stream == [stream] * 4
    for body in bodies:
        body.pop("stream_options", None)
    compare(wire, bodies)
