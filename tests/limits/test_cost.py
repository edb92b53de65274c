"""Tokens and cost: settled after a model call, checked before the next one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from tests.limits.scenes import actor, starts
from thena_core import Budget, BudgetExceededError, Prompt, Thena, ThenaError, ToolDefinition, agent, tool
from thena_core.messages import ChatTurn, Usage
from thena_core.providers import ChatRequest, Provider
from thena_core.testing import FakeProvider


@tool
async def look() -> str:
    """Looks."""
    return "seen"


class Priced(FakeProvider):
    """A model that says what it costs."""

    price = "a cent a call"


def turns(cost: float | None = 0.01) -> list[ChatTurn]:
    """Make turns of 100 tokens read, 40 of them from a cache, and 20 written."""
    usage = Usage(prompt_tokens=100, completion_tokens=20, cached_tokens=40, cost_usd=cost)
    return [ChatTurn(f"thought {n}", [ask("look")], usage=usage) for n in range(1, 9)]


def priced(*script: Any) -> tuple[type, Priced]:
    """Make an agent of a priced model."""
    provider = Priced(script)
    made = agent(provider=provider, tools=[look], prompt=Prompt("p"))(type("Paid", (), {"__module__": __name__}))
    return made, provider


@pytest.mark.behaviour("B01", "B02")
@pytest.mark.parametrize(("limit", "calls"), [(0, 0), (1, 1), (120, 1), (121, 2), (360, 3)])
@pytest.mark.parametrize("mode", ["stop", "throw"])
async def test_max_tokens(limit: int, calls: int, mode: Any) -> None:
    """No model call begins once the tokens are used up; the last one may go over, since nobody knows before."""
    said: list[BudgetExceededError] = []
    model = scripted([look], *turns())
    ended = await model.run(budget=Budget(max_tokens=limit, mode=mode, on_exceeded=said.append))
    assert len(model.provider.requests) == calls
    [error] = said
    assert (error.limit, error.allowed, error.used) == ("max_tokens", limit, calls * 120)
    run = ended.result if mode == "stop" else error.run
    assert run is not None
    assert (ended.error is error) is (mode == "throw")
    assert (run.usage.prompt_tokens, run.usage.completion_tokens, run.usage.cached_tokens) == (
        calls * 100,
        calls * 20,
        calls * 40,
    )
    assert run.output == (f"thought {calls}" if calls else None)


@pytest.mark.behaviour("B01", "B02")
@pytest.mark.parametrize(("limit", "calls"), [(0, 0), (0.005, 1), (0.015, 2)])
async def test_max_cost(limit: float, calls: int) -> None:
    """No model call begins once the money is spent."""
    made, provider = priced(*turns())
    async with Thena(made) as app:
        result = await app.run("go", budget=Budget(max_cost_usd=limit))
    assert len(provider.requests) == calls
    assert result.stopped_by == "budget"
    assert result.usage.cost_usd == (pytest.approx(calls * 0.01) if calls else None)


@pytest.mark.behaviour("B03")
@pytest.mark.parametrize("kind", ["max_tokens", "max_cost_usd"])
async def test_a_nested_run_spends_its_parents(kind: str) -> None:
    """What a nested run uses is gone for the one around it, and the other way round."""
    inner, inner_provider = priced(*turns())
    provider = Priced([ChatTurn("", [ask("nested")], usage=Usage(100, 20, 0, 0.01)), "done"])
    outer = agent(provider=provider, tools=[starts(inner)], prompt=Prompt("p"))(
        type("Outer", (), {"__module__": __name__})
    )
    async with Thena(outer, workflows=[inner]) as app:
        result = await app.run("go", budget=Budget(**{kind: 360 if kind == "max_tokens" else 0.03}))
    assert result.stopped_by == "budget"
    assert (len(provider.requests), len(inner_provider.requests)) == (1, 2)
    assert result.usage.prompt_tokens == 300


def unpriced() -> Provider:
    return FakeProvider(["x"])


@pytest.mark.behaviour("B01")
@pytest.mark.parametrize(
    "provider", [FakeProvider(["x"]), FakeProvider, unpriced], ids=["instance", "class", "factory"]
)
async def test_a_cost_limit_without_a_price_is_refused(provider: Any) -> None:
    """Where no model of the app says what it costs, a cost limit cannot be kept, and the run does not start."""
    made = agent(provider=provider, prompt=Prompt("p"))(type("Free", (), {"__module__": __name__}))
    async with Thena(made) as app:
        with pytest.raises(ThenaError, match=r"max_cost_usd.* cannot be kept: FakeProvider.* knows no price"):
            await app.run("go", budget=Budget(max_cost_usd=1.5))
        assert (await app.run("go")).stopped_by == "answered"
    if isinstance(provider, FakeProvider):
        assert len(provider.requests) == 1


@pytest.mark.behaviour("B01")
async def test_a_nested_cost_limit_without_a_price_is_refused() -> None:
    """A tool cannot give a nested run a cost limit that nobody keeps."""
    inner = actor([])
    ended = await scripted([starts(inner, budget=Budget(max_cost_usd=1))], ask("nested")).run()
    assert not inner.provider.requests
    text = ended.observation if ended.error is None else str(ended.error)
    assert "knows no price" in text


@pytest.mark.behaviour("B01")
async def test_a_failed_model_call_counts() -> None:
    """A model call that raises was made: it counts."""

    class Fails(Provider):
        async def chat(self, request: ChatRequest) -> ChatTurn:
            raise ConnectionError("gone")

    class Hooks:
        def on_error(self) -> str:
            return "sorry"

    made = agent(provider=Fails(), tools=[ToolDefinition("look", "d", None, look)], prompt=Prompt("p"))(Hooks)
    async with Thena(made) as app:
        assert (await app.run("go")).usage.chat_calls == 1
