"""Each reader's path, from nothing to working: its page's own steps, from wheels, in an empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.page import DOCS, ROOT, blocks
from tests.docs.pasting import pasted

PATHS = {
    "tutorial.md": "someone who writes a tool",
    "plugins.md": "someone who packages a plugin for others",
    "services.md": "someone who wires their services into tools",
}
"""Pages that begin with an installation: nothing but what they say is there when they run."""


@pytest.fixture(scope="module")
def constraints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheels, as a file that makes pip take these and no others of their names."""
    folder = tmp_path_factory.mktemp("wheels")
    projects = [ROOT, ROOT / "thena_tools", *(file.parent for file in ROOT.glob("plugins/thena_*/pyproject.toml"))]
    for project in projects:
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stdout + built.stderr
    names = {wheel: wheel.name.split("-")[0].replace("_", "-") for wheel in folder.glob("*.whl")}
    file = folder / "constraints.txt"
    file.write_text("".join(f"{name} @ {wheel.as_uri()}\n" for wheel, name in names.items()), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", PATHS)
def test_it_begins_with_an_installation(name: str) -> None:
    """The first thing that a reader does is to install what the rest needs."""
    first = next(block for block in blocks(DOCS / name) if block.language == "bash")
    assert "pip install" in first.code


@pytest.mark.external
@pytest.mark.parametrize("name", PATHS)
def test_the_path(name: str, constraints: Path, tmp_path: Path) -> None:
    """Every step of the page, pasted into an environment that has nothing, prints what the page says."""
    if "THENA_DOCS" not in os.environ:
        pytest.skip("it installs from a package index; scripts/docs does it, or THENA_DOCS=1 here")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    wrong = pasted(
        DOCS / name,
        tmp_path,
        python=str(tmp_path / "env" / "bin" / "python"),
        **pip | {"PIP_CONSTRAINT": str(constraints), "PIP_QUIET": "2", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    assert not wrong, "\n\n".join(wrong)
