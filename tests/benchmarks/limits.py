"""What Thena may cost, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The most (in `throughput`, the least) that each figure may be; ratios are to the hand-written loop.

    Attributes:
        turn: One turn with one call, in runs of 10 and of 100 turns.
        growth: A turn of a run with 100 turns, to one of a run with 10.
        batch_call: Each further call of a turn.
        packed: Ten calls packed into one, to as many that are gathered by hand.
        packed_wait: The same in wall-clock time, where each call waits 20 ms.
        throughput: Runs per CPU second, with 1,000 at once.
        kilobytes: Memory of each of those runs.
        hook_pair: Microseconds of one hook before and one after a call.
        recorded: Microseconds more of a turn with one call where a report is on: its agent's, chat's and tool's nodes.
        watched: Microseconds more of such a turn where a listener gets its six events.
        rejected: A turn whose call is refused.
        imports: `import thena_core`, to importing asyncio, json and pydantic's BaseModel.
    """

    turn: float = 2.0
    growth: float = 1.1
    batch_call: float = 1.5
    packed: float = 2.0
    packed_wait: float = 1.15
    throughput: float = 0.4
    kilobytes: float = 12.0
    hook_pair: float = 2.0
    recorded: float = 8.0
    watched: float = 16.0
    rejected: float = 2.0
    imports: float = 1.6


LIMITS = Limits()
