"""Every recipe is one file to copy: it says what it holds against, and needs only what its reader has."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import thena_core
from tests.recipes.recipe import RECIPES

FILES = sorted(RECIPES.glob("*.py"))
READERS_OWN = {"httpx", "pydantic"}  # thena-core brings them
MAX_LINES = 170


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_says_what_it_holds_against(file: Path) -> None:
    """Its first lines say what it holds against, and what it does not."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    assert "\n\nHolds against: " in text
    assert "\n\nDoes not hold against: " in text


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_needs_only_what_its_reader_has(file: Path) -> None:
    """It imports the standard library, what comes with thena-core, and of that only what it exports; and it is short."""
    source = file.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_LINES
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
            if node.module == "thena_core":
                assert {name.name for name in node.names} <= set(thena_core.__all__)
        else:
            continue
        for module in modules:
            first = module.partition(".")[0]
            assert module == "thena_core" or first in READERS_OWN or first in sys.stdlib_module_names, module


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_has_a_page_and_tests(file: Path) -> None:
    """Its page shows it, the list of recipes names the page, and a test of its name is there."""
    page = RECIPES / f"{file.stem.replace('_', '-')}.md"
    assert f'--8<-- "docs/recipes/{file.name}"' in page.read_text(encoding="utf-8")
    assert f"({page.name})" in (RECIPES / "index.md").read_text(encoding="utf-8")
    assert Path(__file__).with_name(f"test_{file.stem}.py").exists()
