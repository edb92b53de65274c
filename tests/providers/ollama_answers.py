"""Make the answers of Ollama's chat for the loopback service, streamed and not."""

from __future__ import annotations

import json
from typing import Any

from tests.providers.loopback import Answer

NDJSON = {"content-type": "application/x-ndjson"}


def call(name: str = "read_file", **arguments: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


def answer(content: str = "", *calls: dict[str, Any], stream: bool, thinking: str = "", **more: Any) -> Answer:
    """Script an answer, streamed (text in two pieces) or not."""
    last = {"model": "m", "done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 7, **more}
    said: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        said["tool_calls"] = list(calls)
    if thinking:
        said["thinking"] = thinking
    if not stream:
        return Answer({**last, "message": said})
    half = len(content) // 2
    pieces = [{"role": "assistant", "content": "", "thinking": thinking}] if thinking else []
    pieces += [{"role": "assistant", "content": part} for part in (content[:half], content[half:])]
    pieces += [{"role": "assistant", "content": "", "tool_calls": [entry]} for entry in calls]
    lines: list[dict[str, Any]] = [{"model": "m", "message": piece, "done": False} for piece in pieces]
    return Answer(jsonl(*lines, {**last, "message": {"role": "assistant", "content": ""}}), headers=NDJSON)


def jsonl(*lines: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in lines)
