"""The report folder's list of all runs: one appended line per run, for programs and in the index page.

The ledger `runs.jsonl` gets one line per run. A page that is opened from disk may not fetch it, so the index carries
the same lines in itself: HTML may go on after its last script, and each run appends one inert
`<script type="application/json">` line. Nothing is read or written again when a run ends, however many runs there
are, and processes that write at once don't disturb each other, since every line is one `write` with `O_APPEND`. A line
that a crash tore is closed by the next one, which costs one byte read; readers leave it out. An index that is missing
is made anew from the newest 10,000 lines of the ledger.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thena_core.record.page import for_html, template

LEDGER = "runs.jsonl"
INDEX = "index.html"

_INDEXED = 10_000
_LEDGER_LINE = 2_000
_LONGEST_NAME = 200
_CLOSING = "</script>\n"


def enter(folder: Path, entry: dict[str, Any]) -> None:
    """Add a run to the ledger and to the index.

    Args:
        folder: The report folder.
        entry: What `summary` made of the run.

    Raises:
        OSError: Something could not be written.
    """
    line = json.dumps(entry, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    _append(folder / LEDGER, line + "\n", after_torn="\n")
    index = folder / INDEX
    if not index.exists() and create(index, lambda: template("runs.html") + _rows(folder / LEDGER)):
        return
    # Made by another process meanwhile, from a ledger that may lack this run; the page shows a run once.
    _append(index, _row(line), after_torn=_CLOSING)


def summary(run_id: str, stopped_by: str | None, usage: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Sum a run up in one line.

    Args:
        run_id: The run's id.
        stopped_by: Why it ended.
        usage: Its totals, masked.
        root: Its root node, as the report has it.
    """
    entry = {
        "run_id": run_id,
        "name": str(root["name"])[:_LONGEST_NAME],
        "started_at": root["started_at"],
        "duration_ms": root["duration_ms"],
        "status": root["status"],
        "stopped_by": stopped_by,
        "failed_calls": _failed_calls(root),
    }
    for name in ("chat_calls", "tool_calls", "cost_usd"):
        value = usage.get(name)
        entry[name] = value if isinstance(value, (int, float)) else None
    return entry


def _failed_calls(root: dict[str, Any]) -> int:
    failed = 0
    waiting = [root]
    while waiting:
        node = waiting.pop()
        failed += node["kind"] == "tool" and node["status"] == "error"
        waiting += node["children"]
    return failed


def _rows(ledger: Path) -> str:
    with ledger.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _INDEXED * _LEDGER_LINE))
        lines = file.read().decode("utf-8", "replace").splitlines()[-_INDEXED:]
    return "".join(_row(line) for line in lines if line.startswith("{") and line.endswith("}"))


def _row(line: str) -> str:
    return f'<script type="application/json" class="run">{for_html(line)}</script>\n'


def _append(path: Path, line: str, after_torn: str) -> None:
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
    try:
        if (size := os.lseek(file, 0, os.SEEK_END)) > 0:
            os.lseek(file, size - 1, os.SEEK_SET)
            if os.read(file, 1) != b"\n":
                line = after_torn + line
        data = line.encode()
        # One write: a line of another process cannot come between. A short one means that the disk is full.
        if os.write(file, data) != len(data):
            raise OSError(f"only a part of a line could be written to {path}")
    finally:
        os.close(file)


def create(path: Path, text: Callable[[], str]) -> bool:
    """Make a file whole, or leave the one that is there; tell whether it was made."""
    temporary = temporary_beside(path)
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


def temporary_beside(path: Path) -> Path:
    """Name a file that nobody else writes, in the same folder, to be moved over `path`."""
    # Random, not the process id: two runs of one process may write the same file.
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
