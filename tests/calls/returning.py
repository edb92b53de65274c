"""Tools that return what they are given, and what the model reads of it: for tests of observations."""

from __future__ import annotations

from typing import Any

from thena_core import (
    Message,
    Prompt,
    Thena,
    ToolDefinition,
    ToolRequest,
    agent,
)
from thena_core.testing import FakeProvider


def returning(result: Any, **options: Any) -> ToolDefinition:
    """Make a tool that returns a value."""

    async def execute() -> Any:
        return result

    return ToolDefinition("t", "d", None, execute, **options)


async def read_by_the_model(made: ToolDefinition) -> Message:
    """Run an agent whose model calls the tool once, and return the result in its next request."""
    provider = FakeProvider([ToolRequest("c1", "t", "{}"), "done"])

    @agent(provider=provider, tools=[made], prompt=Prompt(""))
    class Caller: ...

    async with Thena(Caller) as app:
        await app.run("go")
    return provider.requests[1].messages[-1]
