"""The words of Anthropic's messages: neutral messages to JSON, and an answer's content blocks to an `Answer`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from thena_core.definition import ToolDefinition
from thena_core.messages import Message, ToolRequest, Usage
from thena_core.providers.answer import Answer, AskedCall
from thena_core.providers.base import Sampling, ToolCalls
from thena_core.providers.body import argument_text, compact, whole
from thena_core.providers.openai_wire import count, items, legal_name, mapping, read_arguments
from thena_core.providers.price import Price

EXTRA = "anthropic"
"""The key of `Message.extra` under which the blocks of an answer are kept."""

GO_ON = "Continue."
"""What the user says where nobody else spoke last (or first): the service wants both words to be the user's."""

OUT_OF_ROOM = frozenset({"max_tokens", "model_context_window_exceeded"})
"""The service's words for an answer that ended for want of room, which Thena calls `length`."""

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_-]")


def encode_message(message: Message) -> str:
    """Write the content blocks of one entry of the history, with commas between; there may be none."""
    if message.role == "assistant":
        return ",".join(assistant_blocks(message))
    return result_block(message) if message.role == "tool" else text_block(message.content)


def join_messages(messages: Iterable[Message], parts: Iterable[str]) -> str:
    """Write the list of messages: neighbours of one role become one message, results of calls first in it.

    Args:
        messages: The history.
        parts: What `encode_message` made of each of them.
    """
    written: list[str] = []
    role, results, others = "", list[str](), list[str]()
    for message, part in zip(messages, parts, strict=True):
        if not part:
            continue
        speaker = "assistant" if message.role == "assistant" else "user"
        if speaker != role:
            written += joined(role, results, others)
            role, results, others = speaker, [], []
            if not written and role == "assistant":
                written += joined("user", (), (text_block(GO_ON),))
        (results if message.role == "tool" else others).append(part)
    written += joined(role, results, others)
    if role != "user":
        written += joined("user", (), (text_block(GO_ON),))
    return f"[{','.join(written)}]"


def joined(role: str, results: Sequence[str], others: Sequence[str]) -> list[str]:
    """Write one message, or none where it would be empty."""
    blocks = ",".join((*results, *others))
    return [f'{{"role":"{role}","content":[{blocks}]}}'] if blocks else []


def text_block(text: str) -> str:
    """Write a text; the service refuses blank ones, so they are left out."""
    return compact({"type": "text", "text": text}) if text.strip() else ""


def result_block(message: Message) -> str:
    """Write the result of a call."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": legal_id(message.tool_call_id or "")}
    if message.content:
        block["content"] = message.content
    if message.is_error:
        block["is_error"] = True
    return compact(block)


def assistant_blocks(message: Message) -> list[str]:
    """Write what the model said: as it said it where its blocks were kept, else its text and its calls.

    Of kept blocks the calls are those that the history still has, and the text is the history's: hooks may have
    rewritten it, and calls beyond the first may have been left out.
    """
    kept = kept_blocks(message)
    is_own = message.content == text_of(kept)
    text = "" if is_own else text_block(message.content)
    wanted = list(message.tool_requests)
    written: list[str] = []
    for block in kept:
        kind = block.get("type")
        if kind == "text" and is_own:
            written.append(compact(block) if text_of((block,)).strip() else "")
        elif kind in ("text", "tool_use"):
            written.append(text)  # in the place of the first of both
            text = ""
            if kind == "tool_use" and wanted:
                written.append(call_block(wanted.pop(0), block))
        else:
            written.append(compact(block))
    written += [text, *(call_block(request, {}) for request in wanted)]
    return [block for block in written if block]


def kept_blocks(message: Message) -> list[Mapping[str, Any]]:
    """Return the blocks of the service's own answer, if they were worth keeping."""
    return [mapping(block) for block in items(mapping((message.extra or {}).get(EXTRA)).get("content"))]


def call_block(request: ToolRequest, kept: Mapping[str, Any]) -> str:
    """Write a past call; its arguments go out as the text that came in."""
    block = {**kept, "type": "tool_use", "id": legal_id(request.id), "name": legal_name(request.name)}
    return f'{compact(block)[:-1]},"input":{whole(argument_text(request.arguments))}}}'


