"""From what an app collected to what it runs: inspected, resolved and composed once, every problem raised together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from thena_core._render import did_you_mean, listed
from thena_core.agents import AgentSpec, BuiltAgent, agent_spec, prompt_text
from thena_core.call import ToolMiddleware
from thena_core.calls.threads import ThreadPool
from thena_core.calls.toolset import Toolset, ToolsetBuilder
from thena_core.definition import Disclosure, ToolDefinition
from thena_core.di.catalog import Catalog
from thena_core.di.resolver import Resolver
from thena_core.errors import AgentDefinitionError, BuildError, ThenaError
from thena_core.hooks.chain import Hook, agent_hooks
from thena_core.providers.base import ChatMiddleware, Provider
from thena_core.providers.chat import chat_handler
from thena_core.workflows import BuiltWorkflow, build_workflow

if TYPE_CHECKING:
    from thena_core.hooks.manager import Plugins

OnPluginError = Literal["fail", "warn"]


@dataclass(frozen=True, slots=True)
class Collected:
    """What an app's constructor and `use` were given."""

    target: Any
    tools: Sequence[Any]
    workflows: Sequence[Any]
    container: Any
    plugins: Any
    blocked: Sequence[str]
    on_plugin_error: OnPluginError
    tool_middleware: Sequence[ToolMiddleware]
    chat_middleware: Sequence[ChatMiddleware]
    disclose: Disclosure
    redact: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Built:
    """What an app runs; nothing in it changes any more.

    Attributes:
        target: The workflow that `run` runs, or `None`.
        toolset: The tools of `tools=[…]`, for `app.call`.
        agents: The agents by name.
        providers: The model providers, to be closed with the app.
        plugins: The plugins in use.
    """

    target: BuiltWorkflow | None
    toolset: Toolset
    agents: Mapping[str, BuiltAgent]
    providers: Sequence[Provider]
    plugins: Plugins | None

    def toolset_for(self, tool: str, agent: str | type | None) -> Toolset:
        """Find whose tool is meant: the app's own, the named agent's, or that of the only agent that has it.

        Raises:
            ThenaError: Where there is no such agent, or several agents have the tool.
        """
        if agent is not None:
            name = agent if isinstance(agent, str) else agent_spec(agent).name or agent.__name__
            found = self.agents.get(name)
            if found is None:
                raise ThenaError(f'[thena] The app has no agent "{name}".{did_you_mean(name, self.agents)}')
            return found.toolset
        if self.toolset.definition(tool) is not None:
            return self.toolset
        owners = {name: agent.toolset for name, agent in self.agents.items() if agent.toolset.definition(tool)}
        if len(owners) > 1:
            first = next(iter(owners))
            raise ThenaError(f'[thena] Several agents have a tool "{tool}": {listed(owners)}. Say agent="{first}".')
        if owners:
            return next(iter(owners.values()))
        only = list(self.agents.values())
        return only[0].toolset if len(only) == 1 and not self.toolset.definitions else self.toolset


def build(collected: Collected, threads: ThreadPool) -> Built:
    """Inspect, resolve and compose everything.

    Raises:
        BuildError: With every problem that was found.
    """
    problems: list[Exception] = []
    plugins = None
    if collected.plugins:
        from thena_core.hooks.manager import load_plugins  # noqa: PLC0415 - pluggy costs 18 ms

        plugins = load_plugins(
            collected.plugins, blocked=collected.blocked, on_error=collected.on_plugin_error, problems=problems
        )
    builder = ToolsetBuilder(
        resolver=Resolver(Catalog(collected.container), {}),
        threads=threads,
        middleware=collected.tool_middleware,
        plugin_before=plugins.chain("before_tool") if plugins else (),
        plugin_after=plugins.chain("after_tool") if plugins else (),
        plugin_middleware=functools.partial(_plugin_middleware, plugins),
        disclose=collected.disclose,
        redact=collected.redact,
        problems=problems,
    )
    assembly = _Assembly(collected, builder, plugins)
    target = None
    if collected.target is not None:
        target = build_workflow(collected.target, assembly.agent, problems)
    for cls in collected.workflows:
        build_workflow(cls, assembly.agent, problems)
    toolset = builder.build(collected.tools, owner="the app", hooks={}, state=None)
    if problems:
        raise BuildError(_distinct(problems))
    agents = {built.name: built for built in assembly.agents.values()}
    return Built(target, toolset, agents, assembly.providers, plugins)


