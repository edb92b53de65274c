"""A run's report: `report.json` and a page for people, and the folder's ledger and index of all runs.

The ledger `runs.jsonl` gets one line per run. A page that is opened from disk may not fetch it, so the index carries
the same lines in itself: HTML may go on after its last script, and each run appends one inert
`<script type="application/json">` line. Nothing is read or written again when a run ends, however many runs there
are, and processes that write at once don't disturb each other, since every line is one `write` with `O_APPEND`. An
index that is missing is made anew from the newest 1,000 lines of the ledger.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thena_core.record.redact import Redactor, mask_value

if TYPE_CHECKING:
    from thena_core.record.tree import Node

SCHEMA_VERSION = 1

_RUN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_SLOT = "__THENA_DOCUMENT__"
_INDEXED = 1_000
_LEDGER_LINE = 2_000
# Facts that layers write themselves; every other text in `meta` may come from a tool or a model.
_PLAIN_FACTS = frozenset({"stopped_by", "tool_call_source", "finish_reason", "outcome"})
_FOR_HTML = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"},
)


@dataclass(frozen=True, slots=True)
class Report:
    """Say where a run's report is written and what it holds; what `Thena(report=…)` takes.

    Attributes:
        folder: Holds one folder per run, the ledger and the index; relative to the current folder.
        content: `False` leaves out what went in and came out, errors' texts, and texts in `meta`.
    """

    folder: Path | str = "report"
    content: bool = True


def document(
    root: Node,
    *,
    run_id: str,
    stopped_by: str | None,
    usage: Mapping[str, Any],
    redact: Redactor | None,
    content: bool = True,
) -> dict[str, Any]:
    """Build what `report.json` holds: plain values, masked, ready for strict JSON.

    Args:
        root: The run's tree; it is only read.
        run_id: The run's id.
        stopped_by: Why the run ended, or `None` where an exception left it.
        usage: The run's totals by name.
        redact: Masks texts; `None` masks nothing.
        content: See `Report.content`.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "stopped_by": stopped_by,
        "usage": mask_value(usage, redact),
        "root": _node(root, redact, content, time.perf_counter()),
    }


def write(document: dict[str, Any], folder: Path) -> Path:
    """Write a run's two files, each whole or not at all, and add the run to the ledger and the index.

    Args:
        document: What `document` built.
        folder: The report folder; it is made where it is missing.

    Returns:
        The run's own folder.

    Raises:
        ValueError: The run id cannot name a folder.
        OSError: Something could not be written.
    """
    run_id = document["run_id"]
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
        raise ValueError(f"the run id {run_id!r} cannot name a folder: 1 to 128 of A-Z a-z 0-9 . _ - and no dot first")
    target = folder / run_id
    target.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    _replace(target / "report.json", text + "\n")
    _replace(target / "index.html", _page("template.html", text))
    entry = json.dumps(_entry(document), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    _append(folder / "runs.jsonl", entry + "\n")
    _index(folder, entry)
    return target


def _node(node: Node, redact: Redactor | None, content: bool, now: float) -> dict[str, Any]:
    running = node.status == "running"
    error = node.error or ("still running when the report was written" if running else None)
    meta = mask_value(node.meta, redact)
    return {
        "id": node.id,
        "kind": node.kind,
        "name": mask_value(node.name, redact),
        "status": "error" if running else node.status,
        "outcome": node.outcome,
        "error": mask_value(error, redact) if content else None,
        "started_at": dt.datetime.fromtimestamp(node.started_at, dt.UTC).isoformat(timespec="microseconds"),
        "duration_ms": round((now - node.clock) * 1000 if node.duration_ms is None else node.duration_ms, 3),
        "input": mask_value(node.input, redact) if content else None,
        "output": mask_value(node.output, redact) if content else None,
        "meta": meta if content else _without_text(meta),
        "children": [_node(child, redact, content, now) for child in node.children],
    }


def _without_text(meta: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in meta.items()
        if value is None or isinstance(value, (bool, int, float)) or (name in _PLAIN_FACTS and isinstance(value, str))
    }


def _entry(document: dict[str, Any]) -> dict[str, Any]:
    """Sum a run up for the ledger."""
    root, usage = document["root"], document["usage"]
    entry = {
        "run_id": document["run_id"],
        "name": str(root["name"])[:200],
        "started_at": root["started_at"],
        "duration_ms": root["duration_ms"],
        "status": root["status"],
        "stopped_by": document["stopped_by"],
        "failed_calls": _failed_calls(root),
    }
    for name in ("chat_calls", "tool_calls", "cost_usd"):
        value = usage.get(name)
        entry[name] = value if isinstance(value, (int, float)) else None
    return entry


def _failed_calls(node: dict[str, Any]) -> int:
    own = int(node["kind"] == "tool" and node["status"] == "error")
    return own + sum(_failed_calls(child) for child in node["children"])


def _index(folder: Path, entry: str) -> None:
    """Append the run to the index; where there is none, make it from the ledger, which holds the run already."""
    index = folder / "index.html"
    if not index.exists() and _create(index, lambda: _template("runs.html") + _rows(folder / "runs.jsonl")):
        return
    # Made by another process meanwhile, from a ledger that may lack this run; the page shows a run once.
    _append(index, _row(entry))


def _rows(ledger: Path) -> str:
    with ledger.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _INDEXED * _LEDGER_LINE))
        lines = file.read().decode("utf-8", "replace").splitlines()[-_INDEXED:]
    return "".join(_row(line) for line in lines if line.startswith("{") and line.endswith("}"))


def _row(entry: str) -> str:
    return f'<script type="application/json" class="run">{entry.translate(_FOR_HTML)}</script>\n'


def _page(template: str, text: str) -> str:
    """Put JSON into a page where no parser can take it for markup."""
    head, _, tail = _template(template).partition(_SLOT)
    return head + text.translate(_FOR_HTML) + tail


def _template(name: str) -> str:
    return resources.files("thena_core.record").joinpath(name).read_text("utf-8")


def _append(path: Path, line: str) -> None:
    data = line.encode()
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
    try:
        # One write: a line of another process cannot come between. A short one means that the disk is full.
        if os.write(file, data) != len(data):
            raise OSError(f"only a part of a line could be written to {path}")
    finally:
        os.close(file)


def _replace(path: Path, text: str) -> None:
    temporary = _temporary(path)
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _create(path: Path, text: Callable[[], str]) -> bool:
    """Make a file whole, or leave the one that is there; tell whether it was made."""
    temporary = _temporary(path)
    try:
        temporary.write_text(text(), encoding="utf-8", newline="\n")
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links: the later of two that make it at once wins
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _temporary(path: Path) -> Path:
    # Random, not the process id: two runs of one process may write the same file.
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
