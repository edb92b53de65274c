"""Tests of thena_core.record.console."""

from __future__ import annotations

import io
from typing import Any

import pytest

from thena_core.record.console import ConsoleTree, duration
from thena_core.record.tree import Event, Node, Recorder


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def event(phase: str, kind: str, name: str, depth: int, ms: float | None = None, **more: Any) -> Event:
    fields: dict[str, Any] = {
        "phase": phase, "run_id": "r", "id": more.pop("id", f"r/{depth}/{name}"), "parent_id": None, "depth": depth, "kind": kind, "name": name,
        "status": "running" if phase == "start" else "ok", "outcome": None, "error": None, "duration_ms": ms, "input": None, "output": None, "meta": {},
    }  # fmt: skip
    return Event(**(fields | more))


def printed(*events: Event, **options: Any) -> str:
    stream = io.StringIO()
    tree = ConsoleTree(stream, **options)
    for one in events:
        tree(one)
    return stream.getvalue()


def failure(error: str | None, name: str = "save_note", outcome: str | None = "denied") -> Event:
    return event("end", "tool", name, 0, 0.2, status="error", outcome=outcome, error=error)


@pytest.mark.behaviour("O01")
def test_prints_the_tree_to_the_letter() -> None:
    """Steps that follow each other print as the seed page shows, indented by depth."""
    assert printed(
        event("start", "tool", "parallel", 0),
        event("start", "tool", "list_dir", 1),
        event("start", "tool", "read_file", 1),
        event("end", "tool", "list_dir", 1, 4.2),
        event("end", "tool", "read_file", 1, 6.0),
        event("end", "tool", "parallel", 0, 7.4),
    ) == (
        "▸ tool parallel\n"
        "  ▸ tool list_dir\n"
        "  ▸ tool read_file\n"
        "  ◂ tool list_dir  4ms ✓\n"
        "  ◂ tool read_file  6ms ✓\n"
        "◂ tool parallel  7ms ✓\n"
    )


@pytest.mark.behaviour("O01")
def test_numbers_only_calls_of_one_name_that_overlap() -> None:
    """The second open call of a name gets `#2` on both its lines; one after it is bare again."""
    lines = printed(
        event("start", "tool", "read_file", 1, id="a"),
        event("start", "tool", "read_file", 1, id="b"),
        event("end", "tool", "read_file", 1, 4, id="b"),
        event("end", "tool", "read_file", 1, 6, id="a"),
        event("start", "tool", "read_file", 1, id="c"),
    )
    assert lines.split("\n") == [
        "  ▸ tool read_file",
        "  ▸ tool read_file #2",
        "  ◂ tool read_file #2  4ms ✓",
        "  ◂ tool read_file  6ms ✓",
        "  ▸ tool read_file",
        "",
    ]


def test_says_how_a_call_failed() -> None:
    """A failed call's line ends with its outcome and the error's words."""
    assert printed(failure("not for you")) == "◂ tool save_note  0ms ✗ denied: not for you\n"
    assert printed(failure(None)) == "◂ tool save_note  0ms ✗ denied\n"
    assert printed(failure("broken", outcome=None)) == "◂ tool save_note  0ms ✗ broken\n"


@pytest.mark.behaviour("O05")
def test_masks_and_tames_what_tools_say() -> None:
    """An error's secrets are masked, its controls shown as codes, its lines joined, its length bounded."""
    line = printed(failure("a\n\n\x1b[31mred\x07\u202e password=hunter2 " + "x" * 500, name="bad\x1b]0;title\x07name"))
    assert "hunter2" not in line
    assert "\\x1b[31mred\\x07\\u202e password=…masked x" in line
    assert "bad\\x1b]0;title\\x07name" in line
    assert line.count("\n") == 1
    assert not any(sign in line for sign in "\x1b\x07\u202e")
    assert len(line) < 300


def test_uses_plain_signs_where_the_encoding_has_no_others() -> None:
    """A stream in ASCII gets ASCII, whatever a name holds."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    tree = ConsoleTree(stream)
    tree(event("start", "tool", "größe", 0))
    tree(event("end", "tool", "größe", 0, 4))
    tree(failure("y" * 300, name="z"))
    assert raw.getvalue().decode("ascii").splitlines() == [
        "> tool gr\\xf6\\xdfe",
        "< tool gr\\xf6\\xdfe  4ms ok",
        "< tool z  0ms failed denied: " + "y" * 199 + "...",
    ]


@pytest.mark.parametrize(
    ("stream", "no_color", "coloured"),
    [(Terminal(), None, True), (Terminal(), "1", False), (io.StringIO(), None, False)],
    ids=["terminal", "NO_COLOR", "file"],
)
def test_colours_only_a_terminal(
    stream: io.StringIO, no_color: str | None, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Colour codes are written to a terminal only, and not against `NO_COLOR`."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    ConsoleTree(stream)(event("end", "tool", "a", 0, 4))
    assert ("\x1b[32m✓\x1b[0m" in stream.getvalue()) is coloured


def test_verbose_adds_short_content() -> None:
    """With `verbose` the beginning of input and output stands behind the step, masked."""
    lines = printed(
        event("start", "tool", "read_file", 0, input={"path": "a", "token": "hunter2"}),
        event("end", "tool", "read_file", 0, 4, output="one\ntwo " + "x" * 500),
        verbose=True,
    )
    start, end, _ = lines.split("\n")
    assert start == "▸ tool read_file  {'path': 'a', 'token': '…masked'}"
    assert end.startswith("◂ tool read_file  4ms ✓  one two xxx")
    assert len(end) < 140


def test_writes_to_the_stderr_of_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a stream it is `sys.stderr` as it is when the line is written."""
    ConsoleTree()(event("start", "tool", "a", 0))
    assert capsys.readouterr().err == "▸ tool a\n"


class Broken(io.StringIO):
    """A pipe that nobody reads any more."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    def write(self, _text: str) -> int:
        self.tries += 1
        raise BrokenPipeError


def test_a_broken_stream_never_fails_a_run() -> None:
    """A closed pipe or file ends the tree's output, nothing else, and is not tried again."""
    broken = Broken()
    tree = ConsoleTree(broken)
    for _ in range(3):
        tree(event("start", "tool", "a", 0))
    assert broken.tries == 1
    closed = io.StringIO()
    closed.close()
    ConsoleTree(closed)(event("start", "tool", "a", 0))


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.2, "0ms"), (4.2, "4ms"), (999.4, "999ms"), (999.6, "1.0s"), (1_234, "1.2s"), (185_000, "3m05s")],
)
def test_duration_is_short(ms: float, text: str) -> None:
    """Durations are written in the unit that people would say them in."""
    assert duration(ms) == text


def test_listens_to_a_recorder() -> None:
    """It fits as a listener, and progress has a line of its own."""
    stream = io.StringIO()
    recorder = Recorder("run", (ConsoleTree(stream),))
    node: Node = recorder.open("tool", "work", None)
    recorder.progress(node, 1, 2, "half")
    recorder.close(node, "error", outcome="timeout", error="too slow")
    assert stream.getvalue().splitlines()[0] == "▸ tool work"
    assert stream.getvalue().splitlines()[1] == "· tool work  1/2 half"
    assert stream.getvalue().splitlines()[2].endswith("✗ timeout: too slow")
