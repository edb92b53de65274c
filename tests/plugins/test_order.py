"""The order of plugins' hooks: first named outermost, `tryfirst` outside, `trylast` inside, each after the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hooks.scripted import ask, scripted
from thena_core import HookError, ToolOutput, hookimpl, tool

order: list[str] = []


@tool
async def add(amount: int = 1) -> str:
    """Adds."""
    order.append(f"add {amount}")
    return f"added {amount}"


@tool(name="add", description="Adds.")
def add_in_a_thread(amount: int = 1) -> str:
    """Adds."""
    order.append(f"add {amount}")
    return f"added {amount}"


@pytest.fixture(autouse=True)
def nothing_ordered() -> None:
    """Each test starts with an empty order."""
    order.clear()


def noting(name: str, *, is_async: bool = False, **options: bool) -> Any:
    """Make a plugin that says when its hooks are called."""

    class Sync:
        @hookimpl(**options)
        def before_tool(self) -> None:
            order.append(f"{name} before")

        @hookimpl(**options)
        def after_tool(self) -> None:
            order.append(f"{name} after")

    class Async:
        @hookimpl(**options)
        async def before_tool(self) -> None:
            await asyncio.sleep(0)
            order.append(f"{name} before")

        @hookimpl(**options)
        async def after_tool(self) -> None:
            await asyncio.sleep(0)
            order.append(f"{name} after")

    return Async() if is_async else Sync()


class Refuses:
    """A guard that raises."""

    @hookimpl
    def before_tool(self) -> None:
        """Say no."""
        raise PermissionError("no")


async def order_of(*plugins: Any, tools: Any = (add,)) -> list[str]:
    """Run one call, and return who was called in what order."""
    order.clear()
    ended = await scripted(tools, ask("add"), plugins=plugins).run()
    assert ended.error is None, ended.error
    return list(order)


@pytest.mark.behaviour("P05")
async def test_first_named_is_outermost() -> None:
    """D14 (pytest-dev/pluggy#441): in as named, `tryfirst` first and `trylast` last; out is the mirror image."""
    plugins = noting("A"), noting("B"), noting("L", trylast=True), noting("F", tryfirst=True)
    assert await order_of(*plugins) == [
        *["F before", "A before", "B before", "L before"],
        "add 1",
        *["L after", "B after", "A after", "F after"],
    ]


FLAGS = {"tryfirst": {"tryfirst": True}, "plain": {}, "trylast": {"trylast": True}}


@pytest.mark.behaviour("P05")
@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(list(FLAGS)), st.booleans()), max_size=6))
def test_any_order(given_plugins: list[tuple[str, bool]]) -> None:
    """Whatever is named, sync and async mixed: sorted by flag, then as named, and out exactly as it came in."""
    plugins = [
        noting(str(number), is_async=is_async, **FLAGS[flag]) for number, (flag, is_async) in enumerate(given_plugins)
    ]
    names = sorted(range(len(plugins)), key=lambda number: list(FLAGS).index(given_plugins[number][0]))
    seen = asyncio.run(order_of(*plugins))
    assert seen == [*(f"{n} before" for n in names), "add 1", *(f"{n} after" for n in reversed(names))]


@pytest.mark.behaviour("P05")
async def test_each_sees_what_the_previous_left() -> None:
    """Arguments on the way in, the observation on the way out."""

    def plugin(name: str, by: int) -> Any:
        class Plugin:
            @hookimpl
            def before_tool(self, call: Any) -> Any:
                return call.replace(arguments={"amount": call.arguments["amount"] * 10 + by})

            @hookimpl
            def after_tool(self, result: Any) -> Any:
                return f"{result.output.content} {name}"

        return Plugin()

    ended = await scripted([add], ask("add", {"amount": 7}), plugins=[plugin("one", 1), plugin("two", 2)]).run()
    assert order == ["add 712"]
    assert ended.observation == "added 712 two one"


@pytest.mark.behaviour("P05")
async def test_an_answer_is_the_last_word() -> None:
    """Where an outer plugin answers, the inner ones and the tool are not asked; every `after_tool` sees the answer."""

    class Answers:
        @hookimpl
        def before_tool(self) -> ToolOutput:
            return ToolOutput("from the cache")

    ended = await scripted([add], ask("add"), plugins=[noting("A"), Answers(), noting("B")]).run()
    assert order == ["A before", "B after", "A after"]
    assert ended.observation == "from the cache"


@pytest.mark.behaviour("P06")
async def test_a_guard_that_raises_ends_the_run() -> None:
    """D14 (pytest-dev/pluggy#419): the outer one ran, the inner ones and the tool did not; the plugin is named."""
    ended = await scripted([add], ask("add"), plugins=[noting("A"), Refuses(), noting("B")]).run()
    assert order == ["A before"]
    assert isinstance(ended.error, HookError)
    assert str(ended.error) == 'before_tool of Refuses failed for the tool "add": PermissionError: no'
    assert (ended.error.hook, ended.error.owner, ended.error.tool) == ("before_tool", "Refuses", "add")
    assert isinstance(ended.error.__cause__, PermissionError)


@pytest.mark.behaviour("P01", "P05")
@pytest.mark.parametrize("made", [add, add_in_a_thread], ids=["async-tool", "sync-tool"])
async def test_async_hooks_are_awaited(made: Any) -> None:
    """D15 (nextline-dev/apluggy#1): one after the other, before the tool starts, also where they wait."""
    plugins = noting("one", is_async=True), noting("two"), noting("three", is_async=True)
    assert await order_of(*plugins, tools=[made]) == [
        *["one before", "two before", "three before"],
        "add 1",
        *["three after", "two after", "one after"],
    ]


@pytest.mark.behaviour("P06")
@pytest.mark.parametrize("made", [add, add_in_a_thread], ids=["async-tool", "sync-tool"])
async def test_an_async_guard_vetoes(made: Any) -> None:
    """D15 (nextline-dev/apluggy#258): a coroutine that raises is a veto like any other; none is left unawaited."""

    class RefusesLater:
        @hookimpl
        async def before_tool(self) -> None:
            await asyncio.sleep(0)
            raise PermissionError("no")

    ended = await scripted([made], ask("add"), plugins=[RefusesLater(), noting("B", is_async=True)]).run()
    assert order == []
    assert isinstance(ended.error, HookError)
    assert str(ended.error) == 'before_tool of RefusesLater failed for the tool "add": PermissionError: no'


@pytest.mark.behaviour("P06")
async def test_an_after_tool_that_raises_ends_the_run() -> None:
    """`after_tool` decides what the model reads, so it is a guard, too: a mask that fails must not show the secret."""

    class Masks:
        @hookimpl
        def after_tool(self) -> None:
            raise LookupError("no pattern")

    ended = await scripted([add], ask("add"), plugins=[noting("A"), Masks()]).run()
    assert str(ended.error) == 'after_tool of Masks failed for the tool "add": LookupError: no pattern'
    assert order == ["A before", "add 1"]
