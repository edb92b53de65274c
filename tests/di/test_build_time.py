"""An app with a hundred tools and two hundred providers is built in a moment."""

from __future__ import annotations

import gc
import time
from typing import Annotated, Any

import pytest
from dependency_injector import containers, providers
from pydantic import BaseModel

from thena_core import Inject, RunScoped, Thena, tool

TOOLS = 100
PROVIDERS = 200
LIMIT = 0.1
"""Seconds of processor time; what a command line may spend before it answers."""


class Arguments(BaseModel):
    """What each tool takes."""

    path: str
    depth: int = 1


def large_app() -> Thena:
    """Make an app of tools whose constructors and `execute` take services, each standing on others."""
    services = containers.DynamicContainer()
    classes = [type(f"Service{number}", (), {"__init__": _init(number)}) for number in range(PROVIDERS)]
    for number, cls in enumerate(classes):
        needs = {} if number % 10 == 0 else {"inner": getattr(services, f"service{number - 1}")}
        kind: Any = RunScoped if number % 10 == 9 else providers.Singleton
        services.set_provider(f"service{number}", kind(cls, **needs))
    return Thena(tools=[_tool(number, classes) for number in range(TOOLS)], container=services)


def _init(number: int) -> Any:
    if number % 10 == 0:
        return lambda self: None

    def init(self: Any, inner: Any) -> None: ...

    return init


def _tool(number: int, classes: list[type]) -> type:
    def init(self: Any, service: Any) -> None: ...

    async def execute(self: Any, args: Arguments, service: Any) -> str:
        return ""

    init.__annotations__["service"] = classes[number * 2 // 10 * 10 + number % 9]
    execute.__annotations__["service"] = Annotated[classes[number * 2 // 10 * 10 + 9], Inject]
    members = {"__init__": init, "execute": execute}
    return tool(name=f"tool{number}", description="d", schema=Arguments)(type(f"Tool{number}", (), members))


@pytest.mark.behaviour("D03")
async def test_a_large_app_is_built_in_a_moment() -> None:
    """The best of five builds of 100 tools and 200 providers takes less than 100 ms of the processor."""
    times: list[float] = []
    for _ in range(5):
        app = large_app()
        gc.collect()
        started = time.process_time()
        async with app:
            times.append(time.process_time() - started)
            assert len(app._built.toolset.definitions) == TOOLS
    assert min(times) < LIMIT, [f"{seconds * 1000:.0f} ms" for seconds in times]
