"""Following what a run produces while it runs: each follower at its own pace, late ones from the beginning."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")

MAX_KEPT = 10_000
"""Items that are kept for late and slow followers; older ones are dropped, and counted."""


class Stream(Generic[ItemT]):
    """Items in the order in which they came. Putting one never waits; followers never hold it up."""

    def __init__(self, kept: int = MAX_KEPT) -> None:
        self._items: deque[ItemT] = deque(maxlen=kept)
        self._count = 0
        self._closed = False
        self._waiting: list[asyncio.Future[None]] = []
        self.dropped = 0

    def put(self, item: ItemT) -> None:
        """Add an item and wake those who wait for it."""
        if len(self._items) == self._items.maxlen:
            self.dropped += 1
        self._items.append(item)
        self._count += 1
        self._wake()

    def close(self) -> None:
        """End the stream: followers end after the last item."""
        self._closed = True
        self._wake()

    async def follow(self) -> AsyncIterator[ItemT]:
        """Yield what has passed and is still kept, then what comes, until the stream is closed."""
        position = 0
        while True:
            position = max(position, self._count - len(self._items))
            while position < self._count:
                yield self._items[position - (self._count - len(self._items))]
                position = max(position + 1, self._count - len(self._items))
            if self._closed:
                return
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
