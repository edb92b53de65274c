"""The folder that the demo's tools may see: where its borders are, what it leaves out, and how its files are read."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from thena_core._render import did_you_mean

LEFT_OUT = frozenset({".git", ".hypothesis", ".venv", "__pycache__", "node_modules", "report", "venv"})
"""Folders that no tool shows, at any depth; those of virtual environments and caches with other names join them."""

LEFT_OUT_MARKS = ("pyvenv.cfg", "CACHEDIR.TAG")
"""Files whose folder is left out: a virtual environment's, and the tag of cache folders (bford.info/cachedir)."""

MAX_BYTES = 1_000_000
"""How much of one file is ever read."""

PROBE_BYTES = 8_192
"""How much of a file decides whether it is text, as in git."""


class Refusal(Exception):
    """Say why a path cannot be used; the tools hand its words to the model."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Confine what the tools do to one folder; the container provides it, constructors ask for it by type.

    Attributes:
        root: The folder, with symbolic links resolved.
    """

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.root.resolve())

    def find(self, path: str) -> Path:
        """Return the existing file or folder that a relative path means.

        Raises:
            Refusal: Where it leads out of the folder, is left out of it, or does not exist.
        """
        place = self.place(path)
        try:
            if place.exists():
                return place
            folders, files, _ = self.entries(place.parent) if place.parent.is_dir() else ([], [], [])
        except OSError as error:
            raise Refusal(f'"{path}" cannot be used: {error.strerror}.') from error
        hint = did_you_mean(self.name(place), [self.name(entry) for entry in folders + files])
        raise Refusal(f'There is no "{path}" in the folder.{hint}')

    def place(self, path: str) -> Path:
        """Return where a relative path leads, whether something is there or not.

        Raises:
            Refusal: Where it leads out of the folder, or is left out of it.
        """
        posix, windows = PurePosixPath(path), PureWindowsPath(path)
        if posix.is_absolute() or windows.anchor:
            raise Refusal(f'"{path}" is an absolute path; give one relative to the folder, as list_dir prints it.')
        if ".." in posix.parts or ".." in windows.parts:
            raise Refusal(f'"{path}" has a ".." in it; give a path that only goes down from the folder.')
        try:
            place = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL
            raise Refusal(f"{path!r} is not a usable path.") from error
        if not place.is_relative_to(self.root):
            raise Refusal(f'"{path}" is a symbolic link that leads out of the folder; it is not followed.')
        current = self.root
        for part in place.relative_to(self.root).parts:
            current /= part
            if is_left_out(current):
                raise Refusal(f'"{path}" is in "{self.name(current)}", which is left out of what the tools see.')
        return place

    def find_folder(self, path: str) -> Path:
        """Return the folder that a relative path means.

        Raises:
            Refusal: As `find`; and where it is a file.
        """
        place = self.find(path)
        if not place.is_dir():
            raise Refusal(f'"{path}" is a file, not a folder; read it with read_file.')
        return place

    def find_text(self, path: str) -> Path:
        """Return the text file that a relative path means.

        Raises:
            Refusal: As `find`; and where it is a folder, no regular file, or binary.
        """
        place = self.find(path)
        if place.is_dir():
            raise Refusal(f'"{path}" is a folder; list it with list_dir.')
        if not place.is_file():
            raise Refusal(f'"{path}" is not a regular file.')
        if not is_text(place):
            raise Refusal(f'"{path}" is binary ({place.stat().st_size:,} bytes); only text can be read.')
        return place

    def name(self, place: Path) -> str:
        """Name a place as the model writes it: relative, with forward slashes."""
        return place.relative_to(self.root).as_posix()

    def entries(self, place: Path) -> tuple[list[Path], list[Path], list[str]]:
        """Return the folders and regular files right under `place`, sorted, and the names of what is left out.

        Raises:
            Refusal: Where the folder cannot be read.
        """
        folders: list[Path] = []
        files: list[Path] = []
        left_out: list[str] = []
        try:
            found = sorted(place.iterdir(), key=lambda entry: (entry.name.lower(), entry.name))
        except OSError as error:
            raise Refusal(f'"{self.name(place)}" cannot be listed: {error.strerror}.') from error
        for entry in found:
            mode = self._mode(entry)
            if stat.S_ISDIR(mode):
                folders.append(entry)
            elif stat.S_ISREG(mode):
                files.append(entry)
            else:
                left_out.append(entry.name if entry.name.isprintable() else ascii(entry.name))
        return folders, files, left_out

    def walk(self, place: Path) -> Iterator[Path]:
        """Yield the regular files under `place`, those nearest to the top first; linked folders are not entered.

        A folder that cannot be read is passed over, as the one that does not exist.
        """
        waiting = [place]
        while waiting:
            try:
                folders, files, _ = self.entries(waiting.pop(0))
            except Refusal:
                continue
            yield from files
            waiting += [folder for folder in folders if not folder.is_symlink()]

    def _mode(self, entry: Path) -> int:
        """Return the file type behind an entry, 0 for what the tools must not see."""
        if not entry.name.isprintable():  # no UTF-8, or a line break: no model could write it back
            return 0
        try:
            self.place(self.name(entry))
            return entry.stat().st_mode
        except (OSError, Refusal):
            return 0


def is_left_out(place: Path) -> bool:
    """Whether a folder is none of the user's own files: version control, environments, caches, reports."""
    if place.name.lower() not in LEFT_OUT and not any(os.path.lexists(place / mark) for mark in LEFT_OUT_MARKS):
        return False
    return place.is_dir()


def is_text(place: Path) -> bool:
    """Whether a file's beginning is UTF-8 without NUL bytes.

    Raises:
        OSError: Where it cannot be read.
    """
    with place.open("rb") as file:
        probe = file.read(PROBE_BYTES)
    if b"\0" in probe:
        return False
    try:
        # final=False: the probe may end within a character
        codecs.getincrementaldecoder("utf-8")().decode(probe, final=False)
    except UnicodeDecodeError:
        return False
    return True


def text_of(place: Path) -> list[str] | None:
    """Return the lines of a file, or `None` where it is not text or cannot be read."""
    try:
        return read_lines(place)[0] if is_text(place) else None
    except OSError:
        return None


def read_lines(place: Path) -> tuple[list[str], bool]:
    """Return the lines of a text file without their ends, and whether `MAX_BYTES` cut it.

    Raises:
        OSError: Where it cannot be read.
    """
    size = place.stat().st_size
    with place.open("rb") as file:
        text = file.read(MAX_BYTES).decode("utf-8", errors="replace")
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines, size > MAX_BYTES
