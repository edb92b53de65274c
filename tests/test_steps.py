"""The blocks of a workflow: loops and their endings, steps beside each other, one state, turns that an agent takes itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from dependency_injector import containers
from dependency_injector.wiring import Provide

from tests.hooks.scripted import ask, assert_legal
from thena_core import (
    Budget,
    BuildError,
    Context,
    Event,
    FatalToolError,
    Prompt,
    RunScoped,
    State,
    Thena,
    ToolDefinition,
    agent,
    current_context,
    loop,
    parallel,
    tool,
    until_answered,
    workflow,
)
from thena_core.providers import ChatRequest, ChatTurn, Provider
from thena_core.testing import FakeProvider


@tool
async def echo(text: str = "x") -> str:
    """Echoes."""
    return text


@tool
async def fails() -> str:
    """Fails."""
    raise ValueError("no")


GOOD, BAD = ask("echo"), ask("fails")


def says(name: str, *turns: Any, tools: Sequence[Any] = (echo, fails), hooks: type = object, **options: Any) -> Any:
    """Make an agent that plays turns; its `.provider` keeps what was asked."""
    provider = FakeProvider(turns)
    made = type(name, (hooks,), {"__module__": __name__, "provider": provider})
    return agent(provider=provider, tools=tools, prompt=Prompt(name), **options)(made)


def flow(*steps: Any, state: type | None = None) -> type:
    """Make a workflow."""
    return workflow(steps=list(steps), state=state)(type("Flow", (), {"__module__": __name__}))


async def run(target: Any, **options: Any) -> Any:
    """Run once, and return the result."""
    async with asyncio.timeout(10), Thena(target) as app:
        return await app.run("go", **options)


@pytest.mark.behaviour("W03")
async def test_a_step_is_one_model_call_and_its_tools() -> None:
    """An agent that stands alone is asked once, and what it asks for is run; the next step comes after that."""
    first, second = says("First", GOOD, "never"), says("Second", "done")
    result = await run(flow(first, second))
    assert (len(first.provider.requests), len(second.provider.requests)) == (1, 1)
    assert [message.content for message in result.history] == ["go", "", "x", "done"]
    assert result.output == "done"


@pytest.mark.behaviour("W03")
@pytest.mark.parametrize(
    "until",
    [
        lambda ctx: ctx.turn.response == "b",
        lambda ctx, state: state is None and ctx.turn.response == "b",
        lambda ctx, state=1: state is None and ctx.turn.response == "b",
        lambda ctx, wanted="b": ctx.turn.response == wanted,
    ],
    ids=["ctx", "ctx and state", "a state with a default", "a default of its own"],
)
async def test_until(until: Callable[..., bool]) -> None:
    """A loop ends when its `until(ctx)` or `until(ctx, state)` says so."""
    model = says("A", "a", "b", "c")
    result = await run(flow(loop([model], until=until)))
    assert (result.output, result.stopped_by, len(model.provider.requests)) == ("b", "until", 2)


@pytest.mark.behaviour("W03")
async def test_an_until_may_be_awaited() -> None:
    """An async `until` is awaited."""

    async def until(ctx: Context[Any]) -> bool:
        await asyncio.sleep(0)
        return ctx.loop is not None and ctx.loop.iteration == 3

    assert (await run(flow(loop([says("A", "a")], until=until)))).stopped_by == "until"


@pytest.mark.behaviour("W04", "W05")
@pytest.mark.parametrize(
    ("turns", "stopped_by", "asked"),
    [
        ([BAD] * 9, "fails", 3),
        ([BAD, BAD, GOOD, BAD, BAD, GOOD, "done"], "answered", 7),
        ([GOOD, BAD, BAD, BAD, "done"], "fails", 4),
        ([BAD, "done"], "answered", 2),
    ],
    ids=["all fail", "a good one between", "three at the end", "one"],
)
async def test_fails_in_a_row_end_a_loop(turns: list[Any], stopped_by: str, asked: int) -> None:
    """Only consecutive failed turns count for `max_fails`."""
    model = says("A", *turns)
    events: list[Event] = []
    async with Thena(flow(loop([model], max_fails=3)), log=events.append) as app:
        result = await app.run("go")
    assert (result.stopped_by, len(model.provider.requests)) == (stopped_by, asked)
    [node] = [event for event in events if event.kind == "loop" and event.phase == "end"]
    assert node.meta["stopped_by"] == ("until" if stopped_by == "answered" else stopped_by)


@pytest.mark.behaviour("W04")
@pytest.mark.parametrize(("failed", "stopped_by"), [(1, "answered"), (2, "fails")])
async def test_a_turn_fails_when_all_its_calls_do(failed: int, stopped_by: str) -> None:
    """Of several calls of a turn, one good one is enough."""
    calls = [ask(name, call_id=f"c{n}") for n, name in enumerate(["fails"] * failed + ["echo"] * (2 - failed))]
    model = says("A", calls, "done", tool_calls="all")
    assert (await run(flow(loop([model], max_fails=1)))).stopped_by == stopped_by


ENDINGS = [("on_fail", BAD, "fails"), ("on_exhausted", GOOD, "exhausted")]


@pytest.mark.parametrize(("name", "turn", "stopped_by"), ENDINGS, ids=[name for name, _, _ in ENDINGS])
async def test_an_ending_is_called_where_it_belongs(name: str, turn: Any, stopped_by: str) -> None:
    """A function gets the context once, and what it returns is the output; the other ending is not called."""
    called: list[str] = []

    def ending(which: str) -> Callable[..., Any]:
        async def said(ctx: Context[Any]) -> str:
            assert ctx.loop is not None
            called.append(f"{which} {ctx.loop.iteration}")
            return f"gave up: {which}"

        return said

    ends: dict[str, Any] = {which: ending(which) for which in ("on_fail", "on_exhausted")}
    result = await run(flow(loop([says("A", turn)], max_iterations=4, max_fails=2 if name == "on_fail" else 9, **ends)))
    assert called == [f"{name} {2 if name == 'on_fail' else 4}"]
    assert (result.output, result.stopped_by) == (f"gave up: {name}", stopped_by)


@pytest.mark.parametrize("as_list", [True, False])
async def test_an_ending_may_be_steps(as_list: bool) -> None:
    """An agent, or a list of steps, takes its turn on the same history, under the loop's node."""
    last = says("Summary", "in short: x")
    events: list[Event] = []
    ending: Any = [last] if as_list else last
    async with Thena(flow(loop([says("A", GOOD)], max_iterations=2, on_exhausted=ending)), log=events.append) as app:
        result = await app.run("go")
    assert (result.output, result.stopped_by) == ("in short: x", "exhausted")
    assert [message.content for message in last.provider.requests[0].messages] == ["go", "", "x", "", "x"]
    [node] = [event for event in events if event.kind == "loop" and event.phase == "end"]
    [summary] = [event for event in events if event.name == "Summary" and event.phase == "end"]
    assert summary.parent_id == node.id


