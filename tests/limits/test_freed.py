"""What a run made is freed when it is over: nothing of it waits for the garbage collector."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.hooks.scripted import ask
from tests.limits.scenes import actor, starts
from thena_core import Budget, CallNext, Thena, ToolCall, ToolOutput, hookimpl, loop, parallel, tool, workflow
from thena_core.providers import ChatTurn
from thena_tools import ParallelTool


@tool
async def look(where: str = "here") -> str:
    """Looks."""
    return where


@tool
async def fails() -> str:
    """Fails."""
    raise ValueError("no")


class Watching:
    """A plugin with a hook before and one after each call."""

    @hookimpl
    def before_tool(self, call: Any, ctx: Any) -> None:
        """See it."""

    @hookimpl
    def after_tool(self, result: Any, ctx: Any) -> None:
        """See it."""


async def passing(call: ToolCall, call_next: CallNext) -> ToolOutput:
    """Go on."""
    return await call_next(call)


PACKED = ask("parallel", '{"calls": [{"name": "look", "arguments": {}}, {"name": "look", "arguments": {}}]}')
INNER = actor([look], ChatTurn("", [ask("look")]))
TURNS: dict[str, Sequence[Any]] = {
    "one call": [ask("look")],
    "several": [ask("look"), ask("look", '{"where": "there"}')],
    "packed": [PACKED],
    "nested": [ask("nested")],
    "invalid": [ask("look", '{"where": {}}')],
    "unknown": [ask("loook")],
}


@pytest.mark.behaviour("Q03")
@pytest.mark.parametrize("kind", TURNS)
async def test_a_run_leaves_nothing_to_the_garbage_collector(kind: str) -> None:
    """Under 1,000 runs at once, what only the collector frees is memory, and time that every call pays for."""
    script = [turn for _ in range(6) for turn in (ChatTurn("", TURNS[kind]), "done")]
    made = actor([look, fails, ParallelTool, starts(INNER)], *script, tool_calls="all")
    app = Thena(made, workflows=[INNER], plugins=[Watching()])
    app.use(tool=passing)
    async with app:
        for _ in range(2):
            await app.run("go", budget=Budget(max_tool_calls=99))
        left = await garbage(app)
    assert not left


async def garbage(app: Thena) -> Counter[str]:
    """Run three times without the collector, and count what of ours it then finds."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(3):
            await app.run("go", budget=Budget(max_tool_calls=99))
        gc.collect()
        return Counter(type(one).__name__ for one in gc.garbage if type(one).__module__.startswith("thena_"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.behaviour("Q03", "W06")
async def test_steps_beside_each_other_leave_nothing() -> None:
    """The branches of a run refer to it, and it lets go of them."""
    agents = [actor([look], *[turn for _ in range(6) for turn in (ask("look"), "done")]) for _ in range(2)]
    flow = workflow(steps=[parallel([loop([one]) for one in agents])])(type("Flow", (), {"__module__": __name__}))
    async with Thena(flow) as app:
        await app.run("go")
        left = await garbage(app)
    assert not left
