"""Sending over HTTP: retries, waits, timeouts, cancellation, and clients that belong to their event loop."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field

import pytest

from tests.providers.loopback import Answer, Loopback
from thena_core.errors import ProviderError
from thena_core.providers.client import Limits, Timeout
from thena_core.providers.reply import Reply, shown
from thena_core.providers.retry import Retry, retry_after
from thena_core.providers.transport import Transport

NOON = 1_792_567_650.0
"""2026-10-21 07:27:30 UTC, the clock of the tests."""


@dataclass
class Waits:
    """Takes the place of `asyncio.sleep` and keeps what was asked of it."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def transport(
    waits: Waits | None = None, retry: Retry | None = None, timeout: Timeout | None = None, random: float = 0.5
) -> Transport:
    return Transport(
        "test",
        retry or Retry(attempts=4, base=1.0, cap=60.0),
        timeout or Timeout(),
        Limits(),
        random=lambda: random,
        sleep=waits or Waits(),
        clock=lambda: NOON,
    )


async def sent(sender: Transport, server: Loopback) -> Reply:
    try:
        return await sender.post(f"{server.url}/x", b"{}", {})
    finally:
        await sender.aclose()


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
async def test_retries_what_may_pass(loopback: Loopback, status: int) -> None:
    """A status that may pass by itself is tried again, and the attempts are counted."""
    loopback.script(Answer("busy", status), Answer("busy", status), Answer("fine"))
    waits = Waits()
    reply = await sent(transport(waits), loopback)
    assert (reply.status, reply.body, reply.attempts) == (200, b"fine", 3)
    assert waits.seconds == [0.5, 1.0]


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
async def test_does_not_retry_what_stays_wrong(loopback: Loopback, status: int) -> None:
    """A refusal that would be the same again is handed on at once."""
    loopback.script(Answer("no", status), Answer("fine"))
    waits = Waits()
    reply = await sent(transport(waits), loopback)
    assert (reply.status, reply.attempts, waits.seconds, len(loopback.asked)) == (status, 1, [], 1)


@pytest.mark.behaviour("V03")
async def test_gives_the_last_answer_when_attempts_are_used_up(loopback: Loopback) -> None:
    """After the last attempt the answer is handed on with its status."""
    loopback.script(Answer("busy", 503))
    reply = await sent(transport(retry=Retry(attempts=2)), loopback)
    assert (reply.status, reply.attempts, len(loopback.asked)) == (503, 2, 2)


@pytest.mark.behaviour("V03")
async def test_retries_a_dropped_connection(loopback: Loopback) -> None:
    """A connection that breaks before the answer is tried again."""
    loopback.script(Answer(drop=True), Answer("fine"))
    reply = await sent(transport(), loopback)
    assert (reply.body, reply.attempts) == (b"fine", 2)


async def test_a_connection_that_stays_broken_is_an_error(loopback: Loopback) -> None:
    """When no attempt brings an answer the error says so, with the attempts and without the client's exception."""
    loopback.script(Answer(drop=True))
    with pytest.raises(ProviderError, match=r"no answer from http://127\.0\.0\.1") as caught:
        await sent(transport(retry=Retry(attempts=3)), loopback)
    assert (caught.value.attempts, caught.value.status, caught.value.provider) == (3, None, "test")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_nobody_listening_is_an_error() -> None:
    """A port without a server gives an error that names the address."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        sender = transport(retry=Retry(attempts=1))
        with pytest.raises(ProviderError, match=address):
            await sender.post(address, b"{}", {})
        await sender.aclose()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://127.0.0.1:x/"], ids=["scheme", "port"])
async def test_an_impossible_address_is_not_tried_again(url: str) -> None:
    """An address that can never work fails at the first attempt."""
    waits = Waits()
    sender = transport(waits)
    with pytest.raises(ProviderError, match="cannot ask") as caught:
        await sender.post(url, b"{}", {})
    await sender.aclose()
    assert (caught.value.attempts, waits.seconds) == (1, [])


async def test_an_unusable_proxy_is_an_error(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy setting that the client refuses is reported in words, without its password."""
    monkeypatch.setenv("ALL_PROXY", "gopher://someone:hunter2@localhost:1")
    with pytest.raises(ProviderError, match="cannot open an HTTP client") as caught:
        await sent(transport(), loopback)
    assert "hunter2" not in str(caught.value)


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("2", 2.0, id="seconds"),
        pytest.param("1.5", 1.5, id="decimals"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", 30.0, id="date"),
        pytest.param("Wed, 21 Oct 2015 07:28:00 GMT", 0.0, id="past-date"),
        pytest.param("soon", 0.5, id="word"),
        pytest.param("-5", 0.5, id="negative"),
        pytest.param("", 0.5, id="empty"),
        pytest.param("99999999999999999999999", 0.5, id="absurd"),
        pytest.param("1e3", 0.5, id="exponent"),
        pytest.param("nan", 0.5, id="nan"),
        pytest.param("Wed, 99 Oct 2026 07:28:00 GMT", 0.5, id="impossible-date"),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_waits_what_the_service_asks(loopback: Loopback, header: str, seconds: float, status: int) -> None:
    """`Retry-After` counts in every legal form, and nonsense in it means the own back-off (case A19)."""
    loopback.script(Answer("slow down", status, {"retry-after": header}), Answer("fine"))
    waits = Waits()
    reply = await sent(transport(waits), loopback)
    assert (reply.body, waits.seconds) == (b"fine", [seconds])


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize("seconds", [61, 3600])
async def test_a_wait_beyond_the_cap_is_none(loopback: Loopback, seconds: int) -> None:
    """A service that asks for more than the cap is not waited for, and what it asked is kept (case A19)."""
    loopback.script(Answer("quota", 429, {"retry-after": str(seconds)}), Answer("fine"))
    waits = Waits()
    reply = await sent(transport(waits), loopback)
    assert (reply.status, reply.attempts, reply.retry_after, waits.seconds) == (429, 1, seconds, [])


def test_reads_milliseconds_first() -> None:
    """The finer header that some services send beside `Retry-After` wins."""
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}, NOON) == 0.25


