"""The history of a run is legal for every service, however the run ended: one answer per call, in order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hooks.scripted import ask, assert_legal, scripted
from thena_core import Context, EndsRun, FatalToolError, Message, Toolbox, ToolDefinition, ToolOutput, tool
from thena_tools import ParallelTool

MIDDLEWARE_FAILS = "middleware fails"
BEHAVIOURS = [
    "ok",
    "raises",
    "is error",
    "fatal",
    "guard fails",
    "after fails",
    MIDDLEWARE_FAILS,
    "unknown",
    "invalid",
    "malformed",
    "cancels itself",
    "empty",
    "surrogate",
]


class Hooks:
    """An agent whose guard and whose `after_tool` fail where the arguments say so."""

    def before_tool(self, call: Any) -> None:
        if call.arguments.get("how") == "guard fails":
            raise PermissionError("no")

    def after_tool(self, result: Any) -> None:
        if result.call.arguments.get("how") == "after fails":
            raise RuntimeError("metrics down")


async def fails_where_told(call: Any, call_next: Any) -> Any:
    """A middleware that fails after the call where the arguments say so."""
    output = await call_next(call)
    if call.arguments.get("how") == MIDDLEWARE_FAILS:
        raise OSError("metrics down")
    return output


@tool
async def act(how: str) -> Any:
    """Does what it is told."""
    await asyncio.sleep(0)
    if how == "raises":
        raise ValueError
    if how == "fatal":
        raise FatalToolError("gone")
    if how == "cancels itself":
        raise asyncio.CancelledError
    if how == "is error":
        return ToolOutput("no", is_error=True)
    return {"empty": "", "surrogate": "a\ud800b\0"}.get(how, f"did {how}")


def request(how: str, call_id: str) -> Any:
    """Ask for a call that goes so."""
    if how == "unknown":
        return ask("nope", {"how": how}, call_id)
    return ask("act", {"invalid": {}, "malformed": '{"how": '}.get(how, {"how": how}), call_id)


ENDS = {"fatal", "guard fails", "after fails", MIDDLEWARE_FAILS}


@pytest.mark.behaviour("F12")
@settings(max_examples=120, deadline=None)
@given(
    turns=st.lists(st.lists(st.sampled_from(BEHAVIOURS), min_size=1, max_size=5), max_size=3),
    observed=st.booleans(),
    tool_calls=st.sampled_from(["one", "all"]),
)
async def test_any_run_leaves_a_legal_history(turns: list[list[str]], observed: bool, tool_calls: str) -> None:
    """Whatever calls do, in whatever number, all of them are answered once, in order, with text that can be sent."""
    asked = [[request(how, f"c{turn}-{index}") for index, how in enumerate(hows)] for turn, hows in enumerate(turns)]
    made = scripted([act], *asked, hooks=Hooks, around=[fails_where_told], observed=observed, tool_calls=tool_calls)
    ended = await made.run()
    assert_legal(ended.history)
    honoured = [hows if tool_calls == "all" else hows[:1] for hows in turns]
    assert (ended.error is not None) == any(how in ENDS for hows in honoured for how in hows)
    if ended.error is None:
        assert len(ended.observations) == sum(len(hows) for hows in honoured)
        assert ended.history[-1].content == "done"
    else:
        assert isinstance(ended.error, EndsRun)
    for message in ended.history:
        message.content.encode("utf-8")
        assert "\0" not in message.content


async def cancelled_history(
    tools: Sequence[Any], asked: Any, begun: asyncio.Event, **options: Any
) -> Sequence[Message]:
    """Cancel the task that awaits a run once `begun` is set, and return what had been said."""
    contexts: list[Context] = []

    class Keeping:
        def before_prompt(self, prompt: str, ctx: Context) -> None:
            contexts.append(ctx)

    task = asyncio.ensure_future(scripted(tools, asked, hooks=Keeping, tool_calls="all", **options).run())
    await asyncio.wait_for(begun.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    return contexts[0].history


@pytest.mark.behaviour("F12", "F08")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "plain"])
async def test_a_cancelled_run_keeps_what_was_done_and_kills_what_runs(observed: bool) -> None:
    """C05 (pydantic/pydantic-ai#5837, charmbracelet/crush#529): finished results stay, the rest reads as interrupted."""
    begun = asyncio.Event()
    pids: list[int] = []
    ended: list[int | None] = []

    @tool
    async def quick() -> str:
        """Ends at once."""
        return "q"

    @tool
    async def shell() -> str:
        """Runs a process that would go on for long."""
        command = [sys.executable, "-c", "import time; time.sleep(60)"]
        process = await asyncio.create_subprocess_exec(*command)
        pids.append(process.pid)
        begun.set()
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                ended.append(await process.wait())
        return "late"

    history = await cancelled_history(
        [quick, shell], [ask("quick"), ask("shell", None, "c2")], begun, observed=observed
    )
    assert len(ended) == 1
    assert_legal(history)
    assert [(message.tool_call_id, message.is_error) for message in history[2:]] == [("c1", False), ("c2", True)]
    assert history[2].content == "q"
    assert history[3].content.startswith("interrupted: ")
    assert "may or may not have taken effect" in history[3].content
    again = scripted([quick])
    await again.run(history=history)
    assert_legal(again.provider.requests[0].messages)


@pytest.mark.behaviour("F12")
@pytest.mark.parametrize("way", ["one", "all", "packed", "toolbox", "thread", "write"])
async def test_cancelled_at_any_place(way: str) -> None:
    """EvoScientist/EvoScientist#360 (C05): a single call, several, packed ones, a thread, calls that wait their turn."""
    import threading

    begun, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def waits() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "late"

    def blocks() -> str:
        loop.call_soon_threadsafe(begun.set)
        release.wait(10)
        return "late"

    @tool
    async def outer(toolbox: Toolbox) -> str:
        """Waits through the toolbox."""
        return (await toolbox["waits"]()).content

    tools = [
        ToolDefinition("waits", "d", None, waits),
        ToolDefinition("blocks", "d", None, blocks),
        ToolDefinition("writes", "d", None, waits, effect="write"),
        outer,
        ParallelTool,
    ]
    asked: dict[str, Any] = {
        "one": ask("waits"),
        "all": [ask("waits", None, f"c{n}") for n in range(40)],
        "packed": ask("parallel", {"calls": [{"name": "waits"}, {"name": "waits"}]}),
        "toolbox": ask("outer"),
        "thread": [ask("blocks"), ask("waits", None, "c2")],
        "write": [ask("writes"), ask("writes", None, "c2"), ask("nope", None, "c3")],
    }
    try:
        history = await cancelled_history(tools, asked[way], begun)
    finally:
        release.set()
    assert_legal(history)
    interrupted = [message.content.startswith("interrupted: ") for message in history if message.role == "tool"]
    assert interrupted[:2].count(True) == len(interrupted[:2])


async def raises(begun: asyncio.Event) -> None:
    """Fail while cleaning up after a cancellation."""
    begun.set()
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("clean-up failed")


async def raises_none(begun: asyncio.Event) -> None:
    """The same, with the cancellation out of sight."""
    begun.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise ValueError("clean-up failed") from None


async def raises_deeper(begun: asyncio.Event) -> None:
    """Fail once more while cleaning up after that."""
    try:
        await raises(begun)
    except ValueError:
        raise OSError("the log is gone, too")  # noqa: B904 - that is the case


async def raises_from(begun: asyncio.Event) -> None:
    """Make another failure of a failed clean-up."""
    try:
        await raises(begun)
    except ValueError as error:
        raise RuntimeError("not closed") from error


async def raises_in_a_group(begun: asyncio.Event) -> None:
    """Fail while cleaning up in a task group."""
    async with asyncio.TaskGroup() as group:
        group.create_task(raises(begun))


@pytest.mark.behaviour("F08", "F12")
@pytest.mark.parametrize(
    "how", [raises, raises_none, raises_deeper, raises_from, raises_in_a_group], ids=lambda how: how.__name__
)
@pytest.mark.parametrize("way", ["one", "all"])
async def test_a_tool_cannot_keep_a_cancelled_run_going(how: Any, way: str) -> None:
    """Cancellation passes the error policy, also where the tool makes an exception of it."""
    begun = asyncio.Event()

    async def stubborn() -> None:
        await how(begun)

    asked = [ask("stubborn")] if way == "one" else [ask("stubborn"), ask("nope", None, "c2")]
    history = await cancelled_history([ToolDefinition("stubborn", "d", None, stubborn)], asked, begun)
    assert_legal(history)
    assert history[-1].role == "tool"


@pytest.mark.behaviour("F12")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit], ids=["ctrl-c", "exit"])
@pytest.mark.parametrize("way", ["one", "all"])
def test_the_end_of_the_process_leaves_a_legal_history(kind: type[BaseException], way: str) -> None:
    """Where Ctrl-C or an exit takes the run down, what was said can still be stored and gone on from."""
    contexts: list[Context] = []

    async def leaves(ctx: Context) -> str:
        contexts.append(ctx)
        raise kind

    async def waits() -> str:
        await asyncio.Event().wait()
        return "late"

    tools = [ToolDefinition("leaves", "d", None, leaves), ToolDefinition("waits", "d", None, waits)]
    asked: Any = ask("leaves") if way == "one" else [ask("waits"), ask("leaves", None, "c2")]
    with pytest.raises(kind):
        asyncio.run(scripted(tools, asked, tool_calls="all").run())
    assert_legal(contexts[0].history)
    assert contexts[0].history[-1].role == "tool"


@pytest.mark.behaviour("F12")
async def test_a_failed_model_call_leaves_no_half_turn() -> None:
    """Where the agent's own hook fails after the model asked for tools, that turn is not in the history."""

    class Fails:
        def after_response(self, text: str) -> None:
            raise LookupError("no template")

    from thena_core.messages import ChatTurn

    contexts: list[Context] = []

    @tool
    async def echo(ctx: Context) -> str:
        """Repeats."""
        contexts.append(ctx)
        return "a"

    ended = await scripted([echo], ask("echo"), ChatTurn("thinking", [ask("echo", None, "c2")]), hooks=Fails).run()
    assert isinstance(ended.error, LookupError)
    assert_legal(contexts[0].history)
    assert [message.role for message in contexts[0].history] == ["user", "assistant", "tool"]
