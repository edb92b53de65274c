"""Every block of every page runs as it stands, in order, and prints what the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.page import DOCS, ROOT, blocks, pages
from tests.docs.pasting import page_name, pasted, to_paste, unfit
from tests.docs.test_paths import PATHS

PAGES = pages()
PASTED = [page for page in PAGES if to_paste(page) and page.name.replace(".pt-BR", "") not in PATHS]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_no_block_is_left_out(page: Path) -> None:
    """What is not run is read, drawn, or has its reason above it."""
    assert unfit(page) == []


def test_the_code_is_clean(tmp_path: Path) -> None:
    """No block imports what its page does not use, names what there is not, or has lines that a screen cuts off."""
    for page in PAGES:
        file = tmp_path / page_name(page).replace(".md", ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(block.code for block in blocks(page) if block.language == "python"), encoding="utf-8")
    # a name may be made again further down, as a reader does who tries another way
    rules = ["--select=F,E", "--ignore=F811,E402,E701", "--line-length=120", "--target-version=py311"]
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format=concise", *rules]
    found = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("page", PASTED, ids=page_name)
def test_the_page_runs(page: Path, tmp_path: Path) -> None:
    """Pasted into a fresh process in an empty folder, the page's blocks print what stands below them."""
    if page.is_relative_to(DOCS) and "THENA_DOCS" not in os.environ:
        pytest.skip("scripts/docs pastes the pages; THENA_DOCS=1 does it here")
    wrong = pasted(page, tmp_path, PYTHONPATH=str(ROOT))
    assert not wrong, "\n\n".join(wrong)
