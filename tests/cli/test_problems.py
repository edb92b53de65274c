"""What goes wrong is lines on stderr and an exit code, whatever it is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from thena_core.cli.problems import CommandFailed, UsageProblem, exit_code, guarded, one_line
from thena_core.errors import BuildError, ProviderError, ThenaError


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        pytest.param(ThenaError("[thena] no\n  tool"), 1, "no tool", id="thena"),
        pytest.param(ProviderError("no key", provider="openai"), 1, "openai: no key", id="provider"),
        pytest.param(KeyError("x"), 1, "KeyError: 'x'", id="foreign"),
        pytest.param(CommandFailed("it burns"), 1, "it burns", id="failed"),
        pytest.param(UsageProblem("write it so"), 2, "write it so", id="usage"),
        pytest.param(asyncio.CancelledError("x"), 1, "CancelledError: x", id="cancelled"),
        pytest.param(ThenaError("key sk-abcdefghijklmnopqrstuvwxyz012345"), 1, "key sk-…masked", id="secret"),
        pytest.param(ThenaError("\x1b[31mred\x07"), 1, "�[31mred�", id="control"),
    ],
)
def test_guarded(capsys: pytest.CaptureFixture[str], error: BaseException, code: int, line: str) -> None:
    """An error is one line on stderr, masked and harmless, and its exit code."""

    def fail() -> int:
        raise error

    assert guarded(fail, []) == code == exit_code(error)
    assert capsys.readouterr() == ("", f"error: {line}\n")


def test_each_problem_of_a_build(capsys: pytest.CaptureFixture[str]) -> None:
    """A build's problems are a line each."""

    def fail() -> int:
        raise BuildError([ThenaError("[thena] one"), ThenaError("[thena] two\nwrite it so")])

    assert guarded(fail, []) == 1
    assert capsys.readouterr().err == "error: one\nerror: two write it so\n"


@pytest.mark.parametrize(("words", "traced"), [(["x", "--debug"], True), (["x", "--", "--debug"], False)])
def test_debug(capsys: pytest.CaptureFixture[str], words: list[str], traced: bool) -> None:
    """`--debug` prints the traceback, masked too; behind `--` it is a word like others."""

    def fail() -> int:
        raise ThenaError("password=hunter2hunter2")

    assert guarded(fail, words) == 1
    err = capsys.readouterr().err
    assert ("Traceback" in err) == traced
    assert "hunter2" not in err


def test_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is exit code 130 and one word."""

    def interrupt() -> int:
        raise KeyboardInterrupt

    assert guarded(interrupt, []) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_one_line_of_what_cannot_be_shown() -> None:
    """An exception that cannot print itself takes nothing down."""

    class Rude(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert one_line(Rude()) == "Rude: (its message cannot be shown)"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break in another way on Windows")
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """`thena … | head -1` says nothing of a broken pipe."""
    script = (
        "import sys\nfrom thena_core.cli.problems import guarded\n"
        "def work():\n    print('x' * 1_000_000)\n    return 0\n"
        "sys.exit(guarded(work, []))\n"
    )
    command = f'"{sys.executable}" -c "$SCRIPT" | head -c 1; exit ${{PIPESTATUS[0]}}'
    result = subprocess.run(
        ["bash", "-c", command],
        env={"SCRIPT": script, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (141, "x", "")
