"""The encoded form of a history: each message is encoded once in a run, however many requests carry it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from thena_core.definition import ToolDefinition
from thena_core.messages import Message
from thena_core.providers.base import ChatRequest


@dataclass(slots=True)
class Sent:
    """What one provider has encoded of one run's history; it lives in the run's `ChatRequest` and goes with it.

    Attributes:
        parts: The encoded messages, in order.
        call_ids: The ids of all calls in the history.
        tools: The tools that were encoded last, and their encoded form.
    """

    parts: list[str] = field(default_factory=list[str])
    call_ids: set[str] = field(default_factory=set[str])
    tools: tuple[Sequence[ToolDefinition], str] | None = None
    _known: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def update(self, messages: Sequence[Message], encode: Callable[[Message], str]) -> None:
        """Encode what is new; what was changed since, and all that follows it, is encoded again."""
        same = 0
        for message, known in zip(messages, self._known, strict=False):
            if not _is_same(message, known):
                break
            same += 1
        if same < len(self._known):
            del self._known[same:], self.parts[same:]
            self.call_ids = {wanted.id for known in self._known for wanted in known[2]}
        for message in messages[same:]:
            self.parts.append(encode(message))
            self._known.append((message, message.content, message.tool_requests, message.extra))
            self.call_ids.update(wanted.id for wanted in message.tool_requests)

    def tools_of(self, tools: Sequence[ToolDefinition], encode: Callable[[Sequence[ToolDefinition]], str]) -> str:
        """Return the encoded tools: encoded once, since an agent's are the same sequence in each turn."""
        if self.tools is None or self.tools[0] is not tools:
            self.tools = (tools, encode(tools))
        return self.tools[1]


def _is_same(message: Message, known: tuple[Any, ...]) -> bool:
    """Whether a message is the one that was encoded, by identity: comparing texts would cost what encoding costs."""
    return (
        message is known[0]
        and message.content is known[1]
        and message.tool_requests is known[2]
        and message.extra is known[3]
    )


def sent(request: ChatRequest, owner: object) -> Sent:
    """Return what a provider (or another owner) has sent for this request's run; empty the first time."""
    found: Sent | None = request.kept.get(owner)
    if found is None:
        found = request.kept[owner] = Sent()
    return found
