"""Tests of thena_core.record.stream."""

from __future__ import annotations

import asyncio

import pytest

from thena_core.record.stream import Stream


def filled(count: int, kept: int = 10_000) -> Stream[int]:
    stream: Stream[int] = Stream(kept)
    for number in range(count):
        stream.put(number)
    return stream


@pytest.mark.behaviour("O04", "S01")
async def test_late_followers_get_what_has_passed() -> None:
    """Who comes late, even after the end, begins at the beginning, as often as it likes."""
    stream = filled(3)
    stream.close()
    for _ in range(2):
        assert [number async for number in stream.follow()] == [0, 1, 2]


@pytest.mark.behaviour("S03")
async def test_what_a_slow_follower_missed_is_counted() -> None:
    """Of more than is kept a follower gets the newest, the end always among them, and knows how many it missed."""
    stream = filled(2, kept=3)
    slow, late = stream.follow(), stream.follow()
    assert [await anext(slow), await anext(slow), slow.dropped] == [0, 1, 0]
    for number in range(2, 10):
        stream.put(number)
    stream.close()
    assert [number async for number in slow] == [7, 8, 9]
    assert [number async for number in late] == [7, 8, 9]
    assert (slow.dropped, late.dropped, stream.dropped) == (5, 7, 7)


@pytest.mark.behaviour("S03")
async def test_dropped_between_two_reads() -> None:
    """Items that come and go while a follower works on one are counted as its own loss, not as another's."""
    stream = filled(3, kept=2)
    quick, slow = stream.follow(), stream.follow()
    assert [await anext(quick), await anext(quick)] == [1, 2]
    assert await anext(slow) == 1
    stream.put(3)
    stream.put(4)
    assert (await anext(quick), quick.dropped) == (3, 1)
    assert (await anext(slow), slow.dropped) == (3, 2)


async def test_followers_wait_for_what_comes() -> None:
    """Several followers get each item as it is put, and end with the stream."""
    stream: Stream[int] = Stream()
    found: list[list[int]] = [[], []]

    async def read(into: list[int]) -> None:
        into.extend([number async for number in stream.follow()])

    readers = [asyncio.create_task(read(into)) for into in found]
    for number in range(3):
        await asyncio.sleep(0)
        stream.put(number)
    stream.close()
    await asyncio.wait_for(asyncio.gather(*readers), 10)
    assert found == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.behaviour("S03")
async def test_putting_never_waits() -> None:
    """A follower that never reads again holds nobody up, and a huge backlog stays within its bound."""
    stream: Stream[int] = Stream(kept=100)
    asleep = stream.follow()
    reader = asyncio.create_task(anext(asleep))  # type: ignore[arg-type]  # an awaitable, as asyncio takes it
    await asyncio.sleep(0)
    for number in range(100_000):
        stream.put(number)
    stream.close()
    assert len(stream._items) == 100
    assert await reader == 99_900
    assert [number async for number in asleep][-1] == 99_999


async def test_a_read_that_was_given_up_loses_nothing() -> None:
    """`anext` with a time limit can be repeated: the follower goes on where it was, and leaves nobody waiting."""
    stream: Stream[int] = Stream()
    follower = stream.follow()
    for _ in range(50):
        reader = asyncio.ensure_future(follower.__anext__())
        await asyncio.sleep(0)
        reader.cancel()
        await asyncio.wait([reader])
    assert not stream._waiting
    stream.put(7)
    assert await anext(follower) == 7


async def test_a_stream_that_was_never_used_ends() -> None:
    """A follower of a run that ended before its first event ends, too."""
    stream: Stream[int] = Stream()
    reader = asyncio.create_task(asyncio.wait_for(stream.follow().__anext__(), 10))
    await asyncio.sleep(0)
    stream.close()
    with pytest.raises(StopAsyncIteration):
        await reader
