"""The life of plugins: started in order, shut down in reverse whatever happens, and fixed once the app is built."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from dependency_injector import containers, providers

from tests.plugins.living import apps, living, look, order
from thena_core import BuildError, FatalToolError, HookError, Thena, hookimpl


@pytest.fixture(autouse=True)
def nothing_ordered() -> None:
    """Each test starts with nothing started."""
    order.clear()
    apps.clear()


@pytest.mark.behaviour("P01")
async def test_in_order_and_in_reverse() -> None:
    """Before the first run and after the last; each is given the app."""
    async with Thena(tools=[look], plugins=[living("A"), living("B"), living("C")]) as app:
        assert order == ["A up", "B up", "C up"]
        await app.call("look")
    assert order == ["A up", "B up", "C up", "look", "C down", "B down", "A down"]
    assert apps == [app] * 6


@pytest.mark.behaviour("P01", "P05")
async def test_first_and_last() -> None:
    """`tryfirst` starts first and closes last, as the outermost does; `trylast` is the innermost."""
    plugins = living("A"), living("L", trylast=True), living("B"), living("F", tryfirst=True)
    async with Thena(plugins=plugins):
        pass
    assert order == ["F up", "A up", "B up", "L up", "L down", "B down", "A down", "F down"]


@pytest.mark.behaviour("P01", "P05")
async def test_the_start_decides() -> None:
    """Where the marks of the two differ, closing is still the reverse of starting."""

    class Mixed:
        @hookimpl(tryfirst=True)
        def startup(self) -> None:
            order.append("mixed up")

        @hookimpl(trylast=True)
        def shutdown(self) -> None:
            order.append("mixed down")

    async with Thena(plugins=[living("A"), Mixed()]):
        pass
    assert order == ["mixed up", "A up", "A down", "mixed down"]


@pytest.mark.behaviour("P01")
async def test_either_alone() -> None:
    """A plugin may have one of the two, without parameters, sync or async; its place is the one that it was named in."""

    class OnlyUp:
        @hookimpl
        async def startup(self) -> None:
            order.append("only up")

    class OnlyDown:
        @hookimpl
        def shutdown(self) -> None:
            order.append("only down")

    async with Thena(plugins=[living("A"), OnlyDown(), OnlyUp(), living("B")]):
        pass
    assert order == ["A up", "only up", "B up", "B down", "only down", "A down"]


@pytest.mark.behaviour("P01")
async def test_a_later_startup_failed() -> None:
    """What was started before is shut down in reverse; what was not is left alone; the failure is named."""
    plugins = living("A"), living("B"), living("C", fails=ValueError("no network")), living("D")
    with pytest.raises(HookError) as caught:
        await Thena(tools=[look], plugins=plugins).call("look")
    assert str(caught.value) == "startup of C failed: ValueError: no network"
    assert isinstance(caught.value.__cause__, ValueError)
    assert order == ["A up", "B up", "C up", "B down", "A down"]


@pytest.mark.behaviour("P01")
async def test_a_failed_start_is_not_hidden() -> None:
    """Where shutting down fails, too, the start-up's failure is what is raised; the other one is in its notes."""
    plugins = living("A"), living("B", fails_to_close=OSError("stuck")), living("C", fails=ValueError("no network"))
    with pytest.raises(HookError, match="startup of C failed") as caught:
        await Thena(plugins=plugins).call("look")
    assert caught.value.__notes__ == ["[thena] shutdown of B failed, too: OSError: stuck"]
    assert order == ["A up", "B up", "C up", "B down", "A down"]


@pytest.mark.behaviour("P01")
async def test_a_fatal_start() -> None:
    """An error that ends runs leaves a start-up as itself, with a note that names the plugin."""
    with pytest.raises(FatalToolError) as caught:
        await Thena(plugins=[living("A"), living("B", fails=FatalToolError("licence expired"))]).call("look")
    assert str(caught.value) == "licence expired"
    assert caught.value.__notes__ == ["[thena] in startup of B"]
    assert order == ["A up", "B up", "A down"]


@pytest.mark.behaviour("P01")
async def test_a_cancelled_start() -> None:
    """Where building is cancelled in a start-up, what was started before is shut down, and resources are closed."""
    waiting = asyncio.Event()

    class Waits:
        @hookimpl
        async def startup(self) -> None:
            waiting.set()
            await asyncio.Event().wait()

    def opened() -> Any:
        order.append("open")
        yield 1
        order.append("close")

    container = containers.DynamicContainer()
    container.store = providers.Resource(opened)
    task = asyncio.create_task(Thena(plugins=[living("A"), Waits()], container=container).call("look"))
    async with asyncio.timeout(5):
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert order == ["open", "A up", "A down", "close"]


@pytest.mark.behaviour("P01")
async def test_a_failed_build_may_be_tried_again() -> None:
    """A start-up that failed for a passing reason is tried again by the next run, all of it."""
    failures = [ConnectionError("not yet")]

    class Connects:
        @hookimpl
        def startup(self) -> None:
            if failures:
                raise failures.pop()

    app = Thena(tools=[look], plugins=[living("A"), Connects()])
    with pytest.raises(HookError, match="ConnectionError: not yet"):
        await app.call("look")
    async with app:
        await app.call("look")
    assert order == ["A up", "A down", "A up", "look", "A down"]


@pytest.mark.behaviour("P01")
async def test_all_are_shut_down() -> None:
    """Where one fails to shut down the others still are; all failures are named, the first one first."""
    bad = {"B": ValueError("b"), "C": OSError("c")}
    plugins = [living(name, fails_to_close=bad.get(name)) for name in "ABCD"]
    app = Thena(plugins=plugins)
    with pytest.raises(HookError) as caught:
        async with app:
            pass
    assert str(caught.value) == "shutdown of C failed: OSError: c; B failed, too: ValueError: b"
    assert order[4:] == ["D down", "C down", "B down", "A down"]
    await app.close()
    assert len(order) == 8


@pytest.mark.behaviour("P01")
async def test_a_cancelled_close() -> None:
    """Where closing is cancelled in one shutdown, the others are shut down and resources closed before it leaves."""
    waiting = asyncio.Event()

    class Waits:
        @hookimpl
        async def shutdown(self) -> None:
            waiting.set()
            await asyncio.Event().wait()

    def opened() -> Any:
        yield 1
        order.append("close")

    container = containers.DynamicContainer()
    container.store = providers.Resource(opened)
    app = Thena(plugins=[living("A"), living("B"), Waits()], container=container)
    await app.__aenter__()
    task = asyncio.create_task(app.close())
    async with asyncio.timeout(5):
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert order == ["A up", "B up", "B down", "A down", "close"]


@pytest.mark.behaviour("P01")
async def test_nothing_is_left_open_where_warnings_are_errors() -> None:
    """A resource that fails to close is a warning, given after everything is closed."""

    def opened(name: str) -> Any:
        yield 1
        order.append(name)
        raise OSError(name)

    container = containers.DynamicContainer()
    container.one = providers.Resource(opened, "one")
    container.two = providers.Resource(opened, "two")
    app = Thena(plugins=[living("A")], container=container)
    await app.__aenter__()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match='The resource "two" failed to shut down: OSError: two'):
            await app.close()
    assert order == ["A up", "A down", "two", "one"]


@pytest.mark.behaviour("P01")
async def test_no_start_of_what_cannot_be_built() -> None:
    """A start-up hook is called only when everything was inspected and composed."""
    with pytest.raises(BuildError):
        await Thena(tools=[object()], plugins=[living("A")]).call("look")
    assert order == []
