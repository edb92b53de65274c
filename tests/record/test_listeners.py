"""Tests of thena_core.record.listeners."""

from __future__ import annotations

import logging
import warnings

import pytest

from thena_core.record.event import Event
from thena_core.record.listeners import Isolated

EVENT = Event("start", "r", "r", None, 0, "tool", "look")


@pytest.mark.behaviour("P06", "Q01")
def test_what_it_raises_is_said_once_and_masked(caplog: pytest.LogCaptureFixture) -> None:
    """A failing observer is a warning and a line in the log, once, without the secrets of its exception."""

    def fails(_event: Event) -> None:
        raise ValueError("cannot post with sk-ant-REDACTED")

    listener = Isolated("log=fails", fails)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        listener(EVENT)
        listener(EVENT)
    [warning] = caught
    assert str(warning.message).startswith(
        "[thena] log=fails failed, and is not reported again: ValueError: cannot post"
    )
    assert "api03-abcdef" not in str(warning.message) + caplog.text
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.behaviour("S03")
def test_a_slow_one_is_named_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer that holds the event loop is named in the log, once; a quick one is not."""
    now = [0.0]
    monkeypatch.setattr("thena_core.record.listeners.time.perf_counter", lambda: now[0])

    def slow(_event: Event) -> None:
        now[0] += 0.4

    quick = Isolated("on_event of quick", lambda _event: None)
    listener = Isolated("on_event of slow", slow)
    for _ in range(3):
        quick(EVENT)
        listener(EVENT)
    [record] = caplog.records
    assert record.name == "thena"
    assert record.getMessage().startswith("on_event of slow took 0.40 s for one event, and holds up every run")
