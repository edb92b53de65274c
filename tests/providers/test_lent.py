"""Providers that a function makes: one per run, closed when no run uses them."""

from __future__ import annotations

import asyncio

import pytest

from thena_core import Prompt, Thena, agent
from thena_core.errors import ThenaError
from thena_core.messages import ChatTurn
from thena_core.providers import ChatRequest, Provider


class Watched(Provider):
    """Counts how often it was asked and closed."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = 0

    async def chat(self, request: ChatRequest) -> ChatTurn:
        self.asked += 1
        if request.messages[-1].content == "fail":
            raise ThenaError("it failed")
        return ChatTurn("done")

    async def aclose(self) -> None:
        self.closed += 1


def app_of(source: object) -> Thena:
    @agent(provider=source, prompt=Prompt("p"))  # type: ignore[arg-type]  # one test gives what is none
    class Worker:
        pass

    return Thena(Worker)


@pytest.mark.behaviour("W02")
async def test_a_function_makes_one_per_run_and_each_is_closed() -> None:
    """Each run has its own, made inside it and closed with it, also where the run fails."""
    made: list[Watched] = []

    def make() -> Watched:
        made.append(Watched())
        return made[-1]

    async with app_of(make) as app:
        assert made == []
        await app.run("go")
        assert [provider.closed for provider in made] == [1]
        with pytest.raises(ThenaError, match="it failed"):
            await app.run("fail")
        await app.run("go")
        assert [(provider.asked, provider.closed) for provider in made] == [(1, 1)] * 3


@pytest.mark.behaviour("W02")
async def test_one_that_runs_share_is_closed_when_the_last_of_them_ends() -> None:
    """A function may give the same provider again: it stays open while another run uses it."""
    gate = asyncio.Event()

    class Slow(Watched):
        async def chat(self, request: ChatRequest) -> ChatTurn:
            if request.messages[-1].content == "wait":
                await gate.wait()
            return await super().chat(request)

    provider = Slow()
    async with app_of(lambda: provider) as app:
        waiting = asyncio.create_task(app.run("wait"))
        await app.run("go")
        await asyncio.sleep(0)
        await app.run("go")
        assert (provider.asked, provider.closed) == (2, 0 if not waiting.done() else 1)
        gate.set()
        await waiting
        assert (provider.asked, provider.closed) == (3, 1)


@pytest.mark.behaviour("W02")
@pytest.mark.parametrize("as_class", [True, False], ids=["class", "instance"])
async def test_a_class_or_an_instance_serves_the_app(as_class: bool) -> None:
    """It lives as long as the app and is closed once, with it."""
    made: list[Watched] = []

    class Counted(Watched):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    async with app_of(Counted if as_class else Counted()) as app:
        await asyncio.gather(app.run("go"), app.run("go"))
        assert [(provider.asked, provider.closed) for provider in made] == [(2, 0)]
    assert [provider.closed for provider in made] == [1]


async def test_a_function_that_returns_something_else_is_told() -> None:
    """What the function returned is named, with what it should be."""

    def nothing() -> None:
        return None

    async with app_of(nothing) as app:
        with pytest.raises(ThenaError, match=r"returned .*, not a Provider"):
            await app.run("go")
