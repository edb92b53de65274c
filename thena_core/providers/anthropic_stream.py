"""Put the events of Anthropic's streamed messages together again: content blocks, usage and the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from thena_core.providers.body import parsed
from thena_core.providers.client import BrokenOff
from thena_core.providers.openai_wire import items, mapping, number
from thena_core.providers.sse import ServerEvent

TERMINATOR = "[DONE]"
"""Not the service's own word, but what some compatible servers end every stream with."""

_GROWS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
}
"""For each kind of delta that adds to a text: the kind of block that it belongs to, and the field that it adds to."""


class StreamedError(Exception):
    """Hold the error object that a service put into its stream."""

    def __init__(self, error: Any) -> None:
        super().__init__("an error in the stream")
        self.error = error


@dataclass(slots=True)
class Block:
    """One content block while it grows.

    Attributes:
        start: What the block began as.
        grown: What was added to each of its fields, in pieces.
        inputs: The pieces of a call's arguments.
        citations: What was cited, one entry each.
    """

    start: dict[str, Any]
    grown: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    inputs: list[str] = field(default_factory=list[str])
    citations: list[Any] = field(default_factory=list[Any])

    def whole(self) -> dict[str, Any]:
        """Return the block as an answer that was not streamed would have it; a call's input stays the text it came as.

        Pieces of arguments, once any of them is not empty, are the input; else what stood in the beginning is.
        """
        block = dict(self.start)
        for name, pieces in self.grown.items():
            before = block.get(name)
            block[name] = (before if isinstance(before, str) else "") + "".join(pieces)
        if self.citations:
            block["citations"] = [*items(block.get("citations")), *self.citations]
        text = "".join(self.inputs)
        if text:
            # the blocks of the service's own tools are sent back, and must be what it sent
            block["input"] = text if block.get("type") == "tool_use" else mapping(parsed(text))
        return block


class MessageStream:
    """Take the events of one answer; afterwards its blocks, usage and stop reason can be read.

    Attributes:
        usage: The counts, the newest of each.
        stop_reason: The service's word for why it stopped, or `None`.
        began: Whether there was a message at all.
        ended: Whether the terminator came. Without it the answer is not whole, whatever came before.
    """

    __slots__ = ("_blocks", "_by_index", "began", "ended", "stop_reason", "usage")

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._by_index: dict[Any, Block] = {}
        self.usage: dict[str, Any] = {}
        self.stop_reason: Any = None
        self.began = False
        self.ended = False

    @property
    def blocks(self) -> list[Mapping[str, Any]]:
        """The content of the answer, in the order in which its blocks began."""
        return [block.whole() for block in self._blocks]

    def take(self, event: ServerEvent) -> str:
        """Take one event and return the text that it adds for the reader; kinds that are unknown are passed over.

        Raises:
            StreamedError: For an error in the stream.
            BrokenOff: For data that is cut off in the middle.
        """
        data = self._parsed(event)
        kind = data.get("type") or event.event
        if kind == "error" or ("error" in data and data["error"] is not None):
            raise StreamedError(data.get("error") or dict(data))
        if kind == "message_start":
            self.began = True
            message = mapping(data.get("message"))
            self._revise(message.get("usage"))
            return "".join(self._start(None, mapping(block)) for block in items(message.get("content")))
        if kind == "content_block_start":
            return self._start(data.get("index"), mapping(data.get("content_block")))
        if kind == "content_block_delta":
            return self._grow(data.get("index"), mapping(data.get("delta")))
        if kind == "message_delta":
            self._revise(data.get("usage"))
            self.stop_reason = mapping(data.get("delta")).get("stop_reason") or self.stop_reason
        elif kind == "message_stop":
            self.ended = True
        return ""

    def _parsed(self, event: ServerEvent) -> Mapping[str, Any]:
        if event.data.strip() == TERMINATOR:
            self.ended = True
            return {}
        try:
            return mapping(json.loads(event.data))
        except (ValueError, RecursionError):
            if event.data.lstrip().startswith("{"):
                raise BrokenOff("an event of the answer is not JSON") from None
            return {"type": "error", "error": event.data} if event.event == "error" else {}  # else it keeps alive

    def _start(self, index: Any, start: Mapping[str, Any]) -> str:
        self.began = True
        block = Block(dict(start))
        self._blocks.append(block)
        self._by_index[str(index)] = block
        text = start.get("text") if start.get("type") == "text" else None
        return text if isinstance(text, str) else ""

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> str:
        kind = delta.get("type")
        block = self._by_index.get(str(index))
        if kind == "input_json_delta":
            piece = delta.get("partial_json")
            if block is not None and isinstance(piece, str):
                block.inputs.append(piece)
        elif kind == "citations_delta":
            if block is not None:
                block.citations.append(delta.get("citation"))
        elif isinstance(kind, str) and kind in _GROWS:
            owner, name = _GROWS[kind]
            piece = delta.get(name)
            if isinstance(piece, str):
                if block is None or block.start.get("type") != owner:
                    # compatible servers leave the beginning out, or go on under the index of another block
                    self._start(index, {"type": owner, name: ""})
                    block = self._blocks[-1]
                block.grown.setdefault(name, []).append(piece)
                return piece if name == "text" else ""
        return ""

    def _revise(self, usage: Any) -> None:
        """Lay newer counts over older ones; each is for the whole answer so far, and nothing or 0 revises nothing."""
        for name, value in mapping(usage).items():
            if number(value) or name not in self.usage:
                self.usage[name] = value
