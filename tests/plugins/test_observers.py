"""Observers of plugins: what they raise concerns nobody, and is reported once."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from thena_core import Event, FatalToolError, Thena, hookimpl, tool


@tool
async def look() -> str:
    """Looks."""
    return "seen"


class Watches:
    """An observer that keeps what it saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    @hookimpl
    def on_event(self, event: Event) -> None:
        """Keep it."""
        self.seen.append((event.phase, event.kind))


def raising(error: BaseException) -> Any:
    """Make an observer that raises at every event."""

    class Raises:
        @hookimpl
        def on_event(self, event: Event) -> None:
            raise error

    return Raises()


@pytest.mark.behaviour("P06")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(ValueError("bad"), "ValueError: bad", id="error"),
        pytest.param(FatalToolError("bad"), "FatalToolError: bad", id="ends-run"),
        pytest.param(BaseExceptionGroup("bad", [ValueError("x")]), "ExceptionGroup: bad (1 sub-exception)", id="group"),
        pytest.param(
            asyncio.CancelledError(),
            "CancelledError: it was cancelled, and nobody cancelled the run",
            id="cancelled",
        ),
    ],
)
async def test_isolated_and_reported_once(error: BaseException, text: str) -> None:
    """The run and the other observers go on as if it were not there; of all that it raises, one warning is given."""
    before, after = Watches(), Watches()
    alone = await scripted([look], ask("look"), plugins=[Watches()], observed=False).run()
    made = scripted([look], ask("look"), plugins=[before, raising(error), after], observed=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ended = await made.run()
    assert ended.error is None
    assert ended.history == alone.history
    assert len(before.seen) > 4
    assert before.seen == after.seen
    assert [(warning.category, str(warning.message)) for warning in caught] == [
        (RuntimeWarning, f"[thena] on_event of Raises failed, and is not reported again: {text}")
    ]


@pytest.mark.behaviour("P06")
async def test_once_for_all_runs() -> None:
    """An app that runs for days does not fill the log with one observer's failure; each broken observer is named."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with Thena(tools=[look], plugins=[raising(ValueError("a")), raising(ValueError("b"))]) as app:
            for _ in range(3):
                await app.call("look")
    assert [str(warning.message) for warning in caught] == [
        "[thena] on_event of Raises failed, and is not reported again: ValueError: a",
        "[thena] on_event of Raises#2 failed, and is not reported again: ValueError: b",
    ]


@pytest.mark.behaviour("P06")
async def test_isolated_where_warnings_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """With `python -W error` the report goes to stderr: it must not end the run either."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ended = await scripted([look], ask("look"), plugins=[raising(ValueError("bad"))]).run()
    assert ended.error is None
    text = "[thena] on_event of Raises failed, and is not reported again: ValueError: bad\n"
    assert capsys.readouterr().err == text


@pytest.mark.behaviour("P06")
async def test_the_keyboard_is_nobodys_failure() -> None:
    """Ctrl-C while an observer writes stops the program, as it does anywhere."""
    with pytest.raises(KeyboardInterrupt):
        await Thena(tools=[look], plugins=[raising(KeyboardInterrupt())]).call("look")


@pytest.mark.behaviour("P01", "P06")
async def test_an_observer_may_leave_out_the_event() -> None:
    """Also `on_event` takes what it needs; a plugin that observes is what makes a run recorded."""
    counted: list[int] = []

    class Counts:
        @hookimpl
        def on_event(self) -> None:
            counted.append(1)

    async with Thena(tools=[look], plugins=[Counts()]) as app:
        await app.call("look")
    assert counted == [1, 1]


@pytest.mark.behaviour("P01")
async def test_observers_in_order() -> None:
    """Observers are told in the order of the plugins."""
    order: list[str] = []

    def watching(name: str) -> Any:
        class Plugin:
            @hookimpl
            def on_event(self, event: Event) -> None:
                order.append(f"{name} {event.phase}")

        return Plugin()

    async with Thena(tools=[look], plugins=[watching("one"), watching("two")]) as app:
        await app.call("look")
    assert order == ["one start", "two start", "one end", "two end"]
