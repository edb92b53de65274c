"""`assert_calls` and `assert_outcome`: what they accept, and what they say where a run was another one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.hooks.scripted import ask
from thena_core import (
    FatalToolError,
    Prompt,
    Report,
    RunHandle,
    Thena,
    ThenaError,
    Toolbox,
    ToolOutput,
    WorkflowRuntime,
    agent,
    tool,
)
from thena_core.testing import FakeProvider, Record, assert_calls, assert_outcome, run_tool


@tool
async def look(path: str) -> str:
    """Looks."""
    return f"in {path}"


@tool
async def fail() -> str:
    """Fails."""
    raise OSError("disk full")


@tool
async def ruin() -> str:
    """Ends the run."""
    raise FatalToolError("ruined")


@tool
async def pack(toolbox: Toolbox) -> str:
    """Calls two."""
    await toolbox.batch([("look", {"path": "b"}), ("fail", {})])
    return "packed"


@agent(provider=lambda: FakeProvider([ask("look", {"path": "inner"}), "seen"]), tools=[look], prompt=Prompt(""))
class Inner:
    """A nested agent."""


@tool
async def delegate(runtime: WorkflowRuntime) -> str:
    """Starts another run."""
    return str((await runtime.run(Inner)).output)


def app(*turns: Any, **options: Any) -> Thena:
    @agent(
        provider=FakeProvider([*turns, "done"]),
        tools=[look, fail, ruin, pack, delegate],
        prompt=Prompt(""),
        tool_calls="all",
    )
    class Outer:
        """The agent."""

    return Thena(Outer, **options)


LOOK, FAIL, PACK, DELEGATE = ask("look", {"path": "a"}), ask("fail"), ask("pack"), ask("delegate")


async def recorded(*turns: Any) -> Record:
    record = Record()
    async with app(*turns, log=record) as made:
        await made.run("go")
    return record


def said(assertion: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion(*args, **options)
    return str(caught.value)


TREE = """\
The run:
  workflow Outer
    loop loop
      agent Outer
        chat FakeProvider
        tool look {"path": "a"} → ok
      agent Outer
        chat FakeProvider
        tool pack → ok
          tool look {"path": "b"} → ok
          tool fail → error: OSError: disk full
      agent Outer
        chat FakeProvider"""


async def test_calls_in_order() -> None:
    """The calls are those of the tree from top to bottom, packed ones after the one that made them; they are returned."""
    record = await recorded(LOOK, PACK)
    calls = assert_calls(record, "look", "pack", ("look", {"path": "b"}), "fail")
    assert [call.outcome for call in calls] == ["ok", "ok", "ok", "error"]
    assert calls[2].output == "in b"
    assert str(record) == TREE.removeprefix("The run:\n")


async def test_other_calls() -> None:
    """Where the run was another one, each line says what was expected and what came, over the tree."""
    record = await recorded(LOOK, PACK)
    assert said(assert_calls, record, ("look", {"path": "b"}), "pack", "delegate") == (
        "The calls are not the expected ones:\n"
        '  ✗ 1. expected look {"path": "b"}, was look {"path": "a"}\n'
        "    2. pack\n"
        '  ✗ 3. expected delegate, was look {"path": "b"}\n'
        f"  ✗ 4. fail was not expected\n{TREE}"
    )
    assert "  ✗ 5. expected look, and no call came" in said(
        assert_calls, record, "look", "pack", "look", "fail", "look"
    )


async def test_any_order() -> None:
    """In any order, a name takes no call from an expectation with arguments; what is left on either side is told."""
    record = await recorded(LOOK, PACK)
    assert_calls(record, "fail", "look", ("look", {"path": "a"}), "pack", any_order=True)
    text = said(assert_calls, record, "fail", "look", "pack", ("look", {"path": "c"}), any_order=True)
    assert '  ✗ expected look {"path": "c"}, and no such call came\n  ✗ look {"path": "b"} was not expected\n' in text


async def test_under_a_step() -> None:
    """Only the calls under a step: a packing tool's, a nested workflow's; a step that there is not is told."""
    record = await recorded(PACK, DELEGATE)
    assert_calls(record, "look", "fail", under="pack")
    assert_calls(record, ("look", {"path": "inner"}), under="Inner")
    assert_calls(record, ("look", {"path": "inner"}), under="delegate")
    assert said(assert_calls, record, "look", under="Iner").startswith(
        'There is no step "Iner" in the run. Did you mean "Inner"?\nThe run:\n'
    )
    assert said(assert_calls, record, under="pack").startswith('The calls under "pack" are not the expected ones:\n')


async def test_no_calls() -> None:
    """Without an expected call, that there was none."""
    assert_calls(await recorded())
    assert "  ✗ 1. fail was not expected\n" in said(assert_calls, await recorded(FAIL))


async def test_arguments_as_text() -> None:
    """Arguments that a model sends as JSON are compared as what they mean; broken ones as they are."""
    record = await recorded(ask("look", '{"path": "a"}'), ask("look", '{"path"'))
    assert_calls(record, ("look", {"path": mock.ANY}), "look")
    assert '2. expected look {"path": "b"}, was look {"path"' in said(
        assert_calls, record, "look", ("look", {"path": "b"})
    )


async def test_outcomes() -> None:
    """Each call of the tool ended so, and said so."""
    record = await recorded(PACK, ask("look"), ask("lok"))
    assert_outcome(record, "error", "fail")
    assert_outcome(record, "error", "fail", saying="disk")
    assert_outcome(record, "unknown", "lok")
    assert said(assert_outcome, record, "ok", "look").startswith(
        "1 of 2 calls ended otherwise:\n  look: expected ok, but it was invalid: invalid arguments — path:"
    )
    assert said(assert_outcome, record, "error", "fail", saying="network").startswith(
        '1 of 1 calls ended otherwise:\n  fail: it does not say "network", but: OSError: disk full\nThe run:\n'
    )
    assert said(assert_outcome, record, "ok", "falt").startswith(
        'No call of falt was made, where one should be ok. Did you mean "fail"? Called: pack, look, fail, lok.\nThe run:'
    )
    assert said(assert_outcome, await recorded(), "ok").startswith(
        "No call was made, where one should be ok. No tool was called.\n"
    )


async def test_an_outcome_that_there_is_not() -> None:
    """A misspelt outcome is no failed assertion."""
    with pytest.raises(ValueError, match="There is no outcome"):
        assert_outcome(Record(), "denid")  # type: ignore[arg-type]


async def test_one_tool_alone() -> None:
    """What `run_tool` returns is taken as it is."""
    assert_outcome(await run_tool(look, {"path": "a"}), "ok", "look", saying="in a")
    assert said(assert_outcome, await run_tool(fail), "ok") == (
        "1 of 1 calls ended otherwise:\n  fail: expected ok, but it was error: OSError: disk full\n"
        "The run:\n  tool fail → error: OSError: disk full"
    )


async def test_a_run_that_failed() -> None:
    """The record is there also where the run ended with an error; the call that ended it says with what."""
    record = Record()
    async with app(LOOK, ask("ruin"), log=record) as made:
        with pytest.raises(FatalToolError):
            await made.run("go")
    assert_calls(record, "look", "ruin")
    assert_outcome(record, "fatal", "ruin", saying="ruined")


async def test_while_it_runs() -> None:
    """A call that has not ended has no outcome yet."""
    begun, record = asyncio.Event(), Record()

    @tool
    async def wait() -> str:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    async with Thena(tools=[wait], log=record) as made:
        calling = asyncio.ensure_future(made.call("wait"))
        await begun.wait()
        assert "wait: expected ok, but it still runs" in said(assert_outcome, record, "ok")
        assert_calls(record, "wait")
        calling.cancel()
        await asyncio.wait([calling])


async def test_several_runs() -> None:
    """A record of an app holds all its runs, `app.call` too."""
    record = Record()
    async with app(LOOK, log=record) as made:
        await made.call("look", {"path": "x"})
        await made.run("go")
    assert_calls(record, ("look", {"path": "x"}), ("look", {"path": "a"}))


async def test_a_handle() -> None:
    """The handle of a run that has ended is a record of it; of one that goes on it is not yet."""
    async with app(LOOK) as made, made.start("go") as handle:
        with pytest.raises(ThenaError, match=r"has not ended\. Write first: await handle\.result\(\)"):
            assert_calls(handle, "look")
        await handle.result()
        assert isinstance(handle, RunHandle)
        assert_calls(handle, "look")
        assert_calls(handle, "look")


async def test_events_and_results(tmp_path: Path) -> None:
    """A list of events is a record, and so is a result with a report; a result without one says what to write."""
    record = Record()
    async with app(PACK, log=record, report=Report(folder=tmp_path)) as made:
        result = await made.run("go")
    assert_calls(record.events, "pack", "look", "fail")
    assert_calls(result, "pack", ("look", {"path": "b"}), "fail")
    assert_outcome(result, "error", "fail", saying="disk full")
    async with app() as made:
        bare = await made.run("go", run_id="bare")
    with pytest.raises(ThenaError, match=r"^\[thena\] The run bare was not recorded: .* Write: record = Record\(\)"):
        assert_calls(bare)


@pytest.mark.parametrize("source", [ToolOutput("x"), "text", [1], None], ids=["output", "text", "list", "none"])
def test_what_is_no_record(source: Any) -> None:
    """Anything else is a mistake in the test, and said so."""
    with pytest.raises(TypeError, match="is no record of a run"):
        assert_calls(source)


def test_nothing_recorded() -> None:
    """An empty record hints at what was forgotten."""
    assert said(assert_calls, Record(), "look").endswith("Nothing was recorded: was the app made with log=record?")
