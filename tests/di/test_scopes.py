"""`RunScoped`: a provider like any other of the container, whose objects live as long as a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Self

import pytest
from dependency_injector import containers, providers

from tests.di.apps import Log, container
from thena_core import Inject, RunScoped, Thena, tool


class Session:
    """A service of a run."""

    def __init__(self, root: str = "") -> None:
        self.root = root


def open_session(root: str) -> Iterator[Session]:
    yield Session(root)


@tool
async def root(session: Annotated[Session, Inject]) -> str:
    """Gives the session's root."""
    return session.root


@pytest.mark.behaviour("D02", "D04")
async def test_it_takes_configuration_and_overrides() -> None:
    """Its arguments come from the container's configuration, and it is overridden as every provider is."""

    class Services(containers.DeclarativeContainer):
        config = providers.Configuration()
        session = RunScoped(open_session, root=config.root)

    services = Services(config={"root": "/srv"})
    async with Thena(tools=[root], container=services) as app:
        assert (await app.call("root")).content == "/srv"
    with services.session.override(RunScoped(open_session, root="/fake")):
        async with Thena(tools=[root], container=services) as app:
            assert (await app.call("root")).content == "/fake"
    with services.session.override(Session("/value")):
        async with Thena(tools=[root], container=services) as app:
            assert (await app.call("root")).content == "/value"


@pytest.mark.behaviour("D04")
async def test_an_app_lived_service_may_hold_its_handle() -> None:
    """A singleton takes `session.provider`, and gets the object of the run in which it calls it."""
    log = Log()

    class Audit:
        def __init__(self, session: Any) -> None:
            self.session = session

    @tool
    async def audit(audit: Annotated[Audit, Inject], session: Annotated[Session, Inject]) -> str:
        """Writes down."""
        log.append(str(await audit.session() is session))
        return ""

    session = RunScoped(open_session, "r")
    services = container(session=session, audit=providers.Singleton(Audit, session.provider))
    async with Thena(tools=[audit], container=services) as app:
        await app.call("audit")
        await app.call("audit")
    assert log == ["True", "True"]


async def test_a_class_that_is_a_context_manager_is_left_as_it_is() -> None:
    """A class is called and nothing more; a function that returns a context manager has it entered."""
    log = Log()

    class Plain:
        def __enter__(self) -> Self:
            log.append("entered")
            return self

        def __exit__(self, *_: object) -> None:
            log.append("left")

    @tool
    async def take(plain: Annotated[Plain, Inject]) -> str:
        """Takes it."""
        return "taken"

    async with Thena(tools=[take], container=container(plain=RunScoped(Plain))) as app:
        await app.call("take")
    assert log == []
