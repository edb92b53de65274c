"""The live view below the console's lines: what runs, for how long, how far it is, and what is left of the budget."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, cast

from rich.console import Console as RichConsole
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from thena_core.record.oneline import duration

if TYPE_CHECKING:
    from thena_core.budget import Tracker
    from thena_core.record.event import Event

LONG_SECONDS = 1.0
"""What runs for longer is long work; before, a line that comes and goes would only flicker."""
PER_SECOND = 8
MAX_STEPS = 8
MAX_RUNS = 3
_BAR = 20
_SHOWN_KINDS = frozenset({"chat", "tool"})


@dataclass(slots=True)
class _Step:
    label: str
    began: float
    spinner: Spinner
    progress: str = ""
    share: float | None = None


class LiveView:
    """Draw what runs on a terminal, in a thread of rich's that redraws it while anything runs for long.

    It appears when a step has run for a second and goes with the last run. While it is there, what the program prints
    on the same terminal goes above it.

    Args:
        stream: The terminal.
        colour: Whether colour may be used.
        plain: Whether the stream's encoding has no spinner.
        after: Seconds that a step runs before the view appears.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colour: bool = True,
        plain: bool = False,
        after: float = LONG_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream = stream
        self._console = RichConsole(
            file=cast("TextIO", _Unbreakable(stream)), no_color=not colour, markup=False, highlight=False, emoji=False
        )
        self._spinner = "line" if plain else "dots"
        self._after = after
        self._clock = clock
        self._runs: dict[int, tuple[Tracker | None, float]] = {}
        self._steps: dict[str, _Step] = {}
        self._live: Live | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_shown(self) -> bool:
        """Whether it is on the terminal."""
        return self._live is not None

    def enter(self, number: int, tracker: Tracker | None) -> None:
        """Take a run in."""
        self._runs[number] = tracker, self._clock()

    def leave(self, number: int) -> None:
        """Let a run go; with the last one the view is taken off the terminal."""
        del self._runs[number]
        if self._runs:
            return
        self._steps.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def show(self, event: Event, label: str) -> None:
        """Take in an event; model and tool calls have a line while they run."""
        if event.kind not in _SHOWN_KINDS:
            return
        if event.phase == "end":
            self._steps.pop(event.id, None)
        elif event.phase == "start":
            self._steps[event.id] = _Step(label, self._clock(), Spinner(self._spinner))
            if self._live is None and self._timer is None:
                self._look_in(self._after)
        elif (step := self._steps.get(event.id)) is not None:
            step.progress, step.share = event.brief(), _share(event.meta.get("progress"))

    def print(self, line: str) -> bool:
        """Print a line above the view; say whether there is one."""
        if self._live is None:
            return False
        self._console.print(Text.from_ansi(line), soft_wrap=True)
        return True

    def render(self) -> RenderableType:
        """Lay out what runs, the longest first, and a line about each run; called in rich's thread."""
        now = self._clock()
        steps = list(self._steps.values())  # at once: the event loop's thread goes on meanwhile
        table = Table.grid(padding=(0, 2, 0, 0))
        for step in steps[:MAX_STEPS]:
            bar = "" if step.share is None else ProgressBar(total=1.0, completed=step.share, width=_BAR)
            took = Text(duration((now - step.began) * 1000), style="cyan")
            table.add_row(step.spinner, Text(step.label), took, bar, Text(step.progress))
        lines: list[RenderableType] = [table]
        if len(steps) > MAX_STEPS:
            lines.append(Text(f"  … and {len(steps) - MAX_STEPS} more", style="dim"))
        runs = list(self._runs.items())
        for number, (tracker, began) in runs[:MAX_RUNS]:
            name = "run" if len(runs) == 1 else f"run [{number}]"
            facts = [f"{name} {duration((now - began) * 1000)}", *_facts(tracker, time.monotonic())]
            lines.append(Text("  " + " · ".join(facts), style="dim"))
        if len(runs) > MAX_RUNS:
            lines.append(Text(f"  … and {len(runs) - MAX_RUNS} more runs", style="dim"))
        return Group(*lines)

    def _look_in(self, seconds: float) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # events that somebody replays, outside of any run
            return
        self._timer = loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """Appear where something runs for long, else look again when it would."""
        self._timer = None
        if not self._steps:
            return
        oldest = next(iter(self._steps.values()))
        missing = self._after - (self._clock() - oldest.began)
        if missing > 0:
            self._look_in(missing)
            return
        self._live = Live(
            get_renderable=self.render,
            console=self._console,
            refresh_per_second=PER_SECOND,
            transient=True,
            # what the program prints would otherwise be drawn over; a file or pipe is none of the terminal's business
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),  # pyright: ignore[reportUnnecessaryComparison]
            redirect_stderr=self.stream is sys.stderr,
        )
        self._live.start(refresh=True)


class _Unbreakable:
    """A stream that rich's thread can write to when nobody reads any more: then what is written is lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._gone = False

    def write(self, text: str) -> int:
        if not self._gone:
            try:
                self._stream.write(text)
            except (OSError, ValueError):  # a closed pipe, a closed file, a character that its encoding has not
                self._gone = True
        return len(text)

    def flush(self) -> None:
        if not self._gone:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._gone = True

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def budget_left(tracker: Tracker, now: float) -> list[str]:
    """Say what is left of each limit of a run's budget: `8 tool calls`, `1m05s`.

    Args:
        tracker: Counts for the run.
        now: `time.monotonic()`, in seconds.
    """
    budget = tracker.budget
    if budget is None:
        return []
    left: list[str] = []
    if tracker.ends_at is not None:
        left.append(duration(max(0.0, tracker.ends_at - now) * 1000))
    if budget.max_chat_calls is not None:
        left.append(_counted(budget.max_chat_calls - tracker.chat_calls, "model call"))
    if budget.max_tool_calls is not None:
        left.append(_counted(budget.max_tool_calls - tracker.tool_calls, "tool call"))
    if budget.max_tokens is not None:
        left.append(_counted(budget.max_tokens - tracker.prompt_tokens - tracker.completion_tokens, "token"))
    if budget.max_cost_usd is not None:
        left.append(f"${max(0.0, budget.max_cost_usd - (tracker.cost_usd or 0.0)):.4f}")
    return left


def _facts(tracker: Tracker | None, now: float) -> list[str]:
    if tracker is None:
        return []
    facts = [f"{_counted(tracker.chat_calls, 'model call')}, {_counted(tracker.tool_calls, 'tool call')}"]
    left = budget_left(tracker, now)
    return [*facts, f"left: {', '.join(left)}"] if left else facts


def _counted(number: int, what: str) -> str:
    return f"{max(0, number):,} {what}{'' if number == 1 else 's'}"


def _share(told: object) -> float | None:
    """Return how much of a step is done, from 0 to 1, where it says so in numbers."""
    if not isinstance(told, dict):
        return None
    facts = cast("dict[str, object]", told)
    done, total = facts.get("done"), facts.get("total")
    if not isinstance(done, int | float) or not isinstance(total, int | float) or not total > 0:
        return None
    try:
        return min(1.0, max(0.0, done / total))
    except OverflowError:
        return None
