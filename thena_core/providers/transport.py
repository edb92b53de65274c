"""Post JSON to a model service, read its answer whole or streamed, and try again where that may help."""

from __future__ import annotations

import asyncio
import random as random_module
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from thena_core.errors import ProviderError
from thena_core.providers.client import BrokenOff, Clients, Exchange, Limits, NoReply, Timeout
from thena_core.providers.reply import Reply, masked, shown
from thena_core.providers.retry import Retry, may_pass, retry_after

T = TypeVar("T")


class StreamedReply:
    """An answer that is read while it comes; iterate over it for its bytes, in pieces of any size.

    Attributes:
        head: Status, headers and the number of this attempt, with an empty body; for `failure(…)`.
        handed_on: Set it to `True` **before** the first piece of text goes to `request.on_text`: from then on the
            request is never sent again, since a reader cannot take back what it has shown.
    """

    __slots__ = ("_begun", "_exchange", "_limit", "_size", "handed_on", "head")

    def __init__(self, head: Reply, exchange: Exchange, limit: int) -> None:
        self._begun = b""
        self.head = head
        self.handed_on = False
        self._exchange = exchange
        self._limit = limit
        self._size = 0

    def __aiter__(self) -> StreamedReply:
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece.

        Raises:
            BrokenOff: Where the connection breaks, stays silent, or brings more than the limit.
        """
        if self._begun:
            piece, self._begun = self._begun, b""
            return piece
        piece = await self._exchange.next_bytes()
        if not piece:
            raise StopAsyncIteration
        self._size += len(piece)
        if self._size > self._limit:
            raise BrokenOff(f"the answer is longer than {self._limit:,} bytes", may_pass=False)
        return piece

    async def peek(self) -> bytes:
        """Look at the beginning, up to the first byte that is no white space; it is given again when iterated over."""
        begun = b""
        while not begun.strip():
            piece = await anext(self, b"")
            if not piece:
                break
            begun += piece
        self._begun = begun
        return begun

    async def rest(self) -> Reply:
        """Read what is left as a whole answer, for servers that do not stream although they were asked to."""
        return replace(self.head, body=b"".join([piece async for piece in self]))


Read = Callable[[StreamedReply], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class Taken(Generic[T]):
    """What a reader made of an answer."""

    value: T


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that its reader cannot use, and whether it may be another one next time."""

    error: ProviderError
    may_pass: bool


