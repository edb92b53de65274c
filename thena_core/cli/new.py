"""The command `thena new`: a project that passes its own tests, mypy and ruff at once; nothing is ever overwritten."""

from __future__ import annotations

import keyword
import os
import re
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from string import Template
from typing import TYPE_CHECKING, Literal

from thena_core.cli.problems import ANSWERED, CommandFailed, UsageProblem
from thena_core.cli.show import near, say

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Kind = Literal["app", "tool", "agent", "plugin"]

LONGEST = 40
"""Characters of a name: what is made of it fits into a line of 120, and into the 64 of a tool's name."""

TAKEN = frozenset({"tests", "test", "thena", "docs", "src", "build", "dist", "report", "site"})
"""Names that would stand for something else in a project or on the import path."""

SUFFIX = ".tmpl"


@dataclass(frozen=True, slots=True)
class Shape:
    """What sets a kind of project apart, beside its own files; `$package` and `$cls` stand for its name.

    Attributes:
        description: What it is, for its pyproject.toml.
        target: The TARGET of commands in it.
        first: What to try first.
        needs: Requirements before thena-core, each with a comma behind it.
        entry_points: The table of the entry points, or nothing.
    """

    description: str
    target: str
    first: str
    needs: str = ""
    entry_points: str = ""


SHAPES: Mapping[Kind, Shape] = {
    "app": Shape(
        "An app of agents and tools.",
        "$package.app:make_app",
        'thena run $package.app:make_app "Remember to buy milk."   # needs OPENAI_API_KEY',
        needs='"dependency-injector>=4.48", ',
    ),
    "tool": Shape(
        "A tool for agents built with Thena.",
        "$package.app:app",
        """thena call $package.app:app $package '{"text": "one two three"}'""",
        entry_points='\n[project.entry-points."thena.tools"]\n$package = "$package.tool:${cls}Tool"\n',
    ),
    "agent": Shape(
        "An agent built with Thena.",
        "$package.app:make_app",
        'thena run $package.app:make_app "How many words has this sentence?"   # needs OPENAI_API_KEY',
    ),
    "plugin": Shape(
        "A plugin for apps built with Thena.",
        "$package.app:make_app",
        'thena run $package.app:make_app "count these words"',
        entry_points='\n[project.entry-points."thena.plugins"]\n$package = "$package.plugin:plugin"\n',
    ),
}


@dataclass(frozen=True, slots=True)
class Names:
    """The forms of a project's name.

    Attributes:
        package: The import package, and the tool's or plugin's name: `word_count`.
        distribution: What is installed: `word-count`.
        cls: The stem of its classes: `WordCount`.
    """

    package: str
    distribution: str
    cls: str


def make_project(kind: Kind, name: str, into: Path) -> int:
    """Write a project into a folder of its name, and say what to do with it.

    Args:
        kind: What it is.
        name: Letters, digits, `_` or `-`.
        into: Where its folder is made.

    Raises:
        UsageProblem: For a name that cannot be used, and where there is something of this name already.
        CommandFailed: Where it cannot be written; what was written is removed.
    """
    names = checked_name(name)
    if not into.is_dir():
        raise UsageProblem(f"--into {into}: there is no such folder. Write: mkdir -p {into}")
    folder = into / names.package
    texts = dict(sorted(project_files(kind, names).items()))
    taken = f"{folder} is there already, and nothing is overwritten. Take another name, or write: --into FOLDER"
    if os.path.lexists(folder):
        raise UsageProblem(taken)
    if _is_importable(names.package):
        raise UsageProblem(f'"{name}" is installed here already. Did you mean "my_{names.package}"?')
    try:
        folder.mkdir()
    except FileExistsError as error:  # made meanwhile
        raise UsageProblem(taken) from error
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be made: {error.strerror}") from error
    _write(folder, texts)
    print(f"made {near(folder)}:")
    for path in texts:
        print(f"  {path}")
    say(_next(kind, names, folder))
    return ANSWERED


def checked_name(name: str) -> Names:
    """Accept a project's name, in the forms that it is used in.

    Raises:
        UsageProblem: For a name that no package can have, or that would hide another one; with the nearest right one.
    """
    package = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", package):
        raise UsageProblem(
            f'"{name}" cannot name a package: use small letters, digits and `_`, a letter first.{_nearest(name)}'
        )
    if len(package) > LONGEST:
        raise UsageProblem(f'"{name}" has {len(package)} characters: use at most {LONGEST}.{_nearest(name[:LONGEST])}')
    if keyword.iskeyword(package) or keyword.issoftkeyword(package):
        raise UsageProblem(f'"{name}" is a word of Python. Did you mean "my_{package}"?')
    if package in TAKEN or package in sys.stdlib_module_names or package.startswith("thena_"):
        raise UsageProblem(f'"{name}" would hide another module of that name. Did you mean "my_{package}"?')
    words = package.split("_")
    return Names(package, package.replace("_", "-"), "".join(word.capitalize() for word in words))


def project_files(kind: Kind, names: Names) -> dict[str, str]:
    """Return a project's files: path, with `/`, to text."""
    values = {**_shaped(kind, names), **asdict(names), "core": _compatible(version("thena-core"))}
    root = resources.files("thena_core.cli") / "scaffolds"
    files = _filled(root / "every", values) | _filled(root / kind, values)
    return files | {f"{names.package}/py.typed": ""}


def _shaped(kind: Kind, names: Names) -> dict[str, str]:
    """Return the facts of a kind of project, with its name in them."""
    return {key: Template(text).substitute(asdict(names)) for key, text in asdict(SHAPES[kind]).items()}


def _filled(folder: Traversable, values: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for item in folder.iterdir():
        # a dot in front would keep `.gitignore` out of packages and listings
        name = item.name.removesuffix(SUFFIX).replace("dot_", ".").replace("PACKAGE", values["package"])
        if item.is_dir():
            found |= _filled(item, values, f"{prefix}{name}/")
        elif item.name.endswith(SUFFIX):
            found[prefix + name] = Template(item.read_text(encoding="utf-8")).substitute(values)
    return found


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files into a folder that was just made; where that fails, remove what was written and no more."""
    written: list[Path] = []
    try:
        for name, text in texts.items():
            path = folder / PurePosixPath(name)
            for place in reversed([place for place in path.relative_to(folder).parents if place != Path()]):
                if not (folder / place).is_dir():
                    (folder / place).mkdir()
                    written.append(folder / place)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in reversed([folder, *written]):
            _remove(path)
        raise CommandFailed(f"{folder} cannot be written: {error.strerror or error}") from error


def _remove(path: Path) -> None:
    try:
        path.rmdir() if path.is_dir() else path.unlink()
    except OSError as error:
        say(f"{path} is left behind: {error.strerror}")


def _compatible(here: str) -> str:
    """Name the versions that keep this one's interface: below 1.0 the minor ones may change it."""
    major, minor = here.split(".")[:2]
    above = f"0.{int(minor) + 1}" if major == "0" else str(int(major) + 1)
    return f">={major}.{minor},<{above}"


def _nearest(name: str) -> str:
    plain = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).encode("ascii", "ignore")
    near = re.sub(r"[^a-z0-9]+", "_", plain.decode().lower()).strip("_0123456789")[:LONGEST].rstrip("_")
    return f' Did you mean "{near}"?' if near else " Write for example: thena new tool word_count"


def _is_importable(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _next(kind: Kind, names: Names, folder: Path) -> str:
    steps = [f"cd {near(folder)}", 'pip install -e ".[dev]"', "pytest", _shaped(kind, names)["first"]]
    return "\n".join(["next:", *(f"  {step}" for step in steps)])
