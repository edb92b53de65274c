"""Prints what Thena costs beside a hand-written loop: `scripts/bench [--check] [SCENARIO …]`."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import subprocess
import sys

from tests.benchmarks.measure import ROOT, Effort
from tests.benchmarks.scenarios import SCENARIOS, Figure, memory

NAMES = tuple(scenario.__name__ for scenario in SCENARIOS)


def table(figures: list[Figure]) -> str:
    """Lay the figures out."""
    rows = [("figure", "measured", "limit", "ok", "detail")]
    for figure in figures:
        sign = "≥" if figure.at_least else "≤"
        measured = f"{figure.measured:.2f} {figure.unit}"
        limit = f"{sign} {figure.limit:g} {figure.unit}"
        rows.append((figure.name, measured, limit, "yes" if figure.ok else "NO", figure.detail))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "-|-".join("-" * width for width in widths))
    return "\n".join(lines)


async def measured(name: str, effort: Effort) -> list[Figure]:
    """Run a scenario in this process."""
    scenario = next(one for one in SCENARIOS if one.__name__ == name)
    return await scenario(effort)


def measured_alone(name: str) -> list[Figure]:
    """Run a scenario in a process of its own.

    What one leaves behind (in the heap, and in what the interpreter has learnt of the code) would be a cost of the next:
    up to a quarter more for S4 after S3.
    """
    command = [sys.executable, "-m", "tests.benchmarks", "--figures", name]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return [Figure(**fields) for fields in json.loads(said.stdout)]


def main() -> int:
    """Measure and print; with `--check`, return 1 where a figure is over its limit."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help=f"any of: {', '.join(NAMES)}; all unless given"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 where a figure is over its limit")
    parser.add_argument("--memory", type=int, metavar="RUNS", help=argparse.SUPPRESS)
    parser.add_argument("--figures", metavar="SCENARIO", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory is not None:
        sys.stdout.write(json.dumps({"kilobytes": asyncio.run(memory(given.memory))}) + "\n")
        return 0
    if given.figures is not None:
        found = asyncio.run(measured(given.figures, Effort()))
        sys.stdout.write(json.dumps([dataclasses.asdict(figure) for figure in found]) + "\n")
        return 0
    unknown = set(given.scenarios) - set(NAMES)
    if unknown:
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}: {', '.join(NAMES)}")
    wanted = [name for name in NAMES if not given.scenarios or name in given.scenarios]
    figures = [figure for name in wanted for figure in measured_alone(name)]
    sys.stdout.write(table(figures) + "\n")
    return 1 if given.check and not all(figure.ok for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
