"""Recorded answers of real services, replayed over a socket; they lie beside the project and are not part of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.providers.loopback import Answer, Loopback
from thena_core.definition import ToolDefinition
from thena_core.errors import ProviderError
from thena_core.messages import ChatTurn, Message
from thena_core.providers import AnthropicProvider, ChatRequest, OpenAIProvider, Provider

FILE = Path(__file__).parents[3] / "shared" / "recordings" / "recordings.jsonl"

OWN_READING: dict[str, dict[str, Any]] = {
    # an empty id gets one of ours
    "R058": {"calls": [{"id": "call_1", "name": "get_current_time", "arguments": {}}]},
    # all of the text is a thought that was cut off
    "R081": {"content": ""},
}
"""Where ours differs from the independent reading, by design."""


def recordings() -> list[Any]:
    if not FILE.is_file():
        skip = pytest.mark.skip(reason=f"the recorded answers are not there: {FILE.parent.name}/{FILE.name}")
        return [pytest.param(None, id="absent", marks=skip)]
    lines = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(recording, id=f"{recording['id']}-{recording['provider']}") for recording in lines]


def provider_of(api: str, url: str) -> Provider:
    if api == "openai.chat":
        return OpenAIProvider("m", "k", url, retry=False)
    return AnthropicProvider("m", "k", url.removesuffix("/v1"), retry=False)


def plain(turn: ChatTurn) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "name": call.name,
            "arguments": json.loads(call.arguments or "{}") if isinstance(call.arguments, str) else call.arguments,
        }
        for call in turn.tool_requests
    ]


@pytest.mark.parametrize("recording", recordings())
async def test_reads_what_services_answered(loopback: Loopback, recording: dict[str, Any]) -> None:
    """Text, calls, finish reason and tokens of each recorded answer are read as an independent reader read them."""
    body = recording["body"].encode()
    pieces = [body[at : at + 700] for at in range(0, len(body), 700)] if recording["stream"] else None
    loopback.script(Answer(body, recording["status"], {"content-type": recording["content_type"]}, pieces=pieces))
    heard: list[str] = []
    request = ChatRequest(
        [Message("user", "hi")],
        tools=[ToolDefinition(name, "A tool.") for name in recording["tools"]],
        tool_calls="all",
        on_text=heard.append if recording["stream"] else None,
    )
    provider = provider_of(recording["api"], loopback.url)
    expected = recording["expected"] | OWN_READING.get(recording["id"], {})
    try:
        if expected["error"]:
            with pytest.raises(ProviderError):
                await provider.chat(request)
            return
        turn = await provider.chat(request)
    finally:
        await provider.aclose()
    assert turn.content == (expected["content"] or "")
    assert plain(turn) == expected["calls"]
    assert turn.finish_reason == expected["finish_reason"]
    assert turn.usage is not None
    assert (turn.usage.prompt_tokens, turn.usage.completion_tokens) == (
        expected["prompt_tokens"],
        expected["completion_tokens"],
    )
    if recording["stream"]:
        assert "".join(heard) == turn.content
