"""The distributions, built, and empty environments that have them: what a new user begins with, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = sorted(
    [ROOT / "pyproject.toml", ROOT / "thena_tools" / "pyproject.toml", *ROOT.glob("plugins/thena_*/pyproject.toml")]
)
OURS = ("thena", "_thena", "__editable__", "__pycache__")
"""How what an editable installation of this repository leaves among the packages begins."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution's two files; the wheel was built from the sdist, as an index or a user would.

    Attributes:
        wheel: What is installed.
        sdist: What it was built from.
    """

    wheel: Path
    sdist: Path


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment.

    Attributes:
        folder: Where it is.
        third: A folder on its path with links to this environment's third-party packages.
    """

    folder: Path
    third: Path

    @property
    def scripts(self) -> Path:
        """Where its commands are."""
        return self.folder / ("Scripts" if sys.platform == "win32" else "bin")

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.scripts / "python"

    def pip_install(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Install as pip does, from what is here alone."""
        options = ["--quiet", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", *options, *words]
        return subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)

    def link(self, wanted: Collection[str] | None = None, without: Collection[str] = ()) -> None:
        """Let it see third-party packages: those wanted, or all but some; nothing of this repository."""
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            name = path.name.partition("-")[0].partition(".")[0].lower()
            chosen = name in wanted if wanted is not None else name not in without
            # the links leave .pth files out, so that nothing that is installed editable is seen
            if chosen and not path.name.startswith(OURS) and path.suffix != ".pth":
                (self.third / path.name).symlink_to(path, target_is_directory=path.is_dir())


def project(path: Path) -> dict[str, Any]:
    """Read the project table of a pyproject.toml."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of this process without those that would reach into another environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "THENA", "PYTEST_"))}
    without_keys = {name: value for name, value in kept.items() if not name.startswith(("OPENAI_", "ANTHROPIC_"))}
    return without_keys | variables


def build(projects: Iterable[Path], into: Path) -> dict[str, Distribution]:
    """Build projects with their own backend: the sdist, and the wheel from what is in it."""
    built: dict[str, Distribution] = {}
    for path in projects:
        name = project(path)["name"]
        [sdist] = SdistBuilder(str(path.parent)).build(directory=str(into), versions=["standard"])
        unpacked = into / f".unpacked-{name}"
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        [source] = unpacked.iterdir()
        [wheel] = WheelBuilder(str(source)).build(directory=str(into), versions=["standard"])
        built[name] = Distribution(Path(wheel), Path(sdist))
    return built


def make_environment(folder: Path, wheels: Iterable[Path], without: Collection[str] = ()) -> Environment:
    """Make an environment with wheels in it, and third-party packages by link: all but some."""
    folder.mkdir(exist_ok=True)
    venv.create(folder / "env", with_pip=False)
    made = Environment(folder / "env", folder / "third")
    made.third.mkdir()
    made.link(without=without)
    [site] = (folder / "env").glob("**/site-packages")
    (site / "third_party.pth").write_text(f"{made.third}\n", encoding="utf-8")
    installed = made.pip_install("--no-deps", *map(str, wheels))
    assert installed.returncode == 0, installed.stderr
    return made
