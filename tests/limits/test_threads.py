"""Tools that go on after they were given up: cancelled and awaited where they are async, abandoned in a thread where not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from thena_core import Budget, RunAborted, ToolDefinition

PATIENCE = 10
"""Seconds after which a test that waits for another thread gives up."""


@pytest.mark.behaviour("F11", "X04")
@pytest.mark.parametrize("how", ["time limit", "abort", "deadline", "cancel_call"])
@pytest.mark.parametrize("way", ["one", "all"])
async def test_a_sync_tool_is_abandoned(way: str, how: str) -> None:
    """The run goes on, or ends, without waiting for the thread; the node says that it was abandoned."""
    release, loop, begun = threading.Event(), asyncio.get_running_loop(), asyncio.Event()
    ended: list[str] = []

    def blocks() -> str:
        loop.call_soon_threadsafe(begun.set)
        release.wait(PATIENCE)
        ended.append("ended")
        return "late"

    async def quick() -> str:
        return "quick"

    tools = [
        ToolDefinition("blocks", "d", None, blocks, timeout=0.05 if how == "time limit" else None),
        ToolDefinition("quick", "d", None, quick),
    ]
    asked: Any = ask("blocks") if way == "one" else [ask("blocks"), ask("quick", None, "c2")]
    model = scripted(tools, asked, tool_calls="all")
    try:
        async with model.app as app:
            handle = app.start("go", budget=Budget(max_duration=0.05) if how == "deadline" else None)
            await begun.wait()
            if how == "abort":
                handle.abort()
                with pytest.raises(RunAborted):
                    await handle.result()
            else:
                if how == "cancel_call":
                    assert handle.cancel_call("c1")
                result = await handle.result()
                assert result.stopped_by == ("budget" if how == "deadline" else "answered")
        assert not ended
    finally:
        release.set()
    [node] = [event for event in model.events if event.phase == "end" and event.name == "blocks"]
    assert node.meta["abandoned"] is True
    assert node.outcome == ("timeout" if how == "time limit" else "cancelled")
    assert all("abandoned" not in event.meta for event in model.events if event.name == "quick")


@pytest.mark.behaviour("F11")
async def test_an_async_tool_is_cancelled_and_awaited() -> None:
    """At its time limit an async tool is cancelled, and its clean-up awaited before the model reads that it timed out."""
    said: list[str] = []

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            said.append("cleaned up")
        return "late"

    async def look() -> str:
        said.append("looked")
        return "seen"

    tools = [ToolDefinition("slow", "d", None, slow, timeout=0.02), ToolDefinition("look", "d", None, look)]
    ended = await scripted(tools, ask("slow"), ask("look", None, "c2")).run()
    assert ended.observations == ["slow timed out after 0.02 s", "seen"]
    assert said == ["cleaned up", "looked"]
    node = ended.node("slow")
    assert (node.outcome, node.status) == ("timeout", "error")
    assert "abandoned" not in node.meta


@pytest.mark.behaviour("F11")
async def test_a_call_that_never_began_is_not_abandoned() -> None:
    """A sync call that was still waiting for a thread has none that could be left behind."""
    release, loop, all_begun = threading.Event(), asyncio.get_running_loop(), asyncio.Event()
    lock, began = threading.Lock(), []

    def blocks() -> str:
        with lock:
            began.append(1)
            if len(began) == 32:
                loop.call_soon_threadsafe(all_begun.set)
        release.wait(PATIENCE)
        return "late"

    model = scripted(
        [ToolDefinition("blocks", "d", None, blocks)],
        [ask("blocks", None, f"c{n}") for n in range(16)],
        tool_calls="all",
    )
    model.provider._turns = model.provider._turns[:1]
    try:
        async with model.app as app:
            handles = [app.start("go") for _ in range(3)]
            await all_begun.wait()
            for _ in range(5):
                await asyncio.sleep(0)
            for handle in reversed(handles):  # the last one's calls wait for a thread
                handle.abort()
                with pytest.raises(RunAborted):
                    await handle.result()
    finally:
        release.set()
    nodes = [event for event in model.events if event.phase == "end" and event.kind == "tool"]
    assert len(nodes) == 48
    assert sum("abandoned" in event.meta for event in nodes) == 32


@pytest.mark.behaviour("F11", "X04")
async def test_many_abandoned_threads_slow_nothing_down() -> None:
    """With 50 abandoned threads an async tool, and a further sync one, run as if there were none."""
    release = threading.Event()

    def blocks() -> str:
        release.wait(PATIENCE)
        return "late"

    async def quick() -> str:
        return "quick"

    def sync() -> str:
        return "sync"

    tools = [
        ToolDefinition("blocks", "d", None, blocks, timeout=0.02),
        ToolDefinition("quick", "d", None, quick),
        ToolDefinition("sync", "d", None, sync, timeout=PATIENCE),
    ]
    batch = [ask("blocks", None, f"c{n}") for n in range(50)]
    model = scripted(tools, batch, ask("quick", None, "q"), ask("sync", None, "s"), tool_calls="all")
    try:
        ended = await model.run()
    finally:
        release.set()
    assert ended.observations[-2:] == ["quick", "sync"]
    assert sum("timed out" in text for text in ended.observations) == 50
    assert ended.node("quick").duration_ms < 500
    assert ended.node("sync").duration_ms < 2_000


@pytest.mark.behaviour("F11")
def test_an_abandoned_thread_does_not_hold_up_the_exit(tmp_path: Path) -> None:
    """A process whose run gave up on a sync tool ends at once."""
    script = tmp_path / "app.py"
    script.write_text(
        "import asyncio, time\n"
        "from thena_core import Thena, ToolDefinition\n"
        "def blocks() -> str:\n    time.sleep(60)\n    return 'late'\n"
        "async def main():\n"
        "    async with Thena(tools=[ToolDefinition('blocks', 'd', None, blocks, timeout=0.05)]) as app:\n"
        "        print((await app.call('blocks')).content)\n"
        "asyncio.run(main())\n",
        encoding="utf-8",
    )
    begun = time.monotonic()
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
        cwd=root,
        env={"PYTHONPATH": str(root)},
    )
    assert done.stdout.strip() == "blocks timed out after 0.05 s"
    assert time.monotonic() - begun < 30
