"""The table of commands: each has its help, and shells complete it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from thena_core.cli import commands, main

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ["call", "demo", "doctor", "explain", "new", "plugins", "report", "run", "tools"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help(here: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Each command says what it does, with `--debug` among its options, and does nothing."""
    assert main([command, "--help"]) == 0
    out, err = capsys.readouterr()
    function = getattr(commands, "run_command" if command == "run" else command)
    assert " ".join((inspect.getdoc(function) or "").split())[:30] in " ".join(out.split())
    assert "--debug" in out
    assert err == ""
    assert list(here.iterdir()) == []


def test_help_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` lists the commands, says what a TARGET is, and how to have completion installed."""
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f" {command} " in out for command in COMMANDS)
    assert "module:object" in out
    assert "tool.thena" in out
    assert "--install-completion" in out


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word there is the help, and exit code 2."""
    assert main([]) == 2
    assert "Usage: thena" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("thena ", COMMANDS),
        ("thena pl", ["plugins"]),
        ("thena new ", ["agent", "app", "plugin", "tool"]),
        ("thena run --max-t", ["--max-tokens", "--max-tool-calls"]),
    ],
)
def test_completion(tmp_path: Path, words: str, completed: list[str]) -> None:
    """Bash asks with these variables, and gets what can stand there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THENA_")}
    asked = {"_THENA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = subprocess.run(
        [sys.executable, "-c", "import sys\nfrom thena_core.cli import main\nsys.exit(main([]))"],
        cwd=tmp_path,
        env={**kept, **asked, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(result.stdout.split()) == completed
    assert result.stderr == ""


def test_completion_script(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--show-completion` prints what a shell reads."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    with pytest.raises(SystemExit) as left:  # typer's own way to end
        main(["--show-completion", "bash"])
    assert left.value.code == 0
    assert "_THENA_COMPLETE=complete_bash" in capsys.readouterr().out
