"""Tests of thena_core.record.report."""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from thena_core.record.redact import mask
from thena_core.record.report import Report, document, write
from thena_core.record.tree import Recorder

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & \u2028\u2029\x1b[31m\0\ud800 __THENA_DOCUMENT__"
USAGE = {"chat_calls": 2, "tool_calls": 3, "prompt_tokens": 12, "cost_usd": 0.5, "elapsed": 1.5}


def sample(run_id: str = "run-1", **options: Any) -> dict[str, Any]:
    recorder = Recorder(run_id)
    root = recorder.open("workflow", "Explorer", None, "hello")
    agent = recorder.open("agent", "Agent", root)
    chat = recorder.open("chat", "model", agent)
    chat.meta.update(prompt_tokens=12, tool_call_source="native", note="a text of a tool")
    recorder.close(chat, output="fine")
    denied = recorder.open("tool", "delete", agent, {"path": "x", "password": "hunter2"})
    recorder.close(denied, "error", outcome="denied", error="no: api_key=hunter2", output=HOSTILE)
    recorder.open("tool", "slow", agent)
    recorder.close(agent)
    recorder.close(root, output=float("nan"))
    return document(root, run_id=run_id, stopped_by="answered", usage=USAGE, **({"redact": mask} | options))


class Scripts(HTMLParser):
    """Collect a page's scripts as a browser would delimit them, and count all tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)


@pytest.mark.behaviour("O02")
def test_document_has_the_published_shape() -> None:
    """The document's and each node's fields are the ones that the API promises."""
    report = sample()
    assert list(report) == ["schema_version", "run_id", "stopped_by", "usage", "root"]
    assert report["schema_version"] == 1
    assert report["usage"] == USAGE
    agent = report["root"]["children"][0]
    for node in (report["root"], agent, *agent["children"]):
        assert list(node) == [
            "id", "kind", "name", "status", "outcome", "error", "started_at", "duration_ms", "input", "output", "meta", "children",
        ]  # fmt: skip
        assert dt.datetime.fromisoformat(node["started_at"]).utcoffset() == dt.timedelta(0)
        assert node["duration_ms"] >= 0
    assert [node["id"] for node in agent["children"]] == ["run-1/0/0", "run-1/0/1", "run-1/0/2"]
    assert report["root"]["output"] is None


def test_a_node_still_running_is_an_error() -> None:
    """What had not ended when the report was written is not called a success."""
    slow = sample()["root"]["children"][0]["children"][2]
    assert (slow["status"], slow["error"]) == ("error", "still running when the report was written")


@pytest.mark.behaviour("O05")
def test_document_masks_unless_told_not_to() -> None:
    """Secrets go from arguments and errors; without a redactor everything stays."""
    assert "hunter2" not in json.dumps(sample())
    assert "hunter2" in json.dumps(sample(redact=None))
    assert '"path": "y"' in json.dumps(sample(redact=lambda text: text.replace("x", "y")))


@pytest.mark.behaviour("O05")
def test_without_content_no_text_of_the_run_is_left() -> None:
    """`content=False` keeps names, times, outcomes and numbers."""
    report = sample(content=False)
    agent = report["root"]["children"][0]
    assert agent["children"][0]["meta"] == {"prompt_tokens": 12, "tool_call_source": "native"}
    assert agent["children"][1]["outcome"] == "denied"
    for node in (report["root"], *agent["children"]):
        assert node["input"] is node["output"] is node["error"] is None


@pytest.mark.behaviour("O02")
def test_write_makes_the_files(tmp_path: Path) -> None:
    """A run gets its folder with strict JSON and a page, and no temporary file is left."""
    report = sample()
    folder = write(report, tmp_path / "deep" / "report")
    assert folder == tmp_path / "deep" / "report" / "run-1"
    text = (folder / "report.json").read_text("utf-8")
    assert json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON")) == report
    names = sorted(path.relative_to(folder.parent).as_posix() for path in folder.parent.rglob("*"))
    assert names == ["index.html", "run-1", "run-1/index.html", "run-1/report.json", "runs.jsonl"]


def test_hostile_text_cannot_leave_its_script(tmp_path: Path) -> None:
    """Whatever a tool returned, the page has its own scripts only, and the data come back unchanged."""
    report = sample()
    page = (write(report, tmp_path) / "index.html").read_text("utf-8")
    scripts = Scripts(page)
    assert [attributes for attributes, _ in scripts.scripts] == [{"type": "application/json", "id": "document"}, {}]
    assert "img" not in scripts.tags
    data = scripts.scripts[0][1]
    assert not set(data) & set("<>&\u2028\u2029\0")
    assert json.loads(data) == report


@pytest.mark.parametrize("page", ["run-1/index.html", "index.html"], ids=["run", "index"])
def test_pages_are_self_contained(tmp_path: Path, page: str) -> None:
    """A page loads nothing and writes text as text."""
    write(sample(), tmp_path)
    text = (tmp_path / page).read_text("utf-8")
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'" in text
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|https?://|\bsrc=|@import|url\(",
        text.split("</head>")[0],
    )
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|fetch\(", text)


@pytest.mark.behaviour("Q02")
@pytest.mark.parametrize(
    "run_id", ["", ".", "..", ".a", "a/b", "a\\b", "../x", "a\n", "ä", "a" * 129, "a b", "a\0"], ids=repr
)
def test_refuses_ids_that_are_no_folder_name(tmp_path: Path, run_id: str) -> None:
    """No id leads out of the report folder, and nothing is written for a bad one."""
    with pytest.raises(ValueError, match="cannot name a folder"):
        write(sample(run_id), tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_raised(tmp_path: Path) -> None:
    """The caller learns of a folder that cannot be made."""
    (tmp_path / "report").write_text("a file")
    with pytest.raises(OSError, match="report"):
        write(sample(), tmp_path / "report")


def indexed(folder: Path) -> list[dict[str, Any]]:
    scripts = Scripts((folder / "index.html").read_text("utf-8")).scripts
    return [json.loads(text) for attributes, text in scripts if attributes.get("class") == "run"]


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
    """An index that was deleted comes back with the newest 1,000 runs, whatever a crash left in the ledger."""
    with (tmp_path / "runs.jsonl").open("w", encoding="utf-8") as ledger:
        ledger.writelines(f'{{"run_id":"old-{number}"}}\n' for number in range(1_200))
        ledger.write('{"run_id":"cut o\n')
    write(sample("new"), tmp_path)
    runs = indexed(tmp_path)
    assert len(runs) == 999
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


def test_report_settings_have_defaults() -> None:
    """`Report()` is what `report=True` means."""
    assert Report() == Report(folder="report", content=True)
