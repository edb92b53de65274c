"""Tests of thena_core.record.writer: reports are written beside the runs, whatever the disk does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from thena_core import Report, Thena, ToolDefinition
from thena_core.record import report as reports
from thena_core.record import writer as writing
from thena_core.record.writer import Writer


def app(folder: Path | str, **options: Any) -> Thena:
    look = ToolDefinition("look", "Look.", None, lambda: "seen")
    return scripted([look], ask("look"), observed=False, report=Report(folder=folder), **options).app


def written(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/report.json"))


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold every write up, as a disk that hangs does, until the event is set."""
    opened = threading.Event()
    write = reports.write

    def held(*given: Any) -> Path:
        assert opened.wait(20)
        return write(*given)

    monkeypatch.setattr(reports, "write", held)
    monkeypatch.setattr(writing, "PATIENCE", 0.01)
    yield opened
    opened.set()


@pytest.mark.behaviour("O02", "O08")
async def test_the_report_is_there_when_the_run_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written in a thread of its own, and the run gives its folder."""
    threads: list[str] = []
    write = reports.write

    def told(*given: Any) -> Path:
        threads.append(threading.current_thread().name)
        return write(*given)

    monkeypatch.setattr(reports, "write", told)
    async with app(tmp_path) as made:
        result = await made.run("go", run_id="one")
        assert result.report_path == tmp_path / "one"
        assert written(tmp_path) == ["one"]
    assert threads == ["thena-report"]


@pytest.mark.behaviour("O08")
async def test_a_disk_that_hangs_holds_no_run_up(tmp_path: Path, gate: threading.Event) -> None:
    """The run ends while its report is still to be written; closing the app waits for it."""
    async with app(tmp_path) as made:
        results = [await made.run("go", run_id=name) for name in ("one", "two")]
        assert [result.stopped_by for result in results] == ["answered", "answered"]
        assert [result.report_path for result in results] == [tmp_path / "one", tmp_path / "two"]
        assert written(tmp_path) == []
        gate.set()
    assert written(tmp_path) == ["one", "two"]


@pytest.mark.behaviour("O08")
async def test_closing_gives_up_on_a_dead_disk(
    tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no report gets done any more, the app closes all the same."""
    monkeypatch.setattr(writing, "CLOSING", 0.02)
    async with app(tmp_path) as made:
        await made.run("go")
    assert written(tmp_path) == []


@pytest.mark.behaviour("O08")
async def test_what_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    """A folder that cannot be made costs one warning, however many runs, and none of them fails."""
    place = tmp_path / "report"
    place.write_text("a file")
    async with app(place) as made:
        with pytest.warns(UserWarning, match=r"report of run one cannot be written.*report") as told:
            results = [await made.run("go", run_id=name) for name in ("one", "two", "three")]
        assert [(result.output, result.report_path) for result in results] == [("done", None)] * 3
        assert len(told) == 1
        place.unlink()
        assert (await made.run("go", run_id="four")).report_path == place / "four"
        (place / "five").write_text("a file")
        with pytest.warns(UserWarning, match="report of run five"):  # it worked meanwhile: told again
            await made.run("go", run_id="five")


