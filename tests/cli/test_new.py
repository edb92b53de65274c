"""`thena new`: what it writes passes its own tests, mypy and ruff, fails when it is broken, and overwrites nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from thena_core.cli import main
from thena_core.cli.new import Kind, checked_name, make_project, project_files
from thena_core.cli.problems import UsageProblem

ROOT = Path(__file__).resolve().parents[2]
KINDS: tuple[Kind, ...] = ("app", "tool", "agent", "plugin")
LONG = "a234567890_b234567890_c234567890_d234567"
Capture = pytest.CaptureFixture[str]


def checked(folder: Path, *command: str) -> tuple[int, str]:
    """Run a tool of this environment in a project."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("THENA_", "PYTEST_"))}
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize("name", ["word_count", "q", LONG], ids=["usual", "shortest", "longest"])
@pytest.mark.parametrize("kind", KINDS)
def test_clean(here: Path, kind: Kind, name: str) -> None:
    """Whatever its name, a project is linted and formatted as its own settings say."""
    assert make_project(kind, name, here) == 0
    for command in (["check", "."], ["format", "--check", "."]):
        code, out = checked(here / name, "ruff", *command, "--no-cache")
        assert code == 0, out


@pytest.fixture(scope="module")
def types_known(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder in which mypy keeps what it knows of the libraries, so that it learns them once."""
    return str(tmp_path_factory.mktemp("mypy"))


@pytest.mark.parametrize("kind", KINDS)
def test_typed_and_tested(here: Path, kind: Kind, types_known: str) -> None:
    """A project passes mypy, strict, and its own tests, as it was written."""
    assert make_project(kind, "word-count", here) == 0
    code, out = checked(here / "word_count", "mypy", ".", "--cache-dir", types_known)
    assert code == 0, out
    code, out = checked(here / "word_count", "pytest", "-q", "-p", "no:cacheprovider")
    assert code == 0, out
    assert " passed" in out
    assert "skipped" not in out


BROKEN: Mapping[str, tuple[Kind, str, str, str]] = {
    "tool-counts-wrongly": ("tool", "tool.py", "len(args.text.split())", "len(args.text)"),
    "tool-says-it-wrongly": ("tool", "tool.py", "if count == 1 else", "if count == 2 else"),
    "tool-does-more-than-read": ("tool", "tool.py", 'effect="read"', 'effect="write"'),
    "tool-takes-anything": ("tool", "tool.py", "text: str", "text: object"),
    "tool-has-another-name": ("tool", "tool.py", 'name="word_count"', 'name="words"'),
    "agent-counts-wrongly": ("agent", "tools.py", "len(text.split())", "len(text)"),
    "agent-lacks-its-tool": ("agent", "app.py", "tools=[count_words]", "tools=[]"),
    "agent-has-another-prompt": ("agent", "word_count.agent.md", "Use your tools", "Guess"),
    "app-forgets": ("app", "services.py", "self._texts.append(text)", "pass"),
    "app-finds-all": ("app", "services.py", "if word.lower() in text.lower()", ""),
    "app-keeps-long-notes": ("app", "app.py", "app.use(tool=short_notes)", "pass"),
    "app-has-a-service-per-use": ("app", "services.py", "providers.Singleton", "providers.Factory"),
    "plugin-refuses-nothing": ("plugin", "plugin.py", "if call.name in self._refuse:", "if False:"),
    "plugin-refuses-all": ("plugin", "plugin.py", "if call.name in self._refuse:", "if True:"),
    "plugin-measures-nothing": ("plugin", "plugin.py", "return measured", "return None"),
    "plugin-calls-nothing": ("plugin", "plugin.py", "return await call_next(call)", 'return ToolOutput("")'),
}


QUICKLY = ("-k", "not conforms")  # the suite of conformance takes a second, and the project's own tests must do without


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What one pytest says that ran the tests of every broken project, and of one of each kind that is not."""
    folder = tmp_path_factory.mktemp("broken")
    # a folder in between: pytest takes those on the way to a test for packages, and the project's own has its name
    inner = folder / "projects"
    inner.mkdir()
    for kind in KINDS:
        make_project(kind, f"whole_{kind}", inner)
    for number, (kind, file, right, wrong) in enumerate(BROKEN.values()):
        name = f"broken_{number}"
        make_project(kind, name, inner)
        path = inner / name / name / file.replace("word_count", name)
        text = path.read_text(encoding="utf-8")
        right, wrong = right.replace("word_count", name), wrong.replace("word_count", name)
        assert right in text
        path.write_text(text.replace(right, wrong), encoding="utf-8")
    places = " ".join(f"projects/{path.name}" for path in inner.iterdir())
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {places}\nasyncio_mode = auto\n", encoding="utf-8")
    code, out = checked(
        folder, "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-rfE", "--tb=no", *QUICKLY
    )
    assert code == 1, out
    return out


@pytest.mark.parametrize("name", BROKEN)
def test_broken(failed: str, name: str) -> None:
    """The tests of a project fail when what was generated is broken."""
    assert f"\nFAILED projects/broken_{list(BROKEN).index(name)}/tests/" in failed


def test_whole(failed: str) -> None:
    """Those of one that is not broken pass beside them, and none failed to run at all."""
    assert "whole_" not in failed
    assert "ERROR" not in failed


@pytest.mark.parametrize(
    ("kind", "group", "value"),
    [("tool", "thena.tools", "word_count.tool:WordCountTool"), ("plugin", "thena.plugins", "word_count.plugin:plugin")],
)
def test_entry_points(kind: Kind, group: str, value: str) -> None:
    """A tool and a plugin are found by their name once they are installed."""
    project = tomllib.loads(project_files(kind, checked_name("word-count"))["pyproject.toml"])["project"]
    assert project["entry-points"] == {group: {"word_count": value}}
    assert project["name"] == "word-count"


@pytest.mark.parametrize("kind", KINDS)
def test_next_steps(here: Path, capsys: Capture, kind: Kind) -> None:
    """What was made is listed on stdout; what to do with it is on stderr, and the target is one that there is."""
    assert main(["new", kind, "word_count"]) == 0
    out, err = capsys.readouterr()
    files = {line.strip() for line in out.splitlines()[1:]}
    made = {
        path.relative_to(here / "word_count").as_posix() for path in (here / "word_count").rglob("*") if path.is_file()
    }
    assert files == made
    assert out.startswith("made word_count:\n")
    assert err.startswith('next:\n  cd word_count\n  pip install -e ".[dev]"\n  pytest\n  thena ')
    settings = tomllib.loads((here / "word_count" / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["thena"]
    assert settings["target"] in err


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_never_overwrites(here: Path, capsys: Capture, there: str) -> None:
    """Where there is something of that name, nothing is touched."""
    place = here / "word_count"
    if there == "file":
        place.write_text("mine", encoding="utf-8")
    elif there == "folder":
        place.mkdir()
    else:
        place.symlink_to(here / "nowhere")
    assert main(["new", "tool", "word-count"]) == 2
    assert capsys.readouterr() == (
        "",
        "error: word_count is there already, and nothing is overwritten. Take another name, or write: --into FOLDER\n",
    )
    assert [path.name for path in here.iterdir()] == ["word_count"]
    assert not place.is_dir() or not list(place.iterdir())
    assert there != "file" or place.read_text(encoding="utf-8") == "mine"


def test_into(here: Path, capsys: Capture) -> None:
    """Another folder can hold it; one that is not there is said with the way to make it."""
    assert main(["new", "tool", "word_count", "--into", "tools"]) == 2
    assert "--into tools: there is no such folder. Write: mkdir -p tools" in capsys.readouterr().err
    (here / "tools").mkdir()
    assert main(["new", "tool", "word_count", "--into", "tools"]) == 0
    assert "cd tools/word_count" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("Word Count", '"Word Count" cannot name a package', id="space"),
        pytest.param("WordCount", 'Did you mean "word_count"?', id="camel"),
        pytest.param("../evil", 'Did you mean "evil"?', id="path"),
        pytest.param("naïve", 'Did you mean "naive"?', id="accent"),
        pytest.param("3d", 'Did you mean "d"?', id="digit"),
        pytest.param("a__b", 'Did you mean "a_b"?', id="double"),
        pytest.param("", "Write for example: thena new tool word_count", id="empty"),
        pytest.param("…", "Write for example: thena new tool word_count", id="nothing-left"),
        pytest.param("class", '"class" is a word of Python. Did you mean "my_class"?', id="keyword"),
        pytest.param("match", '"match" is a word of Python. Did you mean "my_match"?', id="soft-keyword"),
        pytest.param("json", '"json" would hide another module of that name. Did you mean "my_json"?', id="stdlib"),
        pytest.param("tests", '"tests" would hide another module', id="tests"),
        pytest.param("thena-core", '"thena-core" would hide another module', id="thena"),
        pytest.param("pydantic", '"pydantic" is installed here already. Did you mean "my_pydantic"?', id="installed"),
        pytest.param("x" * 41, "has 41 characters: use at most 40", id="long"),
    ],
)
def test_wrong_names(here: Path, capsys: Capture, name: str, problem: str) -> None:
    """A name that no package can have, or that would hide another, is one line with the nearest right one."""
    assert main(["new", "tool", "--", name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert problem in err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("words", [["new"], ["new", "tool"], ["new", "tol", "x"]])
def test_wrong_usage(here: Path, capsys: Capture, words: list[str]) -> None:
    """A kind that there is not, and a missing name, are exit code 2."""
    assert main(words) == 2
    assert capsys.readouterr().out == ""
    assert list(here.iterdir()) == []


def test_names() -> None:
    """One name, in the forms that it is used in."""
    names = checked_name("word-count2")
    assert (names.package, names.distribution, names.cls) == ("word_count2", "word-count2", "WordCount2")
    with pytest.raises(UsageProblem):
        checked_name("word count")


def test_a_disk_that_fills(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """Where a file cannot be written, what was written is removed, and nothing else."""
    opened = Path.open

    def full(path: Path, mode: str = "r", **options: object) -> object:
        if path.name == "tool.py" and mode == "x":
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, mode, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    assert main(["new", "tool", "word_count"]) == 1
    assert capsys.readouterr() == ("", "error: word_count cannot be written: No space left on device\n")
    assert list(here.iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="who may write everywhere is refused nowhere")
def test_a_folder_that_cannot_be_written(here: Path, capsys: Capture) -> None:
    """Where the folder cannot be made, the reason is one line."""
    here.chmod(0o500)
    try:
        assert main(["new", "tool", "word_count"]) == 1
    finally:
        here.chmod(0o700)
    assert "word_count cannot be made: Permission denied" in capsys.readouterr().err


def test_made_for_this_version() -> None:
    """A project asks for the versions that keep this one's interface."""
    texts: Mapping[str, str] = project_files("plugin", checked_name("x1"))
    [wanted] = tomllib.loads(texts["pyproject.toml"])["project"]["dependencies"]
    assert wanted == "thena-core>=0.1,<0.2"
