"""`thena report`: a run's tree from what its report file holds, whatever that is."""

from __future__ import annotations

import json
import os
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from thena_core.cli import main

Typed = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def reports(shop: Path, thena: Typed, capsys: Capture) -> Path:
    """The reports of two runs, the second being the newer."""
    assert thena("run", "shop:app", "hi", "--quiet", "--run-id", "one") == 0
    assert thena("run", "shop:unlucky", "hi", "--quiet", "--run-id", "two") == 1
    capsys.readouterr()
    os.utime(shop / "report" / "one" / "report.json", ns=(0, 0))
    return shop / "report"


def test_the_newest(reports: Path, capsys: Capture) -> None:
    """Without an id the newest run is shown, with its failure."""
    assert main(["report"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("run two, failed\nusage: chat_calls 1, tool_calls 1, ")
    assert "tool price fatal" in out
    assert ": the till burns: password=…masked" in out
    assert err == "report: report/two/index.html and report/two/report.json\n"


def test_a_given_one(reports: Path, capsys: Capture) -> None:
    """With an id that run is shown as a tree."""
    assert main(["report", "one"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("run one, stopped by: ")
    kinds = [line.split()[0] for line in lines[2:]]
    assert kinds == ["workflow", "loop", "agent", "chat", "tool", "agent", "chat"]
    assert [len(line) - len(line.lstrip()) for line in lines[2:6]] == [2, 4, 6, 8]


def test_list(reports: Path, capsys: Capture) -> None:
    """The list has the newest first, and says of a file that is none what it is."""
    (reports / "bad").mkdir()
    (reports / "bad" / "report.json").write_text("{", encoding="utf-8")
    os.utime(reports / "bad" / "report.json", ns=(1, 1))
    assert main(["report", "--list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["two", "bad", "one"]
    assert "2 model calls, 1 tool calls" in rows[2]
    assert "report/bad/report.json cannot be read" in rows[1]


def test_open(reports: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """`--open` gives the page to the browser, and says where it is when there is none."""
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or len(opened) == 1)
    assert main(["report", "one", "--open"]) == 0
    assert opened == [(reports / "one" / "index.html").as_uri()]
    assert main(["report", "one", "--open"]) == 1
    assert f"error: no browser can be opened here. Open it yourself: {reports}" in capsys.readouterr().err


def test_elsewhere(shop: Path, thena: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is that of the settings, or of the flag."""
    monkeypatch.setenv("THENA_REPORT", "out")
    assert thena("run", "shop:app", "hi", "--quiet") == 0
    assert main(["report"]) == 0
    monkeypatch.delenv("THENA_REPORT")
    assert main(["report"]) == 2
    assert main(["report", "--folder", "out"]) == 0


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        pytest.param(["on"], 2, 'there is no report of a run on in report. Did you mean "one"?', id="near"),
        pytest.param(["../one"], 2, "run_id='../one': use 1 to 128 letters", id="hostile"),
        pytest.param(["--folder", "no"], 2, "there is no report in no. `thena run` writes them", id="folder"),
        pytest.param(["bad"], 1, "report/bad/report.json cannot be read: ", id="no-json"),
        pytest.param(["list"], 1, "report/list/report.json is no report", id="no-object"),
    ],
)
def test_wrong_words(reports: Path, capsys: Capture, words: list[str], code: int, problem: str) -> None:
    """What there is not, and what is no report, is one line."""
    for name, text in {"bad": "{", "list": "[]"}.items():
        (reports / name).mkdir()
        (reports / name / "report.json").write_text(text, encoding="utf-8")
    assert main(["report", *words]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert problem in err


def test_a_hostile_file(reports: Path, capsys: Capture) -> None:
    """What the file holds steers no terminal and breaks no line, and what is no node is left out."""
    root = {
        "kind": "tool",
        "name": "x\x1b[2J\ny",
        "status": "ok",
        "duration_ms": "long",
        "meta": 3,
        "error": "e" * 10_000,
        "children": [3, None, {"kind": "chat", "name": "c", "status": "ok", "children": "none"}],
    }
    document = {"run_id": "one", "root": root, "usage": []}
    (reports / "one" / "report.json").write_text(json.dumps(document), encoding="utf-8")
    assert main(["report", "one"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out) < 500
    assert out.splitlines()[-1].split() == ["chat", "c", "ok"]


def test_a_deep_file(reports: Path, capsys: Capture) -> None:
    """A tree that no run can make is cut and kills nothing."""
    node: dict[str, object] = {"kind": "tool", "name": "x", "status": "ok"}
    for _ in range(300):
        node = {**node, "children": [node]}
    (reports / "one" / "report.json").write_text(json.dumps({"run_id": "one", "root": node}), encoding="utf-8")
    assert main(["report", "one"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 100
