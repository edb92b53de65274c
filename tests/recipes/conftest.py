"""What the tests of the recipe for HTTP share: the tool in front of an internet of one machine."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import pytest_asyncio
from dependency_injector import containers, providers

from tests.recipes.internet import PUBLIC, PUBLIC_6, Internet, Names, Server
from tests.recipes.recipe import recipe
from thena_core import Thena, ToolOutput

http_get = recipe("http_get")
ORIGIN = "http://docs.test"


class Asked:
    """The tool in front of an internet."""

    def __init__(self, server: Server, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.server = server
        self.roads = {PUBLIC: port, PUBLIC_6: port}
        self.names = Names(docs_test=[PUBLIC])
        self.origins = {ORIGIN}
        self.connected: list[str] = []
        self.tls = tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody

    async def __call__(self, url: str) -> ToolOutput:
        web = http_get.Web(
            frozenset(self.origins),
            resolve=self.names,
            connect=lambda tls: Internet(tls, self.roads, self.connected),
            tls=self.tls,
        )

        class Services(containers.DeclarativeContainer):
            web_ = providers.Object(web)

        async with Thena(tools=[http_get.http_get], container=Services()) as app:
            return await app.call("http_get", {"url": url})


@pytest_asyncio.fixture
async def web() -> AsyncIterator[Asked]:
    """Serve on the loopback interface."""
    server = Server()
    yield Asked(server, await server.listen())
    await server.close()