@pytest.mark.behaviour("V03")
def test_jitter_is_full_and_capped() -> None:
    """The wait is random from 0 up, doubles with each attempt, never passes the cap and never overflows."""
    retry = Retry(base=1.0, cap=10.0)
    assert [retry.jittered(attempt, lambda: 1.0) for attempt in (1, 2, 3, 4, 5, 5000)] == [1, 2, 4, 8, 10, 10]
    assert retry.jittered(3, lambda: 0.0) == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"attempts": 0}, "1 is the least"), ({"base": -1.0}, "negative"), ({"cap": -1.0}, "negative")],
    ids=["attempts", "base", "cap"],
)
def test_impossible_retries_are_refused(settings: dict[str, float], words: str) -> None:
    """A number that cannot be meant is refused where it is written."""
    with pytest.raises(ValueError, match=words):
        Retry(**settings)  # type: ignore[arg-type]


@pytest.mark.behaviour("V03")
async def test_cancellation_interrupts_a_wait(loopback: Loopback) -> None:
    """A cancelled request leaves its wait at once and sends nothing more."""
    loopback.script(Answer("busy", 503, {"retry-after": "50"}))
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.sleep(seconds)

    sender = Transport("test", sleep=sleep)
    task = asyncio.create_task(sent(sender, loopback))
    await waiting.wait()
    started = asyncio.get_running_loop().time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() - started < 5
    assert len(loopback.asked) == 1


async def test_cancellation_interrupts_a_request(loopback: Loopback) -> None:
    """A cancelled request stops waiting for its answer."""
    loopback.script(Answer(hold=True))
    task = asyncio.create_task(sent(transport(), loopback))
    assert await asyncio.to_thread(loopback.arrived.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("timeout", "attempts", "words"),
    [
        pytest.param(Timeout(read=0.1), 2, "ReadTimeout", id="read"),
        pytest.param(Timeout(total=0.1), 1, "within the total of 0.1 s", id="total"),
        pytest.param(Timeout.of(0.1), 1, "no answer", id="one-number"),
    ],
)
async def test_silence_ends_in_an_error(loopback: Loopback, timeout: Timeout, attempts: int, words: str) -> None:
    """A service that stays silent is given up; silence is tried again while there is time in all."""
    loopback.script(Answer(hold=True))
    with pytest.raises(ProviderError, match=words) as caught:
        await sent(transport(retry=Retry(attempts=2), timeout=timeout), loopback)
    assert caught.value.attempts == attempts


async def test_does_not_wait_past_the_total(loopback: Loopback) -> None:
    """A wait that would end after the total time is not begun."""
    loopback.script(Answer("busy", 503, {"retry-after": "30"}))
    waits = Waits()
    reply = await sent(transport(waits, timeout=Timeout(total=20.0)), loopback)
    assert (reply.status, waits.seconds) == (503, [])


def test_one_client_per_event_loop(loopback: Loopback) -> None:
    """Used from one `asyncio.run` after the other, a transport opens a client for each, and leaves none open."""
    loopback.script(Answer("fine"))
    sender = transport()
    clients = []

    async def twice() -> None:
        for _ in range(2):
            await sender.post(f"{loopback.url}/x", b"{}", {})
        clients.append(await sender.clients.current())

    asyncio.run(twice())
    asyncio.run(twice())
    connections = [asked.connection for asked in loopback.asked]
    assert connections[0] == connections[1]
    assert connections[2] == connections[3]
    assert connections[0] != connections[2]
    assert clients[0] is not clients[1]
    assert all(client.is_closed for client in clients)


def test_two_event_loops_at_a_time(loopback: Loopback) -> None:
    """Two loops that live side by side keep a client each, and closing one leaves the other's open."""
    loopback.script(Answer("fine"))
    sender = transport()
    with asyncio.Runner() as first, asyncio.Runner() as second:
        for runner in (first, second, first, second):
            runner.run(sender.post(f"{loopback.url}/x", b"{}", {}))
        first.run(sender.aclose())
        second.run(sender.post(f"{loopback.url}/x", b"{}", {}))
    connections = [asked.connection for asked in loopback.asked]
    assert connections[0] == connections[2]
    assert connections[1] == connections[3] == connections[4]
    assert connections[0] != connections[1]


async def test_opens_again_after_it_was_closed(loopback: Loopback) -> None:
    """Closing twice does no harm, and a request after it opens a new client."""
    loopback.script(Answer("fine"))
    sender = transport()
    await sent(sender, loopback)
    await sender.aclose()
    assert (await sent(sender, loopback)).body == b"fine"
    assert sender.clients.opened == {}


def test_addresses_are_shown_without_secrets() -> None:
    """Of an address only scheme, host, port and path are shown."""
    assert shown("https://me:pw@host:8/v1/chat?key=abc#x") == "https://host:8/v1/chat"
