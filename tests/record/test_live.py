"""Tests of thena_core.record.live: what is drawn, and on a terminal of the system's, when and for how long."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("rich", reason="the live view comes with the extra cli")

from rich.console import Console as RichConsole

from thena_core.budget import Budget, Tracker
from thena_core.record.console import Console, ConsoleTree
from thena_core.record.live import MAX_STEPS, LiveView, budget_left
from thena_core.record.tree import Recorder


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def drawn(view: LiveView, width: int = 100) -> list[str]:
    console = RichConsole(file=io.StringIO(), width=width, no_color=True)
    with console.capture() as caught:
        console.print(view.render())
    return [line.strip() for line in caught.get().splitlines()]


@pytest.mark.behaviour("C05")
def test_what_is_drawn() -> None:
    """Each running call has a line with its time and progress; below stand the run's time, counts and what is left."""
    now = [10.0]
    tracker = Tracker(Budget(max_tool_calls=10, max_cost_usd=1.0))
    tracker.take_chat()
    tracker.take_tool("look")
    view = LiveView(Terminal(), plain=True, clock=lambda: now[0])
    view.enter(1, tracker)
    recorder = Recorder("run", (lambda event: view.show(event, f"{event.kind} {event.name}"),))
    root = recorder.open("workflow", "Flow", None)
    look = recorder.open("tool", "look", root)
    now[0] += 2.5
    recorder.open("chat", "model", root)
    recorder.progress(look, 3, 8, "pages \x1b[31mread")
    first, second, facts = drawn(view)
    assert first.split(maxsplit=1)[1].startswith("tool look   2.5s")
    assert first.endswith("3/8 pages \\x1b[31mread")
    assert "chat model  0ms" in second
    assert facts == "run 2.5s · 1 model call, 1 tool call · left: 9 tool calls, $1.0000"
    recorder.close(look)
    assert len(drawn(view)) == 2


def test_many_steps_and_runs_are_counted() -> None:
    """A batch of hundreds takes no more of the terminal than a few lines."""
    view = LiveView(Terminal(), plain=True)
    recorder = Recorder("run", (lambda event: view.show(event, "tool"),))
    root = recorder.open("workflow", "Flow", None)
    for number in range(1, 6):
        view.enter(number, None)
    for _ in range(300):
        recorder.open("tool", "look", root)
    lines = drawn(view)
    assert len(lines) == MAX_STEPS + 1 + 3 + 1
    assert lines[MAX_STEPS] == "… and 292 more"
    assert lines[-1] == "… and 2 more runs"
    assert lines[-2].startswith("run [3] ")


def test_what_is_left_of_a_budget() -> None:
    """Each limit that was set, and no other; what is overdrawn is nothing left."""
    budget = Budget(max_duration=90, max_chat_calls=3, max_tool_calls=2, max_tokens=1_000, max_cost_usd=0.5)
    tracker = Tracker(budget)
    tracker.start(0.0)
    assert tracker.ends_at is not None
    tracker.chat_calls, tracker.tool_calls, tracker.prompt_tokens, tracker.cost_usd = 2, 4, 400, 0.125
    left = budget_left(tracker, tracker.ends_at - 75)
    assert left == ["75.0s", "1 model call", "0 tool calls", "600 tokens", "$0.3750"]
    assert budget_left(Tracker(Budget()), 0.0) == budget_left(Tracker(), 0.0) == []


class Screen:
    """The other side of a pseudo-terminal: what was written to it, read by a thread."""

    def __init__(self) -> None:
        import pty

        self._master, slave = pty.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self.text = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65_536)
            except OSError:  # Linux's word for: the other side is closed
                return
            if not data:
                return
            self.text += data.decode("utf-8", "replace")

    def close(self) -> str:
        """Close the terminal and return all that was written to it."""
        self.stream.close()
        self._reader.join(10)
        os.close(self._master)
        return self.text


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    """Make a terminal."""
    pytest.importorskip("pty", reason="the system has no pseudo-terminals")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    made = Screen()
    yield made
    if not made.stream.closed:
        made.close()


