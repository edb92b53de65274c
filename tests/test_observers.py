"""Who looks at a run: what `log=` takes, what it sees, and what it cannot harm. Tests of thena_core.observers."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from thena_core import Event, Thena, tool

KEY = "sk-ant-REDACTED"


@tool
async def look(where: str = "here") -> str:
    """Looks."""
    return f"{where}: {KEY}"


async def asynchronous(event: Event) -> None:
    """Would have to be awaited."""


class AsyncCallable:
    """An object that would have to be awaited."""

    async def __call__(self, event: Event) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (
            "verbos",
            '[thena] log=\'verbos\': write True, "verbose", or a function that takes an event. Did you mean "verbose"?',
        ),
        (10, '[thena] log=10: write True, "verbose", or a function that takes an event.'),
        (
            asynchronous,
            "asynchronous is `async def`, and nobody awaits it; write `def`, or follow handle.events() of app.start(…).",
        ),
        (AsyncCallable(), "AsyncCallable is `async def`, and nobody awaits it"),
    ],
    ids=["misspelt", "a level", "async function", "async object"],
)
async def test_what_log_cannot_be(log: Any, text: str) -> None:
    """A `log` that could show nothing is refused where it is given, for the app and for one run."""
    with pytest.raises(ValueError) as refused:
        Thena(tools=[look], log=log)
    assert text in str(refused.value)
    with pytest.raises(ValueError) as refused:
        await scripted([look], observed=False).app.run("go", log=log)
    assert text in str(refused.value)


@pytest.mark.behaviour("O05", "Q01", "O04")
async def test_events_are_masked() -> None:
    """A listener sees no secret shape and none of the run's data, and the run's id in each event."""
    ended = await scripted([look], ask("look", {"where": f"at {KEY}"})).run(data={"tenant": "acme-17"}, run_id="r1")
    shown = json.dumps([event.as_dict() for event in ended.events], ensure_ascii=False)
    assert KEY not in shown
    assert "acme-17" not in shown
    assert "here" in shown or "at sk-ant-…masked" in shown
    assert {event.run_id for event in ended.events} == {"r1"}
    assert KEY in ended.observation, "the model reads what the tool returned"


@pytest.mark.behaviour("O05")
@pytest.mark.parametrize(
    ("redact", "shown"),
    [(False, f"here: {KEY}"), (lambda text: text.replace("here", "HERE"), f"HERE: {KEY}")],
    ids=["off", "own"],
)
async def test_masking_can_be_changed(redact: Any, shown: str) -> None:
    """`redact=False` masks nothing, and a function does its own."""
    ended = await scripted([look], ask("look"), redact=redact).run()
    assert ended.node("look").output == shown


@pytest.mark.behaviour("O05")
@pytest.mark.parametrize("log", [True, "verbose"], ids=str)
async def test_the_console_is_masked(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed tree, verbose or not, has no secret in it."""
    await scripted([look], ask("look", {"where": KEY}), log=log).run()
    said = capsys.readouterr().err
    assert "◂ tool look" in said
    assert KEY not in said
    assert ("sk-ant-…masked" in said) is (log == "verbose")


@pytest.mark.behaviour("P06")
async def test_a_listener_that_raises_ends_no_run() -> None:
    """What the app's own function raises is one warning for all of its runs."""

    def fails(event: Event) -> None:
        raise ZeroDivisionError(event.phase)

    made = scripted([look], ask("look"), ask("look"), log=fails)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with made.app as app:
            assert (await app.run("go")).output == "done"
            assert (await app.run("go")).output == "done"
    [warning] = caught
    assert re.fullmatch(
        r"\[thena\] log=tests\.test_observers\..*fails failed, and is not reported again: ZeroDivisionError: start",
        str(warning.message),
    )


@pytest.mark.behaviour("O01")
async def test_a_run_may_say_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    """`log` of one run goes before the app's, in both directions."""
    made = scripted([look], ask("look"), log=True)
    seen: list[Event] = []
    async with made.app as app:
        await app.run("go", log=False)
        await app.run("go", log=seen.append)
        assert capsys.readouterr().err == ""
        await app.run("go")
    assert seen
    assert "▸ workflow" in capsys.readouterr().err


@pytest.mark.behaviour("O03")
@pytest.mark.parametrize("way", ["run", "call"])
async def test_nothing_is_built_where_nobody_looks(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without log, report, observer and logging there is no recorder, no node and no event."""
    for name in ("observers.Recorder", "record.tree.Node", "record.tree.Event"):
        monkeypatch.setattr(f"thena_core.{name}", None)
    async with scripted([look], ask("look"), observed=False).app as app:
        if way == "run":
            assert (await app.run("go")).output == "done"
        else:
            assert (await app.call("look")).content


@pytest.mark.behaviour("O01", "C04")
async def test_runs_at_once_on_one_console(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of an app share its console: their lines are whole, and those of each can be told apart."""
    both, seen = asyncio.Event(), []

    @tool
    async def meets() -> str:
        """Waits for the other."""
        seen.append(1)
        if len(seen) == 2:
            both.set()
        await both.wait()
        return "met"

    monkeypatch.setattr("sys.stderr", io.StringIO())
    async with scripted([meets], ask("meets"), log=True).app as app:
        await app.__aenter__()
        provider_turns = [asyncio.create_task(app.run("go", run_id=f"r{n}")) for n in range(2)]
        await asyncio.wait(provider_turns, timeout=0.2)
        both.set()
        await asyncio.gather(*provider_turns)
    lines = sys.stderr.getvalue().splitlines()  # type: ignore[attr-defined]
    second = [line.removeprefix("[2] ") for line in lines if line.startswith("[2] ")]
    first = [line for line in lines if not line.startswith("[2] ")]
    assert first[0] == second[0] == "▸ workflow NoHooks"
    for tree in (first, second):
        assert sum("▸" in line for line in tree) == sum("◂" in line for line in tree) >= 4


@pytest.mark.behaviour("O05", "Q01")
@pytest.mark.parametrize("log", [True, "verbose"], ids=str)
async def test_what_tools_say_steers_no_terminal(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """ANSI codes, bidirectional marks and line breaks of names, arguments, outputs and errors are shown as codes."""

    @tool
    async def hostile(text: str) -> str:
        """Says it back."""
        if text == "fail":
            raise ValueError("\x1b]0;title\x07\u202egnp\r\nforged line")
        return "\x1b[2J\x9b1m\u2066" + text

    turns = [ask("hostile", {"text": "\x1b[31m"}), ask("hostile", {"text": "fail"}), ask("no\x1b[5m\nsuch")]
    await scripted([hostile], *turns, log=log).run()
    said = capsys.readouterr().err
    assert said.replace("\n", "").isprintable()
    assert "forged line" in said
    assert not any(line.startswith("forged") for line in said.splitlines())


def test_masks_short_texts_once() -> None:
    """The names of tools, which every event bears, are masked once and remembered; long texts are not kept."""
    from thena_core.observers import Observers

    app = Observers(log=False, report=False, redact=True)
    masker: Callable[[str], str] = app.masker()
    assert app.masker() is masker
    assert masker(KEY) == masker(KEY) == "sk-ant-…masked"
    assert masker("x" * 500 + " " + KEY) == "x" * 500 + " sk-ant-…masked"
