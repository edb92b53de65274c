"""What `docs/behaviours.md` promises, and which tests pin it."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "behaviours.md"


def promised() -> dict[str, str]:
    """Map each promised id to its state, `kept` or `planned`."""
    return dict(re.findall(r"^\| ([A-Z]\d\d) \| (kept|planned) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def pinned() -> dict[str, list[str]]:
    """Map each id that a test carries to those tests, read from the source."""
    found: dict[str, list[str]] = {}
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "plugins").rglob("test_*.py")]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for decorator in getattr(node, "decorator_list", ()):
                for behaviour in _ids(decorator):
                    found.setdefault(behaviour, []).append(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def _ids(decorator: ast.expr) -> list[str]:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.behaviour":
        return [argument.value for argument in decorator.args if isinstance(argument, ast.Constant)]
    return []


def summary() -> str:
    """Say how many promises are pinned by a test, and list those that are not."""
    ids, tests = promised(), pinned()
    without = [behaviour for behaviour in ids if behaviour not in tests]
    text = f"promises pinned by a test: {len(ids) - len(without)} of {len(ids)}"
    if without:
        text += f"; without one: {' '.join(without)}"
    return textwrap.fill(text, 100, subsequent_indent="  ", break_on_hyphens=False)
