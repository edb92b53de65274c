"""The pytest plugin: its fixtures work, and it costs nothing where nobody asks for them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TESTS = """
import asyncio
from dependency_injector import containers, providers
from thena_core import Thena, tool
from thena_core.testing import assert_calls

class Services(containers.DeclarativeContainer):
    word = providers.Object("real")

services = Services()

@tool
async def look(path: str) -> str:
    "Looks."
    return path

async def call(record):
    async with Thena(tools=[look], log=record) as app:
        await app.call("look", {"path": "a"})

def test_record(thena_record):
    asyncio.run(call(thena_record))
    assert_calls(thena_record, "look")

def test_tree_is_shown(thena_record):
    asyncio.run(call(thena_record))
    assert False, "on purpose"

def test_overridden(thena_overridden):
    thena_overridden(services, word="fake")
    assert services.word() == "fake"

def test_overridden_before():
    assert services.word() == "real"
"""


def pytest_in(folder: Path, tests: str, *options: str) -> str:
    """Run pytest on some tests in a process of their own, with the plugin as its entry point names it."""
    (folder / "test_it.py").write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "pytest_thena", "-p", "no:cacheprovider", *options, "test_it.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment).stdout


def test_fixtures(tmp_path: Path) -> None:
    """The record is fresh in each test, the services are the first ones again after it, and a failure shows the tree."""
    shown = pytest_in(tmp_path, TESTS)
    assert "1 failed, 3 passed" in shown
    assert "Thena: what was recorded" in shown
    assert '  tool look {"path": "a"} → ok' in shown


@pytest.mark.parametrize("module", ["thena_core", "pydantic", "dependency_injector"])
def test_it_is_light(tmp_path: Path, module: str) -> None:
    """Where no test asks for a fixture, nothing of Thena is imported."""
    tests = f"import sys\ndef test_it():\n    assert {module!r} not in sys.modules\n"
    assert "1 passed" in pytest_in(tmp_path, tests)


def test_fixtures_are_listed(tmp_path: Path) -> None:
    """`pytest --fixtures` explains them."""
    shown = pytest_in(tmp_path, "def test_it(): pass\n", "--fixtures")
    assert "thena_record" in shown
    assert "thena_overridden" in shown


def test_the_entry_point() -> None:
    """The distribution declares it as `thena`, so that `-p no:thena` leaves it out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"thena": "pytest_thena"}
