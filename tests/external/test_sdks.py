"""The official SDKs and Thena read the same bodies alike."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.external.servers import HERE
from tests.providers import anthropic_answers, ollama_answers
from tests.providers.anthropic_answers import THOUGHT, text, use
from tests.providers.loopback import Answer, Loopback, completion, tool_call
from thena_core.messages import ChatTurn, Message
from thena_core.providers import AnthropicProvider, ChatRequest, OllamaProvider, OpenAIProvider, Provider

pytestmark = pytest.mark.external

PROVIDERS: dict[str, Callable[[str], Provider]] = {
    "openai": lambda url: OpenAIProvider("m", "k", url),
    "anthropic": lambda url: AnthropicProvider("m", "k", url),
    "ollama": lambda url: OllamaProvider("m", url),
}


def chunks(*deltas: dict[str, Any], finish_reason: str = "stop") -> Answer:
    """Script a stream of chat completions."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": finish_reason}])
    data: list[dict[str, Any]] = [{**base, "choices": choice, "usage": None} for choice in choices]
    data.append({**base, "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}})
    body = "".join(f"data: {json.dumps(entry)}\n\n" for entry in data)
    return Answer(f"{body}data: [DONE]\n\n", headers={"content-type": "text/event-stream"})


def part(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    name = {"name": "read_file"} if more else {}
    return {"tool_calls": [{"index": index, **more, "function": {**name, "arguments": arguments}}]}


BODIES: list[tuple[str, Answer]] = [
    ("openai", Answer(completion("hello") | {"created": 1})),
    ("openai", Answer(completion(None, [tool_call(id="a"), tool_call(id="b")], "tool_calls") | {"created": 1})),
    ("openai", chunks({"role": "assistant", "content": "hé"}, {"content": "llo"})),
    (
        "openai",
        chunks(
            part(0, "", id="a", type="function"),
            part(0, '{"path"'),
            part(1, '{"path": "b"}', id="b", type="function"),
            part(0, ': "a"}'),
            finish_reason="tool_calls",
        ),
    ),
    *(
        ("anthropic", anthropic_answers.answer(*content, stream=stream, stop_reason=reason))
        for stream in (False, True)
        for content, reason in (
            ([text("héllo")], "end_turn"),
            ([text("Look."), use(path="é"), use("t2", path="b")], "tool_use"),
            ([THOUGHT, text("done")], "stop_sequence"),
            ([use("t1", "ping")], "tool_use"),
        )
    ),
    *(
        ("ollama", ollama_answers.answer(content, *calls, stream=stream, thinking=thinking, done_reason=reason))
        for stream in (False, True)
        for content, calls, thinking, reason in (
            ("héllo", [], "", "stop"),
            ("", [ollama_answers.call(path="a"), ollama_answers.call("ping")], "Hm.", "stop"),
            ("cut", [], "", "length"),
        )
    ),
]


def is_stream(answer: Answer) -> bool:
    return bool(answer.headers)


def reading(turn: ChatTurn, *, with_ids: bool) -> list[Any]:
    """Put our reading into the form of the SDKs'."""
    calls = [
        [
            call.id if with_ids else None,
            call.name,
            json.loads(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments),
        ]
        for call in turn.tool_requests
    ]
    counts = [turn.usage.prompt_tokens, turn.usage.completion_tokens] if turn.usage else None
    return [turn.content, calls, turn.finish_reason, counts]


def read_by_sdks(command: list[str], cases: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=cases, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.behaviour("V01", "V07")
async def test_the_sdks_read_the_same(installed: Path, loopback: Loopback) -> None:
    """Text, calls, reason and tokens of each body are what the SDK of its service makes of it."""
    loopback.script(*(answer for _, answer in BODIES))
    cases = [{"wire": wire, "stream": is_stream(answer)} for wire, answer in BODIES]
    command = [installed / "venv" / "bin" / "python", HERE / "sdk_reading.py", loopback.url.removesuffix("/v1")]
    done = await asyncio.to_thread(read_by_sdks, [str(word) for word in command], json.dumps(cases))
    assert done.returncode == 0, done.stderr
    for (wire, answer), theirs in zip(BODIES, json.loads(done.stdout), strict=True):
        loopback.asked.clear()
        loopback.script(answer)
        provider = PROVIDERS[wire](loopback.url)
        heard: list[str] = []
        request = ChatRequest([Message("user", "hi")], on_text=heard.append if is_stream(answer) else None)
        turn = await provider.chat(request)
        await provider.aclose()
        assert reading(turn, with_ids=wire != "ollama") == theirs, answer.encoded()
