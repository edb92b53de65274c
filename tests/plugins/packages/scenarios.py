"""What an app does with the installed packages; run by the Python of their environment, one scenario a process."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from thena_core import BuildError, Thena, tool

BROKEN = ["b-import", "b-syntax", "b-exit", "b-argument", "b-misspelt", "b-attribute"]


@tool
async def own(zone: str = "Rome") -> str:
    """A tool of the app itself."""
    return zone


def imported() -> list[str]:
    """List what of the packages is imported."""
    packages = ("thena_good", "thena_broken", "thena_future")
    return sorted(name for name in sys.modules if name.startswith(packages))


async def problems(**options: Any) -> list[str]:
    """Build what cannot be built, and return every text."""
    try:
        async with Thena(**options):
            return []
    except BuildError as error:
        return [str(problem) for problem in error.exceptions]


async def only_installed() -> Any:
    """Name nothing."""
    async with Thena(tools=[own]) as app:
        return (await app.call("own")).content, imported()


async def used() -> Any:
    """Name everything of the good package."""
    async with Thena(tools=["good_clock", own], plugins=["good"]) as app:
        output = (await app.call("good_clock", {"zone": "Rome"})).content
        layers = [list(app.explain(name, show=False).layers) for name in ("good_clock", "own")]
    from thena_good import plugin  # type: ignore[import-not-found]

    return output, plugin.seen, layers


async def tools_listed() -> Any:
    """Misspell a tool, then name it."""
    texts = await problems(tools=["god_clock"])
    listed = imported()
    async with Thena(tools=[own]):
        pass
    unnamed = imported()
    await problems(tools=["good_clock"])
    return texts, listed, unnamed, imported()


async def broken() -> Any:
    """Name the broken ones, with a good one and one for another version between them."""
    return await problems(plugins=[*BROKEN[:3], "good", *BROKEN[3:], "future"]), imported()


async def warned() -> Any:
    """Do the same, and go on without them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with Thena(tools=["good_clock"], plugins=[*BROKEN, "future", "good"], on_plugin_error="warn") as app:
            output = (await app.call("good_clock", {"zone": "Rome"})).content
    return output, [str(warning.message) for warning in caught]


async def all_installed() -> Any:
    """Use whatever is installed but the broken ones; `own` carries the mark of the good one then."""
    async with Thena(tools=[own], plugins="installed", blocked=[*BROKEN, "future"]) as app:
        return (await app.call("own", {"zone": "Rome"})).content, imported()


async def broken_tool() -> Any:
    """Name a tool whose package exits when it is imported."""
    return await problems(tools=["broken_clock"])


def main(scenario: str, *_: Sequence[str]) -> None:
    """Print what a scenario gives, as JSON."""
    sys.stdout.write(json.dumps(asyncio.run(globals()[scenario]())))


if __name__ == "__main__":
    main(*sys.argv[1:])
