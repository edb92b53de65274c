"""Tests of thena_core.record.ledger."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.record.test_report import Scripts, sample
from thena_core.record.ledger import enter
from thena_core.record.report import write


def entry(run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "name": "Explorer </script><b>",
        "started_at": "2024-05-01T00:00:00+00:00",
        "status": "ok",
    }


def indexed(folder: Path) -> list[dict[str, Any]]:
    scripts = Scripts((folder / "index.html").read_text("utf-8")).scripts
    found: list[dict[str, Any]] = []
    for attributes, text in scripts:
        if attributes.get("class") == "run":
            with contextlib.suppress(ValueError):  # as the page does
                found.append(json.loads(text))
    return found


def listed(folder: Path) -> list[str]:
    found: list[str] = []
    for line in (folder / "runs.jsonl").read_text("utf-8").splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line)["run_id"])
    return found


@pytest.mark.behaviour("O02")
def test_ledger_and_index_grow_by_a_line(tmp_path: Path) -> None:
    """A run adds one line to each and leaves what stood there; the line sums the run up."""
    write(sample("a"), tmp_path)
    before = [(tmp_path / name).read_text("utf-8") for name in ("runs.jsonl", "index.html")]
    write(sample("b"), tmp_path)
    after = [(tmp_path / name).read_text("utf-8") for name in ("runs.jsonl", "index.html")]
    for old, new in zip(before, after, strict=True):
        assert new.startswith(old)
        assert new[len(old) :].count("\n") == 1
    ledger = [json.loads(line) for line in after[0].splitlines()]
    assert indexed(tmp_path) == ledger
    assert [entry["run_id"] for entry in ledger] == ["a", "b"]
    assert {name: ledger[1][name] for name in ("name", "stopped_by", "failed_calls", "tool_calls")} == {
        "name": "Explorer", "stopped_by": "answered", "failed_calls": 2, "tool_calls": 3,
    }  # fmt: skip


def test_a_missing_index_is_made_from_the_ledger(tmp_path: Path) -> None:
    """An index that was deleted comes back with the newest 10,000 runs, whatever a crash left in the ledger."""
    with (tmp_path / "runs.jsonl").open("w", encoding="utf-8") as ledger:
        ledger.writelines(f'{{"run_id":"old-{number}"}}\n' for number in range(12_000))
        ledger.write('{"run_id":"cut o\n')
    write(sample("new"), tmp_path)
    runs = indexed(tmp_path)
    assert len(runs) == 9_999
    assert runs[-1]["run_id"] == "new"


def test_runs_that_end_at_once_lose_no_line(tmp_path: Path) -> None:
    """Writers beside each other leave whole lines, and each run stands in ledger and index."""
    reports = [sample(f"run-{number}") for number in range(24)]
    barrier = threading.Barrier(8)

    def write_some(start: int) -> None:
        barrier.wait()
        for report in reports[start::8]:
            write(report, tmp_path)

    threads = [threading.Thread(target=write_some, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {report["run_id"] for report in reports}
    ledger = [json.loads(line)["run_id"] for line in (tmp_path / "runs.jsonl").read_text("utf-8").splitlines()]
    assert sorted(ledger) == sorted(expected)
    assert {run["run_id"] for run in indexed(tmp_path)} == expected
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.behaviour("O02")
def test_a_run_among_five_thousand_costs_a_line(tmp_path: Path) -> None:
    """With 5,000 runs in the ledger one more appends its line to both files, and reads and writes nothing else."""
    for number in range(5_000):
        enter(tmp_path, entry(f"run-{number}"))
    files = [tmp_path / name for name in ("runs.jsonl", "index.html")]
    before = [(path.stat().st_ino, path.stat().st_size) for path in files]
    read: list[int] = []

    def counting(file: int, size: int) -> bytes:
        read.append(size)
        return os_read(file, size)

    os_read = os.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", counting)
        enter(tmp_path, entry("one-more"))
    assert read == [1, 1]  # whether a crash tore the last line
    for path, (inode, size) in zip(files, before, strict=True):
        assert path.stat().st_ino == inode
        assert 0 < path.stat().st_size - size < 400
    assert len(listed(tmp_path)) == len(indexed(tmp_path)) == 5_001


def enter_many(folder: Path, name: str, start: Any) -> None:
    start.wait()
    for number in range(200):
        enter(folder, entry(f"{name}-{number}"))


@pytest.mark.behaviour("O02")
def test_two_processes_lose_no_line(tmp_path: Path) -> None:
    """Processes that write at once leave whole lines only, and every run is in the ledger and in the index."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    processes = [context.Process(target=enter_many, args=(tmp_path, name, start)) for name in ("a", "b")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    expected = {f"{name}-{number}" for name in ("a", "b") for number in range(200)}
    assert len(listed(tmp_path)) == 400
    assert set(listed(tmp_path)) == expected == {run["run_id"] for run in indexed(tmp_path)}


def test_a_torn_line_takes_no_other_with_it(tmp_path: Path) -> None:
    """After a crash in the middle of a line the next run starts its own, in the ledger and in the page."""
    enter(tmp_path, entry("first"))
    enter(tmp_path, entry("torn"))
    for name in ("runs.jsonl", "index.html"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-40])
    enter(tmp_path, entry("last"))
    assert listed(tmp_path) == ["first", "last"]
    assert [run["run_id"] for run in indexed(tmp_path)] == ["first", "last"]


@pytest.mark.behaviour("O08")
def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only a part of a line could be written, the caller learns of it, and the next line stays whole."""
    enter(tmp_path, entry("first"))
    whole = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: whole(file, data[:10]))
        with pytest.raises(OSError, match="only a part of a line"):
            enter(tmp_path, entry("cut"))
    enter(tmp_path, entry("last"))
    assert listed(tmp_path) == ["first", "last"]


def test_a_file_system_without_hard_links_gets_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files cannot be linked, the index is moved into place, and no temporary file stays."""

    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refused)
    enter(tmp_path, entry("first"))
    assert [run["run_id"] for run in indexed(tmp_path)] == ["first"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", "runs.jsonl"]
