"""The words of OpenAI's chat completions: neutral messages to JSON, and an answer's JSON to a `ChatTurn`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from thena_core.definition import ToolDefinition
from thena_core.messages import Message, Usage
from thena_core.providers.answer import Answer, AskedCall
from thena_core.providers.base import Sampling
from thena_core.providers.body import argument_text, whole
from thena_core.providers.price import Price
from thena_core.providers.reply import MAX_MESSAGE, Reply, brief, excerpt, failure, message_in, server_message

MAX_NUMBER = 2**53
"""Up to here a `float` holds every integer."""

EXTRA = "openai"
"""Under this name a message keeps what the service wants back with it."""

REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thought_signature", "extra_content")
"""The fields of a message in which services put the model's reasoning, or a signature of it."""

SENT_BACK = ("reasoning_content", "reasoning_details", "extra_content")
"""Those that go back with a message that calls tools, unless the user says otherwise."""

_STATUS_OF_WORD = {
    "overloaded": 529,
    "rate_limit": 429,
    "too_many": 429,
    "unavailable": 503,
    "timeout": 504,
    "server": 500,
}
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_CACHED_ELSEWHERE = ("num_cached_tokens", "cached_tokens", "prompt_cache_hit_tokens")
"""Where Mistral, Hugging Face's router and DeepSeek put what OpenAI puts in `prompt_tokens_details`."""


def encode_message(message: Message, *, reasoning: bool | None = None, empty: str | None = None) -> dict[str, Any]:
    """Write one entry of the history.

    Args:
        message: The entry.
        reasoning: Whether the model's reasoning goes back with it; `None`: as far as services want it (`wanted_back`).
        empty: The content of a message that only calls tools; OpenAI's own form is `None`.
    """
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.content}
    entry: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role != "assistant":
        return entry
    kept = mapping((message.extra or {}).get(EXTRA))
    extras = mapping(kept.get("calls"))
    if message.tool_requests:
        # the key stays also where there is no text, as strict servers want it
        entry["content"] = message.content or empty
        entry["tool_calls"] = [
            {
                "id": wanted.id,
                "type": "function",
                "function": {"name": legal_name(wanted.name), "arguments": argument_text(wanted.arguments)},
                **mapping(extras.get(wanted.id)),
            }
            for wanted in message.tool_requests
        ]
    return entry | wanted_back(kept, reasoning=reasoning, calls_tools=bool(message.tool_requests))


def wanted_back(kept: Mapping[str, Any], *, reasoning: bool | None, calls_tools: bool) -> dict[str, Any]:
    """Choose what of a model's reasoning goes back to the service.

    Services that want it (DeepSeek, Kimi, GLM, OpenRouter, Gemini) want it with messages that call tools, in the field
    in which it came. `reasoning` alone does not go: who sends it (Groq, Ollama, vLLM) does not ask for it, and strict
    servers refuse fields that they do not know.
    """
    if reasoning is False:
        return {}
    fields = REASONING if reasoning else SENT_BACK if calls_tools else ()
    return {name: kept[name] for name in fields if kept.get(name)}


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
    answer = mapping(reply.json())
    return status_in(answer.get("error"), reply.status)


def status_in(error: Any, status: int) -> int:
    """Return the HTTP status that an error inside an answer stands for: its code, or what its type means.

    Args:
        error: The error's JSON.
        status: What counts where the error says nothing.
    """
    facts = mapping(error)
    for key in ("code", "status", "status_code", "type"):
        value = facts.get(key)
        if re.fullmatch(r"[45]\d\d", str(value)):
            return int(str(value))
        words = value.lower() if isinstance(value, str) else ""
        found = next((known for word, known in _STATUS_OF_WORD.items() if word in words), None)
        if found is not None:
            return found
    return status


def read_answer(reply: Reply, price: Price | None, provider: str, secret: str) -> Answer:
    """Read an answer that came as a whole.

    Args:
        reply: The answer.
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
        known = replace(reply, status=status_in(error, reply.status))
        raise failure(known, provider, missing(reply, first, error, secret), secret)
    finish_reason = first.get("finish_reason")
    return Answer(
        content=text_in(message.get("content")) or text_in(message.get("refusal")),
        calls=asked_calls(message.get("tool_calls")),
        usage=read_usage(answer.get("usage"), price),
        finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        extra=reasoning_of(message),
    )


def reasoning_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what services may want back with a message: its reasoning in their several fields, and signatures."""
    return {name: message[name] for name in REASONING if message.get(name)}


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


def asked_calls(entries: Any) -> list[AskedCall]:
    """Read the calls of an answer; fillers without a name and arguments are none."""
    found: list[AskedCall] = []
    for entry in items(entries) or [entries]:
        call = mapping(entry)
        function = mapping(call.get("function"))
        if function.get("name") or function.get("arguments"):
            call_id, extra = call.get("id"), call.get("extra_content")
            found.append(
                AskedCall(
                    str(call_id) if call_id else "",
                    str(function.get("name") or ""),
                    read_arguments(function.get("arguments")),
                    {"extra_content": extra} if extra else None,
                )
            )
    return found


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
