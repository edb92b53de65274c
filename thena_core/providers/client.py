"""The HTTP client: one per event loop, opened at the first request; the only file of the core that knows httpx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thena_core.providers.reply import shown

if TYPE_CHECKING:
    import httpx

MAX_ERROR_BODY = 1024 * 1024
"""Bytes of an error's body that are read; what comes after them explains nothing more."""

DRAINED_BYTES = 64 * 1024
"""Bytes read after a stream's last event, so that its connection can be used again."""

DRAINED_SECONDS = 0.1
"""Seconds that this may take: the end of the body is sent right behind the last event, by servers that send one."""


@dataclass(frozen=True, slots=True)
class Timeout:
    """How long to wait for what; `None` waits for ever.

    Attributes:
        connect: Seconds until the connection stands.
        read: Seconds of silence; an answer that is not streamed is silent until the model has finished.
        total: Seconds for the whole request, with all its attempts and the waits between them.

    Raises:
        ValueError: For a number that is not above 0.
    """

    connect: float | None = 10.0
    read: float | None = 600.0
    total: float | None = 1200.0

    def __post_init__(self) -> None:
        for name, seconds in (("connect", self.connect), ("read", self.read), ("total", self.total)):
            if seconds is not None and not seconds > 0:
                raise ValueError(f"Timeout({name}={seconds:g}): seconds above 0, or None to wait for ever")

    @classmethod
    def of(cls, timeout: Timeout | float) -> Timeout:
        """Read what users may write: a number means that nothing may take longer than so many seconds."""
        if isinstance(timeout, Timeout):
            return timeout
        return cls(connect=min(10.0, timeout), read=timeout, total=timeout)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one provider takes.

    Attributes:
        connections: Open at once; further requests wait for one, as long as their timeout allows.
        keepalive: Kept open while idle.
        answer: Bytes that one answer may have, decompressed; a longer one is an error.

    Raises:
        ValueError: For a number that cannot be meant.
    """

    connections: int = 100
    keepalive: int = 20
    answer: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for name, number, least in (
            ("connections", self.connections, 1),
            ("keepalive", self.keepalive, 0),
            ("answer", self.answer, 1),
        ):
            if number < least:
                raise ValueError(f"Limits({name}={number}): {least} is the least")


@dataclass(frozen=True, slots=True)
class NoReply:
    """Why no answer came. A value and not an exception: the client's exceptions hold the request with its headers.

    Attributes:
        problem: What happened, for a reader.
        may_pass: Whether it may go well another time.
    """

    problem: str
    may_pass: bool


class BrokenOff(Exception):
    """Say that an answer did not come to its end; raised while reading it, and by readers that miss its end.

    Attributes:
        problem: What happened, for a reader.
        may_pass: Whether it may go well another time.
    """

    def __init__(self, problem: str, *, may_pass: bool = True) -> None:
        super().__init__(problem)
        self.problem = problem
        self.may_pass = may_pass


class Exchange:
    """An answer whose head has come and whose body is still to be read.

    Attributes:
        status: The HTTP status.
        headers: By lower-case name.
        ended: Whether the body was read to its end.
    """

    __slots__ = ("_chunks", "_response", "_url", "ended", "headers", "status")

    def __init__(self, response: httpx.Response, url: str) -> None:
        self._response = response
        self._chunks = response.aiter_bytes()
        self._url = url
        self.status = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self.ended = False

    async def next_bytes(self) -> bytes:
        """Return the next piece of the body as it arrives, decompressed; empty at its end.

        Raises:
            BrokenOff: Where the connection breaks or stays silent.
        """
        import httpx  # noqa: PLC0415 - as below

        try:
            async for piece in self._chunks:
                if piece:
                    return piece
        except httpx.RequestError as error:
            broken = no_reply(error, self._url, f"the answer from {shown(self._url)} broke off")
        else:
            self.ended = True
            return b""
        raise BrokenOff(broken.problem, may_pass=broken.may_pass)

    async def explanation(self) -> bytes:
        """Read the body of an error, as far as it comes: a status is worth more than the words to it."""
        pieces: list[bytes] = []
        left = MAX_ERROR_BODY
        try:
            while left > 0 and (piece := await self.next_bytes()):
                pieces.append(piece[:left])
                left -= len(piece)
        except BrokenOff:
            pass
        return b"".join(pieces)

    async def drain(self) -> None:
        """Read the little that may follow a stream's last event; a server that goes on, or holds the line, is left."""
        try:
            async with asyncio.timeout(DRAINED_SECONDS):
                left = DRAINED_BYTES
                while left > 0 and (piece := await self.next_bytes()):
                    left -= len(piece)
        except (TimeoutError, BrokenOff):
            return

    async def aclose(self) -> None:
        """Give the connection back, or close it where the body was not read to its end."""
        try:
            aclose = getattr(self._chunks, "aclose", None)
            if aclose is not None:
                await aclose()
        finally:
            await self._response.aclose()


