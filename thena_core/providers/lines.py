"""Split a stream of bytes into lines, as server-sent events and JSON lines have them: at CR, LF and CRLF only."""

from __future__ import annotations

import re

from thena_core.providers.client import BrokenOff

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one line; one event of a model's stream is a few hundred, a whole call in one event a few thousand."""

_BOM = b"\xef\xbb\xbf"
_ENDS = re.compile(rb"\r\n|\r|\n")
"""Not `splitlines`: it also splits at U+0085 and U+2028, which JSON texts hold."""


class Lines:
    """Take bytes in pieces of any size and give lines.

    Split before it is decoded, so that no character is cut: CR and LF are never part of another one in UTF-8.
    """

    __slots__ = ("_after_cr", "_begun", "_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, piece: bytes) -> list[str]:
        """Return the lines that this piece completes.

        Raises:
            BrokenOff: For a line longer than `MAX_LINE`.
        """
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_cr = False
        if not piece:
            return []
        self._after_cr = piece.endswith(b"\r")
        first, *others = _ENDS.split(piece)
        self._keep(first)
        if not others:
            return []
        lines = [self._line(), *others[:-1]]
        self._keep(others[-1])
        return [self._decoded(line) for line in lines]

    def end(self) -> list[str]:
        """Return the last line, where the stream did not end with a line's end."""
        return [self._decoded(self._line())] if self._pieces else []

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        if self._size > MAX_LINE:
            raise BrokenOff(f"a line of the answer is longer than {MAX_LINE:,} bytes", may_pass=False)
        self._pieces.append(part)

    def _line(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return line

    def _decoded(self, line: bytes) -> str:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        return line.decode("utf-8", "replace")
