"""A page of the documentation as what it is for a reader who pastes: files to save, code to run, what that prints."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

RUN = {"python", "bash"}
"""What is pasted: Python into the page's one process, the rest into a shell in the page's folder."""

READ = {"toml", "json"}
"""What is parsed where it is no file to save."""

PICTURES = {"picture"}
"""What is drawn."""

_FENCE = re.compile(r"^(?P<indent> *)```(?:\{\.)?(?P<language>[\w-]*) *(?P<rest>.*)$")
_INCLUDED = re.compile(r'^ *--8<-- "(?P<file>[^"]+)"$')
_EXCUSE = re.compile(r"^\*(?:Not run here|Não roda aqui): (?P<reason>.+?)\*$", re.DOTALL)
_NEEDS = re.compile(r"^<!-- needs: (?P<name>[\w.]+) -->$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: The word after the fence.
        file: The file to save it as, from `title="…"`; `None` where it has none.
        code: What stands in it.
        line: The line of its first line.
        shown: What the page says that it prints: the `text` block right below it; `None` where there is none.
        excuse: Why it is not run, as the page says above it; `None` where it is.
        needs: The dotted name without which it cannot run yet.
    """

    language: str
    file: str | None
    code: str
    line: int
    shown: str | None = None
    excuse: str | None = None
    needs: str | None = None


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order; those that show an output are part of the block above them.

    A line `--8<-- "docs/recipes/files.py"` in a block stands for that file of the project, as it does on the site.

    Raises:
        ValueError: For a fence that is never closed.
    """
    found: list[Block] = []
    before: list[str] = []  # what stands between the last block and the next
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for _, line in lines:
        opened = _FENCE.match(line)
        if opened is None:
            before.append(line)
            continue
        block = _block(page, opened, lines, before)
        above = found[-1] if found else None
        if block.language == "text" and not "".join(before).strip() and above is not None and above.shown is None:
            found[-1] = Block(above.language, above.file, above.code, above.line, block.code, above.excuse, above.needs)
        else:
            found.append(block)
        before = []
    return found


def _block(page: Path, opened: re.Match[str], lines: enumerate[str], before: list[str]) -> Block:
    indent, code, first = opened["indent"], list[str](), None
    for number, line in lines:
        first = number if first is None else first
        if line == f"{indent}```":
            break
        included = _INCLUDED.match(line)
        code += [line] if included is None else (ROOT / included["file"]).read_text(encoding="utf-8").splitlines()
    else:
        raise ValueError(f"{page}: the block at line {first} is never closed")
    title = re.search(r'title="([^"]+)"', opened["rest"])
    paragraph = "\n".join(before).strip().rpartition("\n\n")[2].strip()
    excuse, needs = _EXCUSE.match(paragraph), _NEEDS.match(paragraph.rpartition("\n")[2])
    return Block(
        opened["language"],
        title[1] if title else None,
        textwrap.dedent("".join(f"{line}\n" for line in code)),
        first or 0,
        excuse=" ".join(excuse["reason"].split()) if excuse else None,
        needs=needs["name"] if needs else None,
    )


def pages() -> list[Path]:
    """Return every page that a reader may paste from."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def matches(shown: str, printed: str) -> bool:
    """Whether an output is the one that the page shows: `…` stands for anything in a line, and `4ms` for any time."""
    pattern = re.escape(shown.rstrip()).replace("…", ".*")
    pattern = re.sub(r"(?<![\w.])\d+(?:\\\.\d+)?ms\b", lambda _: r"\d+(?:\.\d+)?ms", pattern)
    return re.fullmatch(pattern, printed.rstrip()) is not None
