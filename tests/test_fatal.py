"""`FatalToolError`: it ends the run as itself, and what it came from stays with its caller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest

from tests.hooks.scripted import Ended, ask, assert_legal, scripted
from thena_core import Budget, BudgetExceededError, EndsRun, Event, FatalToolError, Report, Thena, Toolbox, Tools, tool
from thena_tools import ParallelTool

SECRET = "postgres://admin:hunter2@10.0.0.7"
"""What the failure behind a fatal one says; no secret shape, so that masking does not help."""


def refused() -> None:
    """Fail as a driver does, with its address in the text."""
    raise ConnectionError(f"cannot reach {SECRET}")


@tool
async def explicit() -> str:
    """Raises it `from` the cause."""
    try:
        refused()
    except ConnectionError as error:
        raise FatalToolError("the database is gone") from error
    return ""


@tool
async def implicit() -> str:
    """Raises it inside of `except`, without `from`."""
    try:
        refused()
    except ConnectionError:
        raise FatalToolError("the database is gone")  # noqa: B904 - that is the case
    return ""


@tool
def in_thread() -> str:
    """The same in a thread."""
    try:
        refused()
    except ConnectionError:
        raise FatalToolError("the database is gone")  # noqa: B904 - that is the case
    return ""


@tool
async def in_group() -> str:
    """The same in a task group of the tool."""

    async def fail() -> None:
        try:
            refused()
        except ConnectionError:
            raise FatalToolError("the database is gone")  # noqa: B904 - that is the case

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
    return ""


@tool
async def deep() -> str:
    """The secret two links down the chain."""
    try:
        try:
            refused()
        except ConnectionError as error:
            raise RuntimeError("pool exhausted") from error
    except RuntimeError:
        raise FatalToolError("the database is gone")  # noqa: B904 - that is the case
    return ""


FATAL = [explicit, implicit, in_thread, in_group, deep]


@tool
async def waits() -> str:
    """Waits until it is cancelled."""
    await asyncio.Event().wait()
    return "late"


@tool
async def echo(text: str = "a") -> str:
    """Repeats."""
    return text


@tool
async def hides(name: str, toolbox: Annotated[Toolbox, Tools]) -> str:
    """Catches what the inner tool raises."""
    try:
        return (await toolbox[name]()).content
    except Exception:  # noqa: BLE001 - that is the case
        return "all is well"


@tool
async def hides_deeper(name: str, toolbox: Annotated[Toolbox, Tools]) -> str:
    """Catches what the tool that catches raises."""
    try:
        return (await toolbox["hides"]({"name": name})).content
    except BaseException:  # noqa: BLE001 - that is the case
        return "all is well"


@tool
async def wraps(name: str, toolbox: Annotated[Toolbox, Tools]) -> str:
    """Makes an ordinary failure of it."""
    try:
        return (await toolbox[name]()).content
    except Exception as error:
        raise ValueError("wrapped") from error


TOOLS = [*FATAL, waits, echo, hides, hides_deeper, wraps, ParallelTool]


def chain(error: BaseException | None) -> list[BaseException]:
    """List an error with everything behind it."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if link is None or link in found:
            continue
        found.append(link)
        waiting += [link.__cause__, link.__context__]
    return found


def everything_in(folder: Path) -> str:
    """Read all files of a folder."""
    return "".join(file.read_text(encoding="utf-8") for file in folder.rglob("*") if file.is_file())


def ways(name: str) -> dict[str, Any]:
    """All ways in which a model can make one call."""
    echoed = {"name": "echo", "arguments": {}}
    return {
        "one": ask(name),
        "all": [ask("waits"), ask(name, None, "c2"), ask("echo", None, "c3")],
        "packed": ask("parallel", {"calls": [echoed, {"name": name}, {"name": "waits"}]}),
        "toolbox": ask("hides", {"name": name}),
        "toolbox-twice": ask("hides_deeper", {"name": name}),
        "toolbox-wrapped": ask("wraps", {"name": name}),
    }


