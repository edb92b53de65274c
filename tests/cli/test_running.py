"""`thena run` and `thena call`: the answer on stdout, the tree on stderr, and the exit code that says what came of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from thena_core import Report, Thena
from thena_core.cli.show import answer_text

Typed = Callable[..., int]
Capture = pytest.CaptureFixture[str]


class Price(BaseModel):
    item: str
    euros: int


def report_of(folder: Path) -> dict[str, Any]:
    [file] = folder.glob("*/report.json")
    return json.loads(file.read_text(encoding="utf-8"))


def test_run(shop: Path, thena: Typed, capsys: Capture) -> None:
    """The answer alone is on stdout; tree, usage and the report's place are on stderr."""
    assert thena("run", "shop:app", "How much is tea?", "--run-id", "first") == 0
    out, err = capsys.readouterr()
    assert out == "Tea costs 3 euros.\n"
    assert "▸ tool price" in err
    assert "usage: 2 model calls, 1 tool calls, " in err
    assert err.endswith("report: report/first/index.html and report/first/report.json\n")
    assert report_of(shop / "report")["run_id"] == "first"


def test_the_message_from_stdin(thena: Typed, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """`-` reads the message, and so it does the arguments of a call."""
    monkeypatch.setattr("sys.stdin", io.StringIO("How much is tea?"))
    assert thena("run", "shop:app", "-", "--report", "out") == 0
    tree = json.dumps(report_of(Path("out")))
    assert "How much is tea?" in tree
    monkeypatch.setattr("sys.stdin", io.StringIO('{"item": "milk"}'))
    assert thena("call", "shop:app", "price", "-") == 0
    assert capsys.readouterr().out.endswith("milk: 3 euros\n")


def test_quiet(shop: Path, thena: Typed, capsys: Capture) -> None:
    """`--quiet --no-report` leaves the answer and one line of usage, and no file."""
    assert thena("run", "shop:app", "How much?", "--quiet", "--no-report") == 0
    out, err = capsys.readouterr()
    assert out == "Tea costs 3 euros.\n"
    assert err.startswith("usage: ")
    assert err.count("\n") == 1
    assert not (shop / "report").exists()


def test_verbose(thena: Typed, capsys: Capture) -> None:
    """`--verbose` prints what goes in and comes out, too."""
    assert thena("run", "shop:app", "How much?", "--verbose", "--no-report") == 0
    assert "tea: 3 euros" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["shop:restless", "hi", "--max-tool-calls", "2"], "the budget is used up", id="budget"),
        pytest.param(["shop:restless", "hi"], "the loop reached its max_iterations", id="exhausted"),
    ],
)
def test_stopped_early(thena: Typed, capsys: Capture, words: list[str], why: str) -> None:
    """A run that was not finished is exit code 3, and says what would change it."""
    assert thena("run", *words, "--quiet", "--no-report") == 3
    out, err = capsys.readouterr()
    assert f"stopped early: {why}" in err
    assert out == ""


def test_failed(shop: Path, thena: Typed, capsys: Capture) -> None:
    """A run that fails is exit code 1 and one line, without its secrets; its report is there and named."""
    assert thena("run", "shop:unlucky", "hi", "--quiet") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "report: report/" in err
    assert err.endswith("error: the till burns: password=…masked\n")
    assert report_of(shop / "report")["root"]["status"] == "error"
    assert "hunter2" not in err


def test_no_key(here: Path, thena: Typed, capsys: Capture) -> None:
    """A missing key is one line that names the variable."""
    (here / "real.py").write_text(
        "from thena_core import Prompt, Thena, agent\nfrom thena_core.providers import OpenAIProvider\n"
        "@agent(provider=OpenAIProvider('m'), prompt=Prompt('x'))\nclass A: ...\napp = Thena(A)\n",
        encoding="utf-8",
    )
    assert thena("run", "real:app", "hi", "--quiet", "--no-report") == 1
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert errors == [
        'error: openai: no API key. Set the environment variable OPENAI_API_KEY, or write OpenAIProvider("m", api_key=…).'
    ]


