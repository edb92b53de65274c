"""Make the answers of Anthropic's messages for the loopback service, streamed and not."""

from __future__ import annotations

import json
from typing import Any

from tests.providers.loopback import Answer

SSE = {"content-type": "text/event-stream"}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def message(*content: dict[str, Any], stop_reason: Any = "end_turn", **more: Any) -> dict[str, Any]:
    """Make the JSON of an answer."""
    usage = {"input_tokens": 4, "cache_read_input_tokens": 8, "output_tokens": 3}
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop_reason,
        "usage": usage,
        **more,
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str = "t1", name: str = "read_file", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def events(*data: dict[str, Any]) -> str:
    """Write events as a stream has them."""
    return "".join(f"event: {entry['type']}\ndata: {json.dumps(entry)}\n\n" for entry in data)


def streamed(*content: dict[str, Any], stop_reason: Any = "end_turn", end: bool = True) -> str:
    """Write an answer as a stream: texts and arguments in two pieces each."""
    data: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"content": [], "usage": message()["usage"] | {"output_tokens": 1}}}
    ]
    for index, block in enumerate(content):
        begun, changes = dict(block), list[dict[str, Any]]()
        if block["type"] == "text":
            begun["text"] = ""
            half = len(block["text"]) // 2
            changes = [{"type": "text_delta", "text": part} for part in (block["text"][:half], block["text"][half:])]
        elif block["type"] == "tool_use":
            begun["input"] = {}
            whole = json.dumps(block["input"])
            changes = [{"type": "input_json_delta", "partial_json": part} for part in ("", whole[:3], whole[3:])]
        elif block["type"] == "thinking":
            begun |= {"thinking": "", "signature": ""}
            changes = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        data.append({"type": "content_block_start", "index": index, "content_block": begun})
        data += [{"type": "content_block_delta", "index": index, "delta": change} for change in changes]
        data.append({"type": "content_block_stop", "index": index})
    if end:
        data.append({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 3}})
        data.append({"type": "message_stop"})
    return events(*data)


def answer(*content: dict[str, Any], stream: bool, **more: Any) -> Answer:
    """Script an answer, streamed or not."""
    if stream:
        return Answer(streamed(*content, **more), headers=SSE)
    return Answer(message(*content, **more))