@pytest.mark.behaviour("O08", "Q01")
async def test_a_masker_that_fails_leaves_no_report(tmp_path: Path) -> None:
    """Where the app's own masking raises, nothing unmasked is written, and the run goes its way."""

    def broken(text: str) -> str:
        raise KeyError(text)

    async with app(tmp_path, redact=broken) as made:
        with pytest.warns(UserWarning, match="cannot be written"):
            result = await made.run("go")
    assert (result.output, result.report_path) == ("done", None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.behaviour("O08")
async def test_a_run_that_fails_or_is_cancelled_leaves_its_report(tmp_path: Path) -> None:
    """An error waits for the report as a result does; a cancellation does not, and closing the app waits instead."""
    began = asyncio.Event()

    async def stuck() -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    tool = ToolDefinition("stuck", "d", None, stuck)
    turns = [ask("stuck"), ask("stuck")]  # one for each run
    async with scripted([tool], *turns, observed=False, report=Report(folder=tmp_path)).app as made:
        task = asyncio.create_task(made.run("go", run_id="cancelled"))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        began.clear()
        handle = made.start("go", run_id="aborted")
        await began.wait()
        handle.abort("enough")
        with pytest.raises(Exception, match="enough") as caught:
            await handle.result()
        assert caught.value.run.report_path == tmp_path / "aborted"  # type: ignore[attr-defined]
        assert (tmp_path / "aborted" / "report.json").exists()
    assert written(tmp_path) == ["aborted", "cancelled"]
    tree = json.loads((tmp_path / "cancelled" / "report.json").read_text("utf-8"))
    assert tree["root"]["status"] == "error"


async def test_a_relative_folder_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that changes its current folder meanwhile moves no report."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    async with app("report") as made:
        result = await made.run("go", run_id="one")
        monkeypatch.chdir(tmp_path / "elsewhere")
    assert result.report_path == Path("report/one")
    assert written(tmp_path / "report") == ["one"]


@pytest.mark.behaviour("O08")
def test_a_program_that_just_ends_leaves_its_report(tmp_path: Path) -> None:
    """The exit of a program that never closed its app waits for what is being written."""
    program = f"""
import asyncio, threading
from thena_core import Prompt, Report, Thena, agent
from thena_core.record import report, writer
from thena_core.testing import FakeProvider
writer.PATIENCE = 0
write, main_ends = report.write, threading.Event()
def slow(*given):
    main_ends.wait(20)
    return write(*given)
report.write = slow
@agent(provider=FakeProvider(["done"]), tools=[], prompt=Prompt("x"))
class A: pass
print(asyncio.run(Thena(A, report=Report(folder={str(tmp_path)!r})).run("go", run_id="one")).output)
main_ends.set()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("done\n", "")
    assert written(tmp_path) == ["one"]


async def test_a_writer_ends_its_thread_and_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing to do the thread ends; the next report starts one anew."""
    monkeypatch.setattr(writing, "_IDLE", 0.01)
    writer, threads = Writer(), []

    def make(_: Callable[[], None]) -> None:
        threads.append(threading.current_thread())

    for number in (1, 2):
        assert await writer.wait_for(writer.write(make, str(number), "folder"))
        threads[-1].join(10)
        assert not threads[-1].is_alive()
    assert threads[0] is not threads[1]
    await writer.close()


async def lag(folder: Path | None, runs: int) -> tuple[float, float]:
    """Return the longest turn of the event loop and the time of all, in seconds, with so many runs at once."""
    look = ToolDefinition("look", "Look.", None, lambda: "seen " * 100)
    turns = [ask("look") for _ in range(3)]
    made = scripted([look], *turns, observed=False, report=Report(folder=folder) if folder else False).app
    longest = 0.0
    over = False

    async def watch() -> None:
        nonlocal longest
        while not over:
            start = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - start)

    async with made:
        await made.run("warm up")
        watcher = asyncio.create_task(watch())
        start = time.perf_counter()
        await asyncio.gather(*(made.run("go") for _ in range(runs)))
        took = time.perf_counter() - start
        over = True
        await watcher
    return longest, took


@pytest.mark.behaviour("O08")
async def test_a_thousand_reported_runs_do_not_hold_the_loop(tmp_path: Path) -> None:
    """The loop's longest turn with 1,000 concurrent reported runs is near that of the same runs without reports.

    Written on the loop, the reports would make turns of a second and more. The margins are for busy machines.
    """
    with warnings.catch_warnings():
        bare = min([await lag(None, 1_000) for _ in range(2)])[0]
        reported = min([await lag(tmp_path / name, 1_000) for name in "ab"])[0]
    assert len(written(tmp_path / "a")) == len(written(tmp_path / "b")) == 1_001
    assert reported < 4 * bare + 0.5, f"{reported:.3f} s with reports, {bare:.3f} s without"
