"""Tests of thena_core.record.oneline."""

from __future__ import annotations

import sys
import time
import unicodedata
from typing import Any

import pytest

from thena_core.record.oneline import duration, harmless, how_far, in_short, one_line
from thena_core.record.redact import mask


@pytest.mark.behaviour("O01")
def test_no_character_that_does_not_print_survives() -> None:
    """Of all of Unicode, what is a control, a format, a separator, a surrogate or unassigned is never written."""
    for start in range(0, sys.maxunicode + 1, 4_096):
        text = "".join(map(chr, range(start, start + 4_096)))
        shown = one_line(text, 100_000, None)
        assert shown.isprintable()
        assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m\x07\x00", "\\x9b31m\\x07\\x00"),
        ("a\u202eb\u2066c\u200bd\ufeff", "a\\u202eb\\u2066c\\u200bd\\ufeff"),
        ("a\U000e0041b\u00ad\u180e", "a\\U000e0041b\\xad\\u180e"),
        ("\ud800", "\\ud800"),
        ("one\r\n\ttwo\u2028three\u00a0four\u3000five\x85six", "one two three four five six"),
        ("größe 大きさ 🎉 \N{HEAVY CHECK MARK}\ufe0f", "größe 大きさ 🎉 \N{HEAVY CHECK MARK}\ufe0f"),
    ],
    ids=["ansi", "c1", "bidi", "tags", "surrogate", "blanks", "letters"],
)
def test_controls_are_shown_as_codes(text: str, shown: str) -> None:
    """Control characters become their codes, blanks of any kind one blank, and letters stay."""
    assert one_line(text, 1_000, None) == shown


def test_it_is_never_longer_than_asked() -> None:
    """Also codes, which are longer than their characters, keep within the limit."""
    assert len(one_line("\U000e0041" * 1_000, 50, None)) == 50
    assert one_line("x" * 60, 50, None) == "x" * 49 + "…"
    assert harmless("plain") == "plain"


@pytest.mark.behaviour("O05")
@pytest.mark.parametrize("before", [0, 3_900, 3_960, 3_990], ids=str)
def test_a_secret_is_not_cut_before_it_is_masked(before: int) -> None:
    """Blanks that are joined do not bring half a secret, too short to be known, into the line."""
    key = "sk-ant-REDACTED"
    shown = one_line(" " * before + "key " + key + " x" * 100, 200, mask)
    assert "api03-abcd" not in shown


@pytest.mark.behaviour("O05")
def test_names_of_secrets_count_in_values() -> None:
    """What stands under a secret's name is masked whatever it looks like."""
    assert in_short({"user": "emma", "password": "hunter2"}, 100, mask) == '{"user": "emma", "password": "…masked"}'
    assert "hunter2" in in_short({"password": "hunter2"}, 100, None)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 20_000_000,
        {"text": "x" * 20_000_000},
        [["y" * 100] * 100_000] * 100,
        dict.fromkeys(range(500_000), "z" * 50),
    ],
    ids=["text", "text in a mapping", "lists", "mapping"],
)
def test_huge_values_cost_no_more_than_a_line(value: Any) -> None:
    """Only the beginning is looked at: a value of megabytes is not walked for a hundred characters."""
    in_short("warm up", 100, mask)
    begun = time.process_time()
    assert len(in_short(value, 100, mask)) <= 100
    assert time.process_time() - begun < 0.25


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"done": 3, "total": 8, "message": "pages"}, "3/8 pages"),
        ({"done": 1_500, "total": None, "message": ""}, "1,500"),
        ({"done": 0.5, "total": 1.0, "message": "a\nb"}, "0.5/1 a b"),
        ({"done": "some", "total": "all", "message": None}, "some/all"),
        ({"done": 10**5_000, "total": float("nan"), "message": "x"}, "…/nan x"),
        ({"done": True, "total": 0, "message": "\x1b[2J"}, "1/0 \\x1b[2J"),
        ("nothing of the kind", ""),
        (None, ""),
    ],
    ids=["of", "open", "share", "words", "absurd", "hostile", "wrong", "none"],
)
def test_how_far(told: Any, text: str) -> None:
    """Whatever a tool reports is shown or left out, and never raises."""
    assert how_far({"progress": told}, 200, mask) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.2, "0ms"), (4.2, "4ms"), (999.4, "999ms"), (999.6, "1.0s"), (1_234, "1.2s"), (185_000, "3m05s")],
)
def test_duration_is_short(ms: float, text: str) -> None:
    """Durations are written in the unit that people would say them in."""
    assert duration(ms) == text