class _Assembly:
    """Build each agent once per kind of state."""

    def __init__(self, collected: Collected, builder: ToolsetBuilder, plugins: Plugins | None) -> None:
        self._collected = collected
        self._builder = builder
        self._plugins = plugins
        self.agents: dict[tuple[Any, type | None], BuiltAgent] = {}
        self.providers: list[Provider] = []

    def agent(self, cls: Any, state: type | None) -> BuiltAgent:
        key = (cls, state)
        if key not in self.agents:
            self.agents[key] = self._build(cls, agent_spec(cls), state)
        return self.agents[key]

    def _build(self, cls: Any, spec: AgentSpec, state: type | None) -> BuiltAgent:
        builder = self._builder
        problems = builder.problems
        name = spec.name or cls.__name__
        hooks: dict[str, Hook] = {}
        try:
            hooks = agent_hooks(builder.resolver.build(cls), problems)
        except ThenaError as problem:
            problems.append(problem)
        system = ""
        try:
            system = prompt_text(cls, spec.prompt)
        except ThenaError as problem:
            problems.append(problem)
        toolset = builder.build(spec.tools, owner=f"the agent {name}", hooks=hooks, state=state)
        around = [*_plugin_chat_middleware(self._plugins, cls), *self._collected.chat_middleware]
        chat, chat_recorded = chat_handler(around)
        return BuiltAgent(name, spec, system, toolset, hooks, chat, chat_recorded, self._provider(cls, spec))

    def _provider(self, cls: type, spec: AgentSpec) -> Callable[[], Provider]:
        """An instance or a class serves all runs of the app; a function makes one per run."""
        source = spec.provider
        if isinstance(source, type):
            try:
                source = source()
            except Exception as error:  # noqa: BLE001 - whatever a class raises, it is a problem of the build
                self._builder.problems.append(
                    AgentDefinitionError(
                        f"[thena] The provider of {cls.__name__}, {spec.provider!r}, cannot be made without arguments "
                        f"({type(error).__name__}: {error}). Give an instance or a function that makes one."
                    )
                )
                return _no_provider
        if isinstance(source, Provider):
            provider = source
            if provider not in self.providers:
                self.providers.append(provider)
            return lambda: provider
        return source


def _plugin_middleware(plugins: Plugins | None, tool: ToolDefinition) -> list[tuple[str, ToolMiddleware]]:
    if plugins is None:
        return []
    made = [(name, ask(tool=tool)) for name, ask in _asking(plugins, "tool_middleware", "tool")]
    return [(f"{function.__qualname__} of {name}", function) for name, function in made if function is not None]


def _plugin_chat_middleware(plugins: Plugins | None, agent: type) -> list[ChatMiddleware]:
    if plugins is None:
        return []
    made = [ask(agent=agent) for _, ask in _asking(plugins, "chat_middleware", "agent")]
    return [function for function in made if function is not None]


def _asking(plugins: Plugins, hook: str, argument: str) -> list[tuple[str, Callable[..., Any]]]:
    """Return each plugin's function, called with the argument only if it takes it."""
    return [
        (name, function if argument in _names(function) else _without_arguments(function))
        for name, function in plugins.implementations(hook)
    ]


def _without_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    def ask(**_arguments: Any) -> Any:
        return function()

    return ask


def _no_provider() -> Provider:
    raise ThenaError("[thena] An app with build problems has no provider.")


def _names(function: Callable[..., Any]) -> Sequence[str]:
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__func__", None), "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()


def _distinct(problems: Sequence[Exception]) -> list[Exception]:
    """Name a problem once, also where several agents share the tool that has it."""
    seen: dict[str, Exception] = {}
    for problem in problems:
        seen.setdefault(str(problem), problem)
    return list(seen.values())
