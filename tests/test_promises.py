"""The page of promises and the tests agree."""

from __future__ import annotations

import pytest

from tests.promises import pinned, promised


def test_every_kept_promise_has_a_test() -> None:
    """A line that says `kept` is pinned by at least one test."""
    tests = pinned()
    assert [behaviour for behaviour, state in promised().items() if state == "kept" and behaviour not in tests] == []


def test_tests_carry_only_promised_ids() -> None:
    """A misspelt id in a marker is found."""
    assert sorted(pinned().keys() - promised().keys()) == []


@pytest.mark.parametrize("behaviour", ["W01", "M08"])
def test_the_page_is_read(behaviour: str) -> None:
    """The page's table is found where the check looks for it."""
    assert behaviour in promised()
