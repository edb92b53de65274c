"""The command `thena report`: the newest run's report, or that of a given run, as a tree on the terminal."""

from __future__ import annotations

import heapq
import json
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from thena_core._render import did_you_mean, shortened
from thena_core.cli.problems import ANSWERED, CommandFailed, UsageProblem
from thena_core.cli.settings import mapping
from thena_core.cli.show import near, printable, say, table

if TYPE_CHECKING:
    from thena_core.cli.settings import Settings

LISTED = 20
"""How many runs `--list` names: the newest, as many as fit on a screen."""

DEEPEST = 100
"""How deep the tree is printed; far beyond what 16 nested workflows can make."""


def show_report(run_id: str | None, given: Settings, folder: Path | None, *, listing: bool, browse: bool) -> int:
    """Print a run's tree, and where its page is; or the newest runs.

    Args:
        run_id: The run; the newest unless given.
        given: Where reports are written.
        folder: Holds the reports; that of the settings, or else `./report`, unless given.
        listing: Print the newest runs instead.
        browse: Open the page in the browser, too.

    Raises:
        UsageProblem: Where there is no such run.
        CommandFailed: Where its report cannot be read, or no browser be opened.
    """
    place = folder or Path(given.report if isinstance(given.report, str) else "report")
    if listing:
        rows = [_row(path) for path in _newest(place, LISTED)]
        print(printable(table(rows)))
        return ANSWERED
    run = _folder_of(run_id, place) if run_id is not None else _newest(place, 1)[0]
    document = read_report(run)
    print(printable("\n".join([_head(document), *_lines(document.get("root"), 1)])))
    page = run / "index.html"
    say(f"report: {near(page)} and {near(run / 'report.json')}")
    if browse and not webbrowser.open(page.resolve().as_uri()):
        raise CommandFailed(f"no browser can be opened here. Open it yourself: {page.resolve()}")
    return ANSWERED


def read_report(run: Path) -> Mapping[str, Any]:
    """Read a run's report.json.

    Raises:
        CommandFailed: Where it cannot be read.
    """
    file = run / "report.json"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CommandFailed(f"{near(file)} cannot be read: {error}") from error
    if not mapping(document):
        raise CommandFailed(f"{near(file)} is no report")
    return mapping(document)


def _newest(folder: Path, count: int) -> list[Path]:
    """Find the newest runs' folders by the time at which their report was written."""
    found: list[tuple[float, Path]] = []
    for file in folder.glob("*/report.json"):
        try:
            found.append((file.stat().st_mtime_ns, file.parent))
        except OSError:  # removed meanwhile
            continue
    if not found:
        raise UsageProblem(
            f"there is no report in {folder}. `thena run` writes them; where they are elsewhere write: --folder FOLDER"
        )
    return [run for _, run in heapq.nlargest(count, found)]


def _folder_of(run_id: str, folder: Path) -> Path:
    from thena_core.record.run_id import checked_id  # noqa: PLC0415 - only a run that is named needs it

    try:
        run = folder / checked_id(run_id)
    except ValueError as error:
        raise UsageProblem(str(error).removeprefix("[thena] ")) from error
    if not (run / "report.json").is_file():
        names = [path.name for path in _newest(folder, 1_000)]
        raise UsageProblem(
            f"there is no report of a run {run_id} in {folder}.{did_you_mean(run_id, names)} "
            f"See those that there are: thena report --list"
        )
    return run


def _row(run: Path) -> tuple[str, str, str, str]:
    try:
        document = read_report(run)
    except CommandFailed as problem:
        return (run.name, "?", "", str(problem))
    root = mapping(document.get("root"))
    usage = mapping(document.get("usage"))
    calls = f"{usage.get('chat_calls', '?')} model calls, {usage.get('tool_calls', '?')} tool calls"
    return (run.name, _ended(document), calls, str(root.get("started_at", ""))[:19])


def _head(document: Mapping[str, Any]) -> str:
    usage = ", ".join(
        f"{name} {round(value, 4) if isinstance(value, float) else value}"
        for name, value in mapping(document.get("usage")).items()
        if value is not None
    )
    return f"run {document.get('run_id')}, {_ended(document)}\nusage: {usage}"


def _ended(document: Mapping[str, Any]) -> str:
    root = mapping(document.get("root"))
    return "failed" if root.get("status") == "error" else f"stopped by: {document.get('stopped_by')}"


def _lines(node: Any, depth: int) -> list[str]:
    """Print a node and those below it; what a file holds that is no node is left out."""
    fields = mapping(node)
    if not fields or depth > DEEPEST:
        return []
    facts = [str(fields.get("kind")), str(fields.get("name")), str(fields.get("outcome") or fields.get("status"))]
    duration = fields.get("duration_ms")
    if isinstance(duration, int | float):
        facts.append(f"{duration:.1f}ms")
    meta = [f"{name}={shortened(str(value), 60)}" for name, value in mapping(fields.get("meta")).items()]
    error = fields.get("error")
    text = "  " * depth + " ".join([*facts, *meta]) + (f": {shortened(str(error), 200)}" if error else "")
    children = cast("list[Any]", fields.get("children")) if isinstance(fields.get("children"), list) else []
    below = [line for child in children for line in _lines(child, depth + 1)]
    return [" ".join(text.splitlines()), *below]