@dataclass(slots=True)
class Transport:
    """Post to one service, through one HTTP client per event loop.

    The two ways to ask:

    * `await post(url, body, headers)` gives the whole answer as a `Reply`, whatever its status.
    * `await stream(url, body, headers, read)` calls `await read(answer)` as soon as the head of a good answer (200 to
      299) is there, with a `StreamedReply` to iterate over, and gives back what `read` returns; an answer of another
      status comes back as a `Reply`, read to its end.

    Both try again by the same rules. `read` is called once for each attempt, so all that it gathers belongs inside it.
    It ends an attempt by raising, and the request is sent again where that may help and nothing was handed on:

    * `BrokenOff("…")` where the stream ends before its terminator or cannot be understood;
    * `ProviderError(status=…, retry_after=…)` for an error inside the stream, tried again by that status.

    Leaving `read` in any way (a return, an exception, a cancellation) closes the answer; after a return, the little
    that follows the last event is read first, so that the connection can be used again.

    Attributes:
        provider: The name for errors.
        retry: How often to try.
        timeout: How long to wait.
        limits: How many connections, and how long an answer.
        random: Gives a number from 0 to 1; tests put their own.
        sleep: Waits so many seconds; tests put their own.
        clock: Unix time, against which dates in `Retry-After` are read.
    """

    provider: str
    retry: Retry = field(default_factory=Retry)
    timeout: Timeout = field(default_factory=Timeout)
    limits: Limits = field(default_factory=Limits)
    random: Callable[[], float] = random_module.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    clock: Callable[[], float] = time.time
    clients: Clients = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.clients = Clients(self.timeout, self.limits)

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        status_of: Callable[[Reply], int] | None = None,
    ) -> Reply:
        """Post a body; again where the failure may pass, until the attempts or the time are used up.

        Args:
            url: The whole address.
            body: Encoded JSON.
            headers: Those of the service; `content-type` and `accept` are added.
            status_of: For services that put an error into an answer with status 200: the status that counts for
                trying again.

        Returns:
            The last answer, whatever its status.

        Raises:
            ProviderError: Where no answer came at all, or one beyond the limit.
        """
        outcome = await self._repeated(url, body, {"accept": "application/json", **headers}, whole, status_of)
        return outcome.value if isinstance(outcome, Taken) else outcome

    async def stream(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        read: Read[T],
        *,
        accept: str = "text/event-stream",
    ) -> T | Reply:
        """Post a body and read the answer while it comes; again where the failure may pass.

        Args:
            url: The whole address.
            body: Encoded JSON.
            headers: Those of the service; `content-type` and `accept` are added.
            read: Reads a good answer; called once per attempt.
            accept: The media type asked for.

        Returns:
            What `read` returned, or the last answer where its status is no success.

        Raises:
            ProviderError: Where no answer came, or none that came to its end; and what `read` raises.
        """
        outcome = await self._repeated(url, body, {"accept": accept, **headers}, read, None)
        return outcome.value if isinstance(outcome, Taken) else outcome

    async def aclose(self) -> None:
        """Close the client of this event loop; the next request opens a new one."""
        await self.clients.aclose()

    async def _repeated(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        read: Read[T],
        status_of: Callable[[Reply], int] | None,
    ) -> Taken[T] | Reply:
        loop = asyncio.get_running_loop()
        deadline = None if self.timeout.total is None else loop.time() + self.timeout.total
        sent = {"content-type": "application/json", **headers}
        attempt = 0
        while True:
            attempt += 1
            outcome = await self._attempt(url, body, sent, deadline, read, attempt)
            wait = self._wait(attempt, outcome, status_of)
            if wait is None or (deadline is not None and loop.time() + wait >= deadline):
                break
            await self.sleep(wait)
        if isinstance(outcome, Refused):
            raise outcome.error
        if isinstance(outcome, NoReply):
            raise ProviderError(masked(outcome.problem), provider=self.provider, attempts=attempt)
        return outcome

    def _wait(
        self, attempt: int, outcome: Taken[T] | Reply | NoReply | Refused, status_of: Callable[[Reply], int] | None
    ) -> float | None:
        """Return the seconds before the next attempt, or `None` where there shall be none."""
        if isinstance(outcome, NoReply):
            return self.retry.wait(attempt, None, self.random) if outcome.may_pass else None
        if isinstance(outcome, Refused):
            return self.retry.wait(attempt, outcome.error.retry_after, self.random) if outcome.may_pass else None
        reply = outcome.value if isinstance(outcome, Taken) else outcome
        if not isinstance(reply, Reply):
            return None
        status = reply.status if status_of is None else status_of(reply)
        return self.retry.wait(attempt, reply.retry_after, self.random) if may_pass(status) else None

    async def _attempt(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        deadline: float | None,
        read: Read[T],
        attempt: int,
    ) -> Taken[T] | Reply | NoReply | Refused:
        limit = asyncio.timeout_at(deadline)
        try:
            async with limit:
                exchange = await self.clients.send(url, body, headers)
                if isinstance(exchange, NoReply):
                    return exchange
                try:
                    outcome = await self._taken(exchange, read, attempt)
                    limit.reschedule(None)  # what was read stays read
                    if isinstance(outcome, Taken) and not exchange.ended:
                        await exchange.drain()
                    return outcome
                finally:
                    await exchange.aclose()
        except TimeoutError:
            if not limit.expired():
                raise
        return NoReply(f"no answer from {shown(url)} within the total of {self.timeout.total} s", may_pass=False)

    async def _taken(self, exchange: Exchange, read: Read[T], attempt: int) -> Taken[T] | Reply | NoReply | Refused:
        asked = retry_after(exchange.headers, self.clock())
        head = Reply(exchange.status, exchange.headers, b"", attempt, asked)
        if not head.is_success:
            return replace(head, body=await exchange.explanation())
        answer = StreamedReply(head, exchange, self.limits.answer)
        try:
            value = await read(answer)
        except BrokenOff as broken:
            return NoReply(broken.problem, broken.may_pass and not answer.handed_on)
        except ProviderError as error:
            error.attempts = attempt
            return Refused(error, may_pass(error.status or 0) and not answer.handed_on)
        return Taken(value)


async def whole(answer: StreamedReply) -> Reply:
    """Read an answer to its end."""
    return await answer.rest()
