"""Fetch a page over HTTP from the origins that you list, and from nowhere inside of your network.

Holds against: other hosts, ports and schemes (an origin is all three), `user@host` and other spellings; names that
resolve to private, loopback, link-local or metadata addresses, in any notation (the name is resolved once, every
address is checked, and the checked one is connected to); redirects (each is checked like the first); big and endless
answers, compressed ones (none is asked for, and none is unpacked), slow ones; binary ones and wrong encodings.

Does not hold against: what a page says to the model; secrets that the model writes into the address of a listed
origin; a resolver that hangs, whose thread stays until the system gives up. No proxy and no cookie is used. Networks
that reach IPv4 through NAT64 alone are refused.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, cast

import httpx

from thena_core import Inject, ToolOutput, tool

SECONDS, MAX_BYTES, MAX_REDIRECTS = 10.0, 200_000, 3
UNICAST = ipaddress.ip_network("2000::/3")  # RFC 4291; what stands outside can hold an IPv4 address (64:ff9b::/96)
# what `is_global` lets pass, all or in some versions of Python: Azure's and Oracle's ways to a machine's own settings
INSIDE = [ipaddress.ip_network(network) for network in ("168.63.129.16/32", "192.0.0.0/24")]
CHARSETS = {"iso-8859-1": "latin-1", "windows-1252": "cp1252"}  # the rest is UTF-8; some of Python's are slow


class Refused(Exception):
    """Say to the model what cannot be fetched, and why."""


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            return parsed in UNICAST and parsed.is_global and parsed.sixtofour is None
        parsed = parsed.ipv4_mapped
    return parsed.is_global and not parsed.is_multicast and not any(parsed in network for network in INSIDE)


async def resolve(host: str) -> Sequence[str]:
    """Return the addresses of a name, as the system knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in found]


def connect(tls: ssl.SSLContext) -> httpx.AsyncBaseTransport:
    """Make what sends one request; a connection kept for the next could be another host's at the same address."""
    return httpx.AsyncHTTPTransport(verify=tls, limits=httpx.Limits(max_keepalive_connections=0))


@dataclass(frozen=True, slots=True)
class Web:
    """What may be fetched: `origins` like `https://docs.python.org` or `http://wiki.example:8080`."""

    origins: frozenset[str]
    resolve: Callable[[str], Awaitable[Sequence[str]]] = resolve
    connect: Callable[[ssl.SSLContext], httpx.AsyncBaseTransport] = connect
    tls: ssl.SSLContext = field(default_factory=httpx.create_ssl_context)

    async def get(self, address: str) -> ToolOutput:
        """Fetch a text, through at most `MAX_REDIRECTS` redirects.

        Raises:
            Refused: Where something is not allowed, not there, not in time, or no text.
        """
        try:
            async with asyncio.timeout(SECONDS):
                url = httpx.URL(address)
                for _ in range(MAX_REDIRECTS + 1):
                    async with self.connect(self.tls) as transport:
                        response = await transport.handle_async_request(await self._request(url))
                        async with aclosing(response):
                            if not response.has_redirect_location:
                                return await _read(response)
                    url = url.join(response.headers["location"])
        except TimeoutError as error:
            raise Refused(f"no whole answer within {SECONDS:g} seconds") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Refused(f"{address[:200]!r} cannot be fetched: {type(error).__name__}") from error
        raise Refused(f"more than {MAX_REDIRECTS} redirects")

    async def _request(self, url: httpx.URL) -> httpx.Request:
        """Make a request that goes to a checked address, in the name of its host."""
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        if origin not in self.origins or url.userinfo:
            raise Refused(f"{origin[:200]!r} is not allowed; allowed are {', '.join(sorted(self.origins))}")
        host = url.raw_host.decode("ascii")
        addresses = await self.resolve(host)
        if not addresses or not all(is_public(address) for address in addresses):
            raise Refused(f"{host} is not an address of the public internet")
        headers = {"host": url.netloc.decode("ascii"), "accept-encoding": "identity", "user-agent": "thena-recipe"}
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), SECONDS)
        extensions = {"sni_hostname": host, "timeout": timeout}  # the certificate must be the host's
        return httpx.Request("GET", url.copy_with(host=addresses[0]), headers=headers, extensions=extensions)


async def _read(response: httpx.Response) -> ToolOutput:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise Refused("the answer is compressed, though none was asked for")
    body = bytearray()
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_raw())) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > MAX_BYTES:
                break
    if b"\0" in body:
        raise Refused(f"the answer is not text ({response.headers.get('content-type', 'of no type')[:100]})")
    text = body[:MAX_BYTES].decode(CHARSETS.get((response.charset_encoding or "").lower(), "utf-8"), "replace")
    more = f"\n[only the first {MAX_BYTES:,} bytes]" if len(body) > MAX_BYTES else ""
    return ToolOutput(f"HTTP {response.status_code}\n{text}{more}", is_error=not response.is_success)


@tool(effect="read")
async def http_get(url: str, web: Annotated[Web, Inject]) -> ToolOutput:
    """Fetches a page or a document from an allowed site, as text."""
    return await web.get(url)
