"""Reading an answer while it comes: attempts, time, cancellation, sizes, and connections that are given back."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from tests.providers.loopback import Answer, Loopback
from thena_core.errors import ProviderError
from thena_core.providers.client import BrokenOff, Limits, Timeout
from thena_core.providers.reply import Reply, failure
from thena_core.providers.retry import Retry
from thena_core.providers.transport import StreamedReply, Transport


async def no_wait(seconds: float) -> None:
    """Take the place of `asyncio.sleep`."""


def transport(attempts: int = 3, timeout: Timeout | None = None, limits: Limits | None = None) -> Transport:
    return Transport("test", Retry(attempts=attempts), timeout or Timeout(), limits or Limits(), sleep=no_wait)


@dataclass
class Reader:
    """Reads an answer to its end; shows its text from the start, or only when it is complete."""

    shows_early: bool = False
    until: bytes = b""
    attempts: list[int] = field(default_factory=list[int])

    async def __call__(self, answer: StreamedReply) -> bytes:
        self.attempts.append(answer.head.attempts)
        text = b""
        async for piece in answer:
            answer.handed_on = self.shows_early
            text += piece
            if self.until and text.endswith(self.until):
                return text
        if not text.endswith(b"!"):
            raise BrokenOff("the end is missing")
        return text


async def read(sender: Transport, server: Loopback, reader: Reader) -> bytes | Reply:
    try:
        return await sender.stream(f"{server.url}/x", b"{}", {}, reader)
    finally:
        await sender.aclose()


async def test_pieces_come_as_they_are_sent(loopback: Loopback) -> None:
    """A reader has the first piece before the second is sent."""
    gate = threading.Semaphore(0)
    loopback.script(Answer(pieces=[b"a", b"b", b"!"], gate=gate))
    seen: list[bytes] = []

    async def reader(answer: StreamedReply) -> int:
        async for piece in answer:
            seen.append(piece)
            gate.release()
        return len(seen)

    sender = transport()
    assert await sender.stream(f"{loopback.url}/x", b"{}", {"x-a": "b"}, reader) == 3
    await sender.aclose()
    assert seen == [b"a", b"b", b"!"]
    assert (loopback.asked[0].headers["accept"], loopback.asked[0].headers["x-a"]) == ("text/event-stream", "b")


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Answer("busy", 503), id="status"),
        pytest.param(Answer(drop=True), id="dropped"),
        pytest.param(Answer(pieces=[b"a"], drop=True), id="dropped-in-the-body"),
        pytest.param(Answer(pieces=[b"a"]), id="ends-early"),
    ],
)
async def test_tries_again_while_nothing_was_handed_on(loopback: Loopback, first: Answer) -> None:
    """A stream that fails before its reader has shown anything is asked for again, and the attempts are counted."""
    loopback.script(first, Answer(pieces=[b"fine!"]))
    reader = Reader()
    assert await read(transport(), loopback, reader) == b"fine!"
    assert (reader.attempts[-1], len(loopback.asked)) == (2, 2)


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    ("first", "words"),
    [
        pytest.param(Answer(pieces=[b"a"], drop=True), "broke off", id="dropped"),
        pytest.param(Answer(pieces=[b"a"]), "the end is missing", id="ends-early"),
    ],
)
async def test_never_tries_again_after_text_was_handed_on(loopback: Loopback, first: Answer, words: str) -> None:
    """What a listener has seen cannot be taken back: the failure is the caller's."""
    loopback.script(first, Answer(pieces=[b"fine!"]))
    with pytest.raises(ProviderError, match=words) as caught:
        await read(transport(), loopback, Reader(shows_early=True))
    assert (caught.value.attempts, len(loopback.asked), caught.value.__context__) == (1, 1, None)


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(("status", "asked"), [(529, 3), (429, 3), (400, 1)])
@pytest.mark.parametrize("handed_on", [False, True], ids=["before-text", "after-text"])
async def test_an_error_in_the_stream_counts_by_its_status(
    loopback: Loopback, status: int, asked: int, handed_on: bool
) -> None:
    """An error that the reader finds is tried again by its status, unless text was handed on."""
    loopback.script(Answer(pieces=[b"over!"]))

    async def reader(answer: StreamedReply) -> None:
        async for _ in answer:
            answer.handed_on = handed_on
        raise failure(Reply(status, {}, b""), "test", "over")

    sender = transport()
    with pytest.raises(ProviderError, match="over") as caught:
        await sender.stream(f"{loopback.url}/x", b"{}", {}, reader)
    await sender.aclose()
    expected = 1 if handed_on else asked
    assert (caught.value.attempts, caught.value.status, len(loopback.asked)) == (expected, status, expected)


async def test_another_status_comes_back_as_a_reply(loopback: Loopback) -> None:
    """A refusal never reaches the reader; its body is read as far as it comes."""
    loopback.script(Answer(pieces=[b"no ", b"such model"], status=404), Answer(pieces=[b"no"], status=400, drop=True))
    reader, sender = Reader(), transport()
    outcomes = [await sender.stream(f"{loopback.url}/x", b"{}", {}, reader) for _ in range(2)]
    await sender.aclose()
    assert [(reply.status, reply.body) for reply in outcomes if isinstance(reply, Reply)] == [
        (404, b"no such model"),
        (400, b"no"),
    ]
    assert reader.attempts == []


