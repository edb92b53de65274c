"""Tests of thena_core.record.logs."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import warnings
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from thena_core import FatalToolError, Thena, tool
from thena_core.record import logs
from thena_core.record.event import Event
from thena_core.record.tree import Recorder

KEY = "sk-ant-REDACTED"


@tool
async def look() -> str:
    """Looks."""
    return f"private words and {KEY}"


@tool
async def fails() -> str:
    """Fails."""
    raise ValueError(f"no such key: {KEY}\nsecond line \x1b[31m")


@tool
async def ends() -> str:
    """Ends the run."""
    try:
        raise KeyError("the secret cause")
    except KeyError as error:
        raise FatalToolError(f"database gone, {KEY}") from error


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.DEBUG) -> list[tuple[str, str, str]]:
    return [
        (record.name, record.levelname, record.getMessage())
        for record in caplog.records
        if record.name.split(".")[0] == "thena" and record.levelno >= level
    ]


@pytest.mark.behaviour("O09")
async def test_runs_and_steps(caplog: pytest.LogCaptureFixture) -> None:
    """At DEBUG each step starts and ends in the log of its kind, with the ids of the events."""
    caplog.set_level(logging.DEBUG, logger="thena")
    await scripted([look], ask("look"), observed=False).run(run_id="r1")
    told = lines(caplog)
    names = [name for name, _, _ in told]
    assert names[0] == names[-1] == "thena.run"
    assert told[0] == ("thena.run", "INFO", "run r1 started")
    assert told[-1][2].startswith("run r1 ended after 0.")
    assert told[-1][2].endswith(" s: answered")
    [started, ended] = [(level, text) for name, level, text in told if name == "thena.tool"]
    assert started == ("DEBUG", "tool look started (r1/0/0/1)")
    assert ended[1].startswith("tool look ended after ")
    assert ended[1].endswith("ms (r1/0/0/1)")
    assert {"thena.workflow", "thena.loop", "thena.agent", "thena.chat", "thena.tool"} <= set(names)
    [record] = [record for record in caplog.records if record.getMessage().startswith("tool look ended")]
    assert (record.run_id, record.node_id, record.outcome) == ("r1", "r1/0/0/1", "ok")  # type: ignore[attr-defined]
    assert "private words" not in caplog.text


@pytest.mark.behaviour("O09", "O05", "Q01")
async def test_failures(caplog: pytest.LogCaptureFixture) -> None:
    """A failed step is told at INFO, in one masked line that steers no terminal."""
    caplog.set_level(logging.INFO, logger="thena")
    await scripted([look, fails], ask("look"), ask("fails"), observed=False).run(run_id="r1", data="the run's data")
    told = lines(caplog)
    assert [name for name, _, _ in told] == ["thena.run", "thena.tool", "thena.run"]
    text = told[1][2]
    assert text.startswith("tool fails failed after ")
    assert "error: ValueError: no such key: sk-ant-…masked second line \\x1b[31m (r1/" in text
    assert KEY not in caplog.text
    assert "the run's data" not in caplog.text


@pytest.mark.behaviour("O09", "F04")
async def test_a_run_that_fails_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """What leaves a run is told at WARNING, with nothing of where it came from; nothing had to be recorded for it."""
    ended = await scripted([ends], ask("ends"), observed=False).run(run_id="r1")
    assert ended.error is not None
    [(name, level, text)] = lines(caplog)
    assert (name, level) == ("thena.run", "WARNING")
    assert text.startswith("run r1 failed after ")
    assert text.endswith(": FatalToolError: database gone, sk-ant-…masked")
    assert "secret cause" not in caplog.text


@pytest.mark.behaviour("O09")
async def test_a_run_that_was_stopped_is_none(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody's wish is no failure: an abort is told at INFO."""
    caplog.set_level(logging.INFO, logger="thena")
    begun = asyncio.Event()

    @tool
    async def waits() -> str:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    async with scripted([waits], ask("waits"), observed=False).app as app:
        handle = app.start("go")
        await begun.wait()
        handle.abort("client left")
        with pytest.raises(Exception, match="client left"):
            await handle.result()
    assert lines(caplog, logging.WARNING) == []
    assert any("was stopped after" in text and "client left" in text for _, _, text in lines(caplog))


@pytest.mark.behaviour("O09", "O03")
async def test_silent_unless_configured(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the levels that Python comes with no step is recorded for the log's sake."""
    monkeypatch.setattr("thena_core.observers.Recorder", None)
    await scripted([fails], ask("fails"), observed=False).run()
    assert lines(caplog) == []


@pytest.mark.behaviour("O09")
def test_nothing_is_printed_in_a_program_without_logging() -> None:
    """The library's own handler takes what nobody asked for: a failed run prints nothing by itself."""
    code = (
        "import asyncio\n"
        "from thena_core import FatalToolError, Thena, tool\n"
        "@tool\n"
        "async def ends() -> str:\n"
        "    'Ends.'\n"
        "    raise FatalToolError('gone')\n"
        "async def main():\n"
        "    try:\n"
        "        await Thena(tools=[ends]).call('ends')\n"
        "    except FatalToolError:\n"
        "        print('raised')\n"
        "asyncio.run(main())\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (said.stdout, said.stderr) == ("raised\n", "")


async def test_a_broken_filter_ends_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    """A filter of the program's that raises is said on stderr, and the run goes on."""

    def broken(_record: logging.LogRecord) -> bool:
        raise OSError("no log server")

    logger = logging.getLogger("thena.run")
    logger.addFilter(broken)
    logger.setLevel(logging.INFO)
    try:
        assert (await Thena(tools=[look]).call("look")).content
    finally:
        logger.removeFilter(broken)
        logger.setLevel(logging.NOTSET)
    assert "[thena] the logger thena.run failed: OSError: no log server" in capsys.readouterr().err


@pytest.mark.parametrize("kind", logs.STEPS)
def test_one_kind_can_be_asked_for(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The program may turn one logger on, and gets that one's lines."""
    assert not logs.steps_are_wanted()
    caplog.set_level(logging.DEBUG, logger=f"thena.{kind}")
    assert logs.steps_are_wanted()
    recorder = Recorder("r", (logs.log_step,))
    root = recorder.open("workflow", "outer", None)
    recorder.close(recorder.open(kind, "inner", root))
    recorder.progress(root, 1, 2, "half")
    recorder.close(root)
    assert {name for name, _, _ in lines(caplog)} == {f"thena.{kind}"}


@pytest.mark.behaviour("O09")
def test_warnings_are_in_the_log_too(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    """What Thena warns of goes through `warnings` and to the log, masked; where warnings are errors, to stderr."""
    with pytest.warns(UserWarning, match=r"^a problem with sk-ant-…masked$"):
        logs.warn(f"a problem with {KEY}", UserWarning)
    assert lines(caplog) == [("thena", "WARNING", "a problem with sk-ant-…masked")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs.warn("another")
        with pytest.raises(RuntimeWarning, match="a third"):
            logs.warn("a third", may_raise=True)
    assert capsys.readouterr().err == "another\n"


def test_a_hostile_name_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    """A name that a model made up breaks no line of the log."""
    caplog.set_level(logging.DEBUG, logger="thena")
    logs.log_step(Event("start", "r", "r/0", "r", 1, "tool", "x\nWARNING forged\x1b[2J" + "y" * 500))
    [(_, _, text)] = lines(caplog)
    assert text.startswith("tool x WARNING forged\\x1b[2Jyyy")
    assert len(text) < 160
