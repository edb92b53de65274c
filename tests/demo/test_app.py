"""The whole demo over generated folders: the command, the answer, and the report that it leaves."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thena_core.cli import main


def word(chance: random.Random, length: int = 9) -> str:
    return "".join(chance.choice(string.ascii_lowercase) for _ in range(length))


def grow(folder: Path, chance: random.Random) -> dict[str, list[str]]:
    """Make a tree of text files with random names and lines, and return the lines by path."""
    lines: dict[str, list[str]] = {}
    for where in ("", word(chance) + "/", word(chance) + "/" + word(chance) + "/"):
        (folder / where).mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            path = f"{where}{word(chance)}.txt"
            lines[path] = [" ".join(word(chance) for _ in range(4)) for _ in range(20)]
            (folder / path).write_text("\n".join(lines[path]) + "\n", encoding="utf-8")
    return lines


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from nodes(child)


def quoted(answer: str) -> list[tuple[str, int, str]]:
    found = re.findall(r"^\s*(\S+):(\d+): (.+)$", answer, re.MULTILINE)
    return [(path, int(number), text) for path, number, text in found]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, where the report will lie, beside the folder to explore."""
    current = tmp_path / "current"
    current.mkdir()
    monkeypatch.chdir(current)
    return current


def report_of(current: Path) -> dict[str, Any]:
    [file] = (current / "report").glob("*/report.json")
    assert (file.parent / "index.html").is_file()
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_demo_on_a_random_tree(here: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """The answer quotes a line that is there; the report holds one refusal, a recovered error and a batch."""
    chance = random.Random(seed)  # noqa: S311 - names, not secrets
    folder = here.parent / "tree"
    lines = grow(folder, chance)
    path = chance.choice(sorted(lines))
    asked = lines[path][7].split()[2]
    assert main(["demo", str(folder), f"Where is {asked}?"]) == 0

    out, err = capsys.readouterr()
    quotes = quoted(out)
    assert (path, 8, lines[path][7]) in quotes
    assert all(lines[where][number - 1] == text for where, number, text in quotes)
    assert re.search(r"^usage: \d+ model calls, \d+ tool calls", out, re.MULTILINE)
    assert re.search(r"^report: report/\S+/index\.html and report/\S+/report\.json$", out, re.MULTILINE)
    assert "▸ tool read_file" in err
    assert re.search(r"◂ tool read_file .*✓", err)

    report = report_of(here)
    assert report["stopped_by"] == "answered"
    tools = [node for node in nodes(report["root"]) if node["kind"] == "tool"]
    outcomes = [node["outcome"] for node in tools]
    assert outcomes.count("denied") == 1
    assert outcomes.count("error") >= 1
    assert outcomes[-1] != "error"
    [batch] = [node for node in tools if node["name"] == "parallel"]
    assert len(batch["children"]) >= 2
    assert {child["outcome"] for child in batch["children"]} == {"ok"}
    assert not list(folder.glob("**/thena-note.md"))


def test_demo_on_an_empty_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder gets an answer that says so, and no batch."""
    (here.parent / "empty").mkdir()
    assert main(["demo", str(here.parent / "empty")]) == 0
    assert capsys.readouterr().out.startswith("The folder holds nothing readable")
    assert "parallel" not in {node["name"] for node in nodes(report_of(here)["root"]) if node["kind"] == "tool"}


def test_demo_on_a_single_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder with one file still gives a batch, and its line is quoted."""
    (here.parent / "one").mkdir()
    (here.parent / "one" / "a.txt").write_text("the only line\n")
    assert main(["demo", str(here.parent / "one")]) == 0
    assert ("a.txt", 1, "the only line") in quoted(capsys.readouterr().out)
    [batch] = [node for node in nodes(report_of(here)["root"]) if node["kind"] == "tool" and node["name"] == "parallel"]
    assert [child["name"] for child in batch["children"]] == ["read_file", "list_dir"]


def test_demo_shows_no_control_characters(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a file holds does not steer the terminal."""
    (here.parent / "one").mkdir()
    (here.parent / "one" / "a.txt").write_text("red \x1b[31m line\n")
    assert main(["demo", str(here.parent / "one")]) == 0
    out, _ = capsys.readouterr()
    assert "\x1b" not in out
    assert "a.txt:1: red �[31m line" in out


def test_demo_leaves_its_own_report_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second run over the current folder does not find the first one's report."""
    (here / "a.txt").write_text("a marmoset\n")
    for _ in range(2):
        assert main(["demo", ".", "Where is the marmoset?"]) == 0
    assert {path for path, _, _ in quoted(capsys.readouterr().out)} == {"a.txt"}
