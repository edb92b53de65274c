"""The console tree: one line when a step starts, one when it ends, indented by depth."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from thena_core._render import shortened
from thena_core.record.redact import Redactor, mask, mask_value

if TYPE_CHECKING:
    from thena_core.record.tree import Event

_MAX_NAME = 120
_MAX_ERROR = 200
_MAX_CONTENT = 100
# Far more than is shown, so that a secret is seen whole before the text is cut.
_LOOKED_AT = 4_000
# Controls, and what reorders, hides or breaks a line although it prints nothing.
_HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_BLANKS = re.compile(r"[ \t\r\n\x0b\x0c\x85\u2028\u2029]+")


class _Signs(NamedTuple):
    start: str
    end: str
    ok: str
    failed: str
    going: str


_UNICODE = _Signs("▸", "◂", "✓", "✗", "·")
_ASCII = _Signs(">", "<", "ok", "failed", ".")


class ConsoleTree:
    """Print a run's steps as they start and end; it is a listener of the recorder.

    Args:
        stream: Where to; `None` is `sys.stderr` as it is when a line is written.
        verbose: Add the beginning of what went in and what came out.
        redact: Masks every text before it is printed.
    """

    def __init__(self, stream: TextIO | None = None, *, verbose: bool = False, redact: Redactor = mask) -> None:
        self._stream = stream
        self._verbose = verbose
        self._redact = redact
        self._numbers: dict[str, int] = {}
        self._open: dict[tuple[int, str, str], set[int]] = {}
        self._style: tuple[TextIO, _Signs, bool] | None = None
        self._broken: TextIO | None = None

    def __call__(self, event: Event) -> None:
        """Print the line of one event; a stream that is closed or full is left alone."""
        if event.phase == "progress":
            number = self._numbers.get(event.id, 1)
        else:
            number = self._take(event) if event.phase == "start" else self._give_back(event)
        stream = self._stream if self._stream is not None else sys.stderr
        # Without a console (pythonw) sys.stderr is None, whatever its type says.
        if stream is None or stream is self._broken:  # pyright: ignore[reportUnnecessaryComparison]
            return
        try:
            signs, colour = self._styled(stream)
            stream.write(_encodable(self._line(event, number, signs, colour), stream) + "\n")
            stream.flush()
        except Exception:  # noqa: BLE001  -- whatever a stream raises, watching a run must not end it
            self._broken = stream

    def _take(self, event: Event) -> int:
        """Give the step the smallest number that no open step with its name has at its depth."""
        taken = self._open.setdefault((event.depth, event.kind, event.name), set())
        number = next(n for n in range(1, len(taken) + 2) if n not in taken)
        taken.add(number)
        self._numbers[event.id] = number
        return number

    def _give_back(self, event: Event) -> int:
        number = self._numbers.pop(event.id, 1)
        key = (event.depth, event.kind, event.name)
        taken = self._open.get(key)
        if taken is not None:
            taken.discard(number)
            if not taken:
                del self._open[key]
        return number

    def _progress(self, event: Event) -> str:
        """Say how far a step has come: `3/8 pages read`."""
        told = event.meta.get("progress", {})
        done, total, message = told.get("done", 0), told.get("total"), str(told.get("message", ""))
        count = f"{done:g}" if total is None else f"{done:g}/{total:g}"
        return f"{count} {self._plain(message, _MAX_ERROR)}".rstrip()

    def _styled(self, stream: TextIO) -> tuple[_Signs, bool]:
        if self._style is None or self._style[0] is not stream:
            signs = _UNICODE if _can_encode("".join(_UNICODE) + "…", stream) else _ASCII
            plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
            self._style = (stream, signs, not plain and stream.isatty())
        return self._style[1], self._style[2]

    def _line(self, event: Event, number: int, signs: _Signs, colour: bool) -> str:
        name = self._plain(event.name, _MAX_NAME) + (f" #{number}" if number > 1 else "")
        label = f"{event.kind} {name}"
        indent = "  " * event.depth
        if event.phase == "start":
            content = self._content(event.input)
            return f"{indent}{_painted(signs.start, '2', colour)} {label}{content}"
        if event.phase == "progress":
            return f"{indent}{_painted(signs.going, '2', colour)} {label}  {self._progress(event)}"
        took = f"  {duration(event.duration_ms)}" if event.duration_ms is not None else ""
        if event.status != "error":
            verdict = _painted(signs.ok, "32", colour) + self._content(event.output)
        else:
            error = self._plain(event.error, _MAX_ERROR) if event.error else ""
            reason = ": ".join(part for part in (event.outcome, error) if part)
            verdict = _painted(signs.failed, "31", colour) + (f" {reason}" if reason else "")
        return f"{indent}{_painted(signs.end, '2', colour)} {label}{took} {verdict}"

    def _content(self, value: Any) -> str:
        if not self._verbose or value is None:
            return ""
        if isinstance(value, str):
            return f"  {self._plain(value, _MAX_CONTENT)}"
        return f"  {self._plain(str(mask_value(value, self._redact)), _MAX_CONTENT)}"

    def _plain(self, text: str, limit: int) -> str:
        one_line = _BLANKS.sub(" ", self._redact(text[:_LOOKED_AT])).strip()
        return _HARMFUL.sub(_escaped, shortened(one_line, limit))


def duration(ms: float) -> str:
    """Write milliseconds for people: `4ms`, `1.2s`, `3m05s`."""
    if ms < 999.5:  # noqa: PLR2004
        return f"{ms:.0f}ms"
    seconds = ms / 1000
    if seconds < 119.95:  # noqa: PLR2004
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s"


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _can_encode(text: str, stream: TextIO) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encodable(line: str, stream: TextIO) -> str:
    if _can_encode(line, stream):
        return line
    encoding = getattr(stream, "encoding", None) or "ascii"
    return line.replace("…", "...").encode(encoding, "backslashreplace").decode(encoding)
