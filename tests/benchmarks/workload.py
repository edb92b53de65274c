"""The same work for both sides: a scripted model, one tool, and counters that prove what ran."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

SYSTEM = "You read files, one after the other."
QUESTION = "What do these files hold? Read each of them, then answer in two sentences."
ANSWER = "Each of the files holds a report; every line of it names a date and an amount. " * 2
CONTENT = "2024-03-01 1,250.00 paid by transfer, reference 77-A; " * 4

TOOL = "read_file"
VALID = '{"path": "reports/2024/march/file_0007.txt", "max_lines": 50}'
PACKED_CALL = f'{{"name": "{TOOL}", "arguments": {VALID}}}'
INVALID = '{"path": "reports/2024/march/file_0007.txt", "max_lines": "fifty"}'

Turn = Sequence[tuple[str, str]]
"""The calls that the model asks for in one turn: id and JSON text of each."""


def one_after_the_other(turns: int) -> list[Turn]:
    """Plan `turns` turns with one valid call each."""
    return [[(f"call_{number}", VALID)] for number in range(turns)]


def at_once(calls: int) -> list[Turn]:
    """Plan one turn that asks for several calls."""
    return [[(f"call_{number}", VALID) for number in range(calls)]]


def packed(calls: int) -> list[Turn]:
    """Plan one turn that packs several calls into one."""
    return [[("call_0", f'{{"calls": [{", ".join([PACKED_CALL] * calls)}]}}')]]


def every_second_rejected(pairs: int) -> list[Turn]:
    """Plan pairs of turns: arguments that do not fit, then arguments that do."""
    return [[(f"call_{number}", VALID if number % 2 else INVALID)] for number in range(2 * pairs)]


@dataclass(slots=True)
class Script:
    """The model's part in one run.

    Attributes:
        turns: What it asks for, turn by turn; after the last it answers.
        position: How often it was asked.
    """

    turns: Sequence[Turn]
    position: int = 0

    def advance(self) -> Turn:
        """Return the next turn's calls; none means that it answers."""
        position = self.position
        self.position = position + 1
        return self.turns[position] if position < len(self.turns) else ()


@dataclass(slots=True)
class Counts:
    """What ran since the last reset."""

    tool: int = 0
    before: int = 0
    after: int = 0


ToolBody = Callable[..., Awaitable[str]]


def make_body(counts: Counts, *, yields: bool, waits: float = 0) -> ToolBody:
    """Make the tool's function; one that yields or waits gives the loop a turn, so that calls and runs overlap."""

    async def read_file(path: str, max_lines: int = 100) -> str:
        """Read the first lines of a file."""
        counts.tool += 1
        if yields or waits:
            await asyncio.sleep(waits)
        return CONTENT

    return read_file


@dataclass(slots=True)
class Shape:
    """What a side is built with.

    Attributes:
        yields: Whether the tool gives the loop a turn.
        hooks: Whether a hook runs before and after each call.
        recorded: Whether all is recorded, as for a report.
        watched: Whether a listener gets the events.
        waits: Seconds that the tool waits.
        packs: Whether the model packs the calls of a turn into one.
    """

    yields: bool = False
    hooks: bool = False
    recorded: bool = False
    watched: bool = False
    waits: float = 0
    packs: bool = False
    counts: Counts = field(default_factory=Counts)


class Side(Protocol):
    """The hand-written loop, or Thena."""

    counts: Counts

    async def run(self) -> str:
        """Hold one conversation with the model that `script` names, and return its answer."""
        ...


script: ContextVar[Script] = ContextVar("benchmark_script")
"""Finds the run's script, so that both models cost the same and none searches the history."""


async def converse(side: Side, turns: Sequence[Turn]) -> Script:
    """Run one conversation and return its script, as it stands at the end.

    Raises:
        RuntimeError: Where the answer is not the model's.
    """
    own = Script(turns)
    script.set(own)
    if await side.run() != ANSWER:
        raise RuntimeError("the run did not end with the model's answer")
    return own
