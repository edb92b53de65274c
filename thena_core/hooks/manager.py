"""Plugins: loaded only when named, in the order named, each wholly or not at all; pluggy registers and validates."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pluggy

from thena_core._render import said_by
from thena_core.call import ToolMiddleware
from thena_core.definition import ToolDefinition
from thena_core.errors import BuildError, PluginLoadError
from thena_core.hooks import installed
from thena_core.hooks.chain import Hook, make_hook
from thena_core.hooks.checks import AWAITED, mistakes
from thena_core.hooks.specs import Specs
from thena_core.record.event import Event
from thena_core.record.listeners import Isolated
from thena_core.record.logs import warn

OnError = Literal["fail", "warn"]


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin in use.

    Attributes:
        name: Its entry-point name, or its class's or module's name.
        plugin: The module or object.
        distribution: The installed package that brought it, or `None`.
        hooks: The names of its hooks.
        implementations: Its functions, as pluggy keeps them, by hook.
        containers: What its `services` returned.
    """

    name: str
    plugin: Any
    distribution: str | None
    hooks: Sequence[str]
    implementations: Sequence[tuple[str, pluggy.HookImpl]]
    containers: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class PluginLife:
    """What a plugin does when the app starts, and when it closes.

    Attributes:
        name: The plugin's.
        startup: Its `startup`, to be called with the app.
        shutdown: Its `shutdown`, to be called with the app.
    """

    name: str
    startup: Sequence[Callable[[Any], Any]]
    shutdown: Sequence[Callable[[Any], Any]]


@dataclass(slots=True)
class Plugins:
    """The plugins of one app, and their hooks in order: first named outermost.

    Attributes:
        loaded: The plugins in the order in which they were named.
    """

    loaded: Sequence[LoadedPlugin]
    _asked: dict[tuple[str, int], tuple[Any, list[tuple[str, Any]]]] = field(default_factory=dict[Any, Any])

    def implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        """Return plugin name and function of each implementation, outermost first.

        `tryfirst` goes outside and `trylast` inside; pluggy itself would call the last registered first.
        """
        return [(name, function) for _, name, function in self._ranked(hook)]

    def containers(self) -> list[Any]:
        """Return the containers that the plugins add, in order."""
        first_named = {loaded.name: loaded.containers for loaded in self.loaded}
        order = dict.fromkeys(name for name, _ in self.implementations("services"))
        return [container for name in order for container in first_named[name]]

    def tool_middleware(self, tool: ToolDefinition) -> list[tuple[str, ToolMiddleware]]:
        """Ask each plugin, once, for its middleware of one tool; a name for each, and the function.

        Raises:
            BuildError: Where a plugin fails to answer, or answers with something else than a function.
        """
        made = self._answers("tool_middleware", "tool", tool, f'the tool "{tool.name}"')
        return [(f"{_name_of(function)} of {name}", function) for name, function in made]

    def chat_middleware(self, agent: type) -> list[Callable[..., Any]]:
        """Ask each plugin, once, for its middleware of one agent's model calls.

        Raises:
            BuildError: Where a plugin fails to answer, or answers with something else than a function.
        """
        made = self._answers("chat_middleware", "agent", agent, f"the agent {agent.__name__}")
        return [function for _, function in made]

    def listeners(self) -> tuple[Callable[[Event], None], ...]:
        """Return the plugins' observers, each isolated from the run and from the others."""
        return tuple(Isolated(f"on_event of {name}", function) for name, function in self._taking("on_event", "event"))

    def chain(self, hook: str) -> list[Hook]:
        """Return the implementations of an awaited hook, ready for the layers."""
        return [make_hook(function, hook, AWAITED[hook], name) for name, function in self.implementations(hook)]

    def lives(self) -> list[PluginLife]:
        """Return what starts and closes with the app, in the order of starting; closing is the reverse."""
        starting, closing = self._taking("startup", "app"), self._taking("shutdown", "app")
        ranks = {name: rank for hook in ("shutdown", "startup") for rank, name, _ in reversed(self._ranked(hook))}
        return [
            PluginLife(
                name,
                [function for owner, function in starting if owner == name],
                [function for owner, function in closing if owner == name],
            )
            for name in sorted(ranks, key=ranks.__getitem__)
        ]

    def _ranked(self, hook: str) -> list[tuple[tuple[int, int], str, Callable[..., Any]]]:
        found = [
            ((1 + impl.trylast - impl.tryfirst, index), loaded.name, impl.function)
            for index, loaded in enumerate(self.loaded)
            for name, impl in loaded.implementations
            if name == hook
        ]
        return sorted(found, key=lambda entry: entry[0])

    def _taking(self, hook: str, argument: str) -> list[tuple[str, Callable[[Any], Any]]]:
        """Return each plugin's function, called with the argument only if it takes it."""
        return [(name, _taking(function, argument)) for name, function in self.implementations(hook)]

    def _answers(self, hook: str, argument: str, asked: Any, what: str) -> list[tuple[str, Any]]:
        """Ask once for each tool or agent, also where several agents or workflows share it."""
        key = hook, id(asked)
        if key not in self._asked:
            made = [(name, _answer(name, hook, ask, asked, what)) for name, ask in self._taking(hook, argument)]
            # what was asked about is kept: an id means something only as long as its object lives
            self._asked[key] = asked, [(name, function) for name, function in made if function is not None]
        return self._asked[key][1]


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
    blocked = {blocked} if isinstance(blocked, str) else set(blocked)
    loaded: list[LoadedPlugin] = []
    switched_off = os.environ.get("THENA_PLUGINS") == "0"
    for item in installed.installed_names() if isinstance(named, str) else named:
        if isinstance(item, str) and (switched_off or item in blocked):
            continue
        try:
            if isinstance(item, str):
                loaded.append(_loaded(item, *installed.load(item), loaded))
            elif _name_of(item) not in blocked:
                loaded.append(_loaded(_name_of(item), item, None, loaded))
        except PluginLoadError as problem:
            if on_error == "warn":
                warn(str(problem), UserWarning, stacklevel=2, may_raise=True)
            else:
                problems.append(problem)
    return Plugins(loaded)


