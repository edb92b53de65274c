"""Whether an object can be a plugin: every mistake of it found before anything of it is registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pluggy

from thena_core._render import did_you_mean, said_by
from thena_core.hooks.specs import Specs

AWAITED = {"before_tool": ("call", "ctx"), "after_tool": ("result", "ctx")}
"""The hooks that a run awaits, and their parameters."""

MAY_BE_ASYNC = {*AWAITED, "startup", "shutdown"}


def hooks() -> dict[str, tuple[str, ...]]:
    """Map each hook that exists to its parameters."""
    return {
        name: tuple(inspect.signature(spec).parameters)[1:]
        for name, spec in vars(Specs).items()
        if not name.startswith("_")
    }


@dataclass(frozen=True, slots=True)
class Marked:
    """A function that its author marked `@hookimpl`.

    Attributes:
        hook: The hook that it is meant for.
        function: The function, bound.
        options: What its mark says, as pluggy keeps it.
    """

    hook: str
    function: Callable[..., Any]
    options: Mapping[str, Any]


def mistakes(plugin: Any, manager: pluggy.PluginManager) -> list[str]:
    """Say everything that keeps an object from being a plugin: wrong marks, missing ones, no hook at all."""
    found: list[str] = []
    marked: list[Marked] = []
    for name in dir(plugin):
        try:
            function = getattr(plugin, name)
            options: Mapping[str, Any] | None = manager.parse_hookimpl_opts(plugin, name)
        except Exception as error:  # noqa: BLE001 - a property may raise anything
            found.append(f"its attribute `{name}` cannot be read: {said_by(error)}")
            continue
        if options is not None:
            marked.append(Marked(options.get("specname") or name, function, options))
    known = hooks()
    for one in marked:
        found += _wrong_with(one, known, "" if inspect.ismodule(plugin) else "self, ")
    taken = {one.hook for one in marked}
    unmarked = [hook for hook in known if hook not in taken and _is_its_own(getattr(plugin, hook, None), plugin)]
    found += [f"{hook} is not marked: write @hookimpl above it" for hook in unmarked]
    return found if found or marked else ["it has no hook: mark its functions with @hookimpl"]


def _wrong_with(marked: Marked, known: Mapping[str, tuple[str, ...]], own: str) -> list[str]:
    hook, function = marked.hook, marked.function
    if hook not in known:
        if marked.options.get("optionalhook"):
            return []
        return [f"{hook} is no hook.{did_you_mean(hook, known)} Hooks are: {', '.join(known)}"]
    if marked.options.get("wrapper") or marked.options.get("hookwrapper"):
        return [f"{hook} is a wrapper; write a tool_middleware to stand around a call"]
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return [f"{hook} is a generator; write a tool_middleware to stand around a call"]
    if inspect.iscoroutinefunction(function) and hook not in MAY_BE_ASYNC:
        return [f"{hook} is `async def`, and nobody awaits it; write `def {hook}`"]
    names = known[hook]
    return [
        f"{hook} has no parameter `{parameter.name}`.{did_you_mean(parameter.name, names)} "
        f"Write: def {hook}({(own + ', '.join(names)).removesuffix(', ')})"
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in names
        and parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]


def _is_its_own(function: Any, plugin: Any) -> bool:
    """Whether it is a function defined in the plugin, and not only imported into its module."""
    if not inspect.isroutine(function):
        return False
    return not inspect.ismodule(plugin) or getattr(function, "__module__", None) == plugin.__name__
