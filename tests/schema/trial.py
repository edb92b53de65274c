"""One tool, tried: its schema, what it answers, or why it cannot be built."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest

from thena_core import BuildError, Event, Thena, ToolOutput
from thena_core.call import invocation
from thena_core.context import Context
from thena_core.run import Run


async def schema_of(item: Any, name: str = "t") -> Mapping[str, Any]:
    """Return what the model sees of a tool's arguments."""
    async with Thena(tools=[item]) as app:
        return app.explain(name, show=False).definition.json_schema


async def answer(item: Any, arguments: Mapping[str, Any] | str | None = None, *, name: str = "t") -> ToolOutput:
    """Call a tool through every layer."""
    async with Thena(tools=[item]) as app:
        return await app.call(name, arguments)


async def answers(item: Any, calls: Sequence[Mapping[str, Any] | str | None], *, name: str = "t") -> list[str]:
    """Call a tool several times in one app, and return what a model would read."""
    async with Thena(tools=[item]) as app:
        return [(await app.call(name, arguments)).content for arguments in calls]


async def problems(*items: Any, **options: Any) -> list[str]:
    """Build an app that cannot be built, and return the text of each problem."""
    with pytest.raises(BuildError) as caught:
        async with Thena(tools=items, **options):
            pass
    return [str(problem) for problem in caught.value.exceptions]


async def sent(app: Thena, raw: Any, name: str = "t") -> ToolOutput:
    """Call a tool with anything at all in the place of the arguments, as a provider could hand it over."""
    app.explain(name, show=False)
    built = app._built
    assert built is not None
    run = Run("trial", history=[])
    run.context = Context(run)
    return await built.toolset.handler(run, name)(invocation(run, built.toolset, "call", name, raw))


async def node_of(item: Any, arguments: Mapping[str, Any] | str | None = None, name: str = "t") -> Event:
    """Call a tool and return the end of its node."""
    seen: list[Event] = []
    async with Thena(tools=[item], log=seen.append) as app:
        await app.call(name, arguments)
    return next(event for event in seen if event.phase == "end" and event.kind == "tool")


def module_from(source: str, name: str, *, future: bool) -> ModuleType:
    """Run a source text as a module, with or without annotations that stay strings."""
    module = ModuleType(name)
    sys.modules[name] = module
    head = "from __future__ import annotations\n" if future else ""
    exec(compile(head + source, f"{name}.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - our own text
    return module
