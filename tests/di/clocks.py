"""Services of all kinds, and apps that ask for them: for tests of injection."""

from __future__ import annotations

from abc import ABC
from typing import Any, Generic, Protocol, TypeVar

from tests.di.apps import tool_of
from thena_core import (
    Thena,
)

T = TypeVar("T")


class Clock(ABC):  # noqa: B024 - a base, and nothing more
    """A service."""

    name = "clock"


class Utc(Clock):
    """One kind of it."""

    name = "utc"


class Local(Clock):
    """Another."""

    name = "local"


class Tells(Protocol):
    """What a clock does."""

    name: str


class Told(Tells):
    """It says that it does."""

    name = "told"


class Repo(Generic[T]):
    """A generic service."""


class Session:
    """A service of a run."""


class Progress:
    """A workflow's state."""

    def __init__(self) -> None:
        self.steps: list[str] = []


async def made(init: Any, services: Any = None, **options: Any) -> Any:
    """Build an app with one tool of this constructor, and return the instance."""
    kept: list[Any] = []

    async def execute(self: Any) -> str:
        kept.append(self)
        return ""

    async with Thena(tools=[tool_of(execute, init)], container=services, **options) as app:
        await app.call("t")
        await app.call("t")
    assert kept[0] is kept[1]
    return kept[0]


async def got(execute: Any, services: Any = None) -> str:
    """Build an app with one tool, and return what the tool answers."""
    async with Thena(tools=[tool_of(execute)], container=services) as app:
        return (await app.call("t")).content
