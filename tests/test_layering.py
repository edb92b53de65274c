"""Imports never run up: each module of thena_core imports only from the rows above it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "thena_core"

FLOORS = [
    ["_frozen", "_render", "errors"],
    ["output", "messages", "definition", "budget", "record"],
    ["run", "signals", "context"],
    ["call", "markers"],
    ["schema"],
    ["di"],
    ["hooks"],
    ["calls", "providers"],
    ["agents", "answers", "turns", "steps", "workflows", "execution"],
    ["build", "life", "observers", "runner", "app", "handle"],
    ["testing", "cli", "demo"],
]
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
MAY_POINT_UP = {"hooks/specs.py"}  # it names the whole contract, for type checkers only


def room(module: str) -> str:
    """Name the room of a module: `thena_core.calls.plan` stands in `calls`."""
    return module.split(".")[1] if "." in module else ""


def imports(path: Path) -> list[tuple[str, bool]]:
    """List what a file imports from thena_core, and whether only for type checkers."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, typing_only: bool) -> None:
        for child in ast.iter_child_nodes(node):
            guarded = typing_only or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
            if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("thena_core"):
                found.append((child.module or "", typing_only))
            elif isinstance(child, ast.Import):
                found.extend((name.name, typing_only) for name in child.names if name.name.startswith("thena_core"))
            visit(child, guarded)

    visit(ast.parse(path.read_text(encoding="utf-8")), False)
    return found


FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_imports_never_run_up(path: Path) -> None:
    """A module imports only from its own floor and from those above it in the table."""
    own = room("thena_core." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert own in FLOOR, f"{path} stands in no room of the table"
    up = [
        module
        for module, typing_only in imports(path)
        if FLOOR.get(room(module), 0) > FLOOR[own] and not (typing_only and str(path.relative_to(ROOT)) in MAY_POINT_UP)
    ]
    assert up == []


@pytest.mark.parametrize(
    "module", ["httpx", "typer", "rich", "thena_core.record.report", "dependency_injector", "pluggy", "jsonschema"]
)
def test_import_is_light(module: str) -> None:
    """`import thena_core` loads neither the HTTP client, nor the command line, nor the report writer."""
    code = f"import sys, thena_core; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT.parent).returncode == 0
