"""What a new user types, in an empty environment that has the wheels, each mistake on the way included."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.release.conftest import EXTRA
from tests.release.environments import Environment, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the keystrokes are those of a POSIX shell")

OWN_APP = """\
from thena_core import Thena
app = Thena(tools=["word_count"], plugins=["call_timer"])
"""


class Terminal:
    """Somebody at a shell, in a folder of their own."""

    def __init__(self, env: Environment, home: Path) -> None:
        self._env = env
        self.folder = home
        self._variables = environment(PATH=f"{env.scripts}:/usr/bin:/bin", HOME=str(home))

    def types(self, line: str, code: int = 0) -> tuple[str, str]:
        """Type a line, which ends with an exit code; return what is on stdout and on stderr."""
        result = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self._variables, capture_output=True, text=True, check=False
        )
        assert result.returncode == code, f"{line}\n{result.stdout}\n{result.stderr}"
        assert "Traceback" not in result.stderr
        return result.stdout, result.stderr

    def sees(self, line: str) -> str:
        """Type a line, and read what is on stdout whatever the width of its columns."""
        return " ".join(self.types(line)[0].split())

    def errs(self, line: str, problem: str, code: int = 2) -> None:
        """Type a line that is wrong: one line on stderr has the fix, and stdout has nothing."""
        out, err = self.types(line, code)
        errors = [said for said in err.splitlines() if said.startswith("error: ")]
        assert len(errors) == 1, err
        assert problem in errors[0]
        assert out == ""

    def installs(self, what: str) -> None:
        """Type `pip install`; what it needs is here already."""
        result = self._env.pip_install(*what.split(), cwd=self.folder)
        assert result.returncode == 0, result.stderr

    def goes(self, folder: str) -> None:
        """Type `cd`."""
        self.folder = (self.folder / folder).resolve()


def without_the_extra(user: Terminal) -> None:
    """Use what works without typer and rich, and be told how to get them."""
    assert user.types("thena --version")[0].startswith("thena ")
    assert "parallel thena-tools " in user.sees("thena tools")
    user.types("thena plugins")
    user.errs("thena doctor", 'not installed: pip install "thena-core[cli]"', code=1)


def begins_a_tool(user: Terminal) -> None:
    """Begin a tool, test it, install it, and call it."""
    user.errs("thena new tol word_count", "'tool'")
    user.errs("thena new tool WordCount", 'Did you mean "word_count"?')
    out, err = user.types("thena new tool word_count")
    assert "  word_count/tool.py\n" in out
    assert "  cd word_count\n" in err
    user.errs("thena new tool word_count", "nothing is overwritten")
    user.goes("word_count")
    out, _ = user.types("thena doctor", code=1)
    assert '"word_count" of [project.entry-points."thena.tools"] is not registered' in out
    assert "  project: pip install -e .\n" in out
    user.installs("-e .[dev]")
    user.types("python -m pytest -q")
    assert "word_count word-count 0.1.0 word_count.tool:WordCountTool" in user.sees("thena tools")
    user.errs("thena call word_count.ap:app word_count", 'Did you mean "app"?')
    user.errs("thena call word_count.app:app wordcount", 'Did you mean "word_count"?')
    user.errs("thena call word_count.app:app word_count text=one", """'{"text": "…"}'""")
    user.errs("thena call word_count.app:app word_count", "invalid arguments — text: ", code=1)
    line = """thena call word_count.app:app word_count '{"text": "one two three"}'"""
    assert line in err
    assert user.types(line) == ("3 words\n", "")
    assert user.types("""thena call word_count '{"text": "one"}'""")[0] == "1 word\n"


def begins_a_plugin(user: Terminal) -> None:
    """Begin a plugin, install it, and see its hook in a run."""
    _, err = user.types("thena new plugin call_timer")
    user.goes("call_timer")
    run = 'thena run call_timer.app:make_app "count these words"'
    assert run in err
    user.errs(run, 'The plugin "call_timer" cannot be loaded: no installed package brings it.', code=1)
    user.installs(".[dev]")
    user.types("python -m pytest -q")
    assert "call_timer call-timer 0.1.0 call_timer.plugin:plugin before_tool, tool_middleware" in (
        user.sees("thena plugins")
    )
    assert "middleware measured of call_timer" in user.types("thena plugins call_timer.app:make_app")[0]
    out, err = user.types(run)
    assert out == "Three words.\n"
    assert "▸ tool count_words" in err
    [node] = [said for said in user.types("thena report")[0].splitlines() if " tool count_words " in said]
    assert " call_timer_ms=" in node


def uses_both(user: Terminal) -> None:
    """Name both in an app of somebody who has the packages and not the sources."""
    (user.folder / "mine").mkdir()
    (user.folder / "call_timer").rename(user.folder / "moved")
    user.goes("mine")
    (user.folder / "mine.py").write_text(OWN_APP, encoding="utf-8")
    assert user.types("""thena call mine:app word_count '{"text": "one two"}'""")[0] == "2 words\n"
    assert "word_count:\n    1. record\n" in user.types("thena plugins mine:app")[0]
    user.errs("thena call mine.app word_count", '"mine.app" is no TARGET')
    user.errs("thena call mined:app word_count", 'Did you mean "mine"?')
    (user.folder / "pyproject.toml").write_text("[tool.thena]\ntarge = 'mine:app'\n", encoding="utf-8")
    user.errs("thena call word_count", 'has no key "targe". Did you mean "target"?')


def begins_an_agent(user: Terminal) -> None:
    """Begin an agent, and be told which key it needs."""
    user.types("thena new agent helper")
    user.goes("helper")
    user.errs('thena run helper.app:make_app "hi"', "Set the environment variable OPENAI_API_KEY", code=1)
    assert "set OPENAI_API_KEY" in user.types("thena doctor")[0]


def test_a_new_user(bare: Environment, tmp_path: Path) -> None:
    """From nothing to a tool that is called and a plugin whose hook is seen in a run."""
    home = tmp_path / "home"
    home.mkdir()
    user = Terminal(bare, home)
    without_the_extra(user)
    bare.link(wanted=EXTRA)  # what the last line says: pip install "thena-core[cli]"
    assert "\nnext:\n" in user.types("thena doctor")[0]
    begins_a_tool(user)
    user.goes("..")
    begins_a_plugin(user)
    user.goes("..")
    uses_both(user)
    user.goes("..")
    begins_an_agent(user)


def test_nothing_comes_from_the_sources(installed: Environment, tmp_path: Path) -> None:
    """The environments of these tests see the wheels, and not this checkout."""
    script = "import thena_core, thena_tools; print(thena_core.__file__); print(thena_tools.__file__)"
    out, _ = Terminal(installed, tmp_path).types(f"python -c '{script}'")
    assert all(Path(file).is_relative_to(installed.folder) for file in out.split())