@pytest.mark.parametrize("handed_on", [False, True], ids=["before-text", "after-text"])
@pytest.mark.parametrize(
    ("timeout", "asked", "words"),
    [
        pytest.param(Timeout(read=0.1), 2, "ReadTimeout", id="silence"),
        pytest.param(Timeout(total=0.2), 1, "within the total of 0.2 s", id="total"),
    ],
)
async def test_a_stalled_stream_is_given_up(
    loopback: Loopback, timeout: Timeout, asked: int, words: str, handed_on: bool
) -> None:
    """Silence in the middle ends in an error, and is tried again only before text and while there is time in all."""
    loopback.script(Answer(pieces=[b"a"], hold=True))
    with pytest.raises(ProviderError, match=words) as caught:
        await read(transport(2, timeout), loopback, Reader(shows_early=handed_on))
    assert caught.value.attempts == (1 if handed_on else asked)


async def test_a_cancellation_leaves_no_open_response(loopback: Loopback) -> None:
    """A cancelled read ends at once, and the service sees the connection closed."""
    loopback.script(Answer(pieces=[b"a"], hold=True))
    began = asyncio.Event()

    async def reader(answer: StreamedReply) -> None:
        async for _ in answer:
            began.set()

    sender = transport()
    task = asyncio.create_task(sender.stream(f"{loopback.url}/x", b"{}", {}, reader))
    await asyncio.wait_for(began.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(loopback.left.wait, 10)
    await sender.aclose()


@pytest.mark.parametrize("error", [ValueError, OSError, TimeoutError, RuntimeError])
async def test_what_a_listener_raises_leaves_as_itself(loopback: Loopback, error: type[Exception]) -> None:
    """An exception of the code that takes the text is nobody's network error, and nothing is asked again."""
    loopback.script(Answer(pieces=[b"a"], hold=True))

    async def reader(answer: StreamedReply) -> None:
        async for _ in answer:
            raise error("mine")

    sender = transport()
    with pytest.raises(error, match="mine"):
        await sender.stream(f"{loopback.url}/x", b"{}", {}, reader)
    assert await asyncio.to_thread(loopback.left.wait, 10)
    await sender.aclose()
    assert len(loopback.asked) == 1


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        pytest.param(Answer(pieces=[b"a!", b"\n"]), True, id="ends"),
        pytest.param(Answer(pieces=[b"a!"], hold=True), False, id="holds-the-line"),
        pytest.param(Answer(pieces=[b"a!", *[b"x" * 10_000] * 20]), False, id="goes-on"),
    ],
)
async def test_a_connection_is_used_again_where_it_can_be(loopback: Loopback, answer: Answer, same: bool) -> None:
    """A reader that stops at the last event gives its connection back; one that the server holds is closed."""
    loopback.script(answer, Answer(pieces=[b"b!"]))
    sender = transport()
    for text in (b"a!", b"b!"):
        assert await sender.stream(f"{loopback.url}/x", b"{}", {}, Reader(until=text)) == text
    await sender.aclose()
    assert (loopback.asked[0].connection == loopback.asked[1].connection) is same


@pytest.mark.parametrize("pieces", [[b"x" * 600] * 2, [b"x" * 2000]], ids=["many", "one"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_an_endless_answer_is_given_up(loopback: Loopback, pieces: list[bytes], streams: bool) -> None:
    """An answer beyond the limit is an error, at once and only once."""
    loopback.script(Answer(pieces=pieces))
    sender = transport(limits=Limits(answer=1000))
    with pytest.raises(ProviderError, match="longer than 1,000 bytes"):
        if streams:
            await sender.stream(f"{loopback.url}/x", b"{}", {}, Reader())
        else:
            await sender.post(f"{loopback.url}/x", b"{}", {})
    await sender.aclose()
    assert len(loopback.asked) == 1


async def test_an_endless_error_is_cut(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an error's body only the beginning is read."""
    monkeypatch.setattr("thena_core.providers.client.MAX_ERROR_BODY", 700)
    loopback.script(Answer(pieces=[b"x" * 500] * 3, status=400, hold=True))
    outcome = await read(transport(), loopback, Reader())
    assert isinstance(outcome, Reply)
    assert len(outcome.body) == 700


async def test_a_beginning_can_be_looked_at(loopback: Loopback) -> None:
    """A look at the first byte that says something takes nothing away, also where nothing comes."""
    loopback.script(Answer(pieces=[b" \n", b" {", b"}!"]), Answer(pieces=[b"  "]))
    seen: list[tuple[bytes, bytes]] = []

    async def reader(answer: StreamedReply) -> None:
        seen.append((await answer.peek(), (await answer.rest()).body))

    sender = transport()
    for _ in range(2):
        await sender.stream(f"{loopback.url}/x", b"{}", {}, reader)
    await sender.aclose()
    assert seen == [(b" \n {", b" \n {}!"), (b"  ", b"  ")]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (lambda: Timeout(read=0), r"Timeout\(read=0\)"),
        (lambda: Timeout(total=-1), r"Timeout\(total=-1\)"),
        (lambda: Timeout(connect=float("nan")), "nan"),
        (lambda: Limits(connections=0), r"Limits\(connections=0\)"),
        (lambda: Limits(keepalive=-1), r"Limits\(keepalive=-1\)"),
        (lambda: Limits(answer=0), r"Limits\(answer=0\)"),
    ],
    ids=["read", "total", "nan", "connections", "keepalive", "answer"],
)
def test_impossible_settings_are_refused(settings: object, words: str) -> None:
    """A number that cannot be meant is refused where it is written."""
    assert callable(settings)
    with pytest.raises(ValueError, match=words):
        settings()
