"""Tests of thena_core.record.report."""

from __future__ import annotations

import datetime as dt
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from thena_core.budget import Budget, Tracker
from thena_core.record.redact import mask
from thena_core.record.report import Report, document, report_schema, write
from thena_core.record.tree import Recorder

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & \u2028\u2029\x1b[31m\0\ud800 __THENA_DOCUMENT__"
USAGE = {
    "chat_calls": 2, "tool_calls": 3, "prompt_tokens": 12, "completion_tokens": 3, "cached_tokens": 0, "cost_usd": 0.5, "elapsed": 1.5,
}  # fmt: skip


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


SCHEMA = report_schema()


@pytest.mark.behaviour("O02")
@pytest.mark.parametrize("options", [{}, {"content": False}, {"redact": None}], ids=["all", "no-content", "unmasked"])
def test_document_fits_the_published_schema(options: dict[str, Any]) -> None:
    """What is written validates against the schema in the package, which is the one in the docs."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(sample(limits={"max_tool_calls": 3}, **options))
    docs = Path(__file__).parents[2] / "docs" / "report.schema.json"
    assert json.loads(docs.read_text("utf-8")) == SCHEMA


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "step"},
        {"status": "running"},
        {"outcome": "fine"},
        {"extra": 1},
        {"duration_ms": -1},
        {"children": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_schema_refuses_what_is_no_report(change: dict[str, Any]) -> None:
    """The schema is no sieve: another kind, status, outcome or field is refused, also deep in the tree."""
    report = sample()
    report["root"]["children"][0]["children"][1].update(change)
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(report)


@pytest.mark.behaviour("O07")
def test_each_step_tells_the_budget_at_its_end() -> None:
    """What the whole run had used when a step ended stands at the step, the limits at the root, also without content."""
    tracker = Tracker(Budget(max_tool_calls=5))
    recorder = Recorder("run", keeps=True, tracker=tracker)
    root = recorder.open("workflow", "W", None)
    for _ in range(2):
        tracker.tool_calls += 1
        recorder.close(recorder.open("tool", "t", root), outcome="ok")
    recorder.close(root)
    limits = {"max_tool_calls": 5, "tools": {"t": 9}}
    for content in (True, False):
        report = document(
            root, run_id="run", stopped_by="answered", usage=USAGE, redact=mask, content=content, limits=limits
        )
        assert [node["meta"]["used"]["tool_calls"] for node in report["root"]["children"]] == [1, 2]
        assert report["root"]["meta"]["budget"] == limits


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
    "run_id", ["", ".", "..", ".a", "a/b", "a\\b", "../x", "a\n", "ä", "a" * 129, "a b", "a\0", "a.", "NUL"], ids=repr
)
def test_refuses_ids_that_are_no_folder_name(tmp_path: Path, run_id: str) -> None:
    """No id leads out of the report folder, and nothing is written for a bad one."""
    with pytest.raises(ValueError, match="use 1 to 128 letters"):
        write(sample(run_id), tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_raised(tmp_path: Path) -> None:
    """The caller learns of a folder that cannot be made."""
    (tmp_path / "report").write_text("a file")
    with pytest.raises(OSError, match="report"):
        write(sample(), tmp_path / "report")


def test_report_settings_have_defaults() -> None:
    """`Report()` is what `report=True` means."""
    assert Report() == Report(folder="report", content=True)
