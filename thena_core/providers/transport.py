"""Send JSON over HTTP and try again where that may help; the only file of the core that knows the HTTP client."""

from __future__ import annotations

import asyncio
import random as random_module
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from thena_core.errors import ProviderError
from thena_core.providers.reply import Reply, masked

if TYPE_CHECKING:
    import httpx

RETRYABLE = frozenset({408, 425, 429})
"""The client errors that may pass by themselves; of the others, only 500 and above (529 is "overloaded")."""

LONGEST_RETRY_AFTER = 365 * 24 * 3600.0
"""Seconds. A server that asks for more than a year is not asking for anything."""

_SECONDS = re.compile(r"\d{1,400}(\.\d{1,400})?")


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a request is tried, and how long to wait in between.

    Before the n-th new attempt it waits a random time between 0 and `base * 2**(n-1)` seconds ("full jitter"), at most
    `cap`. Where the service says how long (`Retry-After`), its word counts; where that is longer than `cap`, the
    request fails at once instead.

    Attributes:
        attempts: How many times in all, the first one included; at least 1.
        base: Seconds.
        cap: Seconds; the longest wait.

    Raises:
        ValueError: For a number that cannot be meant.
    """

    attempts: int = 4
    base: float = 0.5
    cap: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(
                f"Retry(attempts={self.attempts}): 1 is the least, the first try counts (none: retry=False)"
            )
        if self.base < 0 or self.cap < 0:
            raise ValueError(f"Retry(base={self.base:g}, cap={self.cap:g}): seconds cannot be negative")

    def jittered(self, attempt: int, random: Callable[[], float]) -> float:
        """Return the seconds to wait after the given attempt (counted from 1) failed."""
        # 2.0 ** 1024 overflows; 32 doublings of anything are beyond every cap
        return random() * min(self.cap, self.base * 2.0 ** min(attempt - 1, 32))


@dataclass(frozen=True, slots=True)
class Timeout:
    """How long to wait for what; `None` waits for ever.

    Attributes:
        connect: Seconds until the connection stands.
        read: Seconds of silence; an answer that is not streamed is silent until the model has finished.
        total: Seconds for the whole request, with all its attempts and the waits between them.
    """

    connect: float | None = 10.0
    read: float | None = 600.0
    total: float | None = 1200.0

    @classmethod
    def of(cls, timeout: Timeout | float) -> Timeout:
        """Read what users may write: a number means that nothing may take longer than so many seconds."""
        if isinstance(timeout, Timeout):
            return timeout
        return cls(connect=min(10.0, timeout), read=timeout, total=timeout)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections one provider opens.

    Attributes:
        connections: At once; further requests wait for one, as long as their timeout allows.
        keepalive: Kept open while idle.
    """

    connections: int = 100
    keepalive: int = 20


@dataclass(frozen=True, slots=True)
class NoReply:
    """Why no answer came. A value and not an exception: the client's exceptions hold the request with its headers."""

    problem: str
    may_pass: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """A client that is open, and the generator that closes it."""

    client: httpx.AsyncClient
    life: AsyncGenerator[httpx.AsyncClient, None]


@dataclass(slots=True)
class Transport:
    """Post to one service, through one HTTP client per event loop.

    Attributes:
        provider: The name for errors.
        retry: How often to try.
        timeout: How long to wait.
        limits: How many connections.
        random: Gives a number from 0 to 1; tests put their own.
        sleep: Waits so many seconds; tests put their own.
        clock: Unix time, against which dates in `Retry-After` are read.
    """

    provider: str
    retry: Retry = Retry()
    timeout: Timeout = Timeout()
    limits: Limits = Limits()
    random: Callable[[], float] = random_module.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    clock: Callable[[], float] = time.time
    _opened: dict[asyncio.AbstractEventLoop, Opened] = field(
        default_factory=dict[asyncio.AbstractEventLoop, Opened], init=False, repr=False
    )

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
            ProviderError: Where no answer came at all.
        """
        loop = asyncio.get_running_loop()
        deadline = None if self.timeout.total is None else loop.time() + self.timeout.total
        sent = {"content-type": "application/json", "accept": "application/json", **headers}
        attempt = 0
        while True:
            attempt += 1
            outcome = await self._attempt(url, body, sent, deadline)
            wait = self._wait(attempt, outcome, status_of)
            if wait is None or (deadline is not None and loop.time() + wait >= deadline):
                break
            await self.sleep(wait)
        if isinstance(outcome, NoReply):
            raise ProviderError(masked(outcome.problem), provider=self.provider, attempts=attempt)
        return replace(outcome, attempts=attempt)

    async def aclose(self) -> None:
        """Close the client of this event loop; the next request opens a new one.

        Clients of other loops are left to their loops, which close them when they end.
        """
        opened = self._opened.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.life.aclose()

    def _wait(self, attempt: int, outcome: Reply | NoReply, status_of: Callable[[Reply], int] | None) -> float | None:
        """Return the seconds before the next attempt, or `None` where there shall be none."""
        if attempt >= self.retry.attempts:
            return None
        if isinstance(outcome, NoReply):
            return self.retry.jittered(attempt, self.random) if outcome.may_pass else None
        status = outcome.status if status_of is None else status_of(outcome)
        if status not in RETRYABLE and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        if outcome.retry_after is None:
            return self.retry.jittered(attempt, self.random)
        return outcome.retry_after if outcome.retry_after <= self.retry.cap else None

    async def _attempt(
        self, url: str, body: bytes, headers: Mapping[str, str], deadline: float | None
    ) -> Reply | NoReply:
        import httpx  # noqa: PLC0415 - loading it takes longer than loading all of Thena

        try:
            async with asyncio.timeout_at(deadline):
                client = await self._client()
                response = await client.post(url, content=body, headers=headers)
        except TimeoutError:
            return NoReply(f"no answer from {shown(url)} within the total of {self.timeout.total} s", may_pass=False)
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            return NoReply(f"cannot ask {shown(url)}: {error}", may_pass=False)
        except httpx.TimeoutException as error:
            return NoReply(f"no answer from {shown(url)}: {type(error).__name__}", may_pass=True)
        except httpx.RequestError as error:
            return NoReply(f"no answer from {shown(url)}: {error or type(error).__name__}", may_pass=True)
        except (OSError, ValueError, ImportError) as error:
            # a proxy or a certificate file that the environment names and that cannot be used
            return NoReply(f"cannot open an HTTP client: {error}", may_pass=False)
        received = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status_code, received, response.content, retry_after=retry_after(received, self.clock()))

    async def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is not None and not opened.client.is_closed:
            return opened.client
        for ended in [known for known in list(self._opened) if known.is_closed()]:
            self._opened.pop(ended, None)
        life = client_life(self.timeout, self.limits)
        client = await anext(life)
        self._opened[loop] = Opened(client, life)
        return client


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


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Read how many seconds a service asks to wait: seconds, decimals or a date (RFC 9110, 10.2.3).

    Args:
        headers: By lower-case name.
        now: Unix time in seconds.

    Returns:
        Seconds, 0 for a date in the past; `None` where it does not say, or says nonsense.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        seconds = float(milliseconds) / 1000
    else:
        text = headers.get("retry-after", "").strip()
        if _SECONDS.fullmatch(text):
            seconds = float(text)
        else:
            try:
                seconds = max(0.0, parsedate_to_datetime(text).timestamp() - now)
            except (ValueError, TypeError, IndexError, OverflowError, OSError):
                return None
    return seconds if seconds <= LONGEST_RETRY_AFTER else None


def shown(url: str) -> str:
    """Write an address for a reader: without user, password and query, which may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
