"""The console tree: one line when a step starts, one when it ends, indented by depth."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TextIO

from thena_core.record.oneline import duration, one_line

if TYPE_CHECKING:
    from thena_core.budget import Tracker
    from thena_core.record.event import Event
    from thena_core.record.live import LiveView

_MAX_NAME = 120
_MAX_ERROR = 200
PROGRESS_SECONDS = 1.0
"""How long a step's progress stands before the next line about it; a live view shows all of it."""


class Signs(NamedTuple):
    """What a line begins and ends with."""

    start: str
    end: str
    ok: str
    failed: str
    going: str


UNICODE = Signs("▸", "◂", "✓", "✗", "·")
ASCII = Signs(">", "<", "ok", "failed", ".")


class Console:
    """Where the trees of an app's runs are printed; runs that overlap are told apart (`[2]` before the second's lines).

    Args:
        stream: Where to; `None` is `sys.stderr` as it is when a line is written.
        live: Show long work below the lines, where the stream is a terminal and the extra `cli` is installed.
    """

    def __init__(self, stream: TextIO | None = None, *, live: bool = True) -> None:
        self._stream = stream
        self._wants_live = live
        self._live: LiveView | None = None
        self._runs: dict[ConsoleTree, int] = {}
        self._style: tuple[TextIO, Signs, bool] | None = None
        self._broken: TextIO | None = None
        if live and self.stream is not None:
            _live_view(self.stream)  # loads rich now, so that the first step's time is its own

    @property
    def stream(self) -> TextIO | None:
        """Where to, now; `None` where it is closed, full or gone."""
        if self._live is not None and self._live.is_shown:
            stream = self._live.stream  # and not what stands in sys.stderr's place meanwhile
        else:
            stream = self._stream if self._stream is not None else sys.stderr
        return None if stream is self._broken else stream

    def enter(self, tree: ConsoleTree, tracker: Tracker | None) -> int:
        """Take a run in and give it a number: the smallest that no other run has."""
        taken = set(self._runs.values())
        self._runs[tree] = number = next(n for n in range(1, len(taken) + 2) if n not in taken)
        if self._wants_live and self._live is None and self.stream is not None:
            self._live = _live_view(self.stream)
        if self._live is not None:
            self._live.enter(number, tracker)
        return number

    def leave(self, tree: ConsoleTree) -> None:
        """Let a run go; with the last one the live view goes, too."""
        number = self._runs.pop(tree, None)
        if self._live is not None and number is not None:
            self._live.leave(number)
            if not self._runs:
                self._live = None

    def shows(self, event: Event, label: str) -> bool:
        """Show a step in the live view; say whether there is one."""
        if self._live is None:
            return False
        self._live.show(event, label)
        return True

    def style(self) -> tuple[Signs, bool]:
        """Return the signs that the stream's encoding has, and whether colour may be used."""
        stream = self.stream
        if stream is None:
            return ASCII, False
        if self._style is None or self._style[0] is not stream:
            signs = UNICODE if _can_encode("".join(UNICODE) + "…", stream) else ASCII
            self._style = (stream, signs, may_colour(stream, os.environ))
        return self._style[1], self._style[2]

    def write(self, line: str) -> None:
        """Print a line; a stream that is closed or full is left alone from then on."""
        stream = self.stream
        # Without a console (pythonw) sys.stderr is None, whatever its type says.
        if stream is None:
            return
        try:
            text = _encodable(line, stream)
            if self._live is None or not self._live.print(text):
                stream.write(text + "\n")  # at once, so that no other thread's line comes between
                stream.flush()
        except Exception:  # noqa: BLE001  -- whatever a stream raises, watching a run must not end it
            self._broken = stream


