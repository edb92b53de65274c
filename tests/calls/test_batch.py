"""Several calls of a turn, native, packed, or from a tool: order, isolation, and what ends them all."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hooks.scripted import NoHooks, ask, assert_legal, packed, scripted
from thena_core import (
    BuildError,
    FatalToolError,
    SignatureError,
    Toolbox,
    ToolDefinition,
    ToolResult,
    tool,
)
from thena_tools import ParallelTool


@tool
async def echo(text: str) -> str:
    """Repeats."""
    return text


def gated(names: str, finished: list[str]) -> list[Any]:
    """Make tools that end in the reverse order of their names, and say so."""
    gates = {name: asyncio.Event() for name in names}

    def made(name: str, before: str | None) -> Any:
        async def run() -> str:
            if before is not None:
                await gates[before].wait()
            finished.append(name)
            gates[name].set()
            return name.upper()

        return ToolDefinition(name, "d", None, run)

    return [made(name, names[index + 1] if index + 1 < len(names) else None) for index, name in enumerate(names)]


@pytest.mark.behaviour("F12", "W08")
async def test_results_stand_in_the_order_asked() -> None:
    """Calls that end in the reverse order are answered in the order asked; they ran beside each other."""
    finished: list[str] = []
    asked = [ask(name, None, f"id-{name}") for name in "abc"]
    ended = await scripted(gated("abc", finished), asked, tool_calls="all").run()
    assert finished == ["c", "b", "a"]
    assert_legal(ended.history)
    assert ended.observations == ["A", "B", "C"]


async def test_sync_tools_run_beside_each_other_and_the_loop() -> None:
    """C01 (openai/openai-agents-python#2386): three sync tools meet at a barrier that the event loop itself joins."""
    barrier = threading.Barrier(4)
    joined: list[int] = []

    def meets() -> str:
        barrier.wait(5)
        return "ok"

    async def join_in() -> None:
        while barrier.n_waiting < 3:
            await asyncio.sleep(0)
        joined.append(barrier.wait(5))

    made = scripted(
        [ToolDefinition("meets", "d", None, meets)], [ask("meets", None, f"c{n}") for n in range(3)], tool_calls="all"
    )
    ended, _ = await asyncio.wait_for(asyncio.gather(made.run(), join_in()), 10)
    assert ended.observations == ["ok", "ok", "ok"]
    assert joined


@pytest.mark.behaviour("T10")
@pytest.mark.parametrize("effect", ["write", "destructive"])
async def test_tools_that_write_run_one_after_the_other(effect: Any) -> None:
    """C01: what changes something is called in the order asked, never two at once."""
    running: list[int] = []
    most: list[int] = []

    async def writes(number: int) -> str:
        running.append(number)
        most.append(len(running))
        await asyncio.sleep(0)
        running.remove(number)
        return str(number)

    definition = ToolDefinition("writes", "d", None, writes, effect=effect)
    ended = await scripted(
        [definition], [ask("writes", {"number": n}, f"c{n}") for n in range(4)], tool_calls="all"
    ).run()
    assert most == [1, 1, 1, 1]
    assert ended.observations == ["0", "1", "2", "3"]


@pytest.mark.behaviour("F08")
async def test_what_ends_a_run_and_is_a_group_leaves_a_batch_as_itself() -> None:
    """A `BuildError` holds problems; among several calls it reaches the caller whole, not as its first problem."""
    error = BuildError([SignatureError("Tool.execute", "x", "no such thing")])

    async def builds() -> str:
        raise error

    made = scripted(
        [echo, ToolDefinition("builds", "d", None, builds)],
        [ask("builds"), ask("echo", {"text": "a"}, "c2")],
        tool_calls="all",
    )
    ended = await made.run()
    assert ended.error is error


@pytest.mark.behaviour("F08", "F12")
async def test_a_fatal_call_ends_its_siblings_and_keeps_what_had_finished() -> None:
    """What had finished stays in the history, what had not is answered as interrupted, and nothing is left running."""
    started, ends = asyncio.Event(), []

    async def waits() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled and awaited")
        return "late"

    async def fatal() -> str:
        await started.wait()
        raise FatalToolError("disk gone")

    tools = [echo, ToolDefinition("waits", "d", None, waits), ToolDefinition("fatal", "d", None, fatal)]
    asked = [ask("waits"), ask("echo", {"text": "a"}, "c2"), ask("fatal", None, "c3")]
    ended = await scripted(tools, asked, tool_calls="all").run()
    assert isinstance(ended.error, FatalToolError)
    assert ends == ["cancelled and awaited"]
    assert_legal(ended.history)
    assert ended.observations[1] == "a"
    assert all(text.startswith("interrupted: ") for text in (ended.observations[0], ended.observations[2]))
    assert "may or may not have taken effect" in ended.observations[0]
    assert [ended.node(name).outcome for name in ("waits", "echo", "fatal")] == ["cancelled", "ok", "fatal"]


@pytest.mark.behaviour("F05", "H07")
async def test_a_time_limit_per_call_is_an_outcome_like_any_other() -> None:
    """`toolbox.batch(timeout=…)`: the node says `timeout` as the result does, and `after_tool` sees it once."""
    seen: list[ToolResult] = []
    results: list[ToolResult] = []

    class Auditing(NoHooks):
        def after_tool(self, result: ToolResult) -> None:
            seen.append(result)

    async def never() -> str:
        await asyncio.Event().wait()
        return "late"

    @tool
    async def outer(toolbox: Toolbox) -> str:
        """Calls two with a limit."""
        results.extend(await toolbox.batch([("never", {}), ("echo", {"text": "a"})], timeout=0.01))
        return "done"

    tools = [ToolDefinition("never", "d", None, never), echo, outer]
    ended = await scripted(tools, ask("outer"), hooks=Auditing).run()
    assert [(result.call.name, result.outcome) for result in results] == [("never", "timeout"), ("echo", "ok")]
    assert ended.node("never").outcome == "timeout"
    assert sorted((result.call.name, result.outcome) for result in seen) == [
        ("echo", "ok"),
        ("never", "timeout"),
        ("outer", "ok"),
    ]


@pytest.mark.behaviour("F05", "F12", "H07")
@settings(max_examples=40, deadline=None)
@given(
    calls=st.lists(st.sampled_from(["echo", "bad", "raises", "nope", "writes"]), min_size=1, max_size=8),
    way=st.sampled_from(["all", "batch", "parallel"]),
    concurrency=st.none() | st.integers(1, 4),
)
async def test_any_batch_has_one_result_per_call_in_order(calls: list[str], way: str, concurrency: int | None) -> None:
    """Native, from a tool or packed: each call has one node, one `after_tool`, and its result in its place."""
    seen: list[ToolResult] = []
    results: list[ToolResult] = []

    class Auditing(NoHooks):
        def after_tool(self, result: ToolResult) -> None:
            seen.append(result)

    async def raises(text: str) -> str:
        raise ValueError(text)

    async def writes(text: str) -> str:
        return text

    @tool
    async def outer(toolbox: Toolbox) -> str:
        """Calls the others."""
        results.extend(await toolbox.batch(wanted, concurrency=concurrency))
        return "\n".join(result.output.content for result in results)

    tools = [
        echo,
        ToolDefinition("raises", "d", None, raises),
        ToolDefinition("writes", "d", None, writes, effect="write"),
        outer,
        ParallelTool,
    ]
    wanted = [
        ("echo" if name == "bad" else name, {} if name == "bad" else {"text": f"t{n}"}) for n, name in enumerate(calls)
    ]
    asked: Any = [ask(name, arguments, f"c{n}") for n, (name, arguments) in enumerate(wanted)]
    if way == "batch":
        asked = ask("outer")
    if way == "parallel":
        asked = packed(*wanted, *wanted[:1])
        wanted = [*wanted, wanted[0]]
    ended = await scripted(tools, asked, hooks=Auditing, tool_calls="all").run()
    expected = {"echo": "{}", "writes": "{}", "raises": "ValueError: {}", "nope": 'unknown tool "nope"'}
    texts = [
        expected[name].format(arguments["text"]) if arguments else "invalid arguments" for name, arguments in wanted
    ]
    found = ended.observations if way == "all" else ended.observation.split("\n\n" if way == "parallel" else "\n")
    assert len(found) == len(texts)
    assert all(text in part for text, part in zip(texts, found, strict=True))
    assert_legal(ended.history)
    inner = [result for result in seen if result.call.name not in ("outer", "parallel")]
    nodes = [
        event
        for event in ended.events
        if event.kind == "tool" and event.phase == "end" and event.name not in ("outer", "parallel")
    ]
    assert len(inner) == len(nodes) == len(wanted)
    assert sorted(result.outcome for result in inner) == sorted(str(node.outcome) for node in nodes)


@pytest.mark.behaviour("L08", "O01")
@pytest.mark.parametrize("how", ["behind the cap", "behind a write", "of a turn"])
async def test_a_call_that_had_not_begun_has_its_node(how: str) -> None:
    """What the batch ended before its turn is in the record as cancelled, and nothing of it ran."""
    ran: list[int] = []

    async def fatal() -> str:
        raise FatalToolError("gone")

    async def later(number: int) -> str:
        ran.append(number)
        return str(number)

    async def outer(toolbox: Toolbox) -> str:
        calls = [("fatal", {}), ("later", {"number": 1}), ("later", {"number": 2})]
        await toolbox.batch(calls, concurrency=1 if how == "behind the cap" else None)
        return "never"

    effect: Any = None if how == "behind the cap" else "write"
    tools = [
        ToolDefinition("fatal", "d", None, fatal, effect=effect),
        ToolDefinition("later", "d", None, later, effect=effect),
        ToolDefinition("outer", "d", None, outer),
    ]
    turn = [ask("fatal"), ask("later", {"number": 1}, "c2"), ask("later", {"number": 2}, "c3")]
    ended = await scripted(tools, turn if how == "of a turn" else ask("outer"), tool_calls="all").run()
    assert isinstance(ended.error, FatalToolError)
    assert ran == []
    nodes = ended.nodes("later")
    assert [(node.outcome, node.error, node.input["number"]) for node in nodes] == [
        ("cancelled", "it had not begun", 1),
        ("cancelled", "it had not begun", 2),
    ]
    assert {node.parent_id for node in nodes} == {ended.node("fatal").parent_id}
