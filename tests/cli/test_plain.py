"""Without the extra `cli`: what works all the same, and one line for the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from thena_core.cli import main
from thena_core.cli.plain import run_plain

ROOT = Path(__file__).resolve().parents[2]
MISSING = 'error: typer and rich not installed: pip install "thena-core[cli]"\n'


def without_extra(folder: Path, *words: str) -> tuple[int, str, str]:
    """Type a command where typer and rich are not to be had."""
    script = (
        "import sys\nsys.modules.update(typer=None, rich=None)\n"
        "from thena_core.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THENA_")}
    result = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


@pytest.mark.parametrize("words", [["--version"], ["tools"], ["plugins"], ["plugins", "shop:app"]])
def test_the_same_as_with_it(shop: Path, capfd: pytest.CaptureFixture[str], words: list[str]) -> None:
    """`tools`, `plugins` and `--version` say what they say with the extra."""
    code, out, err = without_extra(shop, *words)
    assert main(words) == code == 0
    assert capfd.readouterr() == (out, err)


@pytest.mark.parametrize(
    "words",
    [["demo"], ["run", "shop:app", "hi"], ["call"], ["explain"], ["doctor"], ["new"], ["report"], [], ["tools", "--help"]],
    ids=" ".join,
)  # fmt: skip
def test_what_needs_it(shop: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Everything else is one line that says what to install."""
    assert run_plain(words, ["typer", "rich"]) == 1
    assert capsys.readouterr() == ("", MISSING)


def test_one_of_two(capsys: pytest.CaptureFixture[str]) -> None:
    """Only what is missing is named."""
    assert run_plain(["demo"], ["rich"]) == 1
    assert capsys.readouterr().err == 'error: rich not installed: pip install "thena-core[cli]"\n'


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["tools", "x"], "tools takes no x. Write: thena tools"),
        (["tools", "--json"], "tools takes no --json. Write: thena tools"),
        (["plugins", "a:b", "c"], "plugins takes no c. Write: thena plugins [TARGET]"),
        (["plugins", "shp:app"], 'there is no module shp in the current folder or among what is installed. Did you mean "shop"?'),
    ],
)  # fmt: skip
def test_wrong_words(shop: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str) -> None:
    """A wrong word is one line and exit code 2, as with the extra."""
    assert run_plain(words, ["typer"]) == 2
    err = capsys.readouterr().err
    assert problem in err
    assert err.count("\n") == 1


def test_debug(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--debug` works without typer."""
    assert run_plain(["plugins", "shp:app", "--debug"], ["typer"]) == 2
    assert "Traceback" in capsys.readouterr().err
