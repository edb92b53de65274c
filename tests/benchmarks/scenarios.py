"""The scenarios: each builds both sides, proves that they do the same work, and measures them beside each other."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.benchmarks.handwritten import HandWritten
from tests.benchmarks.limits import LIMITS
from tests.benchmarks.measure import ROOT, Effort, import_seconds, interleaved, median_ratio, resident_kilobytes
from tests.benchmarks.through_thena import ThroughThena
from tests.benchmarks.workload import (
    Shape,
    Side,
    Turn,
    at_once,
    converse,
    every_second_rejected,
    one_after_the_other,
    packed,
)

MICRO = 1_000_000
BATCH = 10
CROWD_TURNS = 5
HOOK_TURNS = 50
PAIRS = 20
WAIT = 0.02


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    Attributes:
        name: What was measured.
        measured: The figure.
        limit: What it may be.
        unit: `×`, `µs` or `KB`.
        at_least: Whether the limit is the least that is allowed.
        detail: The absolute figures behind a ratio.
    """

    name: str
    measured: float
    limit: float
    unit: str = "×"
    at_least: bool = False
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the limit is kept."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


async def same_work(sides: Sequence[Side], turns: Sequence[Turn], calls: int) -> None:
    """Prove that each side asks the model for every turn and runs the tool as often as it should.

    Raises:
        RuntimeError: Where one does not.
    """
    for side in sides:
        before = side.counts.tool
        script = await converse(side, turns)
        ran = side.counts.tool - before
        if (ran, script.position) != (calls, len(turns) + 1):
            raise RuntimeError(f"{type(side).__name__}: {ran} calls of {calls}, {script.position} turns")


def both(*, yields: bool = False, hooks: bool = False) -> tuple[HandWritten, ThroughThena]:
    """Build both sides, each with counters of its own."""
    return HandWritten(Shape(yields, hooks)), ThroughThena(Shape(yields, hooks))


async def turns(effort: Effort) -> list[Figure]:
    """S1: one turn after the other."""
    hand, thena = both()
    short, long = one_after_the_other(10), one_after_the_other(100)
    await same_work((hand, thena), short, 10)
    await same_work((hand, thena), long, 100)
    found = await interleaved(
        {"hand10": (hand, short), "thena10": (thena, short), "hand100": (hand, long), "thena100": (thena, long)}, effort
    )
    per_turn = {
        f"{side}{k}": statistics.median(found[f"{side}{k}"]) * MICRO / k
        for side in ("hand", "thena")
        for k in (10, 100)
    }
    return [
        *(
            Figure(
                f"S1 turn, K={k}",
                median_ratio(found[f"thena{k}"], found[f"hand{k}"]),
                LIMITS.turn,
                detail=f"{per_turn[f'thena{k}']:.2f} to {per_turn[f'hand{k}']:.2f} µs",
            )
            for k in (10, 100)
        ),
        Figure("S1 growth, K=100 to K=10", median_ratio(found["thena100"], found["thena10"]) / 10, LIMITS.growth),
    ]


async def batches(effort: Effort) -> list[Figure]:
    """S2: several calls of one turn; what each further one costs."""
    hand, thena = both(yields=True)
    await same_work((hand, thena), at_once(BATCH), BATCH)
    found = await interleaved(
        {
            "hand1": (hand, at_once(1)),
            "thena1": (thena, at_once(1)),
            "hand10": (hand, at_once(BATCH)),
            "thena10": (thena, at_once(BATCH)),
        },
        effort,
    )
    extra = {
        side: (statistics.median(found[f"{side}10"]) - statistics.median(found[f"{side}1"])) / (BATCH - 1) * MICRO
        for side in ("hand", "thena")
    }
    detail = f"{extra['thena']:.2f} to {extra['hand']:.2f} µs"
    return [Figure("S2 further call of a batch", extra["thena"] / extra["hand"], LIMITS.batch_call, detail=detail)]


async def packs(effort: Effort) -> list[Figure]:
    """S7: ten calls packed into one of `ParallelTool`, beside ten that are gathered; then with calls that wait."""
    hand, thena = HandWritten(Shape(yields=True)), ThroughThena(Shape(yields=True, packs=True))
    await same_work((hand,), at_once(BATCH), BATCH)
    await same_work((thena,), packed(BATCH), BATCH)
    found = await interleaved({"hand": (hand, at_once(BATCH)), "thena": (thena, packed(BATCH))}, effort)
    per_call = {side: statistics.median(found[side]) / BATCH * MICRO for side in ("hand", "thena")}
    waits = Shape(waits=WAIT), Shape(waits=WAIT, packs=True)
    hand_waits = await wall(HandWritten(waits[0]), at_once(BATCH), effort)
    thena_waits = await wall(ThroughThena(waits[1]), packed(BATCH), effort)
    ratio, waited = median_ratio(found["thena"], found["hand"]), thena_waits / hand_waits
    detail = f"{per_call['thena']:.2f} to {per_call['hand']:.2f} µs a call"
    milliseconds = f"{thena_waits * 1_000:.2f} to {hand_waits * 1_000:.2f} ms"
    return [
        Figure("S7 ten calls packed into one", ratio, LIMITS.packed, detail=detail),
        Figure("S7 the same, each 20 ms", waited, LIMITS.packed_wait, detail=milliseconds),
    ]


async def wall(side: Side, plan: Sequence[Turn], effort: Effort) -> float:
    """Return the median wall-clock seconds of a run whose calls wait."""
    await converse(side, plan)
    seconds: list[float] = []
    for _ in range(effort.repetitions):
        start = time.perf_counter()
        await converse(side, plan)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


