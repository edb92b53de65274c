"""The recipe for HTTP: only listed origins, and only public addresses, however they are written and reached."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.recipes.conftest import ORIGIN, Asked
from tests.recipes.internet import PUBLIC, PUBLIC_6, Internet, Names, Server
from tests.recipes.recipe import recipe
from thena_core import ToolOutput

http_get = recipe("http_get")
PRIVATE = [
    "127.0.0.1",
    "127.8.9.1",
    "0.0.0.0",  # noqa: S104 - nothing is bound to it
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "203.0.113.1",
    "224.0.0.1",
    "233.252.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001:0:7f00:1::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "5f00::1",
]


async def test_good_use(web: Asked) -> None:
    """A page of a listed origin is fetched from the checked address, in the name of its host, without anything extra."""
    web.server.answers("/a?b=1", "hello wörld")
    assert await web(f"{ORIGIN}/a?b=1#part") == ToolOutput("HTTP 200\nhello wörld")
    [(_, headers)] = web.server.asked
    assert headers["host"] == "docs.test"
    assert headers["accept-encoding"] == "identity"
    assert headers.keys() <= {"host", "accept-encoding", "user-agent", ""}
    assert web.connected == [PUBLIC]


async def test_ports_cases_and_ipv6(web: Asked) -> None:
    """An origin is scheme, host and port, in any case; an IPv6 address is connected to like another."""
    web.origins = {"http://docs.test:8080"}
    web.names = Names(docs_test=[PUBLIC_6])
    web.server.answers("/", "six")
    assert (await web("HTTP://DOCS.test:8080/")).content == "HTTP 200\nsix"
    assert web.server.asked[0][1]["host"] == "docs.test:8080"
    assert web.connected == [PUBLIC_6]


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://evil.test/", id="another host"),
        pytest.param("http://docs.test.evil.test/", id="a longer name"),
        pytest.param("http://evildocs.test/", id="a longer name in front"),
        pytest.param("http://docs.test./", id="a dot at the end"),
        pytest.param("http://docs.test@evil.test/", id="user information"),
        pytest.param("http://docs.test:80@evil.test/", id="user information with a port"),
        pytest.param("http://evil.test/docs.test", id="in the path"),
        pytest.param("http://evil.test\\@docs.test/", id="a backslash"),
        pytest.param("http://evil.test#@docs.test/", id="a fragment"),
        pytest.param("http://evil.test?@docs.test/", id="a query"),
        pytest.param("http://docs.test:22/", id="another port"),
        pytest.param("https://docs.test/", id="another scheme"),
        pytest.param("file:///etc/hostname", id="a file"),
        pytest.param("gopher://docs.test/", id="gopher"),
        pytest.param("//docs.test/", id="no scheme"),
        pytest.param("docs.test/", id="only a host"),
        pytest.param("", id="nothing"),
        pytest.param("http://", id="no host"),
        pytest.param("http://docs.test:99999/", id="a port that is none"),
        pytest.param("http://docs.test:x/", id="a port that is no number"),
        pytest.param("http://[::1/", id="half an address"),
        pytest.param("http://docs.test/\r\nx: y", id="line breaks"),
        pytest.param("http://docs.test\0.evil.test/", id="NUL"),
        pytest.param("http://docs\u3002test.evil.test/", id="a dot of another script"),
        pytest.param(f"http://{'x' * 70_000}.test/", id="70,000 characters"),
        pytest.param("http://127.0.0.1/", id="loopback"),
        pytest.param("http://169.254.169.254/latest/meta-data/", id="metadata"),
    ],
)
async def test_other_addresses(web: Asked, url: str) -> None:
    """What is not a listed origin is refused before anything is resolved or connected."""
    output = await web(url)
    assert output.is_error
    assert output.content.startswith("Refused: ")
    assert len(output.content) < 600
    assert (web.names.asked, web.connected) == ([], [])


@pytest.mark.parametrize("address", PRIVATE)
async def test_names_that_resolve_to_private_addresses(web: Asked, address: str) -> None:
    """A listed name whose address is not public is refused, also where another of its addresses is."""
    for found in ([address], [PUBLIC, address], [address, PUBLIC]):
        web.names = Names(docs_test=found)
        output = await web(f"{ORIGIN}/")
        assert output == ToolOutput("Refused: docs.test is not an address of the public internet", is_error=True)
    assert web.connected == []


@pytest.mark.parametrize(
    "address", [PUBLIC, "1.1.1.1", "8.8.8.8", PUBLIC_6, "2a00:1450:4001:829::200e", f"::ffff:{PUBLIC}"]
)
def test_public_addresses(address: str) -> None:
    """Addresses of the internet are public."""
    assert http_get.is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ],
)
async def test_addresses_in_other_notations(web: Asked, host: str) -> None:
    """The system's own resolver reads them as addresses of this machine; listed or not, they are refused."""
    direct = http_get.Web(frozenset({f"http://{host}"}), connect=lambda tls: Internet(tls, {}, web.connected))
    with pytest.raises(http_get.Refused):
        await direct.get(f"http://{host}/")
    assert web.connected == []