def impatient(console: Console, stream: Any) -> LiveView:
    """Give a console a live view that does not wait."""
    view = console._live = LiveView(stream, after=0.0)
    return view


async def shown(view: LiveView) -> None:
    """Let the loop turn until the view is on the terminal."""
    async with asyncio.timeout(10):
        while not view.is_shown:
            await asyncio.sleep(0)


@pytest.mark.behaviour("C05", "X04")
async def test_long_work_is_shown_and_taken_away(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a tool runs the view is there and what is printed goes above it; after the run nothing of it is left."""
    monkeypatch.setattr("sys.stderr", screen.stream)  # here: pytest sets its own after the fixtures
    before = threading.active_count()
    console = Console()
    view = impatient(console, screen.stream)
    recorder = Recorder("run", (ConsoleTree(console=console, tracker=Tracker(Budget(max_tool_calls=3))),))
    root = recorder.open("workflow", "Flow", None)
    tool = recorder.open("tool", "look", root)
    await shown(view)
    sys.stderr.write("from the program\n")
    recorder.progress(tool, 3, 8, "pages")
    recorder.close(tool)
    recorder.close(root)
    assert not view.is_shown
    assert sys.stderr is screen.stream
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert threading.active_count() <= before
    text = screen.close()
    assert "left: 3 tool calls" in text
    assert "from the program\r\n" in text
    assert "◂\x1b[0m workflow Flow" in text
    assert "· tool look" not in text, "progress is shown in the view, and is no line as well"
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1, "the cursor is hidden, and comes back"


async def test_short_work_does_not_flicker(screen: Screen) -> None:
    """A run without a step of a second is lines only."""
    console = Console(screen.stream)
    recorder = Recorder("run", (ConsoleTree(console=console),))
    root = recorder.open("workflow", "Flow", None)
    recorder.close(recorder.open("tool", "look", root))
    assert console._live is not None
    assert not console._live.is_shown
    recorder.close(root)
    assert console._live is None
    assert "\x1b[?25l" not in screen.close()


@pytest.mark.parametrize("what", ["dumb", "file", "no rich"])
async def test_only_on_a_terminal_with_the_extra(what: str, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dumb terminal, a file, and an installation without rich get the lines alone."""
    console = Console(io.StringIO() if what == "file" else screen.stream)
    if what == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    if what == "no rich":
        monkeypatch.delitem(sys.modules, "thena_core.record.live")
        monkeypatch.setitem(sys.modules, "rich.console", None)
    recorder = Recorder("run", (ConsoleTree(console=console),))
    root = recorder.open("workflow", "Flow", None)
    recorder.open("tool", "look", root)
    assert console._live is None
    recorder.close(root)


async def test_the_view_goes_with_the_last_run(screen: Screen) -> None:
    """Runs that overlap share one view."""
    console = Console(screen.stream)
    view = impatient(console, screen.stream)
    recorders = [Recorder(f"run-{n}", (ConsoleTree(console=console),)) for n in range(2)]
    for recorder in recorders:
        recorder.open("tool", "look", recorder.open("workflow", "Flow", None))
    await shown(view)
    first, second = (recorder.root for recorder in recorders)
    assert first is not None
    assert second is not None
    recorders[0].close(first)
    assert view.is_shown
    recorders[1].close(second)
    assert not view.is_shown
    assert "run [2]" in screen.close()


async def test_a_terminal_that_goes_away(screen: Screen) -> None:
    """When the terminal is closed while the view is there, the run goes on and nothing is raised anywhere."""
    console = Console(screen.stream)
    view = impatient(console, screen.stream)
    recorder = Recorder("run", (ConsoleTree(console=console),))
    root = recorder.open("workflow", "Flow", None)
    tool = recorder.open("tool", "look", root)
    await shown(view)
    screen.close()
    recorder.close(tool)
    recorder.close(root)
    assert not view.is_shown
