"""Bytes to lines: at CR, LF and CRLF only, whatever the pieces."""

from __future__ import annotations

import pytest

from thena_core.providers import lines as module
from thena_core.providers.client import BrokenOff
from thena_core.providers.lines import Lines

TEXT = "\ufeffa\u2028b\u0085c\x0bd\x1ce ✅😀\r\nx\r\ry\n\nz"
LINES = ["a\u2028b\u0085c\x0bd\x1ce ✅😀", "x", "", "y", "", "z"]


def split(data: bytes, size: int) -> list[str]:
    lines = Lines()
    found = [line for at in range(0, len(data), size) for line in lines.feed(data[at : at + size])]
    return [*found, *lines.end()]


@pytest.mark.parametrize("size", range(1, 12))
def test_lines_do_not_depend_on_the_pieces(size: int) -> None:
    """Characters, the mark at the beginning and CRLF may be split anywhere, and no other character ends a line."""
    assert split(TEXT.encode(), size) == LINES


def test_a_line_is_given_as_soon_as_it_ends() -> None:
    """A CR ends a line at once; the LF that may follow is not waited for, and is no line of its own."""
    lines = Lines()
    assert lines.feed(b"a\r") == ["a"]
    assert lines.feed(b"\nb\r") == ["b"]
    assert lines.feed(b"\r") == [""]
    assert lines.feed(b"") == []
    assert lines.feed(b"\nc") == []
    assert (lines.end(), lines.end()) == (["c"], [])


def test_broken_utf8_is_replaced() -> None:
    """A byte that is no UTF-8 becomes U+FFFD and ends nothing."""
    assert split(b"a\xffb\n", 2) == ["a\ufffdb"]


@pytest.mark.parametrize("size", [1, 7, 100], ids=["bytes", "small", "one-piece"])
def test_an_endless_line_is_given_up(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """A line beyond the limit ends the reading, for good."""
    monkeypatch.setattr(module, "MAX_LINE", 50)
    with pytest.raises(BrokenOff, match="longer than 50 bytes") as caught:
        split(b"x" * 100, size)
    assert not caught.value.may_pass
