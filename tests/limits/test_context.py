"""The context: everything that it offers, where it can be found, and what of it never leaves the process."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from tests.limits.scenes import actor, starts
from thena_core import (
    Budget,
    Context,
    FatalToolError,
    Report,
    ToolDefinition,
)
from thena_core.messages import ChatTurn, Usage

PATIENCE = 10
"""Seconds after which a test that waits for another thread gives up."""


class Tenant:
    """Data of a run that must not leave the process."""

    def __init__(self) -> None:
        self.secret = "tenant-secret-4711"

    def __repr__(self) -> str:
        return self.secret


@pytest.mark.behaviour("C01")
async def test_everything_that_it_offers() -> None:
    """Each member says what holds while the tool runs."""
    seen: dict[str, Any] = {}
    data = Tenant()

    async def look(ctx: Context[Tenant]) -> str:
        seen.update(
            run_id=ctx.run_id,
            data=ctx.data,
            aborted=ctx.signal.aborted,
            deadline=ctx.deadline,
            usage=ctx.usage(),
            history=ctx.history,
            names=ctx.turn.tool_names,
            called=ctx.turn.called_tool,
            error=ctx.turn.tool_error,
            response=ctx.turn.response,
            output=ctx.output,
            loop=ctx.loop and asdict(ctx.loop),
            shown=repr(ctx),
        )
        ctx.meta(rows=3)
        ctx.progress(1, 2, "half")
        ctx.on_dispose(lambda: seen.update(disposed=True))
        return "seen"

    turn = ChatTurn("let me look", [ask("look")], usage=Usage(10, 5, 2, None))
    ended = await scripted([ToolDefinition("look", "d", None, look)], turn).run(
        run_id="r1", data=data, budget=Budget(max_duration=60)
    )
    assert seen["run_id"] == "r1"
    assert seen["data"] is data
    assert seen["aborted"] is False
    assert seen["deadline"] > asyncio.get_running_loop().time()
    usage = seen["usage"]
    assert (usage.chat_calls, usage.tool_calls, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (
        1,
        1,
        10,
        5,
        2,
    )
    assert usage.elapsed > 0
    assert [message.role for message in seen["history"]] == ["user", "assistant"]
    assert isinstance(seen["history"], tuple)
    assert (seen["names"], seen["called"], seen["error"], seen["response"]) == (["look"], True, False, "let me look")
    assert seen["output"] == "let me look"
    assert seen["loop"] == {"iteration": 1, "fails": 0, "max_iterations": 10}
    assert seen["disposed"]
    assert "secret" not in seen["shown"]
    assert ended.node("look").meta["rows"] == 3
    assert ended.result is not None
    assert ended.result.usage.elapsed >= usage.elapsed


def contents(folder: Path) -> str:
    """Return all that was written to a folder."""
    return "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())


@pytest.mark.behaviour("C02", "W07")
@pytest.mark.parametrize("how", ["answers", "fails", "fatal"])
async def test_data_never_leaves(how: str, tmp_path: Path) -> None:
    """`data` reaches tools, hooks and nested runs as it is, and neither the model, the events nor the report."""
    data = Tenant()
    seen: list[Any] = []

    async def look(ctx: Context[Tenant]) -> str:
        seen.append(ctx.data)
        if how == "fails":
            raise ValueError("no")
        if how == "fatal":
            raise FatalToolError("broken")
        return "seen"

    class Hooks:
        def before_tool(self, call: Any, ctx: Context[Tenant]) -> None:
            seen.append(ctx.data)

    tool = ToolDefinition("look", "d", None, look)
    inner = actor([tool], ask("look"))
    model = scripted([tool, starts(inner)], ask("nested"), ask("look"), hooks=Hooks, report=Report(folder=tmp_path))
    ended = await model.run(data=data, run_id="r1")
    assert len(seen) >= 2
    assert all(found is data for found in seen)
    for provider in (model.provider, inner.provider):
        assert data.secret not in repr(provider.requests)
    assert model.events
    assert data.secret not in repr(model.events)
    assert data.secret not in repr(ended.history)
    written = contents(tmp_path)
    assert written
    assert data.secret not in written
    assert ended.error is None or data.secret not in repr(ended.error)


@pytest.mark.behaviour("C02")
@pytest.mark.parametrize("memory", ["they like tea", None], ids=["text", "none"])
async def test_memory_reaches_the_model(memory: str | None) -> None:
    """`memory` is put before the message."""
    model = scripted([])
    await model.run(memory=memory)
    said = [message.content for message in model.provider.requests[0].messages]
    assert said == ([memory, "go"] if memory else ["go"])


@pytest.mark.behaviour("X01", "C04")
@pytest.mark.parametrize("how", ["run", "call", "cancelled"])
async def test_a_late_abort_hits_nobody(how: str) -> None:
    """A context that was kept beyond its run cannot cancel what its caller does next."""
    kept: list[Context] = []
    begun = asyncio.Event()

    async def works(ctx: Context) -> str:
        kept.append(ctx)
        begun.set()
        if how == "cancelled":
            await asyncio.Event().wait()
        return "ok"

    model = scripted([ToolDefinition("works", "d", None, works)], ask("works"))

    async def body() -> str:
        async with model.app as app:
            try:
                await (app.call("works") if how == "call" else app.run("go"))
            except asyncio.CancelledError:
                task = asyncio.current_task()
                assert task is not None
                task.uncancel()
            kept[0].abort("too late")
            await asyncio.sleep(0)
            return "undisturbed"

    task = asyncio.create_task(body())
    await begun.wait()
    if how == "cancelled":
        task.cancel()
    assert await task == "undisturbed"


@pytest.mark.behaviour("C05")
@pytest.mark.parametrize("sync", [False, True], ids=["async", "thread"])
async def test_progress_reaches_the_events(sync: bool) -> None:
    """Progress is an event of the tool's node while the tool still runs, also from a thread."""
    go_on, thread_goes_on = asyncio.Event(), threading.Event()

    async def works(ctx: Context) -> str:
        ctx.progress(1, 4, "reading")
        await go_on.wait()
        return "ok"

    def blocks(ctx: Context) -> str:
        ctx.progress(1, 4, "reading")
        thread_goes_on.wait(PATIENCE)
        return "ok"

    model = scripted([ToolDefinition("works", "d", None, blocks if sync else works)], ask("works"))
    loop = asyncio.get_running_loop()
    begun = loop.time()
    found: list[Any] = []
    async with model.app as app:
        handle = app.start("go")
        async for event in handle.events():
            if event.phase == "progress":
                found.append((event.name, event.meta["progress"]))
                go_on.set()
                thread_goes_on.set()
        assert (await handle.result()).output == "done"
    assert found == [("works", {"done": 1, "total": 4, "message": "reading"})]
    assert loop.time() - begun < PATIENCE / 2


@pytest.mark.behaviour("C05")
async def test_progress_reaches_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    """The console shows what is done, of how much, and the words."""

    async def works(ctx: Context) -> str:
        ctx.progress(3, 8, "pages read")
        return "ok"

    await scripted([ToolDefinition("works", "d", None, works)], ask("works"), log=True).run()
    assert "pages read" in capsys.readouterr().err


@pytest.mark.behaviour("C05", "O03")
async def test_progress_where_nobody_looks() -> None:
    """Without an observer progress and meta do nothing."""

    async def works(ctx: Context) -> str:
        ctx.progress(1)
        ctx.meta(a=1)
        return json.dumps("ok")

    ended = await scripted([ToolDefinition("works", "d", None, works)], ask("works"), observed=False).run()
    assert ended.observation == '"ok"'
