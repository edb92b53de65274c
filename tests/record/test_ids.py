"""Ids of steps: derived from the position in the run, the same in every run of a script, whatever is concurrent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.hooks.scripted import ask, packed
from tests.limits.everything import Plays
from thena_core import Event, Prompt, Thena, Toolbox, ToolDefinition, WorkflowRuntime, agent
from thena_tools import ParallelTool


def app_of(seed: int, told: list[Event]) -> Thena:
    """Make an app whose tools take a random number of turns of the loop before and after what they do."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets

    async def dawdle() -> None:
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)

    async def read(name: str) -> str:
        await dawdle()
        return name

    async def both(toolbox: Toolbox, runtime: WorkflowRuntime) -> str:
        await dawdle()
        await asyncio.gather(
            toolbox.batch([("write", {"name": "1"}), ("read", {"name": "2"}), ("read", {"name": "3"})]),
            runtime.run(Inner, message="4"),
            runtime.run(Inner, message="5"),
            toolbox["read"]({"name": "6"}),
        )
        return "both"

    async def slow_down(call: Any, call_next: Any) -> Any:
        await dawdle()
        return await call_next(call)

    tools = [ToolDefinition("read", "d", None, read), ToolDefinition("write", "d", None, read, effect="write")]
    inner = [ask("read", {"name": "in"}), ask("write", {"name": "in"}, "c2"), ask("read", {"name": "in2"}, "c3")]

    @agent(provider=Plays(inner), tools=tools, prompt=Prompt("p"), tool_calls="all")
    class Inner: ...

    many = [ask("read" if n % 3 else "write", {"name": str(n)}, f"c{n}") for n in range(40)]
    calls = packed(("read", {"name": "a"}), ("write", {"name": "b"}), ("read", {"name": "c"}), ("nope", {}))
    script = [many, [calls, ask("both", None, "c2"), ask("both", None, "c3")], ask("read", {"name": "z"})]

    @agent(
        provider=Plays(*script), tools=[*tools, ToolDefinition("both", "d", None, both), ParallelTool],
        prompt=Prompt("p"), tool_calls="all",
    )  # fmt: skip
    class Outer: ...

    app = Thena(Outer, workflows=[Inner], log=told.append)
    app.use(tool=slow_down)
    return app


async def steps(seed: int) -> tuple[dict[str, Any], Sequence[str]]:
    """Run once; return what each id stands for, and the ids in the order in which the steps started."""
    told: list[Event] = []
    async with app_of(seed, told) as app:
        await app.run("go", run_id="r")
    started = [event for event in told if event.phase == "start"]
    assert len({event.id for event in started}) == len(started)
    return {event.id: (event.kind, event.name, event.input) for event in started}, [event.id for event in started]


@pytest.mark.behaviour("O04")
async def test_the_same_in_every_run() -> None:
    """A script's steps have the same ids whichever of them is quicker: calls of a turn, packed and nested ones."""
    first, first_order = await steps(1)
    orders = {tuple(first_order)}
    for seed in range(2, 8):
        found, order = await steps(seed)
        assert found == first
        orders.add(tuple(order))
    assert len(orders) > 1, "all ran in the same order, and nothing was proved"


@pytest.mark.behaviour("O04")
async def test_numbers_are_those_of_asking() -> None:
    """Calls of one turn are numbered as the model asked for them, though those that write wait for one another."""
    found, _ = await steps(1)
    for number in range(40):
        kind, name, arguments = found[f"r/0/0/{number + 1}"]
        assert (kind, name, arguments) == ("tool", "read" if number % 3 else "write", {"name": str(number)})
    inside = [found[f"r/0/1/1/{number}"][1:] for number in range(4)]
    assert inside == [("read", {"name": "a"}), ("write", {"name": "b"}), ("read", {"name": "c"}), ("nope", {})]
    both = {number: found[f"r/0/1/2/{number}"] for number in range(6)}
    assert [both[number][1] for number in range(6)] == ["write", "read", "read", "Inner", "Inner", "read"]
    assert [both[number][2] for number in (3, 4)] == ["4", "5"]
