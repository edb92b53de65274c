"""Plugins: loaded only when named, in the order named, each wholly or not at all; pluggy registers and validates."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pluggy

from thena_core._render import did_you_mean, listed, qualified_name
from thena_core.errors import PluginLoadError, SignatureError
from thena_core.hooks.chain import Hook, make_hook
from thena_core.hooks.specs import Specs

GROUP = "thena.plugins"
OnError = Literal["fail", "warn"]

AWAITED = {"before_tool": ("call", "ctx"), "after_tool": ("result", "ctx")}


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin in use.

    Attributes:
        name: Its entry-point name, or its class's or module's name.
        plugin: The module or object.
        distribution: The installed package that brought it, or `None`.
        hooks: The names of its hooks.
    """

    name: str
    plugin: Any
    distribution: str | None
    hooks: Sequence[str]


class Plugins:
    """The plugins of one app, and their hooks in order: first named outermost."""

    def __init__(self, loaded: Sequence[LoadedPlugin], manager: pluggy.PluginManager) -> None:
        self.loaded = loaded
        self._manager = manager

    def implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        """Return plugin name and function of each implementation, outermost first.

        `tryfirst` goes outside and `trylast` inside; pluggy itself would call the last registered first.
        """
        order = {loaded.name: index for index, loaded in enumerate(self.loaded)}
        found = [impl for impl in getattr(self._manager.hook, hook).get_hookimpls() if impl.plugin_name in order]
        found.sort(key=lambda impl: (1 + impl.trylast - impl.tryfirst, order[impl.plugin_name]))
        return [(impl.plugin_name, impl.function) for impl in found]

    def chain(self, hook: str) -> list[Hook]:
        """Return the implementations of an awaited hook, ready for the layers."""
        return [make_hook(function, hook, AWAITED[hook], name) for name, function in self.implementations(hook)]


def load_plugins(
    named: Sequence[Any] | Literal["installed"],
    *,
    blocked: Iterable[str] = (),
    on_error: OnError = "fail",
    problems: list[Exception],
) -> Plugins:
    """Load the named plugins, one by one; what cannot be loaded is a problem that names plugin, package and cause.

    Args:
        named: Entry-point names and plugin objects, or `"installed"` for every installed one, in sorted order.
        blocked: Names to leave out.
        on_error: `warn` goes on without a broken plugin.
        problems: Where problems go.
    """
    manager = pluggy.PluginManager("thena")
    manager.add_hookspecs(Specs)
    loaded: list[LoadedPlugin] = []
    switched_off = os.environ.get("THENA_PLUGINS") == "0"
    for item in _in_order(named):
        if isinstance(item, str) and (switched_off or item in blocked):
            continue
        try:
            name, plugin, distribution = _found(item) if isinstance(item, str) else (_name_of(item), item, None)
            if name in blocked:
                continue
            loaded.append(_register(manager, name, plugin, distribution))
        except PluginLoadError as problem:
            if on_error == "warn":
                warnings.warn(str(problem), stacklevel=2)
            else:
                problems.append(problem)
    return Plugins(loaded, manager)


def _in_order(named: Sequence[Any] | Literal["installed"]) -> Sequence[Any]:
    return sorted(_entry_points()) if named == "installed" else named


def _entry_points() -> Mapping[str, Any]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - only names need it

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _found(name: str) -> tuple[str, Any, str | None]:
    entries = _entry_points()
    entry = entries.get(name)
    if entry is None:
        known = f"Installed: {listed(sorted(entries))}." if entries else "No package that brings plugins is installed."
        raise PluginLoadError(name, f"no installed package brings it.{did_you_mean(name, entries)} {known}")
    distribution = entry.dist.name if entry.dist is not None else None
    try:
        return name, entry.load(), distribution
    except Exception as error:
        raise PluginLoadError(name, f"{type(error).__name__}: {error}", distribution) from error


def _name_of(plugin: Any) -> str:
    name = getattr(plugin, "__name__", None)
    return str(name) if name else type(plugin).__name__


def _register(manager: pluggy.PluginManager, name: str, plugin: Any, distribution: str | None) -> LoadedPlugin:
    """Register a plugin, or leave the manager as it was."""
    if isinstance(plugin, type):
        raise PluginLoadError(name, f"it is a class; give an instance: plugins=[{name}()]", distribution)
    if manager.has_plugin(name):
        raise PluginLoadError(name, f"it is named twice ({qualified_name(plugin)})", distribution)
    try:
        manager.register(plugin, name)
        manager.check_pending()
        hooks = [caller.name for caller in manager.get_hookcallers(plugin) or ()]
        for hook in set(hooks) & AWAITED.keys():
            for impl in getattr(manager.hook, hook).get_hookimpls():
                if impl.plugin_name == name:
                    make_hook(impl.function, hook, AWAITED[hook], name)
    except (pluggy.PluginValidationError, SignatureError, ValueError) as error:
        if manager.has_plugin(name):
            manager.unregister(name=name)
        raise PluginLoadError(name, str(error), distribution) from error
    if not hooks:
        manager.unregister(name=name)
        raise PluginLoadError(name, "it has no hook: mark its functions with @hookimpl", distribution)
    return LoadedPlugin(name, plugin, distribution, hooks)
