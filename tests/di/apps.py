"""Small containers and tools for the tests of services, and what a build says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dependency_injector import containers

from thena_core import BuildError, Prompt, Thena, ToolRequest, agent, tool
from thena_core.testing import FakeProvider


class Log(list[str]):
    """What happened, in order."""


def container(**providers: Any) -> Any:
    """Make a container of these providers."""
    return containers.DeclarativeContainer.__class__("Services", (containers.DeclarativeContainer,), providers)()


def tool_of(execute: Callable[..., Any] | None = None, init: Any = None, *, name: str = "t") -> type:
    """Make a tool class with this `execute` and this constructor."""

    async def nothing(self: Any) -> str:
        return ""

    members: dict[str, Any] = {"__module__": "shop", "execute": execute or nothing}
    if init is not None:
        members["__init__"] = init
    return tool(name=name, description="d")(type("Order", (), members))


def asking(*calls: str | list[str], tools: list[Any], last: str = "done", **members: Any) -> type:
    """Make an agent whose model asks for these tools, turn by turn; a list is one turn of several calls."""
    turns: list[Any] = [
        [
            ToolRequest(f"c{number}.{index}", name, "{}")
            for index, name in enumerate([turn] if isinstance(turn, str) else turn)
        ]
        for number, turn in enumerate(calls)
    ]
    made = agent(provider=FakeProvider([*turns, last]), tools=tools, prompt=Prompt("p"), tool_calls="all")
    return made(type("Clerk", (), {"__module__": "shop", **members}))


async def refused(*tools: Any, services: Any = None, **options: Any) -> list[Exception]:
    """Build an app that cannot be built, and return its problems."""
    with pytest.raises(BuildError) as caught:
        async with Thena(tools=list(tools), container=services, **options):
            pass
    return list(caught.value.exceptions)


async def said(*tools: Any, services: Any = None, **options: Any) -> list[str]:
    """Build an app that cannot be built, and return the texts of its problems."""
    return [str(problem) for problem in await refused(*tools, services=services, **options)]
