"""The README: what it links to is there, and its comparison is the one of the page. Its example runs in tests/docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links(name: str) -> None:
    """Every relative link leads to something."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_comparison() -> None:
    """The short table has the figures of the long one."""
    long = {cells[0].split(" ")[0]: cells for cells in rows((ROOT / "docs" / "comparison.md").read_text("utf-8"), 6)}
    for name, one, ten, refused in rows(README, 4):
        page = long[name.split(" ")[0]]
        assert (one, ten, refused) == (page[1], page[3], page[4]), name


def rows(text: str, width: int) -> list[list[str]]:
    """Return the rows of a table of figures, without the bold signs."""
    found = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines() if " × |" in line]
    return [cells for cells in found if len(cells) == width]
