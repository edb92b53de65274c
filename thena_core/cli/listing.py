"""The commands `thena tools` and `thena plugins`: what is installed, and the final order of an app's layers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING

import pluggy

from thena_core._render import listed, qualified_name
from thena_core.cli.problems import ANSWERED, CommandFailed, one_line
from thena_core.cli.settings import settings
from thena_core.cli.show import printable, say, shown, table
from thena_core.cli.target import Target, built_of, load_target
from thena_core.errors import PluginLoadError
from thena_core.hooks import installed
from thena_core.hooks.checks import hooks, mistakes
from thena_core.hooks.specs import Specs

if TYPE_CHECKING:
    from thena_core.build import Built
    from thena_core.cli.settings import Settings
    from thena_core.hooks.manager import LoadedPlugin, Plugins

TOOLS, PLUGINS = "thena.tools", installed.GROUP
MIRRORED = ("after_tool", "shutdown")
"""Hooks that run on the way out: the last named first."""


def list_tools() -> int:
    """Print the installed tools: name, package and version, and where each stands; none is imported."""
    found = entries_of(TOOLS)
    rows = [(entry.name, package_of(entry), entry.value) for entry in found]
    if rows:
        print(printable(table(rows)))
        say(f'use them by name: tools=["{found[0].name}"]')
    else:
        say("no installed package brings tools. Some are in: pip install thena-tools")
    return ANSWERED


def list_plugins(target: str | None) -> int:
    """Print the installed plugins, with their hooks; with a target its plugins and the final order of its layers.

    Args:
        target: `module:object`, or `None` for what is installed.

    Raises:
        UsageProblem: For a target that there is not.
        BuildError: Where the app cannot be built.
    """
    if target is not None:
        return list_layers(target, settings())
    found = entries_of(PLUGINS)
    rows = [(entry.name, package_of(entry), entry.value, _hooks_text(entry.name)) for entry in found]
    if rows:
        print(shown(table(rows)))
        say(f'an app uses those that it names: plugins=["{found[0].name}"]; their order: thena plugins TARGET')
    else:
        say("no installed package brings plugins. Write one: thena new plugin NAME")
    if os.environ.get("THENA_PLUGINS") == "0":
        say("THENA_PLUGINS=0 switches off those that are named")
    return ANSWERED


def list_layers(target: str, given: Settings) -> int:
    """Print an app's plugins in use, and the order of its hooks and layers.

    Raises:
        UsageProblem: For a target that there is not.
        BuildError: Where the app cannot be built.
    """
    return asyncio.run(_list_layers(load_target(target, given)))


def entries_of(group: str) -> list[metadata.EntryPoint]:
    """Return the entry points of a group, by name; none is imported."""
    return sorted(metadata.entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def package_of(entry: metadata.EntryPoint) -> str:
    """Name the package that brings an entry point, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "(no package)"


def hooks_of(name: str) -> list[str]:
    """Import an installed plugin and name its hooks; nothing of it is called.

    Raises:
        PluginLoadError: Where it cannot be imported, with the reason.
        CommandFailed: Where it is no plugin, with the reason.
    """
    plugin, distribution = installed.load(name)
    manager = pluggy.PluginManager("thena")
    manager.add_hookspecs(Specs)
    wrong = ["it is a class, and its entry point must name an object"] if isinstance(plugin, type) else []
    wrong = wrong or mistakes(plugin, manager)
    if wrong:
        raise CommandFailed(f'the plugin "{name}" (from {distribution}) cannot be used: {"; ".join(wrong)}')
    manager.register(plugin, name)
    return _in_order([caller.name for caller in manager.get_hookcallers(plugin) or () if caller.has_spec()])


def _in_order(names: Collection[str]) -> list[str]:
    """Name hooks in the order of their specification."""
    return [hook for hook in hooks() if hook in names]


def _hooks_text(name: str) -> str:
    try:
        return ", ".join(hooks_of(name))
    except (PluginLoadError, CommandFailed) as problem:
        return one_line(problem)


async def _list_layers(target: Target) -> int:
    async with await target.app() as app:
        built = built_of(app)
        parts = [_plugins_part(target.text, built.plugins), _tools_part(built), _models_part(built)]
    print(printable("\n".join(part for part in parts if part)))
    return ANSWERED


def _plugins_part(text: str, plugins: Plugins | None) -> str:
    loaded = plugins.loaded if plugins is not None else ()
    if plugins is None or not loaded:
        return f"plugins of {text}: none"
    rows = [
        (f"{number}.", one.name, _origin(one), ", ".join(_in_order(one.hooks))) for number, one in enumerate(loaded, 1)
    ]
    ordered: list[tuple[str, str]] = []
    for hook in hooks():
        names = [name for name, _ in plugins.implementations(hook)]
        if names:
            ordered.append((hook, ", ".join(reversed(names) if hook in MIRRORED else names)))
    return "\n".join(
        [
            f"plugins of {text}, first named outermost:",
            table(rows, "  "),
            "their hooks, in the order in which they run:",
            table(ordered, "  "),
        ]
    )


def _origin(plugin: LoadedPlugin) -> str:
    return plugin.distribution or qualified_name(plugin.plugin)


def _tools_part(built: Built) -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    toolsets = [("", built.toolset), *((f" (agent {name})", agent.toolset) for name, agent in built.agents.items())]
    for owner, toolset in toolsets:
        for name, explained in toolset.explained.items():
            groups.setdefault(tuple(explained.layers), []).append(name + owner)
    return _grouped("layers around a call, outermost first:", groups)


def _models_part(built: Built) -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, agent in built.agents.items():
        layers = ("record", *(f"middleware {layer}" for layer in agent.chat_layers), "budget", "provider")
        groups.setdefault(layers, []).append(f"agent {name}")
    return _grouped("layers around a model call, outermost first:", groups)


def _grouped(title: str, groups: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    """Print layers once for all that have the same."""
    lines = [title]
    for layers, owners in groups.items():
        lines.append(f"  {listed(owners)}:")
        lines += [f"    {number}. {layer}" for number, layer in enumerate(layers, 1)]
    return "\n".join(lines) if groups else ""
