"""Plugins that say when they are called, and what a build that refuses them says."""

from __future__ import annotations

from typing import Any

import pytest

from thena_core import BuildError, PluginLoadError, Thena, hookimpl, tool

ran: list[str] = []

GUARD = """
from tests.plugins.watched import ran
from thena_core import hookimpl
@hookimpl
def before_tool():
    ran.append(__name__)
"""


@tool
async def look() -> str:
    """Looks."""
    return "seen"


async def hooks_of(plugins: Any, **options: Any) -> list[str]:
    """Call a tool, and say whose `before_tool` ran."""
    ran.clear()
    async with Thena(tools=[look], plugins=plugins, **options) as app:
        await app.call("look")
    return list(ran)


async def refused(plugins: Any, **options: Any) -> list[str]:
    """Build an app that cannot be built, and return what is said of each problem."""
    with pytest.raises(BuildError) as caught:
        await hooks_of(plugins, **options)
    assert all(isinstance(problem, PluginLoadError) for problem in caught.value.exceptions)
    return [str(problem) for problem in caught.value.exceptions]


def plugin(name: str = "Audit", /, **members: Any) -> Any:
    """Make a plugin of a class with these members."""
    return type(name, (), members)()


def guarding(name: str) -> Any:
    """Make a plugin whose `before_tool` says that it ran."""

    @hookimpl
    def before_tool(self: Any) -> None:
        ran.append(name)

    return plugin(name, before_tool=before_tool)
