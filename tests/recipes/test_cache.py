"""The recipe for a cache: one answer for equal calls of those who may share it, and for nobody else."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from tests.recipes.recipe import recipe
from thena_core import Budget, MiddlewareError, Prompt, Thena, ToolOutput, ToolRequest, agent, tool
from thena_core.testing import FakeProvider

cache = recipe("cache")


class Counted:
    """Tools that count how often they ran, behind a cache."""

    def __init__(self, **settings: Any) -> None:
        self.ran: list[Any] = []
        self.now = 0.0
        self.cache = cache.Cache(lambda call: call.ctx.data, clock=lambda: self.now, **settings)
        self.app = Thena(tools=[*self.tools()])
        self.app.use(tool=self.cache.remember)

    def tools(self) -> list[Any]:
        @tool(effect="read")
        async def look_up(key: Any = None, other: Any = None) -> ToolOutput:
            """Looks up."""
            self.ran.append((key, other))
            return ToolOutput(f"answer {len(self.ran)}", is_error=key == "bad")

        @tool(effect="write")
        async def write(key: str) -> str:
            """Writes."""
            self.ran.append(key)
            return f"written {len(self.ran)}"

        @tool
        async def unknown(key: str) -> str:
            """Says nothing of itself."""
            self.ran.append(key)
            return f"done {len(self.ran)}"

        @tool(effect="read")
        async def secret(key: SecretStr) -> str:
            """Looks up by a secret."""
            self.ran.append(key.get_secret_value())
            return f"found {key.get_secret_value()}"

        return [look_up, write, unknown, secret]

    async def __call__(self, name: str, data: Any = "acme", **arguments: Any) -> str:
        return (await self.app.call(name, arguments, data=data)).content


async def test_equal_calls() -> None:
    """The second of two equal calls is answered from memory, whatever the order of its arguments."""
    ask = Counted()
    async with ask.app:
        assert await ask("look_up", key="a", other=1) == "answer 1"
        assert await ask("look_up", other=1, key="a") == "answer 1"
        assert await ask("look_up", key="b", other=1) == "answer 2"


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (1, "1"), (0, False), (0, None), ([1, 2], "[1, 2]"), ({"a": 1}, {"a": True}), ("a", "A")],
    ids=repr,
)
async def test_arguments_that_look_alike(one: Any, other: Any) -> None:
    """What Python holds for equal, or prints alike, is not the same call."""
    ask = Counted()
    async with ask.app:
        assert await ask("look_up", key=one) == "answer 1"
        assert await ask("look_up", key=other) == "answer 2"


async def test_secrets_that_print_as_stars() -> None:
    """Two secrets are two calls, though both print alike."""
    ask = Counted()
    async with ask.app:
        assert await ask("secret", key="one") == "found one"
        assert await ask("secret", key="two") == "found two"
        assert await ask("secret", key="two") == "found two"
    assert ask.ran == ["one", "two"]


async def test_tenants_are_kept_apart() -> None:
    """Nobody reads what another one's call brought; a scope that fails ends the run instead of sharing."""
    ask = Counted()
    async with ask.app:
        assert await ask("look_up", key="a") == "answer 1"
        assert await ask("look_up", data="other", key="a") == "answer 2"
    broken = cache.Cache(lambda call: call.ctx.data.tenant)
    app = Thena(tools=ask.tools())
    app.use(tool=broken.remember)
    async with app:
        assert (await app.call("look_up", {"key": "a"}, data=SimpleNamespace(tenant="acme"))).content == "answer 3"
        with pytest.raises(MiddlewareError):
            await app.call("look_up", {"key": "a"})


@pytest.mark.parametrize("name", ["write", "unknown"])
async def test_only_what_reads(name: str) -> None:
    """What writes, or says nothing of itself, runs each time."""
    ask = Counted()
    async with ask.app:
        assert await ask(name, key="a") != await ask(name, key="a")


async def test_failures_are_not_kept() -> None:
    """After a failure the next call tries again."""
    ask = Counted()
    async with ask.app:
        assert await ask("look_up", key="bad") == "answer 1"
        assert await ask("look_up", key="bad") == "answer 2"


async def test_time_and_number() -> None:
    """An answer is good for its time, and the one that was not used for longest makes room."""
    ask = Counted(seconds=10.0, most=2)
    async with ask.app:
        assert await ask("look_up", key="a") == "answer 1"
        ask.now = 9.9
        assert await ask("look_up", key="a") == "answer 1"
        ask.now = 10.0
        assert await ask("look_up", key="a") == "answer 2"
        assert await ask("look_up", key="b") == "answer 3"
        assert await ask("look_up", key="a") == "answer 2"
        assert await ask("look_up", key="c") == "answer 4"
        assert await ask("look_up", key="a") == "answer 2"
        assert await ask("look_up", key="b") == "answer 5"
        assert len(ask.cache._kept) == 2


async def test_two_tools_of_one_name() -> None:
    """Two agents may have a tool of one name each; neither gets the other's answer."""
    remember = cache.Cache(lambda _call: None).remember

    def app_of(answer: Callable[[], str]) -> Thena:
        @tool(effect="read")
        async def look_up() -> str:
            """Looks up."""
            return answer()

        app = Thena(tools=[look_up])
        app.use(tool=remember)
        return app

    async with app_of(lambda: "one") as first, app_of(lambda: "two") as second:
        assert (await first.call("look_up", {})).content == "one"
        assert (await second.call("look_up", {})).content == "two"
        assert (await first.call("look_up", {})).content == "one"


@pytest.mark.behaviour("B05")
async def test_what_it_answers_costs_nothing() -> None:
    """Three equal calls of a run count as one in its budget."""
    ask = Counted()

    @agent(
        provider=FakeProvider([ToolRequest(f"c{n}", "look_up", {"key": "a"}) for n in range(3)] + ["done"]),
        tools=ask.tools(),
        prompt=Prompt("Look."),
    )
    class Looker: ...

    app = Thena(Looker)
    app.use(tool=ask.cache.remember)
    async with app:
        result = await app.run("go", budget=Budget(max_tool_calls=1))
    assert (result.output, result.usage.tool_calls, len(ask.ran)) == ("done", 1, 1)
