"""The recipe for a rate limit: bursts, waiting, refusing, and scopes that do not pay for each other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.recipes.recipe import recipe
from thena_core import Thena, ToolOutput, tool

rate_limit = recipe("rate_limit")


@tool(effect="read")
async def search(text: str = "") -> str:
    """Searches."""
    return "found"


class Limited:
    """A tool behind a limit, with a clock of the test's own."""

    def __init__(self, calls: int, seconds: float, patience: float = 0.0) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.limit = rate_limit.RateLimit(
            calls, seconds, lambda call: call.ctx.data, patience, lambda: self.now, self.sleep
        )
        self.app = Thena(tools=[search])
        self.app.use(tool=self.limit.wait)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def __call__(self, data: Any = "acme") -> ToolOutput:
        return await self.app.call("search", {}, data=data)


async def test_a_burst_and_then_one_each() -> None:
    """So many at once, the next refused with the seconds to wait, and one more each time that a place is free."""
    ask = Limited(3, 30.0)
    async with ask.app:
        assert [(await ask()).is_error for _ in range(3)] == [False] * 3
        assert await ask() == ToolOutput("Too many calls of search: try again in 10 s, or go on.", is_error=True)
        ask.now = 9.9
        assert (await ask()).content == "Too many calls of search: try again in 1 s, or go on."
        ask.now = 10.0
        assert [(await ask()).is_error for _ in range(2)] == [False, True]
        ask.now = 1_000.0
        assert [(await ask()).is_error for _ in range(4)] == [False, False, False, True]


async def test_refused_calls_use_no_place() -> None:
    """A model that goes on asking is not kept out for longer."""
    ask = Limited(1, 10.0)
    async with ask.app:
        assert not (await ask()).is_error
        assert all([(await ask()).is_error for _ in range(50)])
        ask.now = 10.0
        assert not (await ask()).is_error


async def test_waiting() -> None:
    """Within its patience a call waits for its place, each behind the one before; beyond it, it is refused."""
    ask = Limited(1, 10.0, patience=25.0)
    async with ask.app:
        outputs = await asyncio.gather(*(ask() for _ in range(5)))
    assert [output.is_error for output in outputs] == [False, False, False, True, True]
    assert ask.waits == [10.0, 20.0]


async def test_scopes() -> None:
    """One tenant's calls do not use up another's."""
    ask = Limited(1, 10.0)
    async with ask.app:
        assert [(await ask(tenant)).is_error for tenant in ("a", "b", "a", "b")] == [False, False, True, True]


async def test_cancelled_while_it_waits() -> None:
    """A waiting call is cancelled like any other; it has used its place."""
    limit = rate_limit.RateLimit(1, 3_600.0, lambda _call: None, patience=7_200.0)
    app = Thena(tools=[search])
    app.use(tool=limit.wait)
    async with app:
        await app.call("search", {})
        waiting = asyncio.create_task(app.call("search", {}))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_scopes_that_are_free_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept does not grow with those who came once."""
    monkeypatch.setattr(rate_limit, "MANY", 10)
    ask = Limited(1, 10.0)
    async with ask.app:
        for number in range(30):
            ask.now = number * 5.0
            assert not (await ask(number)).is_error
    assert len(ask.limit._free_at) <= 11


@pytest.mark.parametrize(("calls", "seconds"), [(0, 1.0), (-1, 1.0), (1, 0.0), (1, -1.0)])
def test_limits_that_are_none(calls: int, seconds: float) -> None:
    """They are refused where they are written."""
    with pytest.raises(ValueError, match="at least one call in some time"):
        rate_limit.RateLimit(calls, seconds, lambda _call: None)
