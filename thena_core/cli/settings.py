"""What the command line is told beside its words: `[tool.thena]` in pyproject.toml, then `THENA_*`, then flags."""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from thena_core._render import did_you_mean, listed
from thena_core.cli.problems import UsageProblem

if TYPE_CHECKING:
    from thena_core.budget import Budget

PREFIX = "THENA_"
ELSEWHERE = ("PLUGINS",)
"""Variables of this prefix that the framework reads itself."""

NEAR = 0.75
"""How like a known name a variable must be to count as a misspelt one (difflib's ratio); others may be a plugin's."""

_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one command; each but `project` is a key of `[tool.thena]` and a variable `THENA_<KEY>`.

    Attributes:
        target: The app as `module:object`, for commands that are given none.
        model: What `thena demo` asks, as `SERVICE:NAME`.
        log: Print the tree on stderr; `"verbose"` with short content.
        report: Write reports; a folder says where, `True` leaves it to the app, or else `./report`.
        max_duration: Seconds that a run or call may take.
        max_chat_calls: Model calls that a run may make.
        max_tool_calls: Tool calls that a run may make.
        max_tokens: Tokens that a run may use.
        max_cost_usd: US dollars that a run may cost.
        project: The folder of the pyproject.toml, or `None` where there is none.
    """

    target: str | None = None
    model: str | None = None
    log: bool | Literal["verbose"] = True
    report: bool | str = True
    max_duration: float | None = None
    max_chat_calls: int | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    project: Path | None = None

    def budget(self) -> Budget | None:
        """Return the limits as a budget, or `None` where there are none."""
        from thena_core.budget import Budget  # noqa: PLC0415 - a wrong setting needs no framework

        limits = {name: getattr(self, name) for name in KEYS if name.startswith("max_")}
        return Budget(**limits) if any(limit is not None for limit in limits.values()) else None

    def having(self, **flags: Any) -> Settings:
        """Lay the flags that were given over what is here.

        Raises:
            UsageProblem: For a value that the key cannot have.
        """
        given = {name: value for name, value in flags.items() if value is not None}
        return replace(self, **{name: _read(name, value, f"--{_dashed(name)}") for name, value in given.items()})


KEYS = tuple(field.name for field in fields(Settings) if field.name != "project")


def settings(folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of the project around a folder, and those of the environment.

    Args:
        folder: Where the command was given; the current folder unless given.
        environment: The environment variables; those of the process unless given.

    Raises:
        UsageProblem: For a file that cannot be read, a key that there is not, and a value that a key cannot have.
    """
    file = _project_file((folder or Path()).resolve())
    values = {} if file is None else _from_file(file)
    values |= _from_environment(os.environ if environment is None else environment)
    return Settings(project=None if file is None else file.parent, **values)


def project_table(file: Path) -> dict[str, Any]:
    """Read a pyproject.toml.

    Raises:
        UsageProblem: Where it cannot be read; the text says where in it.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageProblem(f"{file} cannot be read: {error}") from error


def mapping(value: Any) -> Mapping[str, Any]:
    """Take a part of a file for a table; what is none counts as an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _project_file(folder: Path) -> Path | None:
    """Find the nearest pyproject.toml, upwards."""
    return next((place / "pyproject.toml" for place in (folder, *folder.parents) if _is_there(place)), None)


def _is_there(folder: Path) -> bool:
    try:
        return (folder / "pyproject.toml").is_file()
    except OSError:
        return False


def _from_file(file: Path) -> dict[str, Any]:
    given = mapping(project_table(file).get("tool")).get("thena", {})
    where = f"[tool.thena] in {file.name}"
    if not isinstance(given, dict):
        raise UsageProblem(f'{where} is no table. Write: [tool.thena], and below it target = "module:object"')
    given = mapping(given)  # pyright: ignore[reportUnknownArgumentType]
    for key in given:
        if key not in KEYS:
            raise UsageProblem(f'{where} has no key "{key}".{did_you_mean(key, KEYS)} Keys are: {listed(KEYS)}')
    values = {key: _read(key, value, f"{where}: {key}") for key, value in given.items()}
    if isinstance(values.get("report"), str):
        values["report"] = str(file.parent / values["report"])
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, value in environment.items():
        name = variable.removeprefix(PREFIX)
        if name == variable or name in ELSEWHERE:
            continue
        key = name.lower()
        if key in KEYS:
            if value:  # an empty variable is the shell's way to unset one
                values[key] = _read(key, _switch(value) if key in {"log", "report"} else value, variable)
            continue
        nearest = difflib.get_close_matches(name, [*ELSEWHERE, *map(str.upper, KEYS)], n=1, cutoff=NEAR)
        if nearest:
            raise UsageProblem(
                f'the variable {variable} is none of Thena\'s. Did you mean "{PREFIX}{nearest[0]}"? '
                f"Write: unset {variable}"
            )
    return values


def _read(key: str, value: Any, where: str) -> Any:
    """Accept the value of a key.

    Raises:
        UsageProblem: For a value that it cannot have, and which it can.
    """
    reader, expected = _READERS[key]
    try:
        return reader(value)
    except (TypeError, ValueError) as error:
        raise UsageProblem(f"{where} = {value!r}: {expected} is due") from error


def _switch(text: str) -> bool | str:
    return _SWITCHES.get(text.strip().lower(), text)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError
    return value


def _log(value: Any) -> bool | str:
    if isinstance(value, bool):
        return value
    if value != "verbose":
        raise TypeError
    return "verbose"


def _report(value: Any) -> bool | str:
    return value if isinstance(value, bool) else _text(value)


def _number(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not 0 <= number < math.inf:
        raise ValueError
    return number


def _count(value: Any) -> int:
    number = _number(value)
    if number != int(number):
        raise ValueError
    return int(number)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


_READERS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "target": (_text, 'a text "module:object"'),
    "model": (_text, 'a text "SERVICE:NAME"'),
    "log": (_log, 'true, false or "verbose"'),
    "report": (_report, "true, false or a folder"),
    "max_duration": (_number, "a number of seconds from 0 up"),
    "max_chat_calls": (_count, "a whole number from 0 up"),
    "max_tool_calls": (_count, "a whole number from 0 up"),
    "max_tokens": (_count, "a whole number from 0 up"),
    "max_cost_usd": (_number, "a number of US dollars from 0 up"),
}
