"""The demo's file tools: list, read, search, and one that writes, which the demo's middleware refuses.

Each asks for the `Folder` in its constructor; what it may see is decided there, and not by what the model asks for.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, Field

from thena_core._render import listed, shortened
from thena_core.definition import tool
from thena_core.demo.folder import Folder, Refusal, is_text, read_lines, text_of
from thena_core.output import ToolOutput

MAX_ENTRIES = 200
"""Entries that one listing shows."""

MAX_LINES = 200
"""Lines that one reading shows."""

MAX_LINE_CHARS = 300
"""Characters that are shown of one line."""

MAX_FILES = 2_000
"""Files that one search looks into."""

MAX_MATCHES = 40
"""Lines that one search shows."""

MAX_MATCHES_PER_FILE = 5
"""Lines that one search shows of one file, so that a long file does not hide the others."""


class ListDir(BaseModel):
    """Arguments of `list_dir`."""

    path: str = Field(default=".", description='relative path of a folder; "." is the top')


class ReadFile(BaseModel):
    """Arguments of `read_file`."""

    path: str = Field(description="relative path of a text file, e.g. src/main.py")
    start_line: int = Field(default=1, ge=1, description="number of the first line to show")


class SearchFiles(BaseModel):
    """Arguments of `search_files`."""

    text: str = Field(min_length=1, description="what a line must hold, in upper or lower case")
    path: str = Field(default=".", description="relative path of the folder to search")


class SaveNote(BaseModel):
    """Arguments of `save_note`."""

    path: str = Field(description="relative path of the new file; it must not exist yet")
    text: str = Field(description="what the note says")


@tool(
    name="list_dir",
    description="Lists a folder: its folders, and its files with their sizes. Use it before reading.",
    schema=ListDir,
    effect="read",
)
class ListDirTool:
    """List one folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def execute(self, args: ListDir) -> ToolOutput:
        """Print one entry a line, folders first; say what is left out and what is cut."""
        try:
            folders, files, left_out = self.folder.entries(self.folder.find_folder(args.path))
            rows = [f"{self.folder.name(entry)}/" for entry in folders]
            rows += [self._described(entry) for entry in files[: max(0, MAX_ENTRIES - len(rows))]]
        except (OSError, Refusal) as error:
            return refused(args.path, error)
        total = len(folders) + len(files)
        if total > MAX_ENTRIES:
            rows = [*rows[:MAX_ENTRIES], f"({total - MAX_ENTRIES} more entries are not shown)"]
        if not rows:
            rows.append("(nothing in it)")
        if left_out:
            rows.append(f"(left out: {listed(left_out)})")
        return ToolOutput("\n".join(rows))

    def _described(self, entry: Path) -> str:
        size = entry.stat().st_size
        kind = "" if os.access(entry, os.R_OK) and is_text(entry) else "  (not readable text)"
        return f"{self.folder.name(entry)}  {size:,} bytes{kind}"


@tool(
    name="read_file",
    description=f"Reads a text file, {MAX_LINES} lines at a time, each with its number. Use it before answering.",
    schema=ReadFile,
    effect="read",
)
class ReadFileTool:
    """Read one text file."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def execute(self, args: ReadFile) -> ToolOutput:
        """Print a heading with the path, then the lines as `number: text`; say what is cut."""
        try:
            place = self.folder.find_text(args.path)
            lines, cut = read_lines(place)
        except (OSError, Refusal) as error:
            return refused(args.path, error)
        name = self.folder.name(place)
        if not lines:
            return ToolOutput(f"{name} is empty")
        start = args.start_line
        if start > len(lines):
            return ToolOutput(f'"{args.path}" has {len(lines)} lines; start_line is {start}.', is_error=True)
        shown = lines[start - 1 : start - 1 + MAX_LINES]
        end = start + len(shown) - 1
        rows = [f"{name}, lines {start} to {end} of {len(lines)}"]
        rows += [f"{number}: {shortened(line, MAX_LINE_CHARS)}" for number, line in enumerate(shown, start)]
        if end < len(lines):
            rows.append(f"({len(lines) - end} more lines; go on with start_line={end + 1})")
        if cut:
            rows.append("(the file is longer; nothing beyond its first megabyte is read)")
        return ToolOutput("\n".join(rows))


@tool(
    name="search_files",
    description="Finds the lines of text files that hold a text, as `path:line: text`. Use it to find where to read.",
    schema=SearchFiles,
    effect="read",
)
class SearchFilesTool:
    """Search all text files under a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def execute(self, args: SearchFiles) -> ToolOutput:
        """Print a heading, then one match a line, files near the top first; say what is cut and what was skipped."""
        try:
            place = self.folder.find_folder(args.path)
        except (OSError, Refusal) as error:
            return refused(args.path, error)
        rows: list[str] = []
        searched = skipped = 0
        notes: list[str] = []
        for entry in self.folder.walk(place):
            if len(rows) >= MAX_MATCHES:
                notes.append(f"(stopped after {MAX_MATCHES} lines; search for something rarer or in one folder)")
                break
            if searched + skipped >= MAX_FILES:
                notes.append(f"(stopped after {MAX_FILES:,} files; search in one folder)")
                break
            lines = text_of(entry)
            if lines is None:
                skipped += 1
                continue
            searched += 1
            rows += self._matches(self.folder.name(entry), lines, args.text)
        if skipped:
            notes.append(f"(skipped, not text: {skipped} files)")
        head = f'{"These lines hold" if rows else "No line holds"} "{args.text}"; files searched: {searched}'
        return ToolOutput("\n".join([head, *rows[:MAX_MATCHES], *notes]))

    @staticmethod
    def _matches(name: str, lines: list[str], text: str) -> list[str]:
        wanted = text.casefold()
        found = [(number, line) for number, line in enumerate(lines, 1) if wanted in line.casefold()]
        shown = found[:MAX_MATCHES_PER_FILE]
        rows = [f"{name}:{number}: {shortened(line.strip(), MAX_LINE_CHARS)}" for number, line in shown]
        if len(found) > len(shown):
            rows.append(f"({len(found) - len(shown)} more in {name})")
        return rows


@tool(
    name="save_note",
    description="Saves a text as a new file of the folder.",
    schema=SaveNote,
    effect="write",
)
class SaveNoteTool:
    """Write one new file; nothing that exists is ever changed."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def execute(self, args: SaveNote) -> ToolOutput:
        """Create the file and say so."""
        try:
            place = self.folder.place(args.path)
            # "x": made by this call or not at all
            with place.open("x", encoding="utf-8") as file:
                file.write(args.text)
        except (OSError, Refusal) as error:
            return refused(args.path, error)
        return ToolOutput(f"saved as {self.folder.name(place)}")


def refused(path: str, error: OSError | Refusal) -> ToolOutput:
    """Word a failure for the model: what it asked for and why not, without the folder's own place on the disk."""
    words = str(error) if isinstance(error, Refusal) else f'"{path}": {error.strerror or "not usable"}.'
    return ToolOutput(words, is_error=True)
