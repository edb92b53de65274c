"""An internet of one machine: real servers on the loopback interface, reached under public addresses."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx

PUBLIC = "93.184.215.14"
"""A public address; what is connected to it arrives at the server."""

PUBLIC_6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"

Route = Callable[["Server", asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answer requests byte by byte as routes say, and keep what was asked and how much was sent."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.sent = 0
        self.stopped = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._servers: list[asyncio.Server] = []

    async def listen(self, tls: ssl.SSLContext | None = None) -> int:
        """Start, and return the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self._servers.append(server)
        return server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End every connection, also one that is being answered for ever."""
        self.stopped.set()
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()

    def answers(self, path: str, body: bytes | str, head: str = "", status: str = "200 OK") -> None:
        """Answer a path in one piece."""
        content = body.encode() if isinstance(body, str) else body

        async def route(server: Server, writer: asyncio.StreamWriter) -> None:
            lines = f"HTTP/1.1 {status}\r\ncontent-length: {len(content)}\r\n{head}\r\n"
            writer.write(lines.encode() + content)
            await writer.drain()

        self.routes[path] = route

    def redirects(self, path: str, location: str, status: str = "302 Found") -> None:
        """Send a path elsewhere."""
        self.answers(path, "", f"location: {location}\r\n", status)

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Send more, as fast as it is taken."""
        writer.write(data)
        await writer.drain()
        self.sent += len(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            path = first.split(" ")[1]
            self.asked.append((path, headers))
            await self.routes[path](self, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the client has left, as it may
        finally:
            self._tasks.discard(task)
            writer.close()


class Internet(httpx.AsyncBaseTransport):
    """Take the road from public addresses to the servers; whatever goes elsewhere fails the test.

    Args:
        tls: What checks the servers' certificates.
        roads: Public address to the server's port.
        connected: Keeps where was connected to.
    """

    def __init__(self, tls: ssl.SSLContext, roads: Mapping[str, int], connected: list[str]) -> None:
        self._real = httpx.AsyncHTTPTransport(verify=tls)
        self._roads = roads
        self._connected = connected

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._connected.append(request.url.host)
        assert request.url.host in self._roads, f"it connected to {request.url.host}"
        url = request.url.copy_with(host="127.0.0.1", port=self._roads[request.url.host])
        here = httpx.Request("GET", url, headers=request.headers, extensions=dict(request.extensions))
        return await self._real.handle_async_request(here)

    async def aclose(self) -> None:
        await self._real.aclose()


class Names:
    """A resolver that answers from a table; a list of answers is given out one by one, the last again and again."""

    def __init__(self, **answers: Sequence[str] | Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(found) for name, found in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError("Name or service not known")
        found: list[Any] = self.answers[host]
        if found and isinstance(found[0], str):
            return found
        return found.pop(0) if len(found) > 1 else found[0]