async def test_the_name_is_resolved_once(web: Asked) -> None:
    """A name that answers otherwise the second time (DNS rebinding) changes nothing: the checked address is used."""
    web.names = Names(docs_test=[[PUBLIC], ["127.0.0.1"]])
    web.server.answers("/", "fine")
    assert (await web(f"{ORIGIN}/")).content == "HTTP 200\nfine"
    assert (web.names.asked, web.connected) == (["docs.test"], [PUBLIC])


async def test_a_redirect_is_resolved_anew(web: Asked) -> None:
    """The same name, private by the time of the redirect, is refused then."""
    web.names = Names(docs_test=[[PUBLIC], ["127.0.0.1"]])
    web.server.redirects("/", "/next")
    web.server.answers("/next", "never")
    assert (await web(f"{ORIGIN}/")).content == "Refused: docs.test is not an address of the public internet"
    assert web.connected == [PUBLIC]


async def test_redirects_that_are_allowed(web: Asked) -> None:
    """A relative one and one to another listed origin are followed; nothing of the first answer goes along."""
    web.origins.add("http://other.test")
    web.names = Names(docs_test=[PUBLIC], other_test=[PUBLIC])
    web.server.answers("/", "", "location: b/c\r\nset-cookie: a=1; Domain=test\r\n", "301 Moved")
    web.server.redirects("/b/c", "//other.test/d", "308 Permanent Redirect")
    web.server.answers("/d", "there")
    assert (await web(f"{ORIGIN}/")).content == "HTTP 200\nthere"
    assert [(path, headers["host"]) for path, headers in web.server.asked] == [
        ("/", "docs.test"),
        ("/b/c", "docs.test"),
        ("/d", "other.test"),
    ]
    assert all("cookie" not in headers and "referer" not in headers for _, headers in web.server.asked)


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "//evil.test/",
        "http://docs.test@evil.test/",
        "http://internal.test/",
        "https://docs.test/",
        "file:///etc/hostname",
        "http://docs.test:6379/",
        "http://[bad",
        "",
    ],
)
@pytest.mark.parametrize("status", ["301 Moved", "307 Temporary Redirect"])
async def test_redirects_elsewhere(web: Asked, location: str, status: str) -> None:
    """A redirect to what could not be asked for at once is refused, and nothing is connected to."""
    web.origins.add("http://internal.test")
    web.names = Names(docs_test=[PUBLIC], internal_test=["10.0.0.1"])
    web.server.redirects("/", location, status)
    output = await web(f"{ORIGIN}/")
    assert output.is_error
    assert set(web.connected) == {PUBLIC}
    assert len(web.server.asked) <= http_get.MAX_REDIRECTS + 1


async def test_a_circle_of_redirects(web: Asked) -> None:
    """Redirects without end are given up."""
    web.server.redirects("/", "/")
    assert (await web(f"{ORIGIN}/")).content == "Refused: more than 3 redirects"
    assert len(web.server.asked) == 4


async def test_proxies_of_the_environment_are_not_used(web: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would resolve the name itself, so what was checked would not hold."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.server.answers("/", "direct")
    assert (await web(f"{ORIGIN}/")).content == "HTTP 200\ndirect"


async def test_certificates_are_checked_against_the_name(tmp_path: Path) -> None:
    """The address is connected to, and the certificate must be the host's: another listed host is not believed."""
    openssl = shutil.which("openssl") or pytest.skip("there is no openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=docs.test", "-addext", "subjectAltName=DNS:docs.test"]
    command = [openssl, "req", "-x509", *options, *names, "-keyout", str(key), "-out", str(certificate)]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    server = Server()
    server.answers("/", "secret")
    web = Asked(server, await server.listen(serving), ssl.create_default_context(cafile=str(certificate)))
    web.origins = {"https://docs.test", "https://other.test"}
    web.names = Names(docs_test=[PUBLIC], other_test=[PUBLIC])
    assert (await web("https://docs.test/")).content == "HTTP 200\nsecret"
    assert (
        await web("https://other.test/")
    ).content == "Refused: 'https://other.test/' cannot be fetched: ConnectError"
    assert len(server.asked) == 1
    await server.close()


async def test_the_real_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the system's resolver and real connections, and only the last check taken out, the loopback is reached."""
    server = Server()
    port = await server.listen()
    server.answers("/", "here")
    direct: Any = http_get.Web(frozenset({f"http://127.0.0.1:{port}"}))
    with pytest.raises(http_get.Refused, match=r"127\.0\.0\.1 is not an address of the public internet"):
        await direct.get(f"http://127.0.0.1:{port}/")
    assert server.asked == []
    monkeypatch.setattr(http_get, "is_public", lambda address: address == "127.0.0.1")
    assert (await direct.get(f"http://127.0.0.1:{port}/")).content == "HTTP 200\nhere"
    await server.close()
