"""The demo's file tools, called as plain objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from thena_core.demo.files import (
    MAX_ENTRIES,
    MAX_LINES,
    MAX_MATCHES,
    ListDir,
    ListDirTool,
    ReadFile,
    ReadFileTool,
    SaveNote,
    SaveNoteTool,
    SearchFiles,
    SearchFilesTool,
)
from thena_core.demo.folder import Folder
from thena_core.output import ToolOutput


def test_list_dir(tmp_path: Path) -> None:
    """A listing shows folders first, sizes, what is no text, and what is left out."""
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.txt").write_text("hello\n")
    (tmp_path / "b.png").write_bytes(b"\0" * 1500)
    output = ListDirTool(Folder(tmp_path)).execute(ListDir())
    assert output == ToolOutput("src/\na.txt  6 bytes\nb.png  1,500 bytes  (not readable text)\n(left out: .git)")


def test_list_dir_of_nothing(tmp_path: Path) -> None:
    """An empty folder is said to be empty."""
    assert ListDirTool(Folder(tmp_path)).execute(ListDir()) == ToolOutput("(nothing in it)")


def test_list_dir_cuts(tmp_path: Path) -> None:
    """A long listing is cut, and says by how much."""
    for number in range(MAX_ENTRIES + 3):
        (tmp_path / f"{number:04}").touch()
    rows = ListDirTool(Folder(tmp_path)).execute(ListDir()).content.split("\n")
    assert len(rows) == MAX_ENTRIES + 1
    assert rows[-1] == "(3 more entries are not shown)"


def test_read_file(tmp_path: Path) -> None:
    """Reading shows a heading, numbered lines, and how to go on."""
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, MAX_LINES + 3)))
    tool = ReadFileTool(Folder(tmp_path))
    rows = tool.execute(ReadFile(path="a.txt")).content.split("\n")
    assert rows[:2] == ["a.txt, lines 1 to 200 of 202", "1: line 1"]
    assert rows[-1] == "(2 more lines; go on with start_line=201)"
    assert tool.execute(ReadFile(path="a.txt", start_line=202)) == ToolOutput(
        "a.txt, lines 202 to 202 of 202\n202: line 202"
    )


def test_read_file_cuts_a_long_line(tmp_path: Path) -> None:
    """One endless line does not fill the conversation."""
    (tmp_path / "a.txt").write_text("x" * 3_000_000)
    content = ReadFileTool(Folder(tmp_path)).execute(ReadFile(path="a.txt")).content
    assert len(content) < 500
    assert "…" in content
    assert content.endswith("(the file is longer; nothing beyond its first megabyte is read)")


@pytest.mark.parametrize(
    ("path", "start_line", "words"),
    [
        pytest.param(".", 1, '"." is a folder; list it with list_dir.', id="folder"),
        pytest.param("b.bin", 1, '"b.bin" is binary (3 bytes); only text can be read.', id="binary"),
        pytest.param("a.txt", 9, '"a.txt" has 1 lines; start_line is 9.', id="beyond-the-end"),
        pytest.param("../a.txt", 1, '"../a.txt" has a ".." in it', id="out"),
        pytest.param("c.txt", 1, 'There is no "c.txt" in the folder. Did you mean "a.txt"?', id="missing"),
    ],
)
def test_read_file_refuses(tmp_path: Path, path: str, start_line: int, words: str) -> None:
    """What cannot be read is an error observation that says why, without the folder's place on the disk."""
    (tmp_path / "a.txt").write_text("x\n")
    (tmp_path / "b.bin").write_bytes(b"a\0b")
    output = ReadFileTool(Folder(tmp_path)).execute(ReadFile(path=path, start_line=start_line))
    assert output.is_error
    assert output.content.startswith(words)
    assert str(tmp_path) not in output.content


def test_search_files(tmp_path: Path) -> None:
    """A search finds lines in upper and lower case, near the top first, and counts what it skipped."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "deep.txt").write_text("needle\n")
    (tmp_path / "z.txt").write_text("hay\n  A Needle here\n")
    (tmp_path / "b.bin").write_bytes(b"needle\0")
    output = SearchFilesTool(Folder(tmp_path)).execute(SearchFiles(text="NEEDLE"))
    assert output == ToolOutput(
        'These lines hold "NEEDLE"; files searched: 2\nz.txt:2: A Needle here\na/deep.txt:1: needle\n'
        "(skipped, not text: 1 files)"
    )


def test_search_files_cuts(tmp_path: Path) -> None:
    """A search that finds too much says where it stopped, in a file and altogether."""
    for number in range(MAX_MATCHES):
        (tmp_path / f"{number:03}.txt").write_text("needle\n" * 7)
    rows = SearchFilesTool(Folder(tmp_path)).execute(SearchFiles(text="needle")).content.split("\n")
    assert rows[6] == "(2 more in 000.txt)"
    assert rows[-1].startswith(f"(stopped after {MAX_MATCHES} lines")
    assert len(rows) == MAX_MATCHES + 2


def test_search_files_finds_nothing(tmp_path: Path) -> None:
    """Nothing found is an answer, not an error; a file to search in is one."""
    (tmp_path / "a.txt").write_text("hay\n")
    tool = SearchFilesTool(Folder(tmp_path))
    assert tool.execute(SearchFiles(text="needle")) == ToolOutput('No line holds "needle"; files searched: 1')
    assert tool.execute(SearchFiles(text="hay", path="a.txt")).is_error


def test_save_note(tmp_path: Path) -> None:
    """A note is a new file inside the folder; what exists stays as it is."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("old")
    tool = SaveNoteTool(Folder(tmp_path / "in"))
    assert tool.execute(SaveNote(path="note.md", text="new")) == ToolOutput("saved as note.md")
    assert (tmp_path / "in" / "note.md").read_text() == "new"
    assert tool.execute(SaveNote(path="a.txt", text="new")) == ToolOutput('"a.txt": File exists.', is_error=True)
    assert tool.execute(SaveNote(path="../b.txt", text="new")).is_error
    assert (tmp_path / "in" / "a.txt").read_text() == "old"
    assert not (tmp_path / "b.txt").exists()
