"""Following what a run produces while it runs: each follower at its own pace, late ones from the beginning."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from typing import Self

ItemT = TypeVar("ItemT")

MAX_KEPT = 10_000
"""Items that are kept for late and slow followers; older ones are dropped, and counted."""


class Stream(Generic[ItemT]):
    """Items in the order in which they came. Putting one never waits; followers never hold it up.

    Args:
        kept: How many of the newest items are kept; the last one always is.
    """

    def __init__(self, kept: int = MAX_KEPT) -> None:
        self._items: deque[ItemT] = deque(maxlen=kept)
        self._count = 0
        self._closed = False
        self._waiting: dict[asyncio.Future[None], None] = {}  # in the order in which they came

    @property
    def dropped(self) -> int:
        """How many items are kept no more; a follower knows how many of them it has missed."""
        return self._count - len(self._items)

    def put(self, item: ItemT) -> None:
        """Add an item and wake those who wait for it."""
        self._items.append(item)
        self._count += 1
        if self._waiting:
            self._wake()

    def close(self) -> None:
        """End the stream: followers end after the last item."""
        self._closed = True
        self._wake()

    def follow(self) -> Follower[ItemT]:
        """Return what yields all that has passed and is still kept, then what comes, until the stream is closed."""
        return Follower(self)

    async def item(self, position: int) -> tuple[int, ItemT] | None:
        """Wait for an item.

        Args:
            position: Its number, from 0.

        Returns:
            The item and its number, which is a later one where the item was dropped; `None` after the last.
        """
        while position >= self._count:
            if self._closed:
                return None
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[waiter] = None
            try:
                await waiter
            finally:
                self._waiting.pop(waiter, None)
        place = max(position - self.dropped, 0)
        return self.dropped + place, self._items[place]

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)


class Follower(AsyncIterator[ItemT]):
    """One reader of a stream; for `async for`, or for `anext` with a time limit, which loses nothing.

    Attributes:
        dropped: How many items it has missed so far, because it came late or was slow.
    """

    def __init__(self, stream: Stream[ItemT]) -> None:
        self.dropped = 0
        self._stream = stream
        self._position = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ItemT:
        """Return the next item.

        Raises:
            StopAsyncIteration: After the last.
        """
        found = await self._stream.item(self._position)
        if found is None:
            raise StopAsyncIteration
        number, item = found
        self.dropped += number - self._position
        self._position = number + 1
        return item
