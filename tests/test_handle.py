"""Following a started run: from the beginning, at any pace, to its end. Tests of thena_core.handle."""

from __future__ import annotations

import asyncio

import pytest

from tests.hooks.scripted import DEADLINE, Scripted, ask, scripted
from thena_core import Event, FatalToolError, RunAborted, tool
from thena_core.handle import RunHandle
from thena_core.record.stream import Stream


@tool
async def look() -> str:
    """Looks."""
    return "seen"


@tool
async def ends() -> str:
    """Ends the run."""
    raise FatalToolError("gone")


def waiting(begun: asyncio.Event) -> Scripted:
    @tool
    async def waits() -> str:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    return scripted([waits], ask("waits"), observed=False)


def pairs(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.phase, event.id) for event in events]


@pytest.mark.behaviour("O04", "S01")
async def test_late_followers_see_the_same() -> None:
    """Who follows from the first event, in the middle, or after the end sees the whole run, in the same order."""
    async with scripted([look], ask("look"), ask("look"), observed=False).app as app, app.start("go") as handle:
        first = [event async for event in handle.events()]
        await handle.result()
        late = [event async for event in handle.events()]
    assert pairs(late) == pairs(first)
    assert (first[0].phase, first[0].parent_id) == ("start", None)
    assert (first[-1].phase, first[-1].id) == ("end", first[0].id)
    starts = [event.id for event in first if event.phase == "start"]
    assert sorted(starts) == sorted(event.id for event in first if event.phase == "end")
    assert {event.run_id for event in first} == {handle.run_id}


@pytest.mark.behaviour("S03", "O04")
@pytest.mark.parametrize("how", ["answered", "fatal", "aborted", "cancelled"])
async def test_the_end_is_never_missed(how: str) -> None:
    """However a run ends, its own end is the last event, and following it ends."""
    begun = asyncio.Event()
    made = {
        "answered": lambda: scripted([look], ask("look"), observed=False),
        "fatal": lambda: scripted([ends], ask("ends"), observed=False),
    }.get(how, lambda: waiting(begun))()
    async with asyncio.timeout(DEADLINE), made.app as app:
        handle = app.start("go", run_id="r1")
        if how == "aborted":
            await begun.wait()
            handle.abort("enough")
        elif how == "cancelled":
            await begun.wait()
            handle._task.cancel()
        events = [event async for event in handle.events()]
        ended = await asyncio.gather(handle.result(), return_exceptions=True)
    assert (events[-1].phase, events[-1].id) == ("end", "r1")
    assert events[-1].status == ("ok" if how == "answered" else "error")
    expected = {"fatal": FatalToolError, "aborted": RunAborted, "cancelled": asyncio.CancelledError}.get(how)
    assert expected is None or isinstance(ended[0], expected)


async def test_a_run_that_never_began_ends_its_followers() -> None:
    """Aborted before its first step, a run has no events, and following it ends all the same."""
    async with asyncio.timeout(DEADLINE), scripted([], observed=False).app as app:
        handle = app.start("go")
        handle.abort("changed my mind")
        assert [event async for event in handle.events()] == []
        assert [text async for text in handle.text()] == []


@pytest.mark.behaviour("S03")
async def test_a_slow_follower_holds_nothing_up() -> None:
    """The run ends while a follower still looks at one event; what it missed is counted, the end is there."""
    async with scripted([look], *[ask("look")] * 8, observed=False).app as app, app.start("go") as handle:
        handle._events = Stream(kept=6)
        slow = handle.events()
        first = await anext(slow)
        async with asyncio.timeout(DEADLINE):
            result = await handle.result()
        rest = [event async for event in slow]
    assert result.usage.tool_calls == 8
    assert first.id != rest[-1].id
    assert (rest[-1].phase, rest[-1].id) == ("end", handle.run_id)
    assert slow.dropped > 20
    assert slow.dropped + 1 + len(rest) == handle._events._count


@pytest.mark.behaviour("O05", "Q01")
async def test_followed_events_are_masked() -> None:
    """What a follower reads has no secret shapes and none of the run's data."""

    @tool
    async def tells() -> str:
        """Tells a secret."""
        return "password=hunter2000"

    async with scripted([tells], ask("tells"), observed=False).app as app:
        handle: RunHandle = app.start("go", data="tenant-17")
        shown = str([event.as_dict() async for event in handle.events()])
        await handle.result()
    assert "password=…masked" in shown
    assert "hunter2000" not in shown
    assert "tenant-17" not in shown