@dataclass(frozen=True, slots=True)
class Opened:
    """A client that is open, and the generator that closes it."""

    client: httpx.AsyncClient
    life: AsyncGenerator[httpx.AsyncClient, None]


@dataclass(slots=True)
class Clients:
    """The clients of one provider, one for each event loop that uses it."""

    timeout: Timeout
    limits: Limits
    opened: dict[asyncio.AbstractEventLoop, Opened] = field(
        default_factory=dict[asyncio.AbstractEventLoop, Opened], init=False, repr=False
    )

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Exchange | NoReply:
        """Post a body and return as soon as the head of the answer is there; the caller closes what it gets."""
        import httpx  # noqa: PLC0415 - loading it takes longer than loading all of Thena

        try:
            client = await self.current()
        except (OSError, ValueError, ImportError) as error:
            # a proxy or a certificate file that the environment names and that cannot be used
            return NoReply(f"cannot open an HTTP client: {error}", may_pass=False)
        try:
            request = client.build_request("POST", url, content=body, headers=headers)
            response = await client.send(request, stream=True)
        except (httpx.InvalidURL, UnicodeError) as error:
            return NoReply(f"cannot ask {shown(url)}: {error}", may_pass=False)
        except httpx.RequestError as error:
            return no_reply(error, url, f"no answer from {shown(url)}")
        return Exchange(response, url)

    async def current(self) -> httpx.AsyncClient:
        """Return the client of the running event loop; the first time, open it."""
        loop = asyncio.get_running_loop()
        opened = self.opened.get(loop)
        if opened is not None and not opened.client.is_closed:
            return opened.client
        for ended in [known for known in list(self.opened) if known.is_closed()]:
            self.opened.pop(ended, None)
        life = client_life(self.timeout, self.limits)
        client = await anext(life)
        self.opened[loop] = Opened(client, life)
        return client

    async def aclose(self) -> None:
        """Close the client of the running event loop; the next request opens a new one.

        Clients of other loops are left to their loops, which close them when they end.
        """
        opened = self.opened.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.life.aclose()


async def client_life(patience: Timeout, limits: Limits) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Open an HTTP client and close it with the event loop.

    A generator because `asyncio.run` finishes those of its loop before it closes the loop: so a provider that nobody
    closes leaves no socket behind, though it outlives the loop.
    """
    import httpx  # noqa: PLC0415 - as above

    waits = httpx.Timeout(patience.read, connect=patience.connect, pool=None)
    pool = httpx.Limits(max_connections=limits.connections, max_keepalive_connections=limits.keepalive)
    client = httpx.AsyncClient(timeout=waits, limits=pool)
    try:
        yield client
    finally:
        await client.aclose()


def no_reply(error: httpx.RequestError, url: str, what: str) -> NoReply:
    """Put a failure of the client in words, and say whether it may pass."""
    import httpx  # noqa: PLC0415 - as above

    if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
        return NoReply(f"cannot ask {shown(url)}: {error}", may_pass=False)
    if isinstance(error, httpx.TimeoutException):
        return NoReply(f"{what}: {type(error).__name__}", may_pass=True)
    return NoReply(f"{what}: {str(error) or type(error).__name__}", may_pass=True)
