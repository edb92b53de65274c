"""Sync tools in threads of our own: off the loop, with the caller's context, never in the way of the exit."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.schema.trial import answer
from thena_core import Context, Prompt, Thena, ToolDefinition, ToolRequest, agent, current_context, tool
from thena_core.calls.threads import ThreadPool
from thena_core.testing import FakeProvider

WORD: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="unset")
PATIENCE = 10
"""Seconds after which a test that waits for another thread gives up."""


def where() -> str:
    """Say in which thread this runs."""
    return threading.current_thread().name


@pytest.mark.behaviour("R07")
async def test_a_sync_tool_runs_off_the_loop() -> None:
    """The event loop goes on while a sync `execute` waits: the tool waits for what only the loop can do."""
    opened = threading.Event()
    asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(opened.set))

    def execute() -> str:
        assert opened.wait(PATIENCE)
        return where()

    said = await answer(ToolDefinition("t", "d", None, execute))
    assert said.content.startswith("thena-tool")


@pytest.mark.behaviour("R07")
async def test_blocking_false_runs_inline() -> None:
    """`blocking=False` calls it on the loop, in the loop's own thread."""

    def execute() -> str:
        asyncio.get_running_loop()
        return where()

    said = await answer(ToolDefinition("t", "d", None, execute, blocking=False))
    assert said.content == where()


@pytest.mark.behaviour("R07")
@pytest.mark.parametrize("blocking", [True, False], ids=["thread", "inline"])
async def test_context_variables_are_carried_over(blocking: bool) -> None:
    """The tool sees the caller's context variables; what it sets stays its own."""

    def execute() -> str:
        found = WORD.get()
        WORD.set("changed")
        return found

    WORD.set("the caller's")
    said = await answer(ToolDefinition("t", "d", None, execute, blocking=blocking))
    assert said.content == "the caller's"
    if blocking:
        assert WORD.get() == "the caller's"


@pytest.mark.behaviour("R07")
async def test_current_context_works_in_a_thread() -> None:
    """`current_context()` finds the run from a sync tool, the same that is injected."""

    def execute(ctx: Context[Any]) -> str:
        return f"{current_context() is ctx} {ctx.data}"

    async with Thena(tools=[ToolDefinition("t", "d", None, execute)]) as app:
        assert (await app.call("t", data="mine")).content == "True mine"


@pytest.mark.behaviour("R07")
async def test_sync_tools_of_one_turn_run_beside_each_other() -> None:
    """Two sync calls of a turn wait for each other and both get through."""
    barrier = threading.Barrier(2, timeout=PATIENCE)

    @tool
    def meet() -> str:
        """Meets the other."""
        barrier.wait()
        return "met"

    provider = FakeProvider([[ToolRequest("a", "meet", "{}"), ToolRequest("b", "meet", "{}")], "done"])

    @agent(provider=provider, tools=[meet], prompt=Prompt(""), tool_calls="all")
    class Caller: ...

    async with Thena(Caller) as app:
        result = await app.run("go")
    assert [message.content for message in result.history[2:4]] == ["met", "met"]


@pytest.mark.behaviour("R07")
@pytest.mark.parametrize(
    "error",
    [StopIteration("x"), StopAsyncIteration("x"), ValueError("x"), ExceptionGroup("g", [ValueError("x")])],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_thread_raises_arrives(error: Exception) -> None:
    """No exception leaves the call waiting for ever, `StopIteration` least of all."""

    def execute() -> str:
        raise error

    async with asyncio.timeout(PATIENCE):
        said = await answer(ToolDefinition("t", "d", None, execute))
    assert said.is_error
    assert "StopIteration" in said.content or "x" in said.content


async def test_threads_are_bounded() -> None:
    """No more than the limit run at once; the rest wait and all are done."""
    pool = ThreadPool(3)
    lock = threading.Lock()
    running: list[int] = []
    most = 0
    full = threading.Barrier(3, timeout=PATIENCE)

    def work() -> int:
        nonlocal most
        with lock:
            running.append(1)
            most = max(most, len(running))
        full.wait()  # lets three go at a time: fewer would wait for ever, more would be counted
        with lock:
            running.pop()
        return 1

    assert sum(await asyncio.gather(*(pool.run(work) for _ in range(12)))) == 12
    assert most == 3
    pool.close()


async def test_an_idle_thread_is_used_again() -> None:
    """Calls that follow each other share a thread."""
    pool = ThreadPool()
    idents: set[int] = set()
    for _ in range(20):
        idents.add(await pool.run(threading.get_ident))
        async with asyncio.timeout(PATIENCE):
            while not pool._idle:
                await asyncio.sleep(0)
    assert len(idents) == 1
    pool.close()


async def test_threads_are_daemons() -> None:
    """A thread of ours never keeps the interpreter alive."""
    pool = ThreadPool()
    assert (await pool.run(lambda: threading.current_thread().daemon)) is True
    pool.close()


async def test_an_abandoned_thread_is_not_counted() -> None:
    """A call that was given up leaves its place to another, and ends without being heard."""
    pool = ThreadPool(1)
    started, release = threading.Event(), threading.Event()

    def stuck() -> str:
        started.set()
        release.wait(PATIENCE)
        return "late"

    task = asyncio.create_task(pool.run(stuck))
    await pool_started(started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await pool.run(lambda: "next") == "next"
    release.set()
    assert await pool.run(lambda: "again") == "again"
    pool.close()


async def pool_started(event: threading.Event) -> None:
    """Wait for a thread without holding the loop up."""
    assert await asyncio.to_thread(event.wait, PATIENCE)


async def test_a_waiting_call_that_is_cancelled_never_runs() -> None:
    """What is cancelled before its turn has no effect."""
    pool = ThreadPool(1)
    started, release = threading.Event(), threading.Event()
    ran: list[str] = []
    first = asyncio.create_task(pool.run(lambda: (started.set(), release.wait(PATIENCE))))
    await pool_started(started)
    second = asyncio.create_task(pool.run(lambda: ran.append("second")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    release.set()
    await first
    await pool.run(lambda: ran.append("third"))
    assert ran == ["third"]
    pool.close()


async def test_closing_ends_idle_threads() -> None:
    """After the app is closed, no idle thread of its is left."""
    pool = ThreadPool()
    thread: threading.Thread = await pool.run(threading.current_thread)
    pool.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.behaviour("R07")
async def test_after_close_the_app_closes_its_threads() -> None:
    """Leaving the app ends the threads that its sync tools used."""
    threads: list[threading.Thread] = []
    await answer(ToolDefinition("t", "d", None, lambda: threads.append(threading.current_thread())))
    threads[0].join(PATIENCE)
    assert not threads[0].is_alive()


SCRIPT = """
import asyncio, threading
from thena_core import Thena, ToolDefinition

def stuck():
    threading.Event().wait()

async def main():
    async with Thena(tools=[ToolDefinition("t", "d", None, stuck, timeout=0.05)]) as app:
        print((await app.call("t")).content, flush=True)

asyncio.run(main())
"""


@pytest.mark.behaviour("R07", "T11")
def test_a_stuck_sync_tool_does_not_hold_up_the_exit() -> None:
    """The interpreter ends although a sync tool never returns."""
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert done.stdout == "t timed out after 0.05 s\n"
    assert done.stderr == ""
    assert time.monotonic() - before < 30
