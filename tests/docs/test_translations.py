"""A page in another language holds the same code, the same headings and the same links as the English one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.page import DOCS, blocks

TRANSLATED = sorted(DOCS.rglob("*.pt-BR.md"))


def original(page: Path) -> Path:
    """Return the English page of a translation."""
    return page.with_name(page.name.replace(".pt-BR.md", ".md"))


def outline(page: Path) -> list[int]:
    """Return the levels of a page's headings, in order."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [len(signs) for signs in re.findall(r"^(#+) ", text, re.MULTILINE)]


def test_the_pages_that_are_promised() -> None:
    """These pages are in Portuguese, too."""
    names = {original(page).name for page in TRANSLATED}
    assert names >= {"tools.md", "batches.md", "services.md", "errors.md", "security.md"}


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda page: page.name)
def test_the_same_blocks(page: Path) -> None:
    """Every block is there, word for word and in its order, with the output that it shows."""
    ours, theirs = blocks(original(page)), blocks(page)
    assert [(block.language, block.file, block.code, block.shown) for block in theirs] == [
        (block.language, block.file, block.code, block.shown) for block in ours
    ]


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda page: page.name)
def test_the_same_outline(page: Path) -> None:
    """The translation has the sections of the original, none added and none left out."""
    assert outline(page) == outline(original(page))
