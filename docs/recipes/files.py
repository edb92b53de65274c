"""Read, list and search the files of one folder, and nothing outside of it.

Holds against: absolute paths and `..`; symbolic links, those swapped in during the call too (each part of a path is
opened from the folder before it, and no link is followed); FIFOs, sockets and devices; huge files, folders and trees
(what is read, shown and walked is capped); binary files and wrong encodings; paths of any length, and with NUL.

Does not hold against: hard links and mounts in the folder that lead elsewhere; what a file says to the model. POSIX
only: elsewhere nothing can be opened relative to a folder.
"""

from __future__ import annotations

import codecs
import itertools
import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from thena_core import Context, Inject, tool

MAX_PATH, MAX_DEPTH = 4_096, 32  # characters; folders in folders
MAX_READ, MAX_ENTRIES, MAX_MATCHES = 40_000, 500, 50  # bytes; of one folder; lines
MAX_SEARCHED, SEARCH_SECONDS = 1_000_000, 10.0  # bytes of each file; of one search
KINDS = {stat.S_IFLNK: "a link, and links are not followed", stat.S_IFDIR: "a folder", stat.S_IFREG: "a file"}


class Refused(Exception):
    """Say to the model what cannot be done, and why."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder that the tools may see; `root` itself is trusted, what is in it is not."""

    root: Path

    @contextmanager
    def opened(self, path: str, wanted: int = stat.S_IFREG) -> Generator[int]:
        """Open a file (or a folder, `wanted=stat.S_IFDIR`), one part of its path after the other.

        Raises:
            Refused: Where it leads out, is something else, or cannot be opened.
        """
        shown = f"{path[:100]!r}"
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or len(path) > MAX_PATH:
            raise Refused(f"a path must go down from the folder, as list_folder prints it ({shown})")
        try:
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:  # its own text would name the place
            raise Refused(f"the folder cannot be opened: {error.strerror}") from error
        try:
            for number, part in enumerate(parts, 1):
                kind = wanted if number == len(parts) else stat.S_IFDIR
                # before opening, since to open a device can do things; after, since another may stand there by now
                _expect(kind, os.stat(part, dir_fd=descriptor, follow_symlinks=False), shown)
                inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            _expect(wanted, os.fstat(descriptor), shown)
            yield descriptor
        except (OSError, ValueError) as error:  # ValueError: a NUL, or what is no file name in any encoding
            raise Refused(f"{getattr(error, 'strerror', None) or 'not a usable path'} ({shown})") from error
        finally:
            os.close(descriptor)

    def entries(self, path: str) -> tuple[list[tuple[str, os.stat_result]], bool]:
        """Return the entries of a folder, sorted, and whether there are more."""
        kept: list[tuple[str, os.stat_result]] = []
        with self.opened(path, stat.S_IFDIR) as descriptor, os.scandir(descriptor) as found:
            for entry in itertools.islice(found, MAX_ENTRIES):
                with suppress(FileNotFoundError):  # it was deleted meanwhile
                    kept.append((entry.name, entry.stat(follow_symlinks=False)))
            return sorted(kept, key=lambda entry: entry[0]), next(found, None) is not None

    def text(self, path: str, offset: int, limit: int) -> tuple[str, int, int]:
        """Return text from a byte offset, the offset where it ends, and the file's size; wrong bytes become U+FFFD."""
        with self.opened(path) as descriptor:
            size = os.fstat(descriptor).st_size
            start = min(offset, size)
            data = os.pread(descriptor, limit, start)
        if b"\0" in data:
            raise Refused(f"binary, or text that is not UTF-8 ({path[:100]!r})")
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(
            data, final=start + len(data) >= size
        )  # a character that is cut is left for the next part
        return text, start + len(data) - len(decoder.getstate()[0]), size


def _expect(kind: int, found: os.stat_result, shown: str) -> None:
    is_kind = stat.S_IFMT(found.st_mode)
    if is_kind != kind:
        raise Refused(f"it is {KINDS.get(is_kind, 'neither a file nor a folder')} ({shown})")


Provided = Annotated[Folder, Inject]


@tool(effect="read")
def read_file(folder: Provided, path: str, offset: Annotated[int, Field(ge=0, description="first byte")] = 0) -> str:
    """Reads a text file. Use before answering about it."""
    text, end, size = folder.text(path, offset, MAX_READ)
    return text if end >= size else f"{text}\n[{size:,} bytes; read on with offset={end}]"


@tool(effect="read")
def list_folder(folder: Provided, path: str = ".") -> str:
    """Lists a folder; "." is the top. Use before reading."""
    entries, more = folder.entries(path)
    rows = [_row(name, found) for name, found in entries]
    return "\n".join([*rows, "[more entries are not shown]"] if more else rows or ["[empty]"])


def _row(name: str, found: os.stat_result) -> str:
    shown = name if name.isprintable() else ascii(name)
    if stat.S_ISREG(found.st_mode):
        return f"{shown}  {found.st_size:,} bytes"
    return f"{shown}/" if stat.S_ISDIR(found.st_mode) else f"{shown}  [not a file, or a link]"


@tool(effect="read")
def search_files(
    folder: Provided, ctx: Context, text: Annotated[str, Field(min_length=1, max_length=200)], path: str = "."
) -> str:
    """Finds the lines of text files that hold a text, in upper or lower case."""
    until = time.monotonic() + SEARCH_SECONDS
    rows: list[str] = []
    not_searched = 0
    waiting = [(path, stat.S_IFDIR)]
    while waiting and len(rows) < MAX_MATCHES and time.monotonic() < until:
        ctx.signal.raise_if_aborted()
        place, kind = waiting.pop()
        try:
            if kind == stat.S_IFREG:
                content, end, size = folder.text(place, 0, MAX_SEARCHED)
                numbered = enumerate(content.splitlines(), 1)
                found = [(number, line) for number, line in numbered if text.casefold() in line.casefold()]
                shown = place.removeprefix("./") if place.isprintable() else ascii(place)
                rows += [f"{shown}:{number}: {line.strip()[:200]}" for number, line in found]
                not_searched += end < size
            elif kind == stat.S_IFDIR and place.count("/") - path.count("/") <= MAX_DEPTH:
                inner, more = folder.entries(place)
                waiting += [(f"{place}/{name}", stat.S_IFMT(entry.st_mode)) for name, entry in reversed(inner)]
                not_searched += more
            else:
                not_searched += 1
        except Refused:
            if place == path:
                raise
            not_searched += 1
    notes = ["[there may be more]"] if waiting or len(rows) > MAX_MATCHES else []
    notes += [f"[not searched, or not all of it: {not_searched} places]"] if not_searched else []
    return "\n".join([*(rows[:MAX_MATCHES] or ["[nothing found]"]), *notes])