def test_a_build_that_fails(here: Path, thena: Typed, capsys: Capture) -> None:
    """What keeps an app from being built is a line for each problem."""
    (here / "wrong.py").write_text(
        "from thena_core import Thena, tool\n@tool\ndef a(): ...\nclass B: ...\napp = Thena(tools=[a, B])\n",
        encoding="utf-8",
    )
    assert thena("call", "wrong:app", "a") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith('error: The tool "a" (wrong.a) has no description.')
    assert lines[1].startswith('error: The class "B" is not decorated with @tool().')


@pytest.mark.parametrize(
    ("output", "text"),
    [
        pytest.param("\x1b[2Jbold", "�[2Jbold", id="text"),
        pytest.param({"a": [1, "é"]}, '{\n  "a": [\n    1,\n    "é"\n  ]\n}', id="mapping"),
        pytest.param(Price(item="tea", euros=3), '{\n  "item": "tea",\n  "euros": 3\n}', id="model"),
    ],
)
def test_answers(output: object, text: str) -> None:
    """A text is printed as it is, everything else as JSON, and nothing steers the terminal."""
    assert answer_text(output) == text


def test_no_answer(shop: Path, thena: Typed, capsys: Capture) -> None:
    """Where there is no answer stdout is empty, and stderr says so."""
    with (shop / "shop.py").open("a", encoding="utf-8") as file:
        file.write("@agent(provider=FakeProvider(['']), prompt=Prompt('x'))\nclass Mute: ...\nmute = Thena(Mute)\n")
    assert thena("run", "shop:mute", "hi", "--quiet", "--no-report") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("(no answer)\n")


@pytest.mark.parametrize(
    ("settings", "flags", "folder", "content"),
    [
        pytest.param("report=True", [], "report", True, id="app-says-so"),
        pytest.param("", [], "report", True, id="app-says-nothing"),
        pytest.param("report=Report('mine', content=False)", [], "mine", False, id="app-says-where"),
        pytest.param(
            "report=Report('mine', content=False)", ["--report", "other"], "other", False, id="flag-says-where"
        ),
    ],
)
def test_the_report_is_the_apps(
    shop: Path, thena: Typed, settings: str, flags: list[str], folder: str, content: bool
) -> None:
    """Where a report goes a flag may say; how much it holds is the app's word."""
    with (shop / "shop.py").open("a", encoding="utf-8") as file:
        file.write(f"from thena_core import Report\nreporting = Thena(Clerk, {settings})\n")
    assert thena("run", "shop:reporting", "hi", "--quiet", *flags) == 0
    assert [path.name for path in shop.iterdir() if path.is_dir() and path.name != "__pycache__"] == [folder]
    assert ("Tea costs" in json.dumps(report_of(shop / folder))) == content


def test_the_apps_own_log(shop: Path, thena: Typed, capsys: Capture) -> None:
    """A log function of the app gets its events, whatever the command line prints."""
    with (shop / "shop.py").open("a", encoding="utf-8") as file:
        file.write("seen = []\nlogging = Thena(Clerk, log=lambda event: print('seen', event.name))\n")
    assert thena("run", "shop:logging", "hi", "--no-report", "--quiet") == 0
    assert "seen price" in capsys.readouterr().out


def test_call(thena: Typed, capsys: Capture) -> None:
    """One tool's observation is on stdout, and the app's middleware stands around it."""
    assert thena("call", "shop:app", "price", '{"item": "tea", "count": 2}') == 0
    assert capsys.readouterr() == ("tea: 6 euros\n", "")
    assert thena("call", "shop:app", "price", '{"item": "secret"}') == 1
    assert capsys.readouterr() == ("", "error: Not for sale.\n")


