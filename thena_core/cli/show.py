"""What the command line prints: the answer on stdout, everything else on stderr, and nothing that steers a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thena_core.run import RunResult


def printable(text: str) -> str:
    """Replace control characters: what a file or a model says must not steer the terminal that shows it."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def shown(text: str) -> str:
    """Make a text fit to be shown: known secret shapes masked, control characters replaced."""
    from thena_core.record.redact import mask  # noqa: PLC0415 - its patterns cost time to compile

    # what fixes say (`api_key=…`) is no secret, and no secret holds an ellipsis: each part is looked at alone
    return printable("…".join(mask(part) for part in text.split("…")))


def complain(problem: str) -> None:
    """Print a problem on stderr."""
    print(f"error: {shown(problem)}", file=sys.stderr)


def say(line: str) -> None:
    """Print a line for the person at the terminal, apart from the answer."""
    print(shown(line), file=sys.stderr)


def table(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Set rows in columns; the last column may be of any width."""
    if not rows:
        return ""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(indent + line.rstrip() for line in lines)


def answer_text(output: Any) -> str:
    """Word what a run gave: a text as it is, everything else as indented JSON."""
    if isinstance(output, str):
        return printable(output)
    from pydantic_core import to_json  # noqa: PLC0415 - most answers are texts

    return printable(to_json(output, indent=2, fallback=repr).decode())


def facts_of(result: RunResult) -> str:
    """Sum a run up in one line: what it used, and what ended it."""
    usage = result.usage
    facts = [f"{usage.chat_calls} model calls", f"{usage.tool_calls} tool calls"]
    if usage.prompt_tokens or usage.completion_tokens:
        facts.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens")
    if usage.cost_usd is not None:
        facts.append(f"${usage.cost_usd:.4f}")
    facts.append(f"{usage.elapsed:.2f} s")
    return f"usage: {', '.join(facts)}; stopped by: {result.stopped_by}"


def report_line(result: RunResult) -> str | None:
    """Say where a run's report lies, or `None` where there is none."""
    if result.report_path is None:
        return None
    report = near(result.report_path)
    return f"report: {report / 'index.html'} and {report / 'report.json'}"


def near(path: Path) -> Path:
    """Write a path as seen from the current folder, where that is possible."""
    try:
        return Path(os.path.relpath(path))
    except ValueError:  # another drive
        return path
