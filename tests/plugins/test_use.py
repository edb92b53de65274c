"""`use`: before the app is built; afterwards it is refused, with the fix."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from tests.plugins.living import apps, living, look, order
from thena_core import HookError, Thena, ThenaError, hookimpl


@pytest.fixture(autouse=True)
def nothing_ordered() -> None:
    """Each test starts with nothing started."""
    order.clear()
    apps.clear()


LATE = (
    "[thena] use() comes before the app is built, and it is built already. "
    "Call it before `async with app` and before the first run."
)


async def middleware(call: Any, call_next: Any) -> Any:
    """Go on."""
    return await call_next(call)


@pytest.mark.behaviour("P07")
@pytest.mark.parametrize(
    "options",
    [{"plugin": living("Late")}, {"plugin": "late"}, {"tool": middleware}, {"chat": middleware}],
    ids=["plugin", "name", "tool", "chat"],
)
async def test_use_after_the_build(options: dict[str, Any]) -> None:
    """Refused with the fix once the app is entered, after its first run, in a run and when it is closed."""
    made = scripted([look], ask("look"))
    async with made.app:
        with pytest.raises(ThenaError) as caught:
            made.app.use(**options)
        assert str(caught.value) == LATE
    with pytest.raises(ThenaError) as caught:
        made.app.use(**options)
    assert str(caught.value) == LATE
    app = Thena(tools=[look])
    await app.call("look")
    with pytest.raises(ThenaError) as caught:
        app.use(**options)
    assert str(caught.value) == LATE


@pytest.mark.behaviour("P07")
async def test_use_before_the_build() -> None:
    """What `use` adds comes after what the constructor was given."""
    app = Thena(plugins=[living("A")])
    app.use(living("B"))
    async with app:
        pass
    assert order == ["A up", "B up", "B down", "A down"]


@pytest.mark.behaviour("P07")
async def test_use_in_a_startup() -> None:
    """In a start-up hook everything is composed already: `use` is refused there, too, and not silently dropped."""

    class Adds:
        @hookimpl
        def startup(self, app: Any) -> None:
            app.use(tool=middleware)

    with pytest.raises(ThenaError) as caught:
        await Thena(tools=[look], plugins=[living("A"), Adds()]).call("look")
    assert LATE in str(caught.value)
    assert order == ["A up", "A down"]


@pytest.mark.behaviour("P07")
async def test_use_again_after_a_build_that_failed() -> None:
    """An app that could not be built may still be added to."""
    failures = [ConnectionError("not yet")]

    class Connects:
        @hookimpl
        def startup(self) -> None:
            if failures:
                raise failures.pop()

    app = Thena(plugins=[Connects()])
    with pytest.raises(HookError):
        await app.call("look")
    app.use(living("B"))
    async with app:
        assert order == ["B up"]


@pytest.mark.behaviour("P01")
async def test_running_in_a_startup() -> None:
    """A start-up hook that runs the app is told that there is none yet, and does not wait for itself for ever."""

    class Runs:
        @hookimpl
        async def startup(self, app: Any) -> None:
            await app.call("look")

    with pytest.raises(ThenaError, match="startup"):
        async with asyncio.timeout(5):
            await Thena(tools=[look], plugins=[Runs()]).call("look")
    assert order == []
