"""Proves that the tests bite: breaks a copy of the product in one place at a time, and expects a red test each time.

`scripts/mutate [WORD …]` runs all mutations, or those whose name contains one of the words.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.mutations.catalog import MUTATIONS, Mutation, StaleMutationError

ROOT = Path(__file__).parent.parent.parent
COPIED = ("thena_core", "thena_tools", "tests", "docs", "pyproject.toml")
ABOUT_THE_REPOSITORY = {"test_packaging.py", "test_readme.py", "test_promises.py", "test_layering.py"}
"""Tests of files, not of what calls do: they could only be red for the wrong reason."""

SECONDS = 60.0
"""A broken product may wait for ever; that is noticed, too."""

TOGETHER = 2
MAX_FICKLE = 5
PASSED, FAILED = 0, 1
"""pytest's exit codes; every other one says that the tests could not be run."""


SUMMARY_LINE = re.compile(r"^(?:FAILED|ERROR) (\S+::\w+(?:\[.*?\])?)(?: - |$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutation.

    Attributes:
        name: Which.
        killed_by: The first red test; `None` where all were green.
        seconds: How long it took.
        problem: Why it could not be tried.
    """

    name: str
    killed_by: str | None
    seconds: float
    problem: str | None = None


def suite(root: Path) -> list[str]:
    """List the tests that watch over calls, from the project's root."""
    single = [file for file in sorted((root / "tests").glob("test_*.py")) if file.name not in ABOUT_THE_REPOSITORY]
    return ["tests/calls", "tests/hooks", *(str(file.relative_to(root)) for file in single)]


def copy_project(origin: Path, target: Path) -> None:
    """Copy what the tests need; compiled files keep their time stamps, so that only the broken one is compiled."""
    for name in COPIED:
        source = origin / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        else:
            shutil.copy2(source, target / name)


def attempt(origin: Path, mutation: Mutation | None) -> Verdict:
    """Run the tests over a fresh copy with one mutation, or with none."""
    name = mutation.name if mutation is not None else "(nothing broken)"
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder)
        copy_project(origin, copy)
        if mutation is not None:
            try:
                (copy / mutation.file).write_text(mutation.applied(copy), encoding="utf-8")
            except StaleMutationError as error:
                return Verdict(name, None, 0.0, str(error))
        killed_by, problem = judge(copy, mutation.looked_at_first if mutation is not None else None)
    return Verdict(name, killed_by, time.monotonic() - start, problem)


def judge(copy: Path, first: str | None) -> tuple[str | None, str | None]:
    """Return the first red test, or why there is no answer: of the file to begin with, then of all."""
    if first is not None and (copy / first).exists():
        red, problem = confirmed(copy, [first])
        if red is not None or problem is not None:
            return red, problem
    return confirmed(copy, suite(copy))


def confirmed(copy: Path, paths: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the first test that is red twice; one that is green when it runs again proves nothing and is left out."""
    fickle: list[str] = []
    while len(fickle) <= MAX_FICKLE:
        red, problem = run_tests(copy, [*paths, *(f"--deselect={test}" for test in fickle)])
        if red is None or "::" not in red:
            return red, problem
        again, problem = run_tests(copy, [red])
        if again is not None or problem is not None:
            return again, problem
        fickle.append(red)
    return None, f"these tests are red and green by turns: {', '.join(fickle)}"


def run_tests(copy: Path, arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the first red test, or why there is no answer."""
    options = ["-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    # the copy comes before an editable install of the project
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONHASHSEED": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"no end within {SECONDS:g} s", None
    if process.returncode == PASSED:
        return None, None
    if process.returncode != FAILED:
        return None, f"pytest ended with {process.returncode}: {said.strip()[-600:]}"
    red = first_red(said)
    # red without a test: the broken product cannot even be imported, which proves nothing about the tests
    return red, None if red is not None else f"no test ran: {said.strip()[-600:]}"


def first_red(said: str) -> str | None:
    """Return the first red test that pytest's summary names."""
    found = SUMMARY_LINE.search(said)
    return found[1] if found is not None else None


def table(verdicts: Sequence[Verdict]) -> str:
    """Lay the verdicts out."""
    rows = [("mutation", "killed by", "seconds")]
    for verdict in verdicts:
        fate = "COULD NOT BE TRIED" if verdict.problem is not None else verdict.killed_by or "SURVIVED"
        rows.append((verdict.name, fate, f"{verdict.seconds:.1f}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "-|-".join("-" * width for width in widths))
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    """Try all mutations, or the named ones; return 1 where one survives or could not be tried."""
    chosen = [mutation for mutation in MUTATIONS if not words or any(word in mutation.name for word in words)]
    if not chosen:
        sys.stderr.write(f"no mutation is named like {' or '.join(words)}\n")
        return 2
    # one state of the project for all of them, also where somebody goes on editing it
    with tempfile.TemporaryDirectory(prefix="mutations-of-") as folder, ThreadPoolExecutor(TOGETHER) as pool:
        origin = Path(folder)
        copy_project(ROOT, origin)
        untouched = attempt(origin, None)
        if untouched.problem is not None or untouched.killed_by is not None:
            sys.stderr.write(f"the tests are red with nothing broken: {untouched.killed_by or untouched.problem}\n")
            return 1
        verdicts = list(pool.map(partial(attempt, origin), chosen))
    sys.stdout.write(table(verdicts) + "\n")
    for verdict in verdicts:
        if verdict.problem is not None:
            sys.stdout.write(f"{verdict.name}: {verdict.problem}\n")
    killed = sum(verdict.killed_by is not None for verdict in verdicts)
    sys.stdout.write(f"{killed} of {len(verdicts)} killed\n")
    return 0 if killed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
