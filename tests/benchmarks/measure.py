"""How it is measured: CPU time of the process, the sides taking turns, a full collection before each repetition."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.workload import Side, Turn, converse

ROOT = Path(__file__).parent.parent.parent
MIN_WARM_UP = 3
"""Runs before the clock starts: the interpreter specialises its code in the first few."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes:
        repetitions: How often each side takes its turn; the median decides.
        seconds: CPU seconds of one repetition; 0 for a single run that is not warmed up.
        runs: Concurrent runs in S3.
        imports: Fresh interpreters per import.
    """

    repetitions: int = 15
    seconds: float = 0.05
    runs: int = 1_000
    imports: int = 9


Job = tuple[Side, Sequence[Turn]]


async def interleaved(jobs: Mapping[str, Job], effort: Effort) -> dict[str, list[float]]:
    """Measure several jobs beside each other.

    Returns:
        For each job its CPU seconds per run, one figure a repetition; figures at the same place were taken beside
        each other, so that what disturbs the machine disturbs all of them.
    """
    inner = {name: await _how_many(job, effort.seconds) for name, job in jobs.items()}
    found: dict[str, list[float]] = {name: [] for name in jobs}
    order = list(jobs)
    for repetition in range(effort.repetitions):
        for name in order if repetition % 2 == 0 else reversed(order):
            side, turns = jobs[name]
            gc.collect()
            start = time.process_time()
            for _ in range(inner[name]):
                await converse(side, turns)
            found[name].append((time.process_time() - start) / inner[name])
    return found


async def _how_many(job: Job, seconds: float) -> int:
    """Warm up, and say how many runs fill a repetition."""
    side, turns = job
    start = time.process_time()
    runs = 0
    while runs < MIN_WARM_UP or time.process_time() - start < seconds:
        await converse(side, turns)
        runs += 1
        if seconds == 0:
            break
    return max(1, runs)


def median_ratio(of: Sequence[float], to: Sequence[float]) -> float:
    """Return the median of the ratios of figures that were taken beside each other."""
    return statistics.median(one / other for one, other in zip(of, to, strict=True))


def resident_kilobytes() -> tuple[float, float]:
    """Return what the process holds now and held at most.

    The peak of the kernel's own books, since `getrusage` starts with the peak of the process that started this one.
    """
    facts: dict[str, float] = {}
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name in {"VmRSS", "VmHWM"}:
            facts[name] = float(value.split()[0])
    return facts["VmRSS"], facts["VmHWM"]


def import_seconds(statement: str) -> float:
    """Return the CPU seconds of a fresh interpreter that runs `statement`."""
    import resource  # not on Windows, where the other figures still work

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
