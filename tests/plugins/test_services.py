"""Services of plugins: added below the app's own, and for whoever asks."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from dependency_injector import containers, providers
from dependency_injector.wiring import Provide

from thena_core import BuildError, Inject, Thena, hookimpl, tool


class Clock:
    """A service."""

    def __init__(self, name: str) -> None:
        self.name = name


class Store:
    """Another service."""

    def __init__(self, name: str) -> None:
        self.name = name


@tool
async def when(clock: Annotated[Clock, Inject], store: Annotated[Store, Provide["store"]]) -> str:
    """Tells the time."""
    return f"{clock.name} {store.name}"


def container(**named: Any) -> Any:
    """Make a container of these providers."""
    made = containers.DynamicContainer()
    for name, provider in named.items():
        made.set_provider(name, provider)
    return made


def bringing(made: Any, name: str = "Brings") -> Any:
    """Make a plugin that brings a container, or raises."""

    def services(self: Any) -> Any:
        if isinstance(made, Exception):
            raise made
        return made

    return type(name, (), {"services": hookimpl(services)})()


def clock(name: str) -> Any:
    """Make a provider of a clock."""
    return providers.Singleton(Clock, name)


def store(name: str) -> Any:
    """Make a provider of a store."""
    return providers.Singleton(Store, name)


@pytest.mark.behaviour("P01")
async def test_the_apps_own_shadow_them() -> None:
    """What a plugin adds is there by type and by name; what the app has itself is what counts."""
    plugin = bringing(container(clock=clock("plugin"), store=store("plugin")))
    assert (await Thena(tools=[when], plugins=[plugin]).call("when")).content == "plugin plugin"
    own = container(clock=clock("app"))
    assert (await Thena(tools=[when], plugins=[plugin], container=own).call("when")).content == "app plugin"
    own = container(store=store("app"), other=clock("app"))
    assert (await Thena(tools=[when], plugins=[plugin], container=own).call("when")).content == "app app"


@pytest.mark.behaviour("P01", "P05")
async def test_first_named_counts() -> None:
    """Of two plugins that add the same, the first named counts; `trylast` goes below."""
    one = bringing(container(clock=clock("one")))
    two = bringing(container(clock=clock("two"), store=store("two")))
    assert (await Thena(tools=[when], plugins=[one, two]).call("when")).content == "one two"
    assert (await Thena(tools=[when], plugins=[two, one]).call("when")).content == "two two"

    class Last:
        @hookimpl(trylast=True)
        def services(self) -> Any:
            return container(clock=clock("last"))

    assert (await Thena(tools=[when], plugins=[Last(), two]).call("when")).content == "two two"


@pytest.mark.behaviour("P01")
async def test_a_container_class() -> None:
    """A container's class stands for an instance of it; `None` adds nothing."""

    class Services(containers.DeclarativeContainer):
        clock = providers.Singleton(Clock, "class")
        store = providers.Singleton(Store, "class")

    plugins = [bringing(None), bringing(Services)]
    assert (await Thena(tools=[when], plugins=plugins).call("when")).content == "class class"


@pytest.mark.behaviour("P01")
async def test_resources_live_with_the_app() -> None:
    """A plugin's resources are opened and closed with the app, around its start-up."""
    order: list[str] = []

    def opened() -> Any:
        order.append("open")
        yield "a store"
        order.append("close")

    class Plugin:
        @hookimpl
        def services(self) -> Any:
            return container(store=providers.Resource(opened))

        @hookimpl
        def startup(self) -> None:
            order.append("startup")

        @hookimpl
        def shutdown(self) -> None:
            order.append("shutdown")

    async with Thena(plugins=[Plugin()]):
        pass
    assert order == ["open", "startup", "shutdown", "close"]


@pytest.mark.behaviour("P04")
@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (ValueError("no settings"), "services failed: ValueError: no settings"),
        ({"clock": 1}, "services returned dict where a container or None was due"),
        (Clock, "services failed: TypeError: Clock.__init__() missing 1 required positional argument: 'name'"),
    ],
    ids=["raises", "dict", "class"],
)
async def test_wrong_services(made: Any, problem: str) -> None:
    """What cannot be had is a problem of the build, by name; with `warn`, nothing of the plugin is used."""
    ran: list[str] = []

    class Wrong(type(bringing(made))):  # type: ignore[misc]
        @hookimpl
        def before_tool(self) -> None:
            ran.append("before")

    with pytest.raises(BuildError) as caught:
        await Thena(tools=[when], plugins=[Wrong()]).call("when")
    assert f'[thena] The plugin "Wrong" cannot be loaded: {problem}' in {str(e) for e in caught.value.exceptions}
    own = container(clock=clock("app"), store=store("app"))
    with pytest.warns(UserWarning, match="Wrong"):
        async with Thena(tools=[when], plugins=[Wrong()], container=own, on_plugin_error="warn") as app:
            assert (await app.call("when")).content == "app app"
    assert ran == []