async def test_an_ending_that_returns_nothing_leaves_the_output() -> None:
    """A function may only look, with the state beside the context."""
    seen: list[Any] = []

    def look(ctx: Context[Any], state: Any) -> None:
        seen.append((ctx.output, state))

    result = await run(flow(loop([says("A", "a")], until=lambda _: False, max_iterations=2, on_exhausted=look)))
    assert seen == [("a", None)]
    assert result.output == "a"


async def test_an_inner_loop_gives_the_outer_one_back() -> None:
    """After an inner loop `ctx.loop` is the outer one again."""
    seen: list[tuple[int, int]] = []

    def until(ctx: Context[Any]) -> bool:
        assert ctx.loop is not None
        seen.append((ctx.loop.iteration, ctx.loop.max_iterations))
        return False

    inner = loop([says("A", "a")], until=until, max_iterations=2)
    await run(flow(loop([inner], until=until, max_iterations=3)))
    assert seen == [(1, 2), (2, 2), (1, 3), (1, 2), (2, 2), (2, 3), (1, 2), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda a: loop([]), 'a loop in the workflow "Flow" has no steps. Write: steps=[MyAgent]'),
        (lambda a: parallel([]), 'parallel([…]) in the workflow "Flow" has no steps. Write: steps=[MyAgent]'),
        (
            lambda a: loop([a], max_iterations=0),
            'The max_iterations of a loop in the workflow "Flow" is 0: 1 is the least.',
        ),
        (lambda a: loop([a], max_fails=-1), 'The max_fails of a loop in the workflow "Flow" is -1: 1 is the least.'),
        (
            lambda a: loop([a], on_fail=lambda: 1),
            (
                'The `on_fail` of a loop in the workflow "Flow" takes 0 parameters: write `def on_fail(ctx)` or '
                "`def on_fail(ctx, state)`."
            ),
        ),
        (
            lambda a: loop([a], on_exhausted=[3]),
            'A step of the workflow "Flow" is 3: steps are classes decorated with @agent, loop([…]) and parallel([…]).',
        ),
    ],
    ids=["an empty loop", "an empty parallel", "no iterations", "no fails", "an ending without ctx", "an ending of 3"],
)
async def test_a_block_that_cannot_be_meant(make: Callable[[Any], Any], text: str) -> None:
    """What is wrong with a block is a build error."""
    with pytest.raises(BuildError) as caught:
        await run(flow(make(says("A", "a"))))
    assert [str(problem) for problem in caught.value.exceptions] == [f"[thena] {text}"]


