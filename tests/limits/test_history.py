"""Going on with a conversation: a history that can be stored, run ids that can be given, and keys that stay the same."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hooks.scripted import ask, assert_legal, scripted
from tests.limits.scenes import actor, starts
from thena_core import (
    Budget,
    BudgetExceededError,
    Context,
    History,
    Message,
    RunAborted,
    Toolbox,
    ToolDefinition,
    ToolRequest,
    WorkflowRuntime,
)
from thena_tools import ParallelTool

texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=5,
)
mappings = st.dictionaries(texts, values, max_size=3)
requests = st.builds(ToolRequest, id=texts, name=texts, arguments=texts | mappings)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=texts,
    tool_requests=st.just(()) | st.lists(requests, min_size=1, max_size=3),
    tool_call_id=st.none() | texts,
    is_error=st.booleans(),
    extra=st.none() | mappings,
)


@pytest.mark.behaviour("C06")
@given(st.lists(messages, max_size=6))
def test_there_and_back(said: list[Message]) -> None:
    """What is stored and read again is equal, whatever was said."""
    text = History(said).to_json()
    assert History.from_json(text) == said
    assert History.from_json(text.encode()) == said
    assert json.loads(text)["version"] == 1


@pytest.mark.behaviour("C06")
@pytest.mark.parametrize("version", [0, 2, "1", True, None, 1.5, [1]], ids=repr)
def test_another_version(version: Any) -> None:
    """A version that this Thena does not know is refused, with both versions."""
    with pytest.raises(ValueError, match=r"\[thena\] .*version"):
        History.from_json(json.dumps({"version": version, "messages": []}))


MESSAGES: dict[str, Any] = {
    "a text": "abc",
    "a mapping": {"a": 1},
    "nothing": None,
    "a number": [5],
    "a text in it": ["user"],
    "no role": [{}],
    "another role": [{"role": "banana", "content": ""}],
    "content that is no text": [{"role": "user", "content": 5}],
    "requests that are none": [{"role": "assistant", "content": "", "tool_requests": [5]}],
    "requests without a name": [{"role": "assistant", "content": "", "tool_requests": [{"id": "c1"}]}],
    "a request whose id is no text": [{"role": "assistant", "content": "", "tool_requests": [{"id": 1, "name": "t"}]}],
    "no requests": [{"role": "assistant", "content": "", "tool_requests": None}],
    "an unknown field": [{"role": "user", "content": "hi", "text": "hi"}],
}


@pytest.mark.behaviour("C06")
@pytest.mark.parametrize("case", MESSAGES)
def test_garbage_in_it(case: str) -> None:
    """A message that Thena never wrote is refused in words, before it reaches a model."""
    with pytest.raises(ValueError, match=r"\[thena\]"):
        History.from_json(json.dumps({"version": 1, "messages": MESSAGES[case]}))


@pytest.mark.behaviour("C06")
@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", "5", '"a"', "{", "[" * 100_000, b"\xff\xfe", '{"version": 1}'],
    ids=lambda text: repr(text[:12]),
)
async def test_garbage(text: str | bytes) -> None:
    """Anything else is refused in words, also where a run is given it."""
    with pytest.raises(ValueError, match=r"\[thena\]"):
        History.from_json(text)
    model = scripted([])
    async with model.app as app:
        with pytest.raises(ValueError, match=r"\[thena\]"):
            await app.run("go", history=text)  # type: ignore[arg-type]
    assert not model.provider.requests


@pytest.mark.behaviour("C06")
@pytest.mark.parametrize("stored", [False, True], ids=["as it is", "as text"])
async def test_a_conversation_goes_on(stored: bool) -> None:
    """The model reads all that was said before, then what is said now; the former history is left as it was."""

    async def echo(text: str) -> str:
        return text

    model = scripted([ToolDefinition("echo", "d", None, echo)], ask("echo", {"text": "hello"}))
    async with model.app as app:
        first = await app.run("one")
        kept = list(first.history)
        assert isinstance(first.history, History)
        second = await app.run("two", history=first.history.to_json() if stored else first.history)
    assert [message.content for message in second.history] == ["one", "", "hello", "done", "two", "done"]
    assert second.history[: len(kept)] == kept == list(first.history)
    assert model.provider.requests[-1].messages == second.history[:-1]


@pytest.mark.behaviour("C06", "F12")
@pytest.mark.parametrize("how", ["abort", "budget", "throw"])
async def test_after_a_run_that_was_stopped(how: str) -> None:
    """What a stopped run leaves can be stored and gone on from."""
    begun = asyncio.Event()

    async def slow() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "late"

    model = scripted(
        [ToolDefinition("slow", "d", None, slow)], [ask("slow"), ask("slow", None, "c2")], tool_calls="all"
    )
    budget = None if how == "abort" else Budget(max_duration=0.02, mode="throw" if how == "throw" else "stop")
    async with model.app as app:
        handle = app.start("one", budget=budget)
        await begun.wait()
        if how == "abort":
            handle.abort()
        try:
            result = await handle.result()
        except (RunAborted, BudgetExceededError) as error:
            result = error.run
        again = await app.run("two", history=result.history.to_json())
    assert again.output == "done"
    assert_legal(again.history)


@pytest.mark.behaviour("C06")
async def test_a_run_id_that_is_given() -> None:
    """A given id is the run's, its result's and its events'; nested runs derive theirs from it."""
    found: list[str] = []

    async def look(ctx: Context) -> str:
        found.append(ctx.run_id)
        return "seen"

    tool = ToolDefinition("look", "d", None, look)
    model = scripted(
        [tool, starts(actor([tool], ask("look"), "done", ask("look")))], ask("look"), ask("nested"), ask("nested")
    )
    ended = await model.run(run_id="order-17.retry_2")
    assert ended.result is not None
    assert ended.result.run_id == "order-17.retry_2"
    assert {event.run_id for event in model.events} == {"order-17.retry_2"}
    assert found == ["order-17.retry_2", "order-17.retry_2.1", "order-17.retry_2.2"]


