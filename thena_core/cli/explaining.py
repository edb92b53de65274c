"""The command `thena explain`: an app's tools by agent, or what the framework made of one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thena_core._render import listed, shortened
from thena_core.cli.problems import ANSWERED, UsageProblem
from thena_core.cli.running import owned
from thena_core.cli.show import printable, say, table
from thena_core.cli.target import Target, built_of, load_target, split_words

if TYPE_CHECKING:
    from thena_core.calls.toolset import Toolset
    from thena_core.cli.settings import Settings

USAGE = "thena explain TARGET [TOOL]"


def explain(words: Sequence[str], settings: Settings, agent: str | None = None) -> int:
    """Print an app's tools, or one tool's schema, parameters and layers with their origin.

    Args:
        words: `[TARGET] [TOOL]`.
        settings: The target, where the words have none.
        agent: Whose tool, where several agents have one of that name.

    Raises:
        UsageProblem: For words that cannot be used.
        BuildError: Where the app cannot be built.
    """
    text, rest = split_words(words, settings, USAGE)
    if len(rest) > 1:
        raise UsageProblem(f"too many words: {listed(rest[1:])}. Write: {USAGE}")
    target = load_target(text, settings)
    return asyncio.run(_one(target, rest[0], agent) if rest else _all(target))


async def _one(target: Target, tool: str, agent: str | None) -> int:
    async with await target.app() as app:
        owned(built_of(app), tool, agent)
        print(printable(str(app.explain(tool, agent=agent, show=False))))
    return ANSWERED


async def _all(target: Target) -> int:
    async with await target.app() as app:
        built = built_of(app)
        owners = {f"agent {name}": agent.toolset for name, agent in built.agents.items()}
        if built.toolset.definitions:
            owners = {"the app's own": built.toolset, **owners}
        for owner, toolset in owners.items():
            print(printable(f"{owner}:\n{table(_rows(toolset), '  ') or '  no tools'}"))
    say(f"one of them in full: thena explain {target.text} TOOL")
    return ANSWERED


def _rows(toolset: Toolset) -> list[tuple[str, str, str]]:
    return [
        (definition.name, definition.effect or "", shortened(" ".join(definition.description.split()), 80))
        for definition in toolset.definitions
    ]