def test_call_of_one_of_several(shop: Path, thena: Typed, capsys: Capture) -> None:
    """Where several agents have the tool, the agent is asked for and taken."""
    with (shop / "shop.py").open("a", encoding="utf-8") as file:
        file.write(
            "from thena_core import loop, until_answered, workflow\n"
            "@workflow(steps=[loop([Clerk, Restless], until=until_answered)])\nclass Both: ...\nboth = Thena(Both)\n"
        )
    assert thena("call", "shop:both", "price", '{"item": "tea"}') == 2
    assert capsys.readouterr().err == (
        'error: several agents have a tool "price": Clerk, Restless. Write: --agent Clerk\n'
    )
    assert thena("call", "shop:both", "price", '{"item": "tea"}', "--agent", "Clrk") == 2
    assert 'the app has no agent "Clrk". Did you mean "Clerk"? There are: Clerk, Restless.' in capsys.readouterr().err
    assert thena("call", "shop:both", "price", '{"item": "tea"}', "--agent", "Clerk") == 0


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        pytest.param(["shop:app", "prise"], 2, 'there is no tool "prise". Did you mean "price"? There are: price.', id="tool"),
        pytest.param(["shop:app"], 2, "the TOOL is missing. Write: thena call TARGET TOOL", id="no-tool"),
        pytest.param(["shop:app", "price"], 1, "invalid arguments — item: ", id="no-arguments"),
        pytest.param(["shop:app", "price", '{"item": 3}'], 1, "invalid arguments — item: expected string", id="invalid"),
        pytest.param(["shop:app", "price", "item=tea"], 2, "Write: thena call shop:app price '{\"item\": \"…\"}'", id="no-json"),
        pytest.param(["shop:app", "price", "[1]"], 2, "the arguments are a JSON list and no object", id="no-object"),
        pytest.param(["shop:app", "price", "[" * 100_000], 2, "the arguments are ", id="deep"),
        pytest.param(["shop:app", "price", "{}", "more"], 2, "too many words: more. Quote what has spaces", id="words"),
        pytest.param(["shop:app", "price", '{"item": "gold"}'], 1, "no gold here\nask elsewhere", id="observation"),
        pytest.param(["shop:app", "price", '{"item": "fire"}'], 1, "the till burns: password=…masked", id="fatal"),
    ],
)  # fmt: skip
def test_wrong_calls(thena: Typed, capsys: Capture, words: list[str], code: int, problem: str) -> None:
    """A wrong call is exit code 2, a tool's own error 1; both are on stderr."""
    assert thena("call", *words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert problem in err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(["shop:app"], 'the message is missing. Write: thena run TARGET "message"', id="no-message"),
        pytest.param(["shop:app", "how", "much"], "too many words: much. Quote", id="unquoted"),
        pytest.param(["shop:app", "hi", "--run-id", "../x"], "run_id='../x': use 1 to 128 letters", id="run-id"),
        pytest.param(["shop:app", "hi", "--max-tool-calls", "-1"], "--max-tool-calls = -1: a whole number", id="limit"),
        pytest.param(
            ["shop:app", "hi", "--max-tool-calls", "x"], "Invalid value for '--max-tool-calls'", id="no-number"
        ),
        pytest.param(["shop:app", "hi", "--report", " "], "--report = ' ': true, false or a folder is due", id="blank"),
    ],
)
def test_wrong_runs(shop: Path, thena: Typed, capsys: Capture, words: list[str], problem: str) -> None:
    """A wrong run is one line and exit code 2, and nothing is written."""
    assert thena("run", *words) == 2
    err = capsys.readouterr().err
    assert problem in err
    assert err.count("\n") == 1
    assert not (shop / "report").exists()


def test_settings_limit_a_call(thena: Typed, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """A limit of the environment holds for a call as for a run."""
    monkeypatch.setenv("THENA_MAX_TOOL_CALLS", "0")
    assert thena("call", "shop:app", "price", '{"item": "tea"}') == 1
    assert "max_tool_calls" in capsys.readouterr().err


def test_what_the_command_line_leaves_alone() -> None:
    """The names of an app's inside that `target` reads are there; a change of them must change it, too."""
    app = Thena(report=Report("x"))
    assert app._built is None
    assert isinstance(app._observers.report, Report)
