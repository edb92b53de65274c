"""From hook functions to a chain that the layers can walk: checked by name once, called by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from thena_core._render import did_you_mean
from thena_core.errors import AgentDefinitionError, SignatureError

OnPluginError = Literal["fail", "warn"]
"""What a plugin that cannot be loaded does: fail the build, or warn and be left out."""

AGENT_HOOKS: dict[str, tuple[str, ...]] = {
    "before_prompt": ("prompt", "ctx"),
    "before_tool": ("call", "ctx"),
    "after_tool": ("result", "ctx"),
    "after_response": ("text", "ctx"),
    "on_error": ("error", "ctx"),
    "run": ("message", "ctx"),
}
"""The methods that an agent class may have, and their parameters."""


class AgentHooks:
    """An optional base for agent classes: it gives type checkers the hooks' signatures, and does nothing."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook function, ready to be called with two values.

    Attributes:
        owner: The agent or plugin, for messages.
        function: Takes the hook's two values by position.
        is_async: Whether what it returns must be awaited.
    """

    owner: str
    function: Callable[[Any, Any], Any]
    is_async: bool


def make_hook(function: Callable[..., Any], name: str, names: Sequence[str], owner: str) -> Hook:
    """Check a bound hook function against the hook's parameters, any of which it may leave out.

    Raises:
        SignatureError: For a parameter that the hook does not have.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise SignatureError(f"{owner}.{name}", "…", f"the signature cannot be read: {error}") from error
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.name in names:
            continue
        if parameter.default is parameter.empty:
            raise SignatureError(
                f"{owner}.{name}",
                parameter.name,
                f"the hook has no such parameter.{did_you_mean(parameter.name, names)} "
                f"Write: def {name}(self, {', '.join(names)})",
            )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SignatureError(
            f"{owner}.{name}", "…", "a generator cannot be a hook here; write a middleware to stand around a call."
        )
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "func", None))
    return Hook(owner, _by_position(function, parameters, names), is_async)


def agent_hooks(cls: type, method: Callable[[str], Any], problems: list[Exception]) -> dict[str, Hook]:
    """Collect the hooks that an agent's class defines.

    Args:
        cls: The agent's class.
        method: Returns a method by name: of the instance, or before there is one, as an instance would have it.
        problems: Where misspelt hooks and wrong signatures go.
    """
    found: dict[str, Hook] = {}
    for name, names in AGENT_HOOKS.items():
        if not callable(getattr(cls, name, None)):
            continue
        try:
            found[name] = make_hook(method(name), name, names, cls.__name__)
        except SignatureError as problem:
            problems.append(problem)
    for name in dir(cls):
        if name.startswith(("before_", "after_", "on_")) and name not in AGENT_HOOKS and callable(getattr(cls, name)):
            nearest = did_you_mean(name, AGENT_HOOKS)
            problems.append(
                AgentDefinitionError(
                    f'[thena] The agent "{cls.__name__}" has a method `{name}`, which is no hook.{nearest} '
                    f"Hooks are: {', '.join(AGENT_HOOKS)}. A method that is none needs another name."
                )
            )
    return found


def _by_position(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter], names: Sequence[str]
) -> Callable[[Any, Any], Any]:
    """Adapt a function that takes some of the two values, in any order, so that it can be called with both."""
    first, second = names
    positional = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    if positional[:2] == [first, second] or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return function
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    wanted = {parameter.name for parameter in parameters}
    if takes_all or {first, second} <= wanted:
        return lambda one, two: function(**{first: one, second: two})
    if first in wanted:
        return lambda one, _two: function(**{first: one})
    if second in wanted:
        return lambda _one, two: function(**{second: two})
    return lambda _one, _two: function()
