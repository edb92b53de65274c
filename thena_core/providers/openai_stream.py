"""Put a streamed chat completion together: text, reasoning, calls from their fragments, and the newest usage."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from thena_core.providers.answer import Answer, AskedCall
from thena_core.providers.body import parsed
from thena_core.providers.client import BrokenOff
from thena_core.providers.names import known_name
from thena_core.providers.openai_wire import REASONING, items, mapping, read_usage, text_in
from thena_core.providers.price import Price
from thena_core.providers.sse import ServerEvent

DONE = "[DONE]"


@dataclass(slots=True)
class CallFragments:
    """One call, as far as it has come.

    Attributes:
        index: The service's number of the call, where it gives one.
        id: Its id, empty until one comes.
        names: What came as its name, repeats left out.
        text: Its arguments.
        whole: Its arguments where they come as an object.
        extra: What the service wants back with it.
    """

    index: int | None
    id: str = ""
    names: list[str] = field(default_factory=list[str])
    text: str = ""
    whole: Mapping[str, Any] | None = None
    extra: Any = None

    @property
    def is_complete(self) -> bool:
        """Whether it has a name and arguments that nothing can follow."""
        return bool(self.names) and (self.whole is not None or isinstance(parsed(self.text), dict))

    def add(self, function: Mapping[str, Any]) -> None:
        """Take a fragment: a name may be repeated or split, arguments may be absent, null, a text or an object."""
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(name, str) and name and (not self.names or name != self.names[-1]):
            self.names.append(name)
        if isinstance(arguments, dict):
            self.whole = cast("dict[str, Any]", arguments)
        elif isinstance(arguments, str) and arguments:
            self._append(arguments)

    def _append(self, arguments: str) -> None:
        if self.text.strip() == "{}" and arguments.lstrip().startswith("{"):
            self.text = arguments  # an empty object stood for "to come"
        elif not (arguments == self.text and isinstance(parsed(self.text), dict)):  # else: repeated at the end
            self.text += arguments

    def asked(self, tools: Collection[str]) -> AskedCall:
        """Make the call; fragments of a name are joined where that gives a tool's name."""
        joined = "".join(self.names)
        names = [joined, *self.names]
        name = next((name for name in names if known_name(name, tools) is not None), joined)
        arguments = self.text or ("{}" if self.whole is None else self.whole)
        return AskedCall(self.id, name, arguments, {"extra_content": self.extra} if self.extra else None)


