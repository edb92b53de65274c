"""Read JSON lines (one JSON text a line, as Ollama streams) from the bytes of an answer, as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

from thena_core.providers.lines import Lines


class JsonLines:
    """Iterate over the lines of an answer that are not blank: `async for text in JsonLines(answer)`.

    Not parsed: what a line that is no JSON means is its reader's to say.
    """

    __slots__ = ("_found", "_lines", "_pieces")

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._lines = Lines()
        self._found: deque[str] = deque()

    def __aiter__(self) -> JsonLines:
        return self

    async def __anext__(self) -> str:
        while not self._found:
            try:
                piece = await anext(self._pieces)
            except StopAsyncIteration:
                self._found.extend(line for line in self._lines.end() if line.strip())
                if self._found:
                    break
                raise
            self._found.extend(line for line in self._lines.feed(piece) if line.strip())
        return self._found.popleft()
