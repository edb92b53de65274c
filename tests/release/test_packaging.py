"""The distributions: what their wheels and sdists hold, and that installed wheels are found."""

from __future__ import annotations

import configparser
import json
import subprocess
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

import thena_core
from tests.release.environments import PROJECTS, ROOT, Distribution, Environment, project


def names_in(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def entry_points_of(wheel: Path) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    with ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        parser.read_string(archive.read(name).decode())
    return {section: dict(parser[section]) for section in parser.sections()}


def test_versions_are_lockstep() -> None:
    """All distributions and `__version__` say the same version, and what pins thena-core pins that one."""
    [version] = {thena_core.__version__, *(project(path)["version"] for path in PROJECTS)}
    pins = [need for path in PROJECTS for need in project(path)["dependencies"] if need.startswith("thena-core==")]
    assert pins
    assert set(pins) == {f"thena-core=={version}"}


def test_licences() -> None:
    """Each distribution ships the same MIT text and says so."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    for path in PROJECTS:
        assert project(path)["license"] == "MIT"
        assert (path.parent / "LICENSE").read_text(encoding="utf-8") == text


def test_core_wheel(wheels: dict[str, Path]) -> None:
    """The wheel of thena-core holds every module, the files they read at run time, the fixtures, and nothing else."""
    files = [path.relative_to(ROOT) for path in (ROOT / "thena_core").rglob("*") if path.is_file()]
    caches = ("__pycache__", ".mypy_cache", ".ruff_cache")
    tracked = {path.as_posix() for path in files if not any(part in caches for part in path.parts)}
    names = {name for name in names_in(wheels["thena-core"]) if ".dist-info/" not in name}
    assert names == tracked | {"pytest_thena.py"}
    assert names >= {
        "thena_core/py.typed",
        "thena_core/record/template.html",
        "thena_core/demo/explorer.agent.md",
        "thena_core/cli/scaffolds/every/dot_gitignore.tmpl",
    }
    assert entry_points_of(wheels["thena-core"])["console_scripts"] == {"thena": "thena_core.cli:main"}


def test_tools_wheel(wheels: dict[str, Path]) -> None:
    """The wheel of thena-tools is the import package, without its project files, and declares its tools."""
    names = {name for name in names_in(wheels["thena-tools"]) if ".dist-info/" not in name}
    expected = {f"thena_tools/{path.name}" for path in (ROOT / "thena_tools").glob("*.py")}
    assert names == expected | {"thena_tools/py.typed"}
    assert entry_points_of(wheels["thena-tools"])["thena.tools"] == {"parallel": "thena_tools.parallel:ParallelTool"}


def test_sdists(distributions: dict[str, Distribution]) -> None:
    """Each sdist, from which its wheel was built, has licence, README and type marker, and no cache or report."""
    for name, distribution in distributions.items():
        with tarfile.open(distribution.sdist) as archive:
            names = {Path(*Path(member).parts[1:]).as_posix() for member in archive.getnames()}
        assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= names, name
        assert any(member.endswith("py.typed") for member in names), name
        assert not [member for member in names if "__pycache__" in member or member.startswith("report/")], name


def test_installed_tools_are_found(installed: Environment, tmp_path: Path) -> None:
    """In an environment with the wheels `ParallelTool` is found by its entry point, and loads from the wheel."""
    script = (
        "import json, thena_core\n"
        "from importlib.metadata import entry_points\n"
        "[point] = entry_points(group='thena.tools', name='parallel')\n"
        "tool = point.load()\n"
        "import thena_tools\n"
        "print(json.dumps([tool.__name__, thena_core.__file__, thena_tools.__file__]))\n"
    )
    result = subprocess.run([installed.python, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    name, *files = json.loads(result.stdout)
    assert name == "ParallelTool"
    assert all(Path(file).is_relative_to(installed.folder) for file in files)


def test_installed_command(installed: Environment, tmp_path: Path) -> None:
    """The installed command `thena` runs."""
    command = [installed.scripts / "thena", "--version"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == f"thena {project(ROOT / 'pyproject.toml')['version']}\n"


@pytest.mark.parametrize("name", ["demo", "test", "check", "setup", "release-check"])
def test_scripts_are_executable(name: str) -> None:
    """A fresh clone can run the scripts as the README writes them."""
    path = ROOT / "scripts" / name
    assert path.stat().st_mode & 0o111 == 0o111
    assert path.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
