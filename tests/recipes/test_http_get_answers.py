"""The recipe for HTTP, where the answer is what is wrong: too big, too slow, compressed, no text, no HTTP."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from tests.recipes.conftest import ORIGIN, Asked
from tests.recipes.internet import PUBLIC, Names, Server
from tests.recipes.recipe import recipe
from thena_core import ToolOutput

http_get = recipe("http_get")


@pytest.mark.parametrize(
    "head",
    ["content-length: 1073741824", "transfer-encoding: chunked", "connection: close"],
    ids=["1 GB, announced", "1 GB, in chunks", "1 GB, until closed"],
)
async def test_a_gigabyte(web: Asked, head: str) -> None:
    """Of a gigabyte, only the beginning is taken: the server cannot send the rest."""
    part = b"x" * (1 << 20)

    async def route(server: Server, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        for _ in range(1024):
            await server.send(writer, b"100000\r\n" + part + b"\r\n" if "chunked" in head else part)

    web.server.routes["/"] = route
    output = await web(f"{ORIGIN}/")
    assert output.content.endswith("x\n[only the first 200,000 bytes]") or "truncated" in output.content
    assert not output.is_error
    assert web.server.sent < 32 << 20


@pytest.mark.parametrize("where", ["before the head", "in the head", "in the body", "drop by drop"])
async def test_slow_answers(web: Asked, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is for the whole answer, redirects included: one that comes drop by drop is given up as well."""
    monkeypatch.setattr(http_get, "SECONDS", 0.3)

    async def route(server: Server, writer: asyncio.StreamWriter) -> None:
        if where != "before the head":
            writer.write(b"HTTP/1.1 200 OK\r\n")
        if where in ("in the body", "drop by drop"):
            writer.write(b"content-length: 100000\r\n\r\nx")
        await writer.drain()
        while where == "drop by drop":
            await server.send(writer, b"x")
            await asyncio.sleep(0.01)
        await server.stopped.wait()

    web.server.routes["/"] = route
    output = await web(f"{ORIGIN}/")
    assert output.is_error
    assert output.content.startswith(("Refused: no whole answer within 0.3 seconds", "Refused: 'http://docs.test/'"))


async def test_cancelled_while_it_waits(web: Asked) -> None:
    """A call that is cancelled while the server is silent is over at once, and its connection closed."""
    arrived, left = asyncio.Event(), asyncio.Event()

    async def route(server: Server, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        try:
            while True:
                await server.send(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
                await asyncio.sleep(0)
        except ConnectionError:
            left.set()

    web.server.routes["/"] = route
    task = asyncio.create_task(web(f"{ORIGIN}/"))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        await left.wait()


async def test_compressed_answers(web: Asked) -> None:
    """A compressed answer is not unpacked: a kilobyte can be a gigabyte."""
    bomb = gzip.compress(b"x" * (64 << 20))
    web.server.answers("/", bomb, "content-encoding: gzip\r\n")
    assert (await web(f"{ORIGIN}/")).content == "Refused: the answer is compressed, though none was asked for"


@pytest.mark.parametrize(
    ("body", "head", "shown"),
    [
        pytest.param(b"w\xf6rld", "content-type: text/plain; charset=ISO-8859-1\r\n", "wörld", id="Latin-1"),
        pytest.param(
            b"w\xf6rld", "content-type: text/plain\r\n", "w\N{REPLACEMENT CHARACTER}rld", id="not what it says"
        ),
        pytest.param("wörld".encode(), "content-type: text/plain; charset=punycode\r\n", "wörld", id="a slow codec"),
        pytest.param(b"hello", "content-type: text/plain; charset=zip\r\n", "hello", id="a codec that is none of text"),
        pytest.param(b"hello", "content-type: text/plain; charset=\xff\xfe\r\n", "hello", id="no codec at all"),
        pytest.param(b"", "", "", id="nothing"),
    ],
)
async def test_encodings(web: Asked, body: bytes, head: str, shown: str) -> None:
    """Known charsets are read as such, everything else as UTF-8; wrong bytes are replaced."""
    web.server.answers("/", body, head)
    assert (await web(f"{ORIGIN}/")).content == f"HTTP 200\n{shown}"


async def test_what_is_no_text_or_no_success(web: Asked) -> None:
    """Binary answers are refused; an error of the server is an observation that is one."""
    web.server.answers("/image", b"\x89PNG\0\0", "content-type: image/png\r\n")
    web.server.answers("/missing", "no such page", status="404 Not Found")
    assert (await web(f"{ORIGIN}/image")).content == "Refused: the answer is not text (image/png)"
    assert await web(f"{ORIGIN}/missing") == ToolOutput("HTTP 404\nno such page", is_error=True)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
    ],
    ids=["closed", "nonsense", "a negative length", "a huge head", "half a body"],
)
async def test_broken_answers(web: Asked, raw: bytes) -> None:
    """What is not HTTP is an observation of one line."""

    async def route(_server: Server, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    web.server.routes["/"] = route
    output = await web(f"{ORIGIN}/")
    assert output.is_error
    assert output.content.startswith("Refused: 'http://docs.test/' cannot be fetched: ")


async def test_nobody_there(web: Asked) -> None:
    """A name that does not resolve, and a server that is down, are observations that say no more than that."""
    web.names = Names()
    assert (await web(f"{ORIGIN}/")).content == "Refused: 'http://docs.test/' cannot be fetched: OSError"
    web.names = Names(docs_test=[PUBLIC])
    await web.server.close()
    assert (await web(f"{ORIGIN}/")).content == "Refused: 'http://docs.test/' cannot be fetched: ConnectError"