class Waits(Provider):
    """A model that answers when it is told to."""

    def __init__(self, *turns: Any) -> None:
        self.script = FakeProvider(turns)
        self.go = asyncio.Event()

    async def chat(self, request: ChatRequest) -> ChatTurn:
        await self.go.wait()
        return await self.script.chat(request)


@pytest.mark.behaviour("W06")
async def test_steps_beside_each_other() -> None:
    """They overlap, each reads the history as it was at the start, and their turns are added in the order listed."""
    slow, fast = Waits(GOOD, "from A"), FakeProvider([GOOD, "from B"])

    class A: ...

    class Hooked:
        def after_response(self, text: str) -> None:
            if text == "from B":
                slow.go.set()  # the second has finished before the first begins to speak

    first = agent(provider=slow, tools=[echo], prompt=Prompt("A"))(A)
    second = agent(provider=fast, tools=[echo], prompt=Prompt("B"))(type("B", (Hooked,), {"__module__": __name__}))
    last = says("Last", "done")
    events: list[Event] = []
    async with Thena(flow(parallel([loop([first]), loop([second])]), last), log=events.append) as app:
        result = await app.run("go")
    assert [message.content for message in result.history] == ["go", "", "x", "from A", "", "x", "from B", "done"]
    assert_legal(result.history)
    for provider in (slow.script, fast):
        assert [message.content for message in provider.requests[0].messages] == ["go"]
        assert [message.content for message in provider.requests[1].messages] == ["go", "", "x"]
    assert result.usage.chat_calls == 5
    [node] = [event for event in events if event.kind == "parallel" and event.phase == "end"]
    assert sum(event.parent_id == node.id and event.phase == "end" for event in events) == 2
    assert result.stopped_by == "answered"


@dataclass
class Notes:
    """A state."""

    texts: list[str] = field(default_factory=list)


@pytest.mark.behaviour("W06", "D06")
async def test_steps_beside_each_other_are_one_run() -> None:
    """They share state, run id, services, clean-up, data and budget; each looks at its own turn."""
    opened: list[str] = []
    disposed: list[str] = []

    async def open_session() -> AsyncIterator[object]:
        opened.append("open")
        yield object()
        opened.append("closed")

    class Services(containers.DeclarativeContainer):
        session = RunScoped(open_session)

    async def note(
        text: str, notes: Annotated[Notes, State], ctx: Context[Any], held: Annotated[Any, Provide["session"]]
    ) -> str:
        notes.texts.append(f"{text} {ctx.run_id} {ctx.data} {ctx.turn.tool_names} {type(held).__name__}")
        ctx.on_dispose(lambda: disposed.append(text))
        assert current_context().turn.tool_names == ctx.turn.tool_names
        return str(id(held))

    noting = ToolDefinition("note", "d", None, note)
    a = says("A", ask("note", {"text": "a"}), tools=[noting])
    b = says("B", ask("note", {"text": "b"}), tools=[noting])
    async with Thena(flow(parallel([a, b]), state=Notes), container=Services()) as app:
        result = await app.run("go", run_id="r1", data="acme", budget=Budget(max_tool_calls=9))
        over = await app.run("go", budget=Budget(max_tool_calls=1))
    [first, second] = [message.content for message in result.history if message.role == "tool"]
    assert first == second
    assert opened == ["open", "closed"] * 2
    assert sorted(disposed) == ["a", "a", "b"]
    assert result.usage.tool_calls == 2
    assert over.usage.tool_calls == 1


