"""Read server-sent events (WHATWG HTML, 9.2) from the bytes of an answer, as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from thena_core.providers.lines import Lines


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of a stream.

    Attributes:
        data: Its data; the lines of a longer one are joined by a line feed.
        event: Its kind, empty where it has none.
    """

    data: str
    event: str = ""


class ServerEvents:
    """Iterate over the events of an answer: `async for event in ServerEvents(answer)`.

    An object and not a generator: one that is left early needs no closing. Events without data, comments and unknown
    fields are passed over, and what is unfinished when the answer ends is given as it is: some servers omit the last
    blank line, and a reader has to know its stream's terminator in any case.
    """

    __slots__ = ("_data", "_event", "_found", "_lines", "_pieces")

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._lines = Lines()
        self._found: deque[ServerEvent] = deque()
        self._data: list[str] = []
        self._event = ""

    def __aiter__(self) -> ServerEvents:
        return self

    async def __anext__(self) -> ServerEvent:
        while not self._found:
            try:
                piece = await anext(self._pieces)
            except StopAsyncIteration:
                for line in self._lines.end():
                    self._take(line)
                self._dispatch()
                if self._found:
                    break
                raise
            for line in self._lines.feed(piece):
                self._take(line)
        return self._found.popleft()

    def _take(self, line: str) -> None:
        if not line:
            self._dispatch()
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "error":
            # no field of the standard: how llama.cpp's server reported a failure in mid-stream until 2025
            self._event = "error"
            self._data.append(value)

    def _dispatch(self) -> None:
        data = "\n".join(self._data)
        if data.strip():
            self._found.append(ServerEvent(data, self._event))
        self._data.clear()
        self._event = ""
