"""The page of the command line has every command, key and exit code, and its example is read as it stands."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tests.cli.test_commands import COMMANDS
from thena_core.cli import problems
from thena_core.cli.settings import KEYS, settings

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")


def test_commands() -> None:
    """Every command has its row."""
    assert sorted(re.findall(r"^\| `thena (\w+)", PAGE, re.MULTILINE)) == COMMANDS


def test_settings(tmp_path: Path) -> None:
    """Every key has its row with its variable, and the example can be used."""
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert rows == [(key, f"THENA_{key.upper()}") for key in KEYS]
    [example] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(example, encoding="utf-8")
    given = settings(tmp_path, {})
    assert (given.target, given.report) == ("shop.app:app", str(tmp_path / "out" / "reports"))
    assert (given.log, given.max_tool_calls) == ("verbose", 50)


def test_exit_codes() -> None:
    """Every exit code has its row."""
    codes = {problems.ANSWERED, problems.FAILED, problems.WRONG_USAGE, problems.STOPPED_EARLY, problems.INTERRUPTED}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == codes
    assert "130 interrupted" in (inspect.getdoc(__import__("thena_core.cli", fromlist=["main"]).main) or "")
