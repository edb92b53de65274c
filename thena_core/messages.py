"""The neutral words between model and tools: what is said, what is asked for, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, get_args

from thena_core._render import said_by

Role = Literal["system", "user", "assistant", "tool"]

CUT_OFF = frozenset(
    {"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length", "content_filter"}
)
"""The words of services for an answer that ended before the model had finished: its calls may lack their end."""


class CutOff(str):
    """The arguments of a call whose answer was cut off: shown and kept like any text, and never run.

    They may be valid JSON all the same: what is missing is not to be seen in them.
    """

    __slots__ = ()

    @classmethod
    def of(cls, arguments: str | Mapping[str, Any]) -> CutOff:
        """Mark arguments, also those that a service parses."""
        return cls(arguments if isinstance(arguments, str) else json.dumps(dict(arguments), default=str))


@dataclass(slots=True)
class ToolRequest:
    """A call that the model asks for.

    Attributes:
        id: The service's id of the call; its result carries the same.
        name: The tool's name as the model wrote it; it may not exist.
        arguments: What the model sent: a JSON text, or a mapping where the service parses it.
    """

    id: str
    name: str
    arguments: str | Mapping[str, Any] = "{}"


@dataclass(slots=True)
class Message:
    """One entry of a history.

    Attributes:
        role: Who speaks.
        content: The text.
        tool_requests: The calls that an assistant's message asks for.
        tool_call_id: In a `tool` message, the id of the call that it answers.
        is_error: In a `tool` message, whether the call failed.
        extra: What a provider must send back unchanged with this message (signed reasoning, say), under its own name.
    """

    role: Role
    content: str = ""
    tool_requests: Sequence[ToolRequest] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    extra: Mapping[str, Any] | None = None


class History(list[Message]):
    """What was said, in order; it can be stored as JSON and given to `run(history=…)`, which goes on from it."""

    VERSION = 1

    def to_json(self) -> str:
        """Return the history as a JSON text of this version.

        Raises:
            TypeError: Where a message holds something that JSON cannot (in `extra`, say).
        """
        return json.dumps({"version": self.VERSION, "messages": [asdict(message) for message in self]})

    @classmethod
    def from_json(cls, text: str | bytes) -> History:
        """Read what `to_json` wrote.

        Raises:
            ValueError: For anything else, and for a version that this one does not know.
        """
        try:
            data = json.loads(text)
            version, messages = data["version"], data["messages"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"[thena] This is no history that Thena wrote: {said_by(error)}") from error
        if type(version) is not int or version != cls.VERSION:
            raise ValueError(f"[thena] The history is of version {version!r}; this Thena reads version {cls.VERSION}.")
        if not isinstance(messages, list):
            raise ValueError("[thena] This is no history that Thena wrote: its messages are no list.")  # noqa: TRY004
        try:
            return cls(_message(entry) for entry in cast("list[Any]", messages))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"[thena] A message of the history cannot be read: {error}") from error


def _message(entry: Mapping[str, Any]) -> Message:
    fields: dict[str, Any] = dict(entry)
    fields["tool_requests"] = [ToolRequest(**request) for request in fields.get("tool_requests", ())] or ()
    message = Message(**fields)
    if message.role not in get_args(Role) or not isinstance(fields["content"], str):
        raise ValueError(f"role {message.role!r} with content {type(message.content).__name__}")
    texts: list[Any] = [part for request in message.tool_requests for part in (request.id, request.name)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a tool request's id and name are texts")
    return message


@dataclass(slots=True)
class Usage:
    """What one model call used.

    Attributes:
        prompt_tokens: Tokens read, the cached ones included.
        completion_tokens: Tokens written.
        cached_tokens: Those of `prompt_tokens` that came from the service's cache.
        cost_usd: The price in US dollars, or `None` where no price is known.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


@dataclass(slots=True)
class ChatTurn:
    """What the model answered.

    Attributes:
        content: Its text; empty where it only asks for tools.
        tool_requests: The calls that it asks for, in its order.
        usage: What the call used, or `None` where the service does not say.
        finish_reason: The service's own word (`stop`, `tool_calls`, `length`, …); `length` means that it was cut off.
        extra: What the provider wants back in the next request, kept on the assistant's `Message`.
        meta: Facts for the chat's node (`attempts`, `tool_call_source`, …).
    """

    content: str = ""
    tool_requests: Sequence[ToolRequest] = ()
    usage: Usage | None = None
    finish_reason: str | None = None
    extra: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None
