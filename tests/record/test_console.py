"""Tests of thena_core.record.console."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pytest

from thena_core.record.console import Console, ConsoleTree, may_colour
from thena_core.record.event import Event
from thena_core.record.redact import mask
from thena_core.record.tree import Node, Recorder


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def event(phase: str, kind: str, name: str, depth: int, ms: float | None = None, **more: Any) -> Event:
    fields: dict[str, Any] = {
        "phase": phase, "run_id": "r", "id": more.pop("id", f"r/{depth}/{name}"), "parent_id": None, "depth": depth, "kind": kind, "name": name,
        "status": "running" if phase == "start" else "ok", "outcome": None, "error": None, "duration_ms": ms, "input": None, "output": None, "meta": {}, "redact": mask,
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


@pytest.mark.behaviour("O01")
@pytest.mark.parametrize(
    ("stream", "environ", "platform", "coloured"),
    [
        (Terminal(), {"TERM": "xterm"}, "linux", True),
        (Terminal(), {}, "linux", True),
        (io.StringIO(), {"TERM": "xterm"}, "linux", False),
        (Terminal(), {"NO_COLOR": "1"}, "linux", False),
        (Terminal(), {"NO_COLOR": ""}, "linux", True),
        (Terminal(), {"TERM": "dumb"}, "linux", False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, "linux", True),
        (io.StringIO(), {"FORCE_COLOR": "1", "TERM": "dumb"}, "linux", True),
        (Terminal(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, "linux", False),
        (Terminal(), {}, "win32", False),
        (Terminal(), {"WT_SESSION": "x"}, "win32", True),
    ],
    ids=[
        "terminal", "no TERM", "file", "NO_COLOR", "empty NO_COLOR", "dumb", "FORCE_COLOR", "forced on dumb", "both", "old Windows", "Windows Terminal",
    ],
)  # fmt: skip
def test_colours_only_where_wanted(stream: io.StringIO, environ: dict[str, str], platform: str, coloured: bool) -> None:
    """Colour is for terminals that know it, unless the environment says otherwise; `NO_COLOR` has the last word."""
    assert may_colour(stream, environ, platform) is coloured


@pytest.mark.parametrize("coloured", [True, False], ids=["colour", "plain"])
def test_only_signs_are_coloured(coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With colour the signs carry codes, and nothing else of the line does; without, there is none."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FORCE_COLOR" if coloured else "NO_COLOR", "1")
    line = printed(event("end", "tool", "a", 0, 4))
    assert line == ("\x1b[2m◂\x1b[0m tool a  4ms \x1b[32m✓\x1b[0m\n" if coloured else "◂ tool a  4ms ✓\n")


def test_verbose_adds_short_content() -> None:
    """With `verbose` the beginning of input and output stands behind the step, masked."""
    lines = printed(
        event("start", "tool", "read_file", 0, input={"path": "a", "token": "hunter2"}),
        event("end", "tool", "read_file", 0, 4, output="one\ntwo " + "x" * 500),
        verbose=True,
    )
    start, end, _ = lines.split("\n")
    assert start == '▸ tool read_file  {"path": "a", "token": "…masked"}'
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


@pytest.mark.parametrize("stream", [Terminal(), None], ids=["closed", "none"])
def test_no_stderr_at_all(stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed stderr, or none (as in a program without a console), is nobody's problem."""
    if stream is not None:
        stream.close()
    monkeypatch.setattr("sys.stderr", stream)
    tree = ConsoleTree()
    tree(event("start", "tool", "a", 0))
    tree(event("end", "tool", "a", 0, 4))


def test_a_new_stderr_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a broken stderr was replaced, lines go to the new one."""
    tree = ConsoleTree()
    monkeypatch.setattr("sys.stderr", Broken())
    tree(event("start", "tool", "a", 0))
    monkeypatch.setattr("sys.stderr", io.StringIO())
    tree(event("end", "tool", "a", 0, 4))
    assert sys.stderr.getvalue() == "◂ tool a  4ms ✓\n"  # type: ignore[attr-defined]


@pytest.mark.behaviour("O01", "C04")
def test_runs_that_overlap_are_told_apart() -> None:
    """Lines of a second run at the same time bear its number; a run that is alone is to the letter."""
    stream = io.StringIO()
    console = Console(stream)

    def run(name: str, *, ends: bool = True) -> Recorder:
        recorder = Recorder(name, (ConsoleTree(console=console),))
        root = recorder.open("workflow", name, None)
        recorder.close(recorder.open("tool", "look", root))
        if ends:
            recorder.close(root)
        return recorder

    first = run("one", ends=False)
    run("two")
    run("three")
    assert first.root is not None
    first.close(first.root)
    run("four")
    assert re.sub(r" +\d+ms", "", stream.getvalue()).splitlines() == [
        "▸ workflow one", "  ▸ tool look", "  ◂ tool look ✓",
        "[2] ▸ workflow two", "[2]   ▸ tool look", "[2]   ◂ tool look ✓", "[2] ◂ workflow two ✓",
        "[2] ▸ workflow three", "[2]   ▸ tool look", "[2]   ◂ tool look ✓", "[2] ◂ workflow three ✓",
        "◂ workflow one ✓",
        "▸ workflow four", "  ▸ tool look", "  ◂ tool look ✓", "◂ workflow four ✓",
    ]  # fmt: skip


def test_progress_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a live view a step's progress is a line at most once a second, the first at once."""
    now = [100.0]
    monkeypatch.setattr("thena_core.record.console.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    recorder = Recorder("run", (ConsoleTree(stream),))
    node = recorder.open("tool", "work", None)
    for number in range(21):
        recorder.progress(node, number, 20, "read")
        now[0] += 0.11
    assert stream.getvalue().splitlines() == [
        "▸ tool work", "· tool work  0/20 read", "· tool work  10/20 read", "· tool work  20/20 read",
    ]  # fmt: skip


@pytest.mark.parametrize("done", ["half", float("nan"), 10**5_000, None], ids=["words", "nan", "absurd", "none"])
def test_absurd_progress_does_not_end_the_output(done: Any) -> None:
    """What a tool reports may be anything; the lines after it are printed all the same."""
    stream = io.StringIO()
    recorder = Recorder("run", (ConsoleTree(stream),))
    node = recorder.open("tool", "work", None)
    recorder.progress(node, done, 0, "\x1b[2J")
    recorder.close(node)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert "\x1b" not in lines[1]


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