def _loaded(name: str, plugin: Any, distribution: str | None, others: Sequence[LoadedPlugin]) -> LoadedPlugin:
    """Register a plugin with a manager of its own: what fails leaves nothing behind, and equal ones do not collide."""
    if isinstance(plugin, type):
        way_out = f"give an instance: plugins=[{name}()]" if distribution is None else "its entry point names no object"
        raise PluginLoadError(name, f"it is a class; {way_out}", distribution)
    if any(other.plugin is plugin for other in others):
        raise PluginLoadError(name, "it is named twice", distribution)
    taken, number, first = {other.name for other in others}, 1, name
    while name in taken:
        number += 1
        name = f"{first}#{number}"
    manager = pluggy.PluginManager("thena")
    manager.add_hookspecs(Specs)
    wrong = mistakes(plugin, manager)
    if wrong:
        raise PluginLoadError(name, "; ".join(wrong), distribution)
    try:
        manager.register(plugin, name)
    except (pluggy.PluginValidationError, ValueError) as error:
        raise PluginLoadError(name, said_by(error), distribution) from error
    callers = [caller for caller in manager.get_hookcallers(plugin) or () if caller.has_spec()]
    made = [(caller.name, impl) for caller in callers for impl in caller.get_hookimpls()]
    containers = [_container(name, impl.function, distribution) for hook, impl in made if hook == "services"]
    given = [container for container in containers if container is not None]
    return LoadedPlugin(name, plugin, distribution, [caller.name for caller in callers], made, given)


def _container(name: str, services: Callable[..., Any], distribution: str | None) -> Any:
    try:
        made = services()
        made = made() if isinstance(made, type) else made
    except Exception as error:
        raise PluginLoadError(name, f"services failed: {said_by(error)}", distribution) from error
    if made is not None and not hasattr(made, "providers"):
        problem = f"services returned {type(made).__name__} where a container or None was due"
        raise PluginLoadError(name, problem, distribution)
    return made


def _answer(name: str, hook: str, ask: Callable[[Any], Any], asked: Any, what: str) -> Any:
    try:
        function = ask(asked)
    except Exception as error:
        raise BuildError([PluginLoadError(name, f"{hook} failed for {what}: {said_by(error)}")]) from error
    if function is None or callable(function):
        return function
    problem = f"{hook} returned {type(function).__name__} for {what}, where a function or None was due"
    raise BuildError([PluginLoadError(name, problem)])


def _taking(function: Callable[..., Any], argument: str) -> Callable[[Any], Any]:
    """Adapt a hook function, which may leave its argument out, so that it can be called with it."""
    parameters = inspect.signature(function).parameters
    first = next(iter(parameters.values()), None)
    if first is not None and first.kind is not first.KEYWORD_ONLY and first.name == argument:
        return function
    kinds = {parameter.kind for parameter in parameters.values()}
    if argument in parameters or inspect.Parameter.VAR_KEYWORD in kinds:
        return lambda value: function(**{argument: value})
    return function if inspect.Parameter.VAR_POSITIONAL in kinds else lambda _value: function()


def _name_of(plugin: Any) -> str:
    name = getattr(plugin, "__name__", None)
    return str(name) if name else type(plugin).__name__
