"""The mutation run itself: every edit fits the source, and a verdict is read off pytest rightly."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutations.__main__ import ROOT, Verdict, attempt, copy_project, first_red, suite, table
from tests.mutations.catalog import MUTATIONS, Mutation, StaleMutationError


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.name for mutation in MUTATIONS])
def test_every_mutation_fits_the_source(mutation: Mutation) -> None:
    """An edit whose text is gone is found here, not in the long run; what it leaves is Python, and another one."""
    broken = mutation.applied(ROOT)
    before = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(before))


def test_the_files_to_begin_with_exist() -> None:
    """What is looked at first is there; otherwise the run would only be slower, and nobody would know why."""
    assert [mutation.looked_at_first for mutation in MUTATIONS if not (ROOT / mutation.looked_at_first).is_file()] == []


def test_names_are_told_apart() -> None:
    """No two rows of the table have the same name."""
    names = [mutation.name for mutation in MUTATIONS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("text", "times"), [("gone", 0), ("a", 2)], ids=["gone", "twice"])
def test_a_stale_edit_is_named(tmp_path: Path, text: str, times: int) -> None:
    """A text that is not there exactly once is an error with the mutation's name and file."""
    (tmp_path / "code.py").write_text("a = a\n", encoding="utf-8")
    with pytest.raises(StaleMutationError, match=rf'"some layer" finds its text {times} times in code.py'):
        Mutation("some layer", "code.py", text, "b").applied(tmp_path)


@pytest.fixture
def small_project(tmp_path: Path) -> Path:
    """A project of two modules with one test of each kind that is looked at."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n', encoding="utf-8")
    for folder in ("thena_core", "thena_tools", "docs", "tests/calls", "tests/hooks"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "thena_core/__init__.py").touch()  # a package of its own, before the installed one
    (tmp_path / "thena_core/answer.py").write_text("ANSWER = 42\nUNSEEN = 1\n", encoding="utf-8")
    test = "from thena_core.answer import ANSWER\n\ndef test_answer():\n    assert ANSWER == 42\n"
    (tmp_path / "tests/calls/test_answer.py").write_text(test, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "killed_by", "problem"),
    [
        ("42", "41", "tests/calls/test_answer.py::test_answer", None),
        ("UNSEEN = 1", "UNSEEN = 2", None, None),
        ("ANSWER = 42", "raise ImportError", None, "no test ran"),
        ("nowhere", "", None, "finds its text 0 times"),
    ],
    ids=["killed", "survives", "cannot be imported", "stale"],
)
def test_a_verdict_is_what_pytest_says(
    small_project: Path, old: str, new: str, killed_by: str | None, problem: str | None
) -> None:
    """A red test kills; green tests let it survive; a product that cannot be imported proves nothing."""
    verdict = attempt(small_project, Mutation("some layer", "thena_core/answer.py", old, new))
    assert verdict.killed_by == killed_by
    assert (verdict.problem is None) is (problem is None)
    assert (problem or "") in (verdict.problem or "")


def test_a_fickle_test_kills_nothing(small_project: Path) -> None:
    """A test that is red once and green when it runs again is left out, and the others decide."""
    test = "import pathlib\n\nSEEN = pathlib.Path('seen')\n\ndef test_fickle():\n    was = SEEN.exists()\n    SEEN.touch()\n    assert was\n"
    (small_project / "tests/calls/test_a_fickle.py").write_text(test, encoding="utf-8")
    survivor = attempt(small_project, Mutation("some layer", "thena_core/answer.py", "UNSEEN = 1", "UNSEEN = 2"))
    assert (survivor.killed_by, survivor.problem) == (None, None)
    killed = attempt(small_project, Mutation("some layer", "thena_core/answer.py", "42", "41"))
    assert killed.killed_by == "tests/calls/test_answer.py::test_answer"


def test_nothing_broken_is_green(small_project: Path) -> None:
    """Without a mutation the copy is the project."""
    verdict = attempt(small_project, None)
    assert (verdict.killed_by, verdict.problem) == (None, None)


def test_the_copy_is_complete(small_project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the tests need is copied, and they are found there."""
    copy = tmp_path_factory.mktemp("copy")
    copy_project(small_project, copy)
    assert (copy / "thena_core/answer.py").read_text(encoding="utf-8") == "ANSWER = 42\nUNSEEN = 1\n"
    assert suite(copy) == ["tests/calls", "tests/hooks"]


def test_the_first_red_test_is_read() -> None:
    """Of pytest's summary the first test counts, an error in its set-up included."""
    said = "F.\nFAILED tests/a.py::test_b[x - y] - assert 1 == 2\nERROR tests/c.py::test_d - boom\n"
    assert first_red(said) == "tests/a.py::test_b[x - y]"
    assert first_red(said.partition("\n")[2].partition("\n")[2]) == "tests/c.py::test_d"
    assert first_red("ERROR tests/c.py - ImportError\n") is None


def test_a_survivor_stands_out() -> None:
    """The table tells survivors and mutations that could not be tried from the rest."""
    shown = table([Verdict("a", "tests/x.py::y", 1.0), Verdict("b", None, 2.0), Verdict("c", None, 0.0, "stale")])
    assert [line.split(" | ")[1].strip() for line in shown.splitlines()[2:]] == [
        "tests/x.py::y",
        "SURVIVED",
        "COULD NOT BE TRIED",
    ]
