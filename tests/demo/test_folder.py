"""The borders of the demo's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from thena_core.demo.folder import MAX_BYTES, Folder, Refusal, is_text, read_lines


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A folder to explore, with a secret beside it."""
    (tmp_path / "secret.txt").write_text("secret\n")
    folder = tmp_path / "inside"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print()\n")
    return folder


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("../secret.txt", '".."', id="parent"),
        pytest.param("src/../../secret.txt", '".."', id="parent-in-the-middle"),
        pytest.param("src\\..\\..\\secret.txt", '".."', id="parent-with-backslashes"),
        pytest.param("/etc/passwd", "absolute", id="absolute"),
        pytest.param("C:\\secret.txt", "absolute", id="drive"),
        pytest.param("\\\\host\\share", "absolute", id="network-share"),
        pytest.param("a\0b", "not a usable path", id="nul"),
        pytest.param("\ud800", "not a usable path", id="no-utf-8"),
        pytest.param("x" * 5000, "cannot be used", id="too-long"),
        pytest.param("src/man.py", 'Did you mean "src/main.py"?', id="misspelt"),
        pytest.param(".git/config", "left out", id="left-out"),
        pytest.param("env/pyvenv.cfg", "left out", id="environment"),
        pytest.param(".GIT/config", "There is no|left out", id="left-out-in-capitals"),
    ],
)
def test_refuses(inside: Path, path: str, reason: str) -> None:
    """A path that leads out, is left out or does not exist is refused in words."""
    for name in (".git/config", "env/pyvenv.cfg"):
        (inside / name).parent.mkdir()
        (inside / name).write_text("x")
    with pytest.raises(Refusal, match=reason.replace("?", r"\?").replace(".py", r"\.py")):
        Folder(inside).find(path)


@pytest.mark.parametrize("target", ["../secret.txt", ".."], ids=["file", "folder"])
def test_link_out(inside: Path, target: str) -> None:
    """A symbolic link that leads out is neither followed, listed nor walked."""
    (inside / "link").symlink_to(target)
    folder = Folder(inside)
    with pytest.raises(Refusal, match="leads out"):
        folder.find("link")
    with pytest.raises(Refusal, match="leads out"):
        folder.find("link/secret.txt")
    assert folder.entries(folder.root)[2] == ["link"]
    assert [place.name for place in folder.walk(folder.root)] == ["main.py"]


def test_links_inside(inside: Path) -> None:
    """A link that stays inside is followed; one that runs in a circle ends nothing but itself."""
    (inside / "entry.py").symlink_to("src/main.py")
    (inside / "again").symlink_to(".")
    (inside / "loop").symlink_to("loop")
    folder = Folder(inside)
    assert folder.find("entry.py") == folder.root / "src" / "main.py"
    assert [folder.name(place) for place in folder.walk(folder.root)] == ["entry.py", "src/main.py"]
    with pytest.raises(Refusal):
        folder.find("loop")


@pytest.mark.parametrize("name", [".git", ".venv", "venv", "node_modules", "__pycache__", "report"])
def test_left_out(inside: Path, name: str) -> None:
    """What is none of the user's own files is left out at any depth, but not a file of the same name."""
    for parent in (inside, inside / "src"):
        (parent / name).mkdir()
        (parent / name / "inner.txt").write_text("x")
    (inside / "docs").mkdir()
    (inside / "docs" / name).write_text("x")
    folder = Folder(inside)
    assert [folder.name(place) for place in folder.walk(folder.root)] == [f"docs/{name}", "src/main.py"]
    assert folder.entries(folder.root)[2] == [name]


def test_root_itself_is_never_left_out(tmp_path: Path) -> None:
    """A folder that the user named is explored, whatever it is called."""
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "a.txt").write_text("x")
    folder = Folder(tmp_path / "report")
    assert folder.find("a.txt").is_file()


def test_strange_entries(inside: Path) -> None:
    """A pipe and a name with a line break are left out, so that nothing hangs and no row is forged."""
    os.mkfifo(inside / "pipe")
    (inside / "a\nb.txt").write_text("x")
    folder = Folder(inside)
    assert folder.entries(folder.root)[1:] == ([], ["'a\\nb.txt'", "pipe"])
    with pytest.raises(Refusal, match="not a regular file"):
        folder.find_text("pipe")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", True, id="empty"),
        pytest.param("grün\n".encode(), True, id="utf-8"),
        pytest.param(b"x" * 8191 + "ü".encode(), True, id="character-across-the-probe"),
        pytest.param(b"a\0b", False, id="nul"),
        pytest.param(b"\xff\xfeabc", False, id="no-utf-8"),
    ],
)
def test_is_text(tmp_path: Path, content: bytes, expected: bool) -> None:
    """UTF-8 without NUL bytes is text."""
    (tmp_path / "file").write_bytes(content)
    assert is_text(tmp_path / "file") is expected


def test_read_lines_of_a_huge_file(tmp_path: Path) -> None:
    """Of a file that is too long only the beginning is read, and that is said."""
    (tmp_path / "file").write_bytes(b"a\r\n" * MAX_BYTES)
    lines, cut = read_lines(tmp_path / "file")
    assert cut
    assert len(lines) == MAX_BYTES // 3 + 1
    assert lines[0] == "a"
