"""Server-sent events from bytes: what the standard says, and what services send beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from thena_core.providers.ndjson import JsonLines
from thena_core.providers.sse import ServerEvent, ServerEvents


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def events(data: bytes, size: int = 5) -> list[ServerEvent]:
    return [event async for event in ServerEvents(pieces(data, size))]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"data: a\n\ndata: b\n\n", [ServerEvent("a"), ServerEvent("b")], id="two"),
        pytest.param(b"data:a\n\n", [ServerEvent("a")], id="A14-no-space"),
        pytest.param(b"data:  a\n\n", [ServerEvent(" a")], id="one-space-only"),
        pytest.param(b": PROCESSING\n\n: x=1\ndata: a\n\n: bye\n\n", [ServerEvent("a")], id="A14-comments"),
        pytest.param(b"data:\n\ndata\n\ndata: \n\ndata: a\n\n", [ServerEvent("a")], id="A14-empty-data"),
        pytest.param(b"id: 7\nretry: 100\nwhat: x\ndata: a\n\n", [ServerEvent("a")], id="A14-other-fields"),
        pytest.param(b"event: ping\n\ndata: a\n\n", [ServerEvent("a")], id="kind-without-data"),
        pytest.param(b"event: error\ndata: a\n\ndata: b\n\n", [ServerEvent("a", "error"), ServerEvent("b")], id="kind"),
        pytest.param(b"data: a\ndata: b\n\n", [ServerEvent("a\nb")], id="two-lines"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [ServerEvent(c) for c in "abc"], id="A15-line-ends"),
        pytest.param("data: a\u2028b\u0085c\n\n".encode(), [ServerEvent("a\u2028b\u0085c")], id="A15-separators"),
        pytest.param(b"data: a", [ServerEvent("a")], id="no-last-blank-line"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [ServerEvent("a")], id="mark"),
        pytest.param(b'error: {"code": 500}\n\n', [ServerEvent('{"code": 500}', "error")], id="llama.cpp-error"),
        pytest.param(b"", [], id="nothing"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_reads_events(data: bytes, expected: list[ServerEvent], size: int) -> None:
    """Each event comes with its data and kind, however the bytes arrive (cases A14, A15)."""
    assert await events(data, size) == expected


@pytest.mark.parametrize("size", [1, 4, 1000])
async def test_reads_json_lines(size: int) -> None:
    """Each line that is not blank comes as it is, the last one also without its end."""
    data = '{"a": "x\u2028y"}\n\r\n  \n{"b": 1}\r\n{"c"'.encode()
    assert [line async for line in JsonLines(pieces(data, size))] == ['{"a": "x\u2028y"}', '{"b": 1}', '{"c"']
