"""Thoughts in tags are no part of an answer, streamed or not; what only looks like them is."""

from __future__ import annotations

import time

import pytest

from thena_core.providers.thinking import Thoughts, visible

ANSWERS = [
    pytest.param("<think>hm</think>\n\nYes.", "Yes.", id="before-the-answer"),
    pytest.param("  <think>a</think> <think>b</think> Yes.", "Yes.", id="two-in-a-row"),
    pytest.param("<THINK>\na</Think>Yes.", "Yes.", id="capitals"),
    pytest.param("<thinking>a</thinking>Yes.", "Yes.", id="thinking"),
    pytest.param("<thought>a</thought>Yes.", "Yes.", id="thought"),
    pytest.param("<reasoning>a <b> c</reasoning>Yes.", "Yes.", id="other-tags-inside"),
    pytest.param("<seed:think>a</seed:think>Yes.", "Yes.", id="seed"),
    pytest.param("[THINK]a[/THINK]Yes.", "Yes.", id="magistral"),
    pytest.param("\u25c1think\u25b7a\u25c1/think\u25b7Yes.", "Yes.", id="kimi"),
    pytest.param("<think></think>\nYes.", "Yes.", id="empty"),
    pytest.param("Let me see. <think>a</think>Yes.", "Let me see. Yes.", id="within-a-line"),
    pytest.param("Look:\n\n<think>a</think>\n\nYes.", "Look:\n\nYes.", id="on-a-line"),
    pytest.param("<think>cut off", "", id="never-closed"),
    pytest.param("Look:\n<think>cut off", "Look:\n", id="on-a-line-never-closed"),
    pytest.param("<think>", "", id="only-the-tag"),
    pytest.param("The <think> tag opens it.", "The <think> tag opens it.", id="mentioned-never-closed"),
    pytest.param("<thinker>a</thinker>", "<thinker>a</thinker>", id="look-alike-thinker"),
    pytest.param("<think-tank>a</think-tank>", "<think-tank>a</think-tank>", id="look-alike-tank"),
    pytest.param("<think", "<think", id="half-a-tag"),
    pytest.param("[thinking] a", "[thinking] a", id="look-alike-brackets"),
    pytest.param("Write `<think>a</think>` so.", "Write `<think>a</think>` so.", id="code-span"),
    pytest.param("```\n<think>a</think>\n```\nb", "```\n<think>a</think>\n```\nb", id="code-block"),
    pytest.param("```\nx\n```\n<think>a</think>b", "```\nx\n```\nb", id="behind-a-code-block"),
    pytest.param("1 < 2 and <b>bold</b> [x]", "1 < 2 and <b>bold</b> [x]", id="other-signs"),
    pytest.param("  lead\n", "  lead\n", id="white-space-stays"),
    pytest.param("   ", "   ", id="only-white-space"),
    pytest.param("", "", id="nothing"),
]


@pytest.mark.behaviour("V05")
@pytest.mark.parametrize(("text", "expected"), ANSWERS)
def test_thoughts_are_stripped_and_look_alikes_are_not(text: str, expected: str) -> None:
    """A whole answer keeps all but its thoughts."""
    assert visible(text) == expected


@pytest.mark.behaviour("V05")
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize(("text", "expected"), ANSWERS)
def test_a_streamed_answer_shows_the_same(text: str, expected: str, size: int) -> None:
    """Tags that are split over pieces are found, and nothing is shown that has to be taken back."""
    thoughts = Thoughts()
    shown = [thoughts.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join(shown) + thoughts.end() == expected


def test_text_is_shown_as_soon_as_it_can_be() -> None:
    """Only what may be a tag is kept back."""
    thoughts = Thoughts()
    assert [thoughts.feed(piece) for piece in ("a ", "b <", "b>", " c")] == ["a ", "b ", "<b>", " c"]


@pytest.mark.behaviour("V05")
def test_thoughts_without_an_opening_tag_are_stripped() -> None:
    """Where the service's template opened the thought in the prompt, the answer begins behind the closing tag."""
    assert visible("So I should ask.\n</think>\n\nYes.") == "Yes."
    assert visible("Close it with </think> and go on.") == "Close it with </think> and go on."


def test_a_long_answer_takes_no_longer_than_it_is() -> None:
    """Many tags that are none is read in linear time, in one piece and in many."""
    text = "<thin x [y] `c` < \n" * 8_000
    started = time.perf_counter()
    assert visible(text) == text
    thoughts = Thoughts()
    assert "".join(thoughts.feed(text[at : at + 1000]) for at in range(0, len(text), 1000)) + thoughts.end() == text
    assert time.perf_counter() - started < 20
