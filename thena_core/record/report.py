"""A run's report: `report.json`, whose schema is published, and a page for people."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thena_core.record import ledger
from thena_core.record.event import said
from thena_core.record.page import run_page, template
from thena_core.record.redact import Redactor
from thena_core.record.run_id import checked_id
from thena_core.record.snapshot import mask_value

if TYPE_CHECKING:
    from thena_core.budget import Budget
    from thena_core.record.tree import Node
    from thena_core.record.writer import Maker

SCHEMA_VERSION = 1

# Facts that layers write themselves; every other text in `meta` may come from a tool or a model.
_PLAIN_FACTS = frozenset({"stopped_by", "tool_call_source", "finish_reason", "outcome"})
_COUNTS = frozenset({"used", "budget"})
_LIMITS = ("max_duration", "max_chat_calls", "max_tool_calls", "max_tokens", "max_cost_usd", "tools")
_USED = ("chat_calls", "tool_calls", "tokens", "cost_usd")


@dataclass(frozen=True, slots=True)
class Report:
    """Say where a run's report is written and what it holds; what `Thena(report=…)` takes.

    Attributes:
        folder: Holds one folder per run, the ledger and the index; relative to the current folder.
        content: `False` leaves out what went in and came out, errors' texts, and texts in `meta`.
    """

    folder: Path | str = "report"
    content: bool = True


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `report.json`."""
    schema: dict[str, Any] = json.loads(template("report.schema.json"))
    return schema


def maker(
    root: Node,
    run_id: str,
    stopped_by: str,
    usage: Mapping[str, Any],
    budget: Budget | None,
    *,
    folder: str,
    content: bool,
    redact: Redactor | None,
) -> Maker:
    """Take from a run that ended what its report needs; return what makes the report, in whatever thread.

    Args:
        root: The run's tree.
        run_id: The run's id.
        stopped_by: Why it ended.
        usage: Its totals by name.
        budget: Its limits.
        folder: The report folder; absolute, as the program may change its current folder meanwhile.
        content: See `Report.content`.
        redact: Masks texts; `None` masks nothing.
    """
    limits = {
        name: value for name in _LIMITS if budget is not None and (value := getattr(budget, name)) not in (None, {})
    }

    def make(pause: Callable[[], None]) -> None:
        made = document(
            root,
            run_id=run_id,
            stopped_by=stopped_by,
            usage=usage,
            redact=redact,
            content=content,
            limits=limits,
            pause=pause,
        )
        write(made, Path(folder), pause)

    return make


def document(
    root: Node,
    *,
    run_id: str,
    stopped_by: str | None,
    usage: Mapping[str, Any],
    redact: Redactor | None,
    content: bool = True,
    limits: Mapping[str, Any] | None = None,
    pause: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Build what `report.json` holds: plain values, masked, ready for strict JSON.

    Args:
        root: The run's tree; it is only read.
        run_id: The run's id.
        stopped_by: Why the run ended, or `None` where an exception left it.
        usage: The run's totals by name.
        redact: Masks texts; `None` masks nothing.
        content: See `Report.content`.
        limits: The run's budget by name, as far as it has one.
        pause: Called after each node, to let others work.
    """
    top = _node(root, redact, content, time.perf_counter(), pause)
    if limits:
        top["meta"]["budget"] = mask_value(limits, redact)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "stopped_by": stopped_by,
        "usage": mask_value(usage, redact),
        "root": top,
    }


def write(document: dict[str, Any], folder: Path, pause: Callable[[], None] | None = None) -> Path:
    """Write a run's two files, each whole or not at all, and add the run to the ledger and the index.

    Args:
        document: What `document` built.
        folder: The report folder; it is made where it is missing.
        pause: Called after each node that is written, to let others work.

    Returns:
        The run's own folder.

    Raises:
        ValueError: The run id cannot name a folder.
        OSError: Something could not be written.
    """
    run_id = checked_id(document["run_id"])
    target = folder / run_id
    target.mkdir(parents=True, exist_ok=True)
    _replace(target / "report.json", (*_pieces(document, pause), "\n"))
    _replace(target / "index.html", run_page(_pieces(document, pause)))
    ledger.enter(folder, ledger.summary(run_id, document["stopped_by"], document["usage"], document["root"]))
    return target


def _node(
    node: Node, redact: Redactor | None, content: bool, now: float, pause: Callable[[], None] | None
) -> dict[str, Any]:
    running = node.status == "running"
    error = node.error or ("still running when the report was written" if running else None)
    meta = mask_value(node.meta, redact)
    if node.used is not None:
        meta["used"] = dict(zip(_USED, node.used, strict=True))
    found = {
        "id": node.id,
        "kind": node.kind,
        "name": mask_value(node.name, redact),
        "status": "error" if running else node.status,
        "outcome": node.outcome,
        "error": mask_value(error, redact) if content else None,
        "started_at": dt.datetime.fromtimestamp(node.started_at, dt.UTC).isoformat(timespec="microseconds"),
        "duration_ms": round((now - node.clock) * 1000 if node.duration_ms is None else node.duration_ms, 3),
        "input": mask_value(node.input, redact) if content else None,
        "output": mask_value(said(node.output, node.asked), redact) if content else None,
        "meta": meta if content else _without_text(meta),
    }
    if pause is not None:
        pause()
    # A copy: what outlived the run may still add to it.
    found["children"] = [_node(child, redact, content, now, pause) for child in tuple(node.children or ())]
    return found


def _without_text(meta: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in meta.items()
        if value is None
        or isinstance(value, (bool, int, float))
        or (name in _PLAIN_FACTS and isinstance(value, str))
        or (name in _COUNTS and isinstance(value, dict))
    }


def _pieces(document: dict[str, Any], pause: Callable[[], None] | None) -> Iterator[str]:
    """Write a document as JSON, a node at a time: to encode all of it at once would hold the interpreter for long."""
    head = {name: value for name, value in document.items() if name != "root"}
    yield _json(head)[:-1] + ',"root":'
    yield from _node_pieces(document["root"], pause)
    yield "}"


def _node_pieces(node: dict[str, Any], pause: Callable[[], None] | None) -> Iterator[str]:
    yield _json({name: value for name, value in node.items() if name != "children"})[:-1] + ',"children":['
    if pause is not None:
        pause()
    for number, child in enumerate(node["children"]):
        if number:
            yield ","
        yield from _node_pieces(child, pause)
    yield "]}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _replace(path: Path, pieces: Iterable[str]) -> None:
    temporary = ledger.temporary_beside(path)
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