async def crowd(effort: Effort) -> list[Figure]:
    """S3: many runs at once; the memory is read in a process that did nothing before."""
    hand, thena = both(yields=True)
    plan = one_after_the_other(CROWD_TURNS)
    await same_work((hand, thena), plan, CROWD_TURNS)
    ratios: list[float] = []
    rates: list[float] = []
    for repetition in range(max(1, effort.repetitions // 3)):
        seconds: dict[Side, float] = {}
        for side in (hand, thena) if repetition % 2 == 0 else (thena, hand):
            seconds[side] = await all_at_once(side, effort.runs)
        ratios.append(seconds[hand] / seconds[thena])
        rates.append(effort.runs / seconds[thena])
    command = [sys.executable, "-m", "tests.benchmarks", "--memory", str(effort.runs)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: ASYNC221
    detail = f"{statistics.median(rates):,.0f} runs per CPU second"
    return [
        Figure("S3 runs per CPU second", statistics.median(ratios), LIMITS.throughput, at_least=True, detail=detail),
        Figure("S3 memory of a run", json.loads(said.stdout)["kilobytes"], LIMITS.kilobytes, "KB"),
    ]


async def all_at_once(side: Side, runs: int) -> float:
    """Start all runs, wait for all, and return the CPU seconds.

    Raises:
        RuntimeError: Where the tool did not run as often as it should.
    """
    plan = one_after_the_other(CROWD_TURNS)
    before = side.counts.tool
    gc.collect()
    start = time.process_time()
    await asyncio.gather(*(asyncio.create_task(converse(side, plan)) for _ in range(runs)))
    seconds = time.process_time() - start
    if side.counts.tool - before != runs * CROWD_TURNS:
        raise RuntimeError(f"{side.counts.tool - before} calls of {runs * CROWD_TURNS}")
    return seconds


async def memory(runs: int) -> float:
    """Return the kilobytes that each of many concurrent runs adds to this process."""
    thena = ThroughThena(Shape(yields=True))
    for _ in range(3):
        await converse(thena, one_after_the_other(CROWD_TURNS))
    gc.collect()
    held, _ = resident_kilobytes()
    await all_at_once(thena, runs)
    _, peak = resident_kilobytes()
    return (peak - held) / runs


async def hooks(effort: Effort) -> list[Figure]:
    """S4: what one hook before and one after a call cost."""
    off, on = ThroughThena(Shape()), ThroughThena(Shape(hooks=True))
    plan = one_after_the_other(HOOK_TURNS)
    await same_work((off, on), plan, HOOK_TURNS)
    if (on.counts.before, on.counts.after) != (HOOK_TURNS, HOOK_TURNS):
        raise RuntimeError(f"the hooks ran {on.counts.before} and {on.counts.after} times")
    found = await interleaved({"off": (off, plan), "on": (on, plan)}, effort)
    extra = statistics.median(b - a for a, b in zip(found["off"], found["on"], strict=True)) / HOOK_TURNS * MICRO
    return [Figure("S4 a hook before and one after", extra, LIMITS.hook_pair, "µs")]


async def recording(effort: Effort) -> list[Figure]:
    """S5: what it costs to be recorded for a report, and to be watched; the report's files are not part of it."""
    sides = {"off": Shape(), "recorded": Shape(recorded=True), "watched": Shape(watched=True)}
    plan = one_after_the_other(HOOK_TURNS)
    made = {name: ThroughThena(shape) for name, shape in sides.items()}
    await same_work(list(made.values()), plan, HOOK_TURNS)
    found = await interleaved({name: (side, plan) for name, side in made.items()}, effort)
    return [
        Figure(
            f"S5 a turn that is {name}",
            statistics.median(b - a for a, b in zip(found["off"], found[name], strict=True)) / HOOK_TURNS * MICRO,
            limit,
            "µs",
        )
        for name, limit in (("recorded", LIMITS.recorded), ("watched", LIMITS.watched))
    ]


async def rejections(effort: Effort) -> list[Figure]:
    """S6: turns whose call is refused; half the cost of as many valid turns is taken off."""
    hand, thena = both()
    mixed, valid = every_second_rejected(PAIRS), one_after_the_other(2 * PAIRS)
    await same_work((hand, thena), mixed, PAIRS)
    found = await interleaved(
        {"hand": (hand, mixed), "thena": (thena, mixed), "hand_valid": (hand, valid), "thena_valid": (thena, valid)},
        effort,
    )
    rejected = {
        side: (statistics.median(found[side]) - statistics.median(found[f"{side}_valid"]) / 2) / PAIRS * MICRO
        for side in ("hand", "thena")
    }
    detail = f"{rejected['thena']:.2f} to {rejected['hand']:.2f} µs"
    return [Figure("S6 rejected turn", rejected["thena"] / rejected["hand"], LIMITS.rejected, detail=detail)]


async def imports(effort: Effort) -> list[Figure]:
    """How long `import thena_core` takes, beside what a hand-written loop imports; a bare start is taken off."""
    statements = {
        "bare": "pass",
        "hand": "import asyncio, json; from pydantic import BaseModel",
        "thena": "import thena_core",
    }
    found: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(effort.imports):
        for name, statement in statements.items():
            found[name].append(import_seconds(statement))
    middle = {name: statistics.median(values) * 1_000 for name, values in found.items()}
    hand, thena = middle["hand"] - middle["bare"], middle["thena"] - middle["bare"]
    return [Figure("import thena_core", thena / hand, LIMITS.imports, detail=f"{thena:.0f} to {hand:.0f} ms")]


SCENARIOS: tuple[Callable[[Effort], Awaitable[list[Figure]]], ...] = (
    turns,
    batches,
    packs,
    crowd,
    hooks,
    recording,
    rejections,
    imports,
)