@pytest.mark.behaviour("F04", "F08", "F12")
@pytest.mark.parametrize("way", list(ways("")))
@pytest.mark.parametrize("name", [fatal.__name__ for fatal in FATAL])
async def test_only_its_own_message_leaves_the_tool(
    name: str, way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither cause nor context reach history, events, log, report or page; the caller gets itself, in no group."""
    caplog.set_level(logging.DEBUG)
    made = scripted(TOOLS, ways(name)[way], tool_calls="all", report=Report(folder=tmp_path))
    ended = await made.run()
    error = ended.error
    assert type(error) is FatalToolError
    assert str(error) == "the database is gone"
    chained = [repr(link) for link in chain(error)]
    assert any("cannot reach postgres://admin:" in text for text in chained), "the caller has the whole chain"
    assert not [text for text in chained if SECRET in text], "and it is masked"
    assert not [link for link in chain(error) if isinstance(link, BaseExceptionGroup) and not isinstance(link, EndsRun)]
    assert_legal(ended.history)
    assert len(made.provider.requests) == 1
    written = everything_in(tmp_path)
    assert "the database is gone" in written
    for seen in (written, repr(ended.history), repr(ended.events), caplog.text):
        assert SECRET not in seen
        assert "pool exhausted" not in seen
    node = ended.node(name)
    assert (node.status, node.outcome, node.error) == ("error", "fatal", "the database is gone")


@pytest.mark.behaviour("F04")
@pytest.mark.parametrize("way", list(ways("")))
@pytest.mark.parametrize("log", [True, "verbose"], ids=["log", "verbose"])
async def test_the_console_shows_its_own_message_only(log: Any, way: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The tree on stderr does not print the chain."""
    await scripted(TOOLS, ways("implicit")[way], tool_calls="all", log=log).run()
    printed = "".join(capfd.readouterr())
    assert "implicit" in printed
    assert SECRET not in printed


@pytest.mark.behaviour("F04")
async def test_the_model_never_reads_of_it() -> None:
    """Going on from the history that the error carries, the model reads that the call was interrupted, and no more."""
    ended = await scripted(TOOLS, ask("implicit")).run()
    again = scripted(TOOLS)
    await again.run(history=ended.history)
    sent = repr(again.provider.requests)
    assert SECRET not in sent
    assert "the database is gone" not in sent
    assert "interrupted: " in sent


@pytest.mark.behaviour("F04")
async def test_it_carries_what_there_was() -> None:
    """`.run` holds history, usage and report folder of the run that it ended."""
    ended = await scripted(TOOLS, ask("echo"), ask("implicit", None, "c2")).run()
    assert isinstance(ended.error, FatalToolError)
    assert ended.error.run.usage.tool_calls == 2
    assert ended.observations[0] == "a"


@pytest.mark.behaviour("F04")
async def test_app_call_raises_it() -> None:
    """Without a model it leaves `app.call`, through a tool that hides it, too."""
    async with Thena(tools=TOOLS) as app:
        for name, arguments in (("implicit", {}), ("hides", {"name": "implicit"}), ("wraps", {"name": "implicit"})):
            with pytest.raises(FatalToolError, match="the database is gone"):
                await app.call(name, arguments)


def endings() -> Sequence[Any]:
    """What may end a run from inside of a tool."""

    class OfAPlugin(EndsRun):
        """A class that somebody else derived."""

    return [
        pytest.param(FatalToolError("x"), id="fatal"),
        pytest.param(BudgetExceededError("max_tokens", 1, 2), id="budget"),
        pytest.param(OfAPlugin("x"), id="derived"),
    ]


@pytest.mark.behaviour("F08")
@pytest.mark.parametrize("way", list(ways("")))
@pytest.mark.parametrize("error", endings())
async def test_whatever_ends_a_run_passes_at_any_depth(error: EndsRun, way: str) -> None:
    """The marker class alone decides; nothing that is packed or nested turns it into an observation."""

    @tool
    async def ends() -> str:
        """Ends the run."""
        raise error

    ended = await scripted([*TOOLS, ends], ways("ends")[way], tool_calls="all").run()
    assert ended.error is error


@pytest.mark.behaviour("F08")
async def test_a_thrown_budget_passes_a_tool_that_hides_it() -> None:
    """A budget with `mode="throw"` that an inner call exceeds ends the run."""
    ended = await scripted(TOOLS, ask("hides", {"name": "echo"})).run(budget=Budget(max_tool_calls=1, mode="throw"))
    assert isinstance(ended.error, BudgetExceededError)
    assert (ended.error.limit, ended.error.allowed) == ("max_tool_calls", 1)
    assert ended.node("echo").outcome == "over_budget"


@pytest.mark.behaviour("F08")
async def test_other_errors_of_ours_are_ordinary_failures_in_a_tool() -> None:
    """Only `EndsRun` passes: what else a tool raises is an observation, whoever made the class."""
    from thena_core import ThenaError

    class Tame(ThenaError):
        """Not one that ends a run."""

    @tool
    async def fails() -> str:
        """Fails."""
        raise Tame("no")

    assert (await scripted([fails], ask("fails")).run()).observation == "Tame: no"


@pytest.mark.behaviour("F08")
async def test_the_first_of_two_fatal_errors_is_raised_alone() -> None:
    """Two calls that fail at once: one error reaches the caller, and it is one of the two."""

    def failing(text: str) -> Callable[[], Any]:
        async def fails() -> str:
            """Fails."""
            raise FatalToolError(text)

        fails.__name__ = text
        return tool(fails)

    ended: Ended = await scripted(
        [failing("one"), failing("two")], [ask("one"), ask("two", None, "c2")], tool_calls="all"
    ).run()
    assert type(ended.error) is FatalToolError
    assert str(ended.error) == "one"
    assert_legal(ended.history)


@pytest.mark.behaviour("F04", "F08")
async def test_a_middleware_that_rewords_it_does_not_hide_it() -> None:
    """An exception that a middleware makes of a fatal one does not take its place: the caller gets what came first."""

    async def rewords(call: Any, call_next: Any) -> Any:
        try:
            return await call_next(call)
        except Exception as error:
            raise RuntimeError("the call failed") from error

    ended = await scripted(TOOLS, ask("implicit"), around=[rewords]).run()
    assert type(ended.error) is FatalToolError


@pytest.mark.behaviour("F04")
async def test_events_of_every_node_above_say_the_same() -> None:
    """From the tool up to the run, each node that it passes ends as an error with its own message."""
    ended = await scripted(TOOLS, ask("implicit")).run()
    passed: list[Event] = [event for event in ended.events if event.phase == "end" and event.kind != "chat"]
    assert [(event.kind, event.status, event.error) for event in passed] == [
        (kind, "error", "the database is gone") for kind in ("tool", "agent", "loop", "workflow")
    ]