@pytest.mark.behaviour("W06", "T08")
async def test_what_ends_the_run_in_one_step_ends_the_others() -> None:
    """The others are cancelled and awaited, the error leaves as itself, and the history stays legal."""
    cleaned = asyncio.Event()
    begun = asyncio.Event()

    async def waits() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()
        return "never"

    async def fatal() -> str:
        await begun.wait()
        raise FatalToolError("gone")

    a = says("A", ask("waits"), tools=[ToolDefinition("waits", "d", None, waits)])
    b = says("B", ask("fatal"), tools=[ToolDefinition("fatal", "d", None, fatal)])
    with pytest.raises(FatalToolError) as caught:
        await run(flow(parallel([a, b])))
    assert cleaned.is_set()
    history = caught.value.run.history
    assert_legal(history)
    assert [request.name for message in history for request in message.tool_requests] == ["waits", "fatal"]
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.behaviour("W06")
@pytest.mark.parametrize("turns", [("a", "b"), (GOOD, "b"), (GOOD, GOOD), (BAD, BAD), (BAD, GOOD)], ids=str)
async def test_together_they_are_one_turn(turns: tuple[Any, Any]) -> None:
    """A loop around them goes on while one of them asks for a tool; the turn failed when all their calls did."""
    seen: list[Any] = []

    def until(ctx: Context[Any]) -> bool:
        seen.append((ctx.turn.tool_names, ctx.turn.tool_error, ctx.turn.response))
        return until_answered(ctx)

    a, b = says("A", turns[0], "a2"), says("B", turns[1], "b2")
    result = await run(flow(loop([parallel([a, b])], until=until)))
    names = [turn.name for turn in turns if not isinstance(turn, str)]
    assert seen[0] == (names, names == ["fails", "fails"], "b" if turns[1] == "b" else "a" if turns[0] == "a" else "")
    assert len(seen) == (1 if turns == ("a", "b") else 2)
    assert result.output == ("b" if turns == ("a", "b") else "b2")


@pytest.mark.behaviour("W06", "B03")
async def test_a_budget_that_ends_in_one_step_ends_the_run() -> None:
    """Model calls are counted over all of them; none begins over the limit."""
    a, b = says("A", GOOD), says("B", GOOD)
    result = await run(flow(parallel([loop([a]), loop([b])])), budget=Budget(max_chat_calls=5))
    assert result.stopped_by == "budget"
    assert len(a.provider.requests) + len(b.provider.requests) == result.usage.chat_calls == 5


@pytest.mark.behaviour("W06")
async def test_one_that_was_cut_short_says_so() -> None:
    """The run says how the first loop that did not come to an answer ended."""
    result = await run(flow(parallel([loop([says("A", "a")]), loop([says("B", GOOD)], max_iterations=2)])))
    assert (result.stopped_by, result.output) == ("exhausted", "a")


@pytest.mark.behaviour("W02")
async def test_a_function_makes_one_provider_per_run() -> None:
    """An agent that stands beside itself, and once more after, has one provider in one run."""
    made: list[Provider] = []

    def provider() -> Provider:
        made.append(FakeProvider(["a"]))
        return made[-1]

    class A: ...

    agent(provider=provider, prompt=Prompt("p"))(A)
    async with Thena(flow(parallel([A, A]), A)) as app:
        for count in (1, 2):
            await app.run("go")
            assert len(made) == count


async def test_an_agent_takes_its_turn_itself() -> None:
    """An agent's own `run(message, ctx)` takes the turn over: no model is asked, what it returns is the answer."""

    class Own:
        async def run(self, message: str, ctx: Context[Any]) -> str:
            return f"{message} {len(ctx.history)}"

    own, after = says("Own", "never", hooks=Own), says("After", "done")
    result = await run(flow(parallel([own, own]), after))
    assert own.provider.requests == []
    assert [message.content for message in result.history] == ["go", "go 1", "go 1", "done"]
