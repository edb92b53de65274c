"""From what a service answered to a `ChatTurn`: ids, names, thoughts and rescued calls, the same for every wire."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thena_core.messages import ChatTurn, ToolRequest, Usage
from thena_core.providers.base import ChatRequest
from thena_core.providers.body import whole
from thena_core.providers.names import known_name
from thena_core.providers.rescue import Rescue, rescued
from thena_core.providers.thinking import visible


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call as it was read.

    Attributes:
        id: The service's id; empty where it gave none.
        name: The name as it was written.
        arguments: A JSON text, or a mapping where the service parses it.
        extra: What the service wants back with this call (a signature), or `None`.
    """

    id: str
    name: str
    arguments: str | Mapping[str, Any] = "{}"
    extra: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Answer:
    """What was read from an answer, streamed or not.

    Attributes:
        content: The text as it came, thoughts in tags included.
        calls: The calls, in the model's order.
        usage: What it used, or `None`.
        finish_reason: The service's own word, or `None`.
        extra: What the service wants back with this message (its reasoning), or empty.
    """

    content: str = ""
    calls: Sequence[AskedCall] = ()
    usage: Usage | None = None
    finish_reason: str | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


def turn_of(
    answer: Answer, request: ChatRequest, *, provider: str, rescue: Rescue, attempts: int, taken: Collection[str]
) -> ChatTurn:
    """Make the turn.

    Args:
        answer: What was read.
        request: What was asked; a call is rescued from text only for its tools.
        provider: The provider's name, under which `extra` is kept: `extra[provider]`; what calls want back stands in
            its entry `calls`, by the call's id.
        rescue: Whether calls are read from text.
        attempts: How many requests it took.
        taken: The ids of the calls in the history.
    """
    meta: dict[str, Any] = {"attempts": attempts}
    content, calls = visible(whole(answer.content)), answer.calls
    if not calls:
        found = rescued(content, request.tools, lenient=rescue == "lenient")
        if found is not None and rescue is not False:
            content = found[1]
            calls = [AskedCall("", call.name, call.arguments) for call in found[0]]
            meta["tool_call_source"] = "rescued"
        elif found is not None:
            meta["unread_tool_call"] = "the answer looks like a call that the service should have read (rescue=False)"
    names = {tool.name for tool in request.tools}
    requests = identified(calls, taken, names, meta)
    extra = dict(answer.extra)
    kept = {made.id: dict(call.extra) for made, call in zip(requests, calls, strict=True) if call.extra}
    if kept:
        extra["calls"] = kept
    return ChatTurn(
        content=content,
        tool_requests=requests,
        usage=answer.usage,
        finish_reason=answer.finish_reason,
        extra={provider: extra} if extra else None,
        meta=meta,
    )


def identified(
    calls: Sequence[AskedCall], taken: Collection[str], names: Collection[str], meta: dict[str, Any]
) -> list[ToolRequest]:
    """Give each call an id of its own and the name of the tool that it can only mean.

    An id that is missing, or taken by another call, is replaced by one derived from the position in the history: two
    calls with one id could not be answered, and a random one would change a history that is replayed. A name that was
    written differently is noted in `meta["renamed"]`.
    """
    if not calls:
        return []
    used = set(taken)
    given = {whole(call.id) for call in calls if call.id}
    requests: list[ToolRequest] = []
    for call in calls:
        call_id = whole(call.id)
        if not call_id or call_id in used:
            call_id = _free_id(used | given, len(used) + 1)
        used.add(call_id)
        written = whole(call.name)
        name = known_name(written, names) or written
        if name != written:
            meta.setdefault("renamed", {})[call_id] = written
        arguments = whole(call.arguments) if isinstance(call.arguments, str) else call.arguments
        requests.append(ToolRequest(call_id, name, arguments))
    return requests


def _free_id(used: Collection[str], number: int) -> str:
    """Return the first `call_<n>`, from the given number on, that no call has."""
    while f"call_{number}" in used:
        number += 1
    return f"call_{number}"
