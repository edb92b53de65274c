"""`current_context()`: the context of the run that the calling code works for, wherever it is called."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from thena_core import (
    Context,
    Thena,
    ThenaError,
    ToolDefinition,
    current_context,
    loop,
    workflow,
)

PLACES = [
    "tool",
    "thread",
    "task",
    "to_thread",
    "before_prompt",
    "before_tool",
    "middleware",
    "chat",
    "until",
    "dispose",
]


class Finding:
    """An app that looks for the current context at one place of its run.

    Args:
        place: The place.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.found: list[str] = []
        finding = self

        class Hooks:
            def before_prompt(self) -> None:
                finding.at("before_prompt")

            def before_tool(self) -> None:
                finding.at("before_tool")

        tools = [ToolDefinition("works", "d", None, self.works), ToolDefinition("blocks", "d", None, self.blocks)]
        model = scripted(tools, [ask("blocks"), ask("works", None, "c2")], hooks=Hooks, tool_calls="all")
        steps = [loop([model.app._given[0]], until=self.until)]
        self.app = Thena(workflow(steps=steps)(type("Flow", (), {"__module__": __name__})))
        self.app.use(tool=self.around)
        self.app.use(chat=self.chat)

    def at(self, here: str) -> None:
        """Look, where this is the place."""
        if here == self.place:
            self.found.append(current_context().run_id)

    async def later(self) -> None:
        await asyncio.sleep(0)
        self.at("task")

    async def works(self, ctx: Context) -> str:
        self.at("tool")
        await asyncio.create_task(self.later())
        await asyncio.to_thread(self.at, "to_thread")
        ctx.on_dispose(lambda: self.at("dispose"))
        return ctx.run_id

    def blocks(self) -> str:
        self.at("thread")
        return "ok"

    async def around(self, call: Any, call_next: Any) -> Any:
        self.at("middleware")
        return await call_next(call)

    async def chat(self, call: Any, call_next: Any) -> Any:
        self.at("chat")
        return await call_next(call)

    def until(self, ctx: Context) -> bool:
        self.at("until")
        return not ctx.turn.called_tool


@pytest.mark.behaviour("C03")
@pytest.mark.parametrize("place", PLACES)
async def test_current_context(place: str) -> None:
    """Anywhere inside a run, without being handed the context, code finds that of its own run."""
    finding = Finding(place)
    async with finding.app as app:
        await app.run("go", run_id="r1")
    assert finding.found
    assert set(finding.found) == {"r1"}


@pytest.mark.behaviour("C03")
async def test_current_context_of_app_call() -> None:
    """A tool that is called alone has a run of its own."""
    finding = Finding("tool")
    async with finding.app as app:
        assert [(await app.call("works")).content] == finding.found


@pytest.mark.behaviour("C03")
async def test_outside_of_a_run() -> None:
    """Outside, before and after a run it says what is missing."""
    with pytest.raises(ThenaError, match="outside of a run"):
        current_context()
    await scripted([]).run()
    with pytest.raises(ThenaError, match="outside of a run"):
        current_context()


@pytest.mark.behaviour("C03")
async def test_after_the_run() -> None:
    """A task that outlives its run gets an error in words, not a run that has ended."""
    over = asyncio.Event()
    left: list[asyncio.Task[Context]] = []

    async def late() -> Context:
        await over.wait()
        return current_context()

    async def works() -> str:
        left.append(asyncio.create_task(late()))
        return "ok"

    await scripted([ToolDefinition("works", "d", None, works)], ask("works")).run()
    over.set()
    with pytest.raises(ThenaError, match="run"):
        await left[0]