@dataclass(slots=True)
class CompletionStream:
    """What has come of one streamed answer.

    Attributes:
        on_text: Takes each piece of text.
        finish_reason: The service's word, once it came.
        usage: The newest that says anything.
        done: Whether the terminator came.
        began: Whether anything of an answer came.
        error: The error that came in its place, with whatever JSON it is.
    """

    on_text: Callable[[str], None]
    finish_reason: str | None = None
    usage: Any = None
    done: bool = False
    began: bool = False
    error: Any = None
    _content: list[str] = field(default_factory=list[str])
    _refusal: list[str] = field(default_factory=list[str])
    _reasoning: dict[str, Any] = field(default_factory=dict[str, Any])
    _calls: list[CallFragments] = field(default_factory=list[CallFragments])

    @property
    def is_complete(self) -> bool:
        """Whether the service said that this was all: by a finish reason or by the terminator."""
        return self.done or bool(self.finish_reason)

    def take(self, event: ServerEvent) -> None:
        """Take an event.

        Raises:
            BrokenOff: For one that cannot be understood.
        """
        for text in data_of(event):
            if text == DONE:
                self.done = True
                return
            chunk = parsed_chunk(text)
            if event.event == "error" or chunk.get("error") or chunk.get("object") == "error":
                self.error = chunk.get("error") or chunk
                return
            self._take_chunk(chunk)

    def answer(self, tools: Collection[str], price: Price | None) -> Answer:
        """Give what was put together."""
        calls = [call for call in self._calls if call.names or call.text or call.whole is not None]
        indices = [call.index for call in calls]
        if None not in indices and len(set(indices)) == len(indices):
            calls.sort(key=lambda call: call.index or 0)
        return Answer(
            content="".join(self._content) or "".join(self._refusal),
            calls=[call.asked(tools) for call in calls],
            usage=read_usage(self.usage, price),
            finish_reason=self.finish_reason,
            extra=dict(self._reasoning),
        )

    def _take_chunk(self, chunk: Mapping[str, Any]) -> None:
        for usage in (mapping(chunk.get("x_groq")).get("usage"), chunk.get("usage")):
            if usage and (self.usage is None or any(mapping(usage).values())):
                self.usage = usage
        choices = [mapping(choice) for choice in items(chunk.get("choices"))]
        first = next((choice for choice in choices if not choice.get("index")), None)
        if first is None:
            return
        self.began = True
        if first.get("error"):
            self.error = first["error"]
        reason = first.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason
        if isinstance(first.get("usage"), dict):  # Moonshot's place
            self.usage = first["usage"]
        delta = mapping(first.get("delta"))
        if not delta and not (self._content or self._calls):
            delta = mapping(first.get("message"))  # a server that sends the whole answer as one event
        self._take_delta(delta)

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        text = text_in(delta.get("content"))
        if text:
            self._content.append(text)
            self.on_text(text)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refusal.append(refusal)
        for name in REASONING:
            if delta.get(name):
                self._reasoning[name] = joined_reasoning(self._reasoning.get(name), delta[name])
        entries = items(delta.get("tool_calls"))
        for place, entry in enumerate(entries):
            self._take_call(mapping(entry), place if len(entries) > 1 else None)

    def _take_call(self, entry: Mapping[str, Any], place: int | None) -> None:
        function = mapping(entry.get("function"))
        raw_id = entry.get("id")
        call_id = str(raw_id) if raw_id else ""
        index = index_of(entry.get("index"))
        call = self._call_of(call_id, place if index is None else index, function)
        call.id = call.id or call_id
        call.extra = entry.get("extra_content") or call.extra
        call.add(function)

    def _call_of(self, call_id: str, index: int | None, function: Mapping[str, Any]) -> CallFragments:
        """Find the call that a fragment belongs to, or begin one: neither the index nor the id can be relied on."""
        calls = self._calls
        if call_id:
            with_id = [call for call in calls if call.id == call_id]
            call = next((call for call in with_id if index is None or call.index in (index, None)), None)
            if call is not None:
                return call
        at_index = [call for call in calls if index is None or call.index == index]
        newest = at_index[-1] if at_index else None
        if newest is not None and not (call_id and newest.id):
            # a name and arguments for a call that lacks nothing begin another one, in streams without ids
            is_another = bool(function.get("name")) and bool(function.get("arguments")) and newest.is_complete
            if not is_another or function.get("arguments") == newest.text:
                return newest
        calls.append(CallFragments(index))
        return calls[-1]


def data_of(event: ServerEvent) -> Sequence[str]:
    """Return the JSON texts of an event: one, or, from servers that forget the blank line in between, one a line."""
    text = event.data.strip()
    if text.startswith(":"):
        return ()  # a comment that was sent as data, to keep the connection alive
    if "\n" in text and parsed(text) is None:
        return [line.strip() for line in text.split("\n") if line.strip()]
    return (text,)


def parsed_chunk(text: str) -> Mapping[str, Any]:
    """Parse one chunk.

    Raises:
        BrokenOff: For what is no JSON object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    shown = " ".join(text.split())[:100]
    raise BrokenOff(f"an event of the stream is not a JSON object: {shown}")


def index_of(value: Any) -> int | None:
    """Read the index of a call."""
    if isinstance(value, str) and value.isdecimal():
        return int(value[:9])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def joined_reasoning(begun: Any, piece: Any) -> Any:
    """Join the pieces of a reasoning field: texts are appended, details by their index, the rest replaced."""
    if isinstance(begun, str) and isinstance(piece, str):
        return begun + piece
    if not isinstance(piece, list):
        return piece
    details: list[Any] = [dict(mapping(detail)) for detail in items(begun)]
    for detail in map(mapping, items(piece)):
        same = [
            known
            for known in details
            if (known.get("index"), known.get("type")) == (detail.get("index"), detail.get("type"))
        ]
        if not same or detail.get("index") is None:
            details.append(dict(detail))
            continue
        for key, value in detail.items():
            is_text = key in {"text", "summary", "data"} and isinstance(value, str)
            same[0][key] = (
                f"{same[0].get(key) or ''}{value}" if is_text else value if value is not None else same[0].get(key)
            )
    return details
