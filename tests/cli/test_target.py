"""TARGET: what it may be, and one line with the way out for everything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from thena_core.cli import main
from thena_core.cli.target import is_target

Thena = Callable[..., int]


@pytest.mark.parametrize("target", ["shop:app", "shop:make", "shop:make_async", "shop:Holder.inner"])
def test_targets(shop: Path, capsys: pytest.CaptureFixture[str], target: str) -> None:
    """A TARGET is an app or a function that returns one, also an async one, also with a path to it."""
    assert main(["call", target, "price", '{"item": "tea"}']) == 0
    assert capsys.readouterr().out == "tea: 3 euros\n"


@pytest.mark.parametrize(
    ("target", "code", "problem"),
    [
        pytest.param("shp:app", 2, 'there is no module shp in the current folder or among what is installed. Did you mean "shop"?', id="module"),
        pytest.param("store.shp:app", 2, 'there is no module store.shp in the current folder or among what is installed. Did you mean "shop"?', id="submodule"),
        pytest.param("shop:ap", 2, 'the module shop has no ap. Did you mean "app"? Apps there: app, restless, unlucky, counter.', id="object"),
        pytest.param("empty:main", 2, "the module empty has no main. Write in it: main = Thena(…)", id="no-app"),
        pytest.param("shop:Clerk", 2, "shop:Clerk is the class Clerk. Write beside it, and name: app = Thena(Clerk)", id="class"),
        pytest.param("shop:make_nothing", 2, "shop:make_nothing gives int, where a Thena", id="int"),
        pytest.param("shop:make_of", 2, "make_of needs name, and a TARGET is called with nothing", id="arguments"),
        pytest.param("shop:make_trouble", 1, "shop:make_trouble failed: OSError: no disk", id="function-fails"),
        pytest.param("shop:make_exit", 1, "shop:make_exit failed: SystemExit: 3", id="function-exits"),
        pytest.param("shop:make_trouble_async", 1, "shop:make_trouble_async failed: OSError: no net", id="async-fails"),
        pytest.param("broken:app", 1, "importing broken failed: SyntaxError:", id="syntax"),
        pytest.param("leaving:app", 1, "importing leaving failed: SystemExit: no licence", id="exit"),
        pytest.param("lacking:app", 1, "importing lacking failed: ModuleNotFoundError: No module named 'a_driver_that_nobody_has'. Install what brings a_driver_that_nobody_has", id="import"),
        pytest.param("shop", 2, '"shop" is no TARGET: write it as module:object, e.g. thena call shop.app:app TOOL', id="no-colon"),
        pytest.param("./shop.py:app", 2, "Did you mean shop:app?", id="path"),
        pytest.param("store/shop.py", 2, "Did you mean store.shop:app?", id="path-alone"),
        pytest.param("shop:", 2, "is no TARGET", id="no-object"),
        pytest.param("", 2, "is no TARGET", id="empty"),
    ],
)  # fmt: skip
def test_wrong_targets(shop: Path, capsys: pytest.CaptureFixture[str], target: str, code: int, problem: str) -> None:
    """What is no app is one line that says what is, and nearest."""
    (shop / "empty.py").touch()
    (shop / "broken.py").write_text("def broken(:\n", encoding="utf-8")
    (shop / "leaving.py").write_text("import sys\nsys.exit('no licence')\n", encoding="utf-8")
    (shop / "lacking.py").write_text("import a_driver_that_nobody_has\n", encoding="utf-8")
    (shop / "store").mkdir()
    (shop / "store" / "__init__.py").touch()
    (shop / "store" / "shop.py").touch()
    assert main(["call", target, "price"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert problem in err


def test_no_target(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without one the ways to give it are named."""
    assert main(["explain"]) == 2
    err = capsys.readouterr().err
    assert "the TARGET is missing: write it as module:object, e.g. thena explain shop.app:app [TOOL]" in err
    assert 'or set target = "shop.app:app" in [tool.thena] of pyproject.toml' in err


def test_the_target_of_the_settings(
    shop: Path, thena: Thena, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stands in for one that is not given, also in a folder below the project's; one that is given wins."""
    (shop / "pyproject.toml").write_text("[tool.thena]\ntarget = 'shop:counter'\n", encoding="utf-8")
    (shop / "below").mkdir()
    monkeypatch.chdir(shop / "below")
    assert thena("call", "price", '{"item": "tea"}') == 0
    assert thena("run", "how much?") == 2
    assert "shop:counter has only tools and nothing to run" in capsys.readouterr().err
    assert thena("run", "shop:app", "how much?", "--quiet", "--no-report") == 0


@pytest.mark.parametrize(
    ("word", "so"),
    [("a:b", True), ("a.b:c.d", True), ("read_file", False), ("a:", False), (":b", False), ("is it a:b?", False)],
)
def test_is_target(word: str, so: bool) -> None:
    """A tool's name and a sentence are none."""
    assert is_target(word) is so
