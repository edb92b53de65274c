"""The command line: its exit codes, and its one line of words where something is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from thena_core.cli import main
from thena_core.cli.commands import run
from thena_core.cli.demo import chosen_provider
from thena_core.cli.problems import exit_code, one_line
from thena_core.errors import ProviderError, ThenaError

ROOT = Path(__file__).resolve().parents[2]
RUN = ["run", "shop:app", "wie viel, bitte? ▸", "--no-report", "--verbose"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints the version of the distribution."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"thena {version('thena-core')}\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(["demo", "nowhere"], "there is no folder nowhere", id="missing-folder"),
        pytest.param(["demo", "file"], "file is a file, not a folder", id="file"),
        pytest.param(["demo", ".", "?", "--model", "gpt"], "--model gpt: write it as SERVICE:NAME", id="no-service"),
        pytest.param(["demo", ".", "?", "--model", "openai:"], "the model's name is missing", id="no-name"),
        pytest.param(["demo", ".", "?", "--model", "acme:x"], "unknown service 'acme'", id="unknown-service"),
        pytest.param(["demo", ".", "?", "--model", "olama:x"], 'Did you mean "ollama"?', id="misspelt-service"),
        pytest.param(["demo", ".", "a", "b"], "unexpected extra argument", id="too-many"),
        pytest.param(["demo", "--colour"], "No such option: --colour", id="unknown-option"),
        pytest.param(["dmo"], "No such command 'dmo'", id="unknown-command"),
    ],
)
def test_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    problem: str,
) -> None:
    """A command that cannot be run is one line on stderr and exit code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert problem in err
    assert err.count("\n") == 1


def test_debug_prints_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """`--debug` shows where an error comes from."""
    assert run(["demo", "/no/such/folder", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is exit code 130 and one word."""

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("thena_core.cli.demo.run_demo", interrupt)
    assert run(["demo"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        pytest.param(ThenaError("[thena] no\n  tool"), "no tool", id="thena"),
        pytest.param(ProviderError("no key", provider="openai"), "openai: no key", id="provider"),
        pytest.param(KeyError("x"), "KeyError: 'x'", id="foreign"),
    ],
)
def test_failures(error: Exception, line: str) -> None:
    """What fails in a run is one line and exit code 1."""
    assert (exit_code(error), one_line(error)) == (1, line)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_that_lacks_signs(shop: Path, encoding: str) -> None:
    """Signs that the terminal has not are replaced, and cost neither the answer nor the exit code."""
    result = subprocess.run(
        [sys.executable, "-c", "import sys\nfrom thena_core.cli import main\nsys.exit(main())", *RUN],
        cwd=shop,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stdout.decode(encoding)) == (0, "Tea costs 3 euros.\n")
    assert b"chat FakeProvider" in result.stderr


def test_without_the_extra() -> None:
    """Without typer and rich `--version` works, and everything else says what to install."""
    script = (
        "import sys\n"
        "sys.modules.update(typer=None, rich=None)\n"
        "from thena_core.cli import main\n"
        "print(main(['--version']), main(['demo']))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("0 1\n")
    assert result.stderr == 'error: typer and rich not installed: pip install "thena-core[cli]"\n'


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        pytest.param("openai:gpt-5-mini", "OpenAIProvider(model='gpt-5-mini')", id="openai"),
        pytest.param("anthropic:claude-x", "AnthropicProvider(model='claude-x')", id="anthropic"),
        pytest.param("ollama:qwen3:0.6b", "OllamaProvider(model='qwen3:0.6b')", id="a-name-with-a-colon"),
    ],
)
def test_models_of_the_demo(model: str, shown: str) -> None:
    """`--model SERVICE:NAME` makes the provider of the service."""
    assert repr(chosen_provider(model)) == shown