def legal_id(call_id: str) -> str:
    """Make an id that another service gave one that this one accepts: letters, digits, `_` and `-`.

    A changed one ends with a checksum of the original: two that differ must stay two.
    """
    if call_id and not _NOT_IN_AN_ID.search(call_id):
        return call_id
    checksum = zlib.crc32(call_id.encode("utf-8", "surrogatepass"))
    return f"{_NOT_IN_AN_ID.sub('_', call_id)}_{checksum:08x}"


def encode_tool(definition: ToolDefinition) -> dict[str, Any]:
    """Write what the model sees of a tool."""
    tool: dict[str, Any] = {
        "name": definition.name,
        "description": definition.description,
        "input_schema": definition.json_schema or {"type": "object", "properties": {}},
    }
    if definition.strict:
        tool["strict"] = True
    return tool


def encode_settings(
    sampling: Sampling | None, tools: Sequence[ToolDefinition], tool_calls: ToolCalls, max_tokens: int
) -> dict[str, Any]:
    """Write tools and sampling; `max_tokens` is what the service insists on where the agent does not say."""
    given = sampling or Sampling()
    stop = given.stop
    settings: dict[str, Any] = {
        "max_tokens": max_tokens if given.max_tokens is None else given.max_tokens,
        "temperature": given.temperature,
        "top_p": given.top_p,
        "stop_sequences": [stop] if isinstance(stop, str) else None if stop is None else list(stop),
    }
    if tools:
        settings["tools"] = [encode_tool(definition) for definition in tools]
        if tool_calls == "one":
            settings["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    return {name: value for name, value in settings.items() if value is not None}


def split_system(system: str, messages: Sequence[Message]) -> tuple[str, int]:
    """Return the system prompt and how many messages went into it: those of role `system` that open the history.

    A later one stays where it is, as words of the user: moved to the front it would change what was sent before.
    """
    number = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    texts = [system, *(message.content for message in messages[:number])]
    return "\n\n".join(text for text in texts if text.strip()), number


def text_of(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Return what the blocks say to the reader."""
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return whole("".join(text for text in texts if isinstance(text, str)))


def read_answer(
    blocks: Sequence[Mapping[str, Any]], stop_reason: Any, usage: Mapping[str, Any], price: Price | None
) -> Answer:
    """Read what the service said.

    All blocks are kept for the next request where there are others than text and calls: thinking, and what the
    service's own tools did. Thinking that the limit cut off is not: it has no signature and would be refused.

    Args:
        blocks: The content blocks; the input of a call may be the JSON text of a stream.
        stop_reason: The service's word for why it stopped.
        usage: The service's counts.
        price: What the tokens cost, or `None`.
    """
    reason = finish_reason(stop_reason)
    said = [block for block in blocks if not (reason == "length" and is_unsigned(block))]
    calls = [
        AskedCall(str(block.get("id") or ""), str(block.get("name") or ""), read_arguments(block.get("input")))
        for block in said
        if is_call(block)
    ]
    answer = Answer(text_of(said), calls, read_usage(usage, price), reason)
    if not all(block.get("type") in ("text", "tool_use") for block in said):
        kept = [without_call(block) if block.get("type") == "tool_use" else block for block in said]
        answer.extra["content"] = [block for block in kept if block]
    return answer


def is_call(block: Mapping[str, Any]) -> bool:
    """Say whether a block asks for a tool; fillers without a name and an input do not."""
    return block.get("type") == "tool_use" and bool(block.get("name") or block.get("input"))


def is_unsigned(block: Mapping[str, Any]) -> bool:
    """Say whether a block is thinking that was not finished."""
    return block.get("type") == "thinking" and not block.get("signature")


def without_call(block: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of a call only its place: the n-th one is the history's n-th, whose id, name and arguments stand there."""
    if not is_call(block):
        return {}
    return {name: value for name, value in block.items() if name not in ("id", "name", "input")}


def read_usage(usage: Mapping[str, Any], price: Price | None) -> Usage | None:
    """Read what the call used; the service counts tokens that went into or came from its cache apart from the input."""
    if not usage:
        return None
    cached = count(usage.get("cache_read_input_tokens"))
    prompt = count(usage.get("input_tokens")) + count(usage.get("cache_creation_input_tokens")) + cached
    completion = count(usage.get("output_tokens"))
    return Usage(prompt, completion, cached, None if price is None else price.of(prompt, completion, cached))


def finish_reason(stop_reason: Any) -> str | None:
    """Return the service's word for why it stopped, and `length` for each that means being cut off."""
    if not isinstance(stop_reason, str):
        return None
    return "length" if stop_reason in OUT_OF_ROOM else stop_reason
