"""Real packages: built, installed into an environment of their own, and used through their entry points only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.plugins.packages import sources
from tests.release.environments import Environment

ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = Path(__file__).with_name("scenarios.py")
PACKAGES = {"thena-good": sources.GOOD, "thena-broken": sources.BROKEN, "thena-future": sources.FUTURE}


def built(project: Path, into: Path) -> list[Path]:
    """Build the wheel of a project with its own backend, which needs no network."""
    return [Path(path) for path in WheelBuilder(str(project)).build(directory=str(into), versions=["standard"])]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with thena-core and the three packages, and this one's third-party ones by path."""
    folder = tmp_path_factory.mktemp("packages")
    wheels = built(ROOT, folder / "wheels")
    for name, files in PACKAGES.items():
        for path, text in files.items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).write_text(text, encoding="utf-8")
        wheels += built(folder / name, folder / "wheels")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    # without dependencies: thena-future asks for a thena-core that there is not, and pip would refuse it
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", *options, *map(str, wheels)]
    subprocess.run(command, check=True)
    [site] = (folder / "env").glob("**/site-packages")
    third = folder / "third"
    third.mkdir()
    Environment(folder / "env", third).link()  # nothing of this repository, which is installed editable here
    (site / "third_party.pth").write_text(f"{third}\n", encoding="utf-8")
    return python


def given_by(environment: Path, scenario: str, folder: Path, **variables: str) -> Any:
    """Play a scenario in the environment, and return what it gives."""
    kept: Mapping[str, str] = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "THENA"))
    }
    command = [str(environment), "-I", str(SCENARIOS), scenario]
    played = subprocess.run(command, cwd=folder, env={**kept, **variables}, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr
    return json.loads(played.stdout)


@pytest.mark.behaviour("P02")
def test_installing_changes_nothing(environment: Path, tmp_path: Path) -> None:
    """With all three installed and none named, nothing of them is imported, broken or not."""
    assert given_by(environment, "only_installed", tmp_path) == ["Rome", []]


@pytest.mark.behaviour("P01", "P02", "P03")
def test_everything_of_a_package(environment: Path, tmp_path: Path) -> None:
    """Tool, hooks, middleware, service and observer of one package work together, by their names alone."""
    output, seen, layers = given_by(environment, "used", tmp_path)
    assert output == "noon in ROME!"
    assert seen == [
        "startup",
        "start good_clock",
        "before good_clock",
        "around good_clock",
        "after good_clock",
        "end good_clock",
        "shutdown",
    ]
    hooked = ["record", "after_tool of good", "validate", "before_tool of good"]
    assert layers == [
        [*hooked, "middleware shout of good", "budget", "error policy", "execute"],
        [*hooked, "budget", "error policy", "execute"],
    ]


@pytest.mark.behaviour("P03")
def test_tools_are_listed_unimported(environment: Path, tmp_path: Path) -> None:
    """A misspelt tool is answered with the names of all, none of which is imported for it; naming one imports it."""
    [text], listed, unnamed, named = given_by(environment, "tools_listed", tmp_path)
    assert text.startswith(
        '[thena] No installed package brings a tool named "god_clock". Did you mean "good_clock"? '
        "Installed: broken_clock, good_clock"
    )
    assert (listed, unnamed) == ([], [])
    assert named == ["thena_good", "thena_good.clock", "thena_good.tools"]


HOOKS = "before_tool, after_tool, tool_middleware, chat_middleware, on_event, services, startup, shutdown"
WRONG = {
    "b-import": "ModuleNotFoundError: No module named 'a_driver_that_nobody_has'",
    "b-syntax": "SyntaxError: invalid syntax (syntax.py, line 1)",
    "b-exit": "SystemExit: no licence",
    "b-argument": 'before_tool has no parameter `context`. Did you mean "ctx"? Write: def before_tool(call, ctx)',
    "b-misspelt": f'befor_tool is no hook. Did you mean "before_tool"? Hooks are: {HOOKS}',
    "b-attribute": "AttributeError: module 'thena_broken' has no attribute 'plugin'",
}
TEXTS = [
    f'[thena] The plugin "{name}" (from thena-broken 0.9.1) cannot be loaded: {why}' for name, why in WRONG.items()
]
FUTURE = (
    '[thena] The plugin "future" (from thena-future 3.0) cannot be loaded: '
    "it needs thena-core>=99, and this is thena-core 0.1.0"
)


@pytest.mark.behaviour("P04")
def test_six_ways_to_be_broken(environment: Path, tmp_path: Path) -> None:
    """D11, D13, D18: all of them in one `BuildError`, by name, package, version and cause."""
    texts, imported = given_by(environment, "broken", tmp_path)
    assert texts == [*TEXTS, FUTURE]
    assert "thena_future" not in imported


@pytest.mark.behaviour("P04")
def test_going_on_without(environment: Path, tmp_path: Path) -> None:
    """D11 (simonw/llm#1351): with `warn` one warning for each; no start-up of a broken one runs, the good one works."""
    output, texts = given_by(environment, "warned", tmp_path)
    assert output == "noon in ROME!"
    assert texts == [*TEXTS, FUTURE]


@pytest.mark.behaviour("P02")
def test_all_installed(environment: Path, tmp_path: Path) -> None:
    """`"installed"` uses the good one; what is blocked is not even imported."""
    output, imported = given_by(environment, "all_installed", tmp_path)
    assert output.startswith("ROME!")
    assert imported == ["thena_good", "thena_good.clock", "thena_good.plugin"]


@pytest.mark.behaviour("P02")
def test_switched_off(environment: Path, tmp_path: Path) -> None:
    """`THENA_PLUGINS=0` in the environment switches them off without touching the code."""
    assert given_by(environment, "all_installed", tmp_path, THENA_PLUGINS="0") == ["Rome", []]


@pytest.mark.behaviour("P03")
def test_a_broken_tool(environment: Path, tmp_path: Path) -> None:
    """A tool whose package exits at import is a problem of the build, with the package's name and version."""
    assert given_by(environment, "broken_tool", tmp_path) == [
        (
            '[thena] The installed tool "broken_clock" (thena_broken.exiting:ClockTool of thena-broken 0.9.1) '
            "cannot be imported: SystemExit: no licence"
        )
    ]
