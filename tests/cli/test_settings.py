"""Settings: the project's file, then the environment, then flags; a wrong key is an error with the nearest right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from thena_core.cli import main
from thena_core.cli.problems import UsageProblem
from thena_core.cli.settings import Settings, settings


def write(folder: Path, table: str) -> None:
    (folder / "pyproject.toml").write_text(table, encoding="utf-8")


def test_nothing_is_set(tmp_path: Path) -> None:
    """Without file and variables the tree is printed, reports are written, and nothing is limited."""
    given = settings(tmp_path, {})
    assert (given.log, given.report, given.target, given.budget()) == (True, True, None, None)


def test_each_wins_over_the_one_before(tmp_path: Path) -> None:
    """The file gives all, a variable changes one, a flag another."""
    write(tmp_path, '[tool.thena]\ntarget = "a:b"\nmax_tool_calls = 5\nlog = "verbose"\n')
    given = settings(tmp_path, {"THENA_MAX_TOOL_CALLS": "6", "THENA_LOG": "0", "THENA_TARGET": ""})
    assert (given.target, given.max_tool_calls, given.log) == ("a:b", 6, False)
    assert given.having(max_tool_calls=7, target=None) == Settings(
        target="a:b", max_tool_calls=7, log=False, project=tmp_path
    )


def test_the_file_of_a_folder_above(tmp_path: Path) -> None:
    """The nearest pyproject.toml counts, and its report folder is one beside it."""
    write(tmp_path, '[tool.thena]\nreport = "out"\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert settings(below, {}).report == str(tmp_path / "out")
    write(below, "[project]\n")
    assert settings(below, {}) == Settings(project=below)


def test_budget(tmp_path: Path) -> None:
    """The limits are a budget."""
    write(tmp_path, "[tool.thena]\nmax_duration = 1.5\nmax_cost_usd = 0\n")
    budget = settings(tmp_path, {}).budget()
    assert budget is not None
    assert (budget.max_duration, budget.max_cost_usd, budget.max_tokens) == (1.5, 0, None)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        pytest.param("reprot = true", 'no key "reprot". Did you mean "report"? Keys are: target, model', id="key"),
        pytest.param("log = 3", 'log = 3: true, false or "verbose" is due', id="log"),
        pytest.param('log = "loud"', "log = 'loud': true, false or \"verbose\" is due", id="log-word"),
        pytest.param("report = 3", "report = 3: true, false or a folder is due", id="report"),
        pytest.param("target = 3", "target = 3: a text", id="target"),
        pytest.param('target = " "', "target = ' ': a text", id="blank"),
        pytest.param("max_tokens = -1", "max_tokens = -1: a whole number from 0 up is due", id="negative"),
        pytest.param("max_tokens = 1.5", "max_tokens = 1.5: a whole number from 0 up is due", id="fraction"),
        pytest.param("max_tokens = true", "max_tokens = True: a whole number from 0 up is due", id="bool"),
        pytest.param("max_duration = nan", "max_duration = nan: a number of seconds from 0 up is due", id="nan"),
        pytest.param("max_duration = inf", "max_duration = inf: a number of seconds from 0 up is due", id="inf"),
        pytest.param("max_cost_usd = []", "max_cost_usd = []: a number of US dollars", id="list"),
        pytest.param("report = ", "cannot be read: Invalid value (at line 2", id="no-toml"),
    ],
)
def test_wrong_files(tmp_path: Path, table: str, problem: str) -> None:
    """What the file says wrongly is named with its place."""
    write(tmp_path, f"[tool.thena]\n{table}\n")
    with pytest.raises(UsageProblem) as caught:
        settings(tmp_path, {})
    assert problem in str(caught.value)
    assert "pyproject.toml" in str(caught.value)


def test_no_table(tmp_path: Path) -> None:
    """`tool.thena` that is no table is an error; a `tool` that is none has no settings."""
    write(tmp_path, '[tool]\nthena = "a:b"\n')
    with pytest.raises(UsageProblem, match=r"\[tool.thena\] in pyproject.toml is no table"):
        settings(tmp_path, {})
    write(tmp_path, "tool = 3\n")
    assert settings(tmp_path, {}) == Settings(project=tmp_path)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are an error that names the file."""
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.thena]\ntarget = '\xff'\n")
    with pytest.raises(UsageProblem, match=r"pyproject\.toml cannot be read"):
        settings(tmp_path, {})


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        pytest.param("THENA_REPROT", "1", 'Did you mean "THENA_REPORT"? Write: unset THENA_REPROT', id="near"),
        pytest.param("THENA_PLUGIN", "0", 'Did you mean "THENA_PLUGINS"?', id="the-switch"),
        pytest.param("THENA_MAX_TOKENS", "many", "THENA_MAX_TOKENS = 'many': a whole number", id="value"),
        pytest.param("THENA_LOG", "loud", "THENA_LOG = 'loud': true, false", id="log"),
    ],
)
def test_wrong_variables(tmp_path: Path, variable: str, value: str, problem: str) -> None:
    """A misspelt variable is an error with the right one, and so is a value that none can have."""
    with pytest.raises(UsageProblem) as caught:
        settings(tmp_path, {variable: value})
    assert problem in str(caught.value)


@pytest.mark.parametrize("variable", ["THENA_PLUGINS", "THENA_AUDIT_FILE", "THENA_PROOF", "OTHER_REPORT"])
def test_variables_of_others(tmp_path: Path, variable: str) -> None:
    """A variable that is near none of Thena's may be a plugin's."""
    assert settings(tmp_path, {variable: "1"}) == Settings()


@pytest.mark.parametrize(
    ("value", "report"), [("1", True), ("off", False), ("No", False), ("somewhere", "somewhere"), ("", True)]
)
def test_switches(tmp_path: Path, value: str, report: bool | str) -> None:
    """A variable switches with the words that people use, or names a folder."""
    assert settings(tmp_path, {"THENA_REPORT": value}).report == report


@pytest.mark.parametrize("words", [["run", "hi"], ["call", "x"], ["explain"], ["demo"], ["report"]])
def test_commands_refuse_a_wrong_key(here: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """A command says what is wrong in one line, and does nothing."""
    write(here, "[tool.thena]\ntarget = 'a:b'\nmax_calls = 3\n")
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith('error: [tool.thena] in pyproject.toml has no key "max_calls". Did you mean "max_')
    assert err.count("\n") == 1
