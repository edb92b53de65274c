"""Middleware of plugins: asked for once per tool and per agent when the app is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from thena_core import BuildError, Prompt, Thena, ToolDefinition, agent, hookimpl, loop, tool, workflow
from thena_core.testing import FakeProvider

asked: list[Any] = []
order: list[str] = []


@tool(effect="read")
async def look() -> str:
    """Looks."""
    return "seen"


@tool(effect="destructive")
async def drop() -> str:
    """Drops."""
    return "dropped"


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    """Each test starts with nobody asked."""
    asked.clear()
    order.clear()


def around(name: str) -> Callable[..., Any]:
    """Make a middleware, for tools or chats, that says when it is entered."""

    async def entered(call: Any, call_next: Any) -> Any:
        order.append(name)
        return await call_next(call)

    return entered


class Both:
    """A plugin that stands around tools and model calls."""

    def __init__(self, name: str = "both") -> None:
        self.name = name

    @hookimpl
    def tool_middleware(self, tool: ToolDefinition) -> Any:
        """Stand around what destroys."""
        asked.append(tool)
        return around(f"{self.name} {tool.name}") if tool.effect == "destructive" else None

    @hookimpl
    def chat_middleware(self, agent: type) -> Any:
        """Stand around every model call."""
        asked.append(agent)
        return around(f"{self.name} {agent.__name__}")


def agent_with(name: str, *tools: Any) -> type:
    """Make an agent that calls its last tool once."""
    cls = type(name, (), {})
    turns = [ask(tools[-1].__thena_tool__.definition.name), "done"]
    return agent(provider=FakeProvider(turns), prompt=Prompt("You act."), tools=tools)(cls)


@pytest.mark.behaviour("P01")
async def test_asked_once_at_build() -> None:
    """Once per tool with its whole definition, once per agent with its class, and never again however much runs."""
    one, two = agent_with("One", look, drop), agent_with("Two", look)

    @workflow(steps=[loop([one, two])])
    class Flow: ...

    @workflow(steps=[loop([one])], state=dict)
    class Other: ...

    app = Thena(Flow, workflows=[Other], tools=[drop], plugins=[Both()])
    assert asked == []
    async with app:
        built = list(asked)
        tools = [item for item in built if isinstance(item, ToolDefinition)]
        assert sorted((item.name, item.effect) for item in tools) == [("drop", "destructive"), ("look", "read")]
        assert tools[0].json_schema["type"] == "object"
        assert [item for item in built if isinstance(item, type)] == [one, two]
        await app.run("go")
        await app.call("drop", agent=one)
    assert asked == built


@pytest.mark.behaviour("P01", "P05")
async def test_first_named_is_outermost() -> None:
    """Around tool and model call alike: the plugins as named, then the app's own; `None` adds nothing."""
    made = scripted([look, drop], ask("drop"), ask("look"), plugins=[Both("one"), Both("two")], around=[around("app")])
    made.app.use(chat=around("chat of the app"))
    ended = await made.run()
    assert ended.error is None
    chat = ["one NoHooks", "two NoHooks", "chat of the app"]
    assert order == [*chat, "one drop", "two drop", "app", *chat, "app", *chat]


@pytest.mark.behaviour("P01")
@pytest.mark.parametrize(
    "ask_for",
    [
        lambda self, tool: asked.append(tool.name),
        lambda self, extra=1, tool=None: asked.append(tool.name),
        lambda self, *, tool: asked.append(tool.name),
        lambda self, *given: asked.append(given[0].name),
        lambda self, **given: asked.append(given["tool"].name),
        lambda self: asked.append("drop"),
    ],
    ids=["plain", "second", "keyword", "stars", "keywords", "none"],
)
async def test_parameters(ask_for: Any) -> None:
    """The tool is given under its name, in whatever way the function takes it, or not at all."""
    plugin = type("Plugin", (), {"tool_middleware": hookimpl(specname="tool_middleware")(ask_for)})()
    async with Thena(tools=[drop], plugins=[plugin]):
        assert asked == ["drop"]


@pytest.mark.behaviour("P01")
async def test_explained_with_its_plugin() -> None:
    """`explain` names whose middleware it is."""
    async with Thena(tools=[drop], plugins=[Both()]) as app:
        layers = app.explain("drop", show=False).layers
    assert list(layers) == ["record", "validate", "middleware entered of Both", "budget", "error policy", "execute"]


def answering(hook: str, answer: Any) -> Any:
    """Make a plugin whose hook answers with this, or raises it."""

    def answered(self: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return type("Wrong", (), {hook: hookimpl(specname=hook)(answered)})()


@pytest.mark.behaviour("P04")
@pytest.mark.parametrize(
    ("hook", "what"),
    [("tool_middleware", 'the tool "look"'), ("chat_middleware", "the agent Looks")],
    ids=["tool", "chat"],
)
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (ValueError("bad"), "{hook} failed for {what}: ValueError: bad"),
        ("a text", "{hook} returned str for {what}, where a function or None was due"),
        (False, "{hook} returned bool for {what}, where a function or None was due"),
    ],
    ids=["raises", "text", "false"],
)
async def test_wrong_answers(hook: str, what: str, answer: Any, problem: str) -> None:
    """A plugin that cannot say whether it guards a tool fails the build by name: going on would be unguarded."""
    with pytest.raises(BuildError) as caught:
        await Thena(agent_with("Looks", look), plugins=[answering(hook, answer)], on_plugin_error="warn").run("go")
    text = problem.format(hook=hook, what=what)
    assert str(caught.value) == f'[thena] The plugin "Wrong" cannot be loaded: {text}'
