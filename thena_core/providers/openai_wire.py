"""The words of OpenAI's chat completions: neutral messages to JSON, and an answer's JSON to a `ChatTurn`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from thena_core.definition import ToolDefinition
from thena_core.messages import ChatTurn, Message, ToolRequest, Usage
from thena_core.providers.base import Sampling
from thena_core.providers.body import argument_text, whole
from thena_core.providers.price import Price
from thena_core.providers.reply import MAX_MESSAGE, Reply, brief, excerpt, failure, message_in, server_message

MAX_NUMBER = 2**53
"""Up to here a `float` holds every integer."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_CACHED_ELSEWHERE = ("num_cached_tokens", "cached_tokens", "prompt_cache_hit_tokens")
"""Where Mistral, Hugging Face's router and DeepSeek put what OpenAI puts in `prompt_tokens_details`."""


def encode_message(message: Message) -> dict[str, Any]:
    """Write one entry of the history."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.content}
    entry: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "assistant" and message.tool_requests:
        # OpenAI's own form of "no text": the key stays, as strict servers want it
        entry["content"] = message.content or None
        entry["tool_calls"] = [
            {
                "id": wanted.id,
                "type": "function",
                "function": {"name": legal_name(wanted.name), "arguments": argument_text(wanted.arguments)},
            }
            for wanted in message.tool_requests
        ]
    return entry


def legal_name(name: str) -> str:
    """Make a name that the model invented one that services accept in a history; those of real tools stay."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or "unnamed"


def encode_tool(definition: ToolDefinition) -> dict[str, Any]:
    """Write what the model sees of a tool."""
    function: dict[str, Any] = {
        "name": definition.name,
        "description": definition.description,
        "parameters": definition.json_schema or {"type": "object", "properties": {}},
    }
    if definition.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def encode_sampling(sampling: Sampling, *, official: bool) -> dict[str, Any]:
    """Write the settings that are given.

    OpenAI's newer models refuse `max_tokens`; many compatible servers know nothing else.
    """
    stop = sampling.stop
    settings = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_completion_tokens" if official else "max_tokens": sampling.max_tokens,
        "stop": stop if stop is None or isinstance(stop, str) else list(stop),
        "seed": sampling.seed,
    }
    return {name: value for name, value in settings.items() if value is not None}


def effective_status(reply: Reply) -> int:
    """Return the status that counts for trying again: routers answer 200 and put the real status into the body."""
    if not reply.is_success or b'"error"' not in reply.body:
        return reply.status
    code = str(mapping(mapping(reply.json()).get("error")).get("code"))
    return int(code) if re.fullmatch(r"[45]\d\d", code) else reply.status


def read_turn(reply: Reply, history: Iterable[Message], price: Price | None, provider: str, secret: str) -> ChatTurn:
    """Read an answer.

    Args:
        reply: The answer.
        history: What was sent, whose call ids are taken.
        price: What the tokens cost, or `None` for what the service reports.
        provider: The provider's name, for errors.
        secret: The key, for masking.

    Raises:
        ProviderError: For an error of any shape, and for an answer without a message.
    """
    if not reply.is_success:
        raise failure(reply, provider, server_message(reply, secret), secret)
    answer = mapping(reply.json())
    first = mapping(next(iter(items(answer.get("choices"))), None))
    message = mapping(first.get("message"))
    error = answer.get("error") or first.get("error")
    if error or not message:
        raise failure(reply, provider, missing(reply, first, error, secret), secret)
    finish_reason = first.get("finish_reason")
    return ChatTurn(
        content=whole(text_in(message.get("content")) or text_in(message.get("refusal"))),
        tool_requests=read_calls(message.get("tool_calls"), history),
        usage=read_usage(answer.get("usage"), price),
        finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        meta={"attempts": reply.attempts},
    )


def missing(reply: Reply, first: Mapping[str, Any], error: Any, secret: str) -> str:
    """Say why an answer with a good status has no message."""
    if error:
        return brief(message_in(error), MAX_MESSAGE, secret) or server_message(reply, secret)
    if not isinstance(reply.json(), dict):
        return f"the answer is not a JSON object: {excerpt(reply, secret)}"
    return f"{'no message in the first choice' if first else 'no choices in the answer'}: {excerpt(reply, secret)}"


def text_in(content: Any) -> str:
    """Read a content: text, nothing, or a list of parts, of which only the text is for the reader."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text_of(part) for part in items(content))
    return text_of(content)


def text_of(part: Any) -> str:
    """Read one part of a content; parts that are pictures, reasoning or unknown have no text."""
    if isinstance(part, str):
        return part
    entry = mapping(part)
    for kind in ("text", "refusal"):
        text = entry.get(kind)
        if entry.get("type") in (kind, f"output_{kind}", None) and isinstance(text, str):
            return text
    return ""


def read_calls(entries: Any, history: Iterable[Message]) -> list[ToolRequest]:
    """Read the calls of an answer; fillers without a name and arguments are none.

    An id that is missing, or taken by another call, is replaced by one derived from the position in the history: two
    calls with one id could not be answered, and a random one would change a history that is replayed.
    """
    found: list[tuple[Any, Mapping[str, Any]]] = []
    for entry in items(entries) or [entries]:
        function = mapping(mapping(entry).get("function"))
        if function.get("name") or function.get("arguments"):
            found.append((mapping(entry).get("id"), function))
    if not found:
        return []
    taken = {wanted.id for message in history for wanted in message.tool_requests}
    given = {str(call_id) for call_id, _ in found if call_id}
    calls: list[ToolRequest] = []
    for raw_id, function in found:
        call_id = whole(str(raw_id)) if raw_id else ""
        if not call_id or call_id in taken:
            call_id = free_id(taken | given, len(taken) + 1)
        taken.add(call_id)
        name = whole(str(function.get("name") or ""))
        calls.append(ToolRequest(call_id, name, read_arguments(function.get("arguments"))))
    return calls


def free_id(taken: set[str], number: int) -> str:
    """Return the first `call_<n>`, from the given number on, that no call has."""
    while f"call_{number}" in taken:
        number += 1
    return f"call_{number}"


def read_arguments(arguments: Any) -> str | Mapping[str, Any]:
    """Hand on what the model sent; the core reads it. Only where there is nothing at all it is an empty object."""
    if arguments is None:
        return "{}"
    if isinstance(arguments, str):
        return whole(arguments)
    return mapping(cast("Any", arguments)) if isinstance(arguments, dict) else json.dumps(arguments)


def read_usage(usage: Any, price: Price | None) -> Usage | None:
    """Read what the call used; `None` where the service does not say."""
    if not isinstance(usage, dict):
        return None
    counts = mapping(cast("Any", usage))
    prompt, completion = count(counts.get("prompt_tokens")), count(counts.get("completion_tokens"))
    places = [mapping(counts.get("prompt_tokens_details")).get("cached_tokens"), *map(counts.get, _CACHED_ELSEWHERE)]
    cached = next((count(place) for place in places if place is not None), 0)
    cost = number(counts.get("cost")) if price is None else price.of(prompt, completion, cached)
    return Usage(prompt, completion, cached, cost)


def count(value: Any) -> int:
    """Read a number of tokens; what is none counts as 0."""
    return int(max(number(value) or 0, 0))


def number(value: Any) -> float | None:
    """Read a number; `None` for what is none, and for `NaN`, infinity and integers that no `float` holds."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER
    return float(value) if usable else None


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON object as it is, and an empty one in place of anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: Any) -> Sequence[Any]:
    """Return a JSON array as it is, and an empty one in place of anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else []