HOSTILE = [
    "",
    ".",
    "..",
    "../up",
    "a/b",
    "a\\b",
    "/etc",
    "C:x",
    "a\x00b",
    "a\n",
    "a b",
    "é",
    "%2e%2e",
    ".hidden",
    "a" * 129,
    "<script>",
    "'; DROP",
    "${x}",
    "~",
    "*",
    "\u202eabc",
    "a.",
    "CON",
    "nul.txt",
    "com1",
]


@pytest.mark.behaviour("C06", "Q02")
@pytest.mark.parametrize("run_id", HOSTILE, ids=lambda run_id: ascii(run_id)[:20])
async def test_a_hostile_run_id(run_id: str) -> None:
    """An id that would not do as a folder's name is refused at once, by `start` as by `run`."""
    model = scripted([])
    async with model.app as app:
        with pytest.raises(ValueError, match=r"\[thena\] run_id="):
            app.start("go", run_id=run_id)
        with pytest.raises(ValueError, match=r"\[thena\] run_id=") as caught:
            await app.run("go", run_id=run_id)
    assert len(str(caught.value)) < 300 * 4
    assert not model.provider.requests


@pytest.mark.behaviour("C06")
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "unseen"])
@pytest.mark.parametrize("together", ["asked for", "packed"])
async def test_keys_of_nested_runs_beside_each_other(together: str, observed: bool) -> None:
    """Which of two nested runs begins first makes no difference to the keys of their calls."""

    async def run(first: int) -> set[str]:
        found: set[str] = set()
        begun = [asyncio.Event(), asyncio.Event()]

        async def look(call: Any, call_next: Any) -> Any:
            if call.name == "look":
                found.add(f"{call.arguments['who']} {call.key}")
            return await call_next(call)

        async def seen(who: int) -> str:
            return f"seen {who}"

        async def nested(who: int, runtime: WorkflowRuntime) -> str:
            if who != first:
                await begun[first].wait()
            for _ in range(2):
                await runtime.run(actor([tool], ask("look", {"who": who})), message="go")
                begun[who].set()
            return "ok"

        tool = ToolDefinition("look", "d", None, seen)
        calls = [{"name": "nested", "arguments": {"who": who}} for who in range(2)]
        asked = [ask("nested", {"who": who}, f"c{who}") for who in range(2)]
        turn = asked if together == "asked for" else ask("parallel", {"calls": calls})
        tools = [ToolDefinition("nested", "d", None, nested), ParallelTool]
        model = scripted(tools, turn, tool_calls="all", around=[look], observed=observed)
        await model.run(run_id="r")
        return found

    base = "r.1" if together == "asked for" else "r.1-0"
    assert await run(0) == await run(1) == {f"{who} {base}-{who}-{n}/1/0" for who in range(2) for n in (1, 2)}


@pytest.mark.behaviour("C06")
async def test_made_up_ids_differ() -> None:
    """Ids that nobody gave do not repeat."""
    async with scripted([], observed=False).app as app:
        results = await asyncio.gather(*(app.run("go") for _ in range(200)))
    assert len({result.run_id for result in results}) == 200


async def keys_of(run_id: str | None) -> list[str]:
    """Run calls of every kind and return their keys, in the order in which they began."""
    found: list[str] = []

    async def look() -> str:
        return "seen"

    async def outer(toolbox: Toolbox) -> str:
        await toolbox["look"]({})
        await toolbox["look"]({})
        return "ok"

    async def notes(call: Any, call_next: Any) -> Any:
        found.append(f"{call.name} {call.key}")
        return await call_next(call)

    tool = ToolDefinition("look", "d", None, look)
    tools = [tool, ToolDefinition("outer", "d", None, outer), starts(actor([tool], ask("look"))), ParallelTool]
    packed = {"calls": [{"name": "look"}, {"name": "look"}]}
    turns = [ask("look"), [ask("look"), ask("outer")], ask("parallel", packed), ask("nested")]
    await scripted(tools, *turns, tool_calls="all", around=[notes]).run(run_id=run_id)
    return found


@pytest.mark.behaviour("C06")
async def test_keys_are_derived_and_stable() -> None:
    """A call's key is its place in the run: the same when the run is repeated, and no other call's, though ids repeat."""
    first, second = await keys_of("r"), await keys_of("r")
    assert sorted(first) == sorted(second)
    places = {
        "look": ["r/1/0", "r/2/0", "r/2/1/0", "r/2/1/1", "r/3/0/0", "r/3/0/1", "r.1/1/0"],
        "outer": ["r/2/1"],
        "parallel": ["r/3/0"],
        "nested": ["r/4/0"],
    }
    assert sorted(first) == sorted(f"{name} {key}" for name, keys in places.items() for key in keys)
    keys = [entry.split(" ")[1] for entry in first]
    assert len(set(keys)) == len(keys)
    other = {entry.split(" ")[1] for entry in await keys_of("other")}
    assert not other & set(keys)