class ConsoleTree:
    """Print one run's steps as they start and end; it is a listener of the recorder.

    Args:
        stream: Where to; `None` is `sys.stderr` as it is when a line is written.
        verbose: Add the beginning of what went in and what came out.
        console: Shared with the app's other runs, in place of a stream.
        tracker: Knows what is left of the run's budget, for the live view.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        verbose: bool = False,
        console: Console | None = None,
        tracker: Tracker | None = None,
    ) -> None:
        self._console = console if console is not None else Console(stream)
        self._verbose = verbose
        self._tracker = tracker
        self._root: str | None = None  # the first step, and the last to end
        self._tag = ""
        self._numbers: dict[str, int] = {}
        self._open: dict[tuple[int, str, str], set[int]] = {}
        self._told: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        """Print the line of one event."""
        console, name = self._console, one_line(event.name, _MAX_NAME, None)
        if event.phase == "start":
            if self._root is None:
                self._root, run = event.id, console.enter(self, self._tracker)
                self._tag = f"[{run}] " if run > 1 else ""
            number = self._take(event, name)
        elif event.phase == "end":
            number = self._give_back(event, name)
        else:
            number = self._numbers.get(event.id, 1)
        label = f"{event.kind} {name} #{number}" if number > 1 else f"{event.kind} {name}"
        seen = console.shows(event, label)
        if event.phase == "end" and event.id == self._root:
            console.leave(self)
        if event.phase != "progress" or not (seen or self._told_lately(event)):
            console.write(self._tag + "  " * event.depth + self._line(event, label))

    def _take(self, event: Event, name: str) -> int:
        """Give the step the smallest number that no open step with its name has at its depth."""
        taken = self._open.setdefault((event.depth, event.kind, name), set())
        number = next(n for n in range(1, len(taken) + 2) if n not in taken)
        taken.add(number)
        self._numbers[event.id] = number
        return number

    def _give_back(self, event: Event, name: str) -> int:
        number = self._numbers.pop(event.id, 1)
        self._told.pop(event.id, None)
        key = (event.depth, event.kind, name)
        taken = self._open.get(key)
        if taken is not None:
            taken.discard(number)
            if not taken:
                del self._open[key]
        return number

    def _told_lately(self, event: Event) -> bool:
        now = time.monotonic()
        before = self._told.get(event.id)
        if before is not None and now - before < PROGRESS_SECONDS:
            return True
        self._told[event.id] = now
        return False

    def _line(self, event: Event, label: str) -> str:
        signs, colour = self._console.style()
        if event.phase == "start":
            return f"{_painted(signs.start, '2', colour)} {label}{self._content(event)}"
        if event.phase == "progress":
            return f"{_painted(signs.going, '2', colour)} {label}  {event.brief(_MAX_ERROR)}"
        took = f"  {duration(event.duration_ms)}" if event.duration_ms is not None else ""
        if event.status != "error":
            verdict = _painted(signs.ok, "32", colour) + self._content(event)
        else:
            reason = ": ".join(part for part in (event.outcome, event.brief(_MAX_ERROR)) if part)
            verdict = _painted(signs.failed, "31", colour) + (f" {reason}" if reason else "")
        return f"{_painted(signs.end, '2', colour)} {label}{took} {verdict}"

    def _content(self, event: Event) -> str:
        text = event.brief() if self._verbose else ""
        return f"  {text}" if text else ""


def may_colour(stream: TextIO, environ: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether colour codes may be written.

    `NO_COLOR` forbids them and `FORCE_COLOR` asks for them (both: not empty, whatever they say; the first wins, as in
    Python's own tools). Otherwise they are for terminals that know them.

    Args:
        stream: Where to.
        environ: The process's environment.
        platform: As `sys.platform` names it: the old Windows console prints the codes.
    """
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    if environ.get("TERM") == "dumb" or not is_terminal(stream):
        return False
    return platform != "win32" or any(name in environ for name in ("WT_SESSION", "ANSICON", "ConEmuANSI", "TERM"))


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody looks at it; a closed stream, and one that cannot say, is none."""
    try:
        return stream.isatty()
    except (AttributeError, OSError, ValueError):
        return False


def _live_view(stream: TextIO) -> LiveView | None:
    """Make a live view, where the stream is a terminal that can be drawn on and the extra `cli` is there."""
    drawn_on = hasattr(stream, "rich_proxied_file")  # the program has a live view of its own
    if drawn_on or os.environ.get("TERM") == "dumb" or not is_terminal(stream):
        return None
    try:
        from thena_core.record.live import LiveView  # noqa: PLC0415 - loads rich
    except ImportError:
        return None
    return LiveView(stream, colour=not os.environ.get("NO_COLOR"), plain=not _can_encode("⠋", stream))


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


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
