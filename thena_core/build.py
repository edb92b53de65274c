"""From what an app collected to what it runs: inspected, resolved and composed once, every problem raised together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thena_core._render import did_you_mean, listed, qualified_name, said_by
from thena_core.agents import AgentSpec, agent_spec, prompt_text
from thena_core.answers import answer_form
from thena_core.call import ToolMiddleware
from thena_core.calls.compose import Draft, ToolsetBuilder
from thena_core.calls.threads import ThreadPool
from thena_core.calls.toolset import Toolset
from thena_core.definition import Disclosure
from thena_core.di.catalog import Catalog
from thena_core.di.resolver import Resolver
from thena_core.di.resources import Resources
from thena_core.errors import AgentDefinitionError, BuildError, DependencyError, ThenaError, ToolDefinitionError
from thena_core.execution import WorkflowRuntime
from thena_core.hooks.chain import OnPluginError, agent_hooks
from thena_core.providers.base import ChatMiddleware, Provider
from thena_core.providers.chat import chat_handler
from thena_core.providers.lent import Lender
from thena_core.record.tree import Listener
from thena_core.run import Run
from thena_core.schema.signature import bound
from thena_core.steps import BuiltWorkflow
from thena_core.turns import BuiltAgent
from thena_core.workflows import build_workflow

if TYPE_CHECKING:
    from thena_core.hooks.manager import Plugins


@dataclass(frozen=True, slots=True)
class Collected:
    """What an app's constructor and `use` were given."""

    target: Any
    tools: Sequence[Any]
    workflows: Sequence[Any]
    container: Any
    blocked: Sequence[str]
    on_plugin_error: OnPluginError
    disclose: Disclosure
    plugins: Any
    tool_middleware: Sequence[ToolMiddleware]
    chat_middleware: Sequence[ChatMiddleware]
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
        listeners: What observes every run: the plugins' `on_event`.
    """

    target: BuiltWorkflow | None
    toolset: Toolset
    agents: Mapping[str, BuiltAgent]
    providers: Sequence[Provider]
    plugins: Plugins | None
    listeners: tuple[Listener, ...]

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


class Assembly:
    """An app on its way from what was collected to what runs: inspect first, raise every problem, then compose."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected
        self.threads = ThreadPool()
        self.problems: list[Exception] = []
        self.plugins = _load_plugins(collected, self.problems)
        plugins = self.plugins
        containers = [] if collected.container is None else [_instance(collected.container)]
        containers += plugins.containers() if plugins is not None else []
        catalog = Catalog(containers)
        self.resources = Resources(catalog)
        self.resolver = Resolver(catalog, WorkflowRuntime(self.workflow))
        self._builder = ToolsetBuilder(
            resolver=self.resolver,
            threads=self.threads,
            middleware=collected.tool_middleware,
            plugin_before=plugins.chain("before_tool") if plugins is not None else (),
            plugin_after=plugins.chain("after_tool") if plugins is not None else (),
            plugin_middleware=plugins.tool_middleware if plugins is not None else lambda _tool: (),
            disclose=collected.disclose,
            redact=collected.redact,
        )
        self._drafts: dict[tuple[Any, type | None], Draft] = {}
        self._agents: dict[tuple[Any, type | None], BuiltAgent] = {}
        self._workflows: dict[Any, BuiltWorkflow] = {}
        self._inspected: set[Any] = set()
        self._broken: dict[Any, list[Exception]] = {}
        self._providers: list[Provider] = []
        self._app_draft = Draft({}, None)

    def inspect(self) -> None:
        """Look at everything.

        Raises:
            BuildError: With every problem that was found.
        """
        collected = self._collected
        targets = [cls for cls in (collected.target, *collected.workflows) if cls is not None]
        for cls in targets:
            self._inspect_workflow(cls)
        self._app_draft = self._builder.draft(
            collected.tools, owner="the app", state=None, any_state=True, problems=self.problems
        )
        self._inspect_started(self._app_draft)
        self._raise_problems()

    async def start(self) -> Built:
        """Open the resources, make the instances, compose the layers.

        Raises:
            BuildError: Where a constructor or a resource fails; what was opened is closed again.
        """
        try:
            await self.resources.open()
            await self.resolver.start()
            toolset = await self._builder.compose(self._app_draft, {})
            for key in self._drafts:
                await self._compose_agent(*key)
        except BaseException as error:
            await self.resources.close()
            if isinstance(error, DependencyError | ToolDefinitionError):
                raise BuildError([error]) from error
            raise
        agents = {built.name: built for built in self._agents.values()}
        target = self._collected.target
        built = None if target is None else self._composed(target)
        for cls in self._collected.workflows:
            self._composed(cls)
        listeners = self.plugins.listeners() if self.plugins is not None else ()
        return Built(built, toolset, agents, self._providers, self.plugins, listeners)

    async def workflow(self, cls: Any) -> BuiltWorkflow:
        """Return a workflow for a nested run; one that was not listed is built now.

        Raises:
            BuildError: Where it cannot be.
        """
        if cls in self._broken:
            raise BuildError(self._broken[cls])
        if cls not in self._workflows:
            known = set(self._drafts)
            self._inspect_workflow(cls)
            if self.problems:  # the same again for whoever asks next: nothing is inspected twice
                self._broken[cls] = _distinct(self.problems)
            self._raise_problems()
            try:
                await self.resolver.start()
                for key in self._drafts.keys() - known:
                    await self._compose_agent(*key)
            except (DependencyError, ToolDefinitionError) as problem:
                raise BuildError([problem]) from problem
        return self._composed(cls)

    def _composed(self, cls: Any) -> BuiltWorkflow:
        if cls not in self._workflows:
            self._workflows[cls] = build_workflow(cls, lambda agent, state: self._agents[agent, state], [])
        return self._workflows[cls]

    def _raise_problems(self) -> None:
        if self.problems:
            problems, self.problems = self.problems, []
            raise BuildError(_distinct(problems))

    def _inspect_workflow(self, cls: Any) -> None:
        if cls not in self._inspected:  # one that starts itself is looked at once
            self._inspected.add(cls)
            build_workflow(cls, self._inspect_agent, self.problems)

    def _inspect_started(self, draft: Draft) -> None:
        """Look at the workflows that tools say they start."""
        for tool in draft.tools.values():
            for cls in tool.definition.workflows:
                self._inspect_workflow(cls)

    def _inspect_agent(self, cls: Any, state: type | None) -> None:
        if (cls, state) in self._drafts:
            return
        spec, problems = agent_spec(cls), self.problems
        name = spec.name or cls.__name__
        self.resolver.inspect(cls, f"agent {name}", problems)
        agent_hooks(cls, functools.partial(bound, cls), problems)
        for check in (lambda: prompt_text(cls, spec.prompt), lambda: answer_form(spec.output, name)):
            try:
                check()
            except ThenaError as problem:
                problems.append(problem)
        owner = f"the agent {name}"
        draft = self._builder.draft(spec.tools, owner=owner, state=state, any_state=False, problems=problems)
        self._drafts[cls, state] = draft
        self._inspect_started(draft)

    async def _compose_agent(self, cls: Any, state: type | None) -> None:
        spec = agent_spec(cls)
        instance = await self.resolver.instance(cls)
        hooks = agent_hooks(cls, functools.partial(getattr, instance), [])
        toolset = await self._builder.compose(self._drafts[cls, state], hooks)
        plugins = self.plugins
        around = [*(plugins.chat_middleware(cls) if plugins is not None else ()), *self._collected.chat_middleware]
        chat, chat_recorded = chat_handler(around)
        name = spec.name or cls.__name__
        system, provider = prompt_text(cls, spec.prompt), self._provider(cls, spec)
        form = answer_form(spec.output, name)
        layers = tuple(qualified_name(function) for function in around)
        self._agents[cls, state] = BuiltAgent(
            name,
            spec,
            system,
            toolset,
            hooks,
            chat,
            chat_recorded,
            provider,
            form,
            layers,
            is_plain=not hooks and form is None,
        )

    def _provider(self, cls: type, spec: AgentSpec) -> Callable[[Run], Provider]:
        """An instance or a class serves all runs of the app; a function makes one per run, which is closed with it."""
        source = spec.provider
        if isinstance(source, type):
            try:
                source = source()
            except Exception as error:
                problem = AgentDefinitionError(
                    f"[thena] The provider of {cls.__name__}, {qualified_name(spec.provider)}, cannot be made without "
                    f"arguments ({said_by(error)}). Give an instance or a function that makes one."
                )
                raise BuildError([problem]) from error
        if isinstance(source, Provider):
            provider = source
            if provider not in self._providers:
                self._providers.append(provider)
            return lambda _: provider
        return Lender(source)


def _load_plugins(collected: Collected, problems: list[Exception]) -> Plugins | None:
    if not collected.plugins:
        return None
    from thena_core.hooks.manager import load_plugins  # noqa: PLC0415 - pluggy costs 18 ms

    return load_plugins(
        collected.plugins, blocked=collected.blocked, on_error=collected.on_plugin_error, problems=problems
    )


def _instance(container: Any) -> Any:
    """Accept a container's class, too: what is meant is an instance of it."""
    return container() if isinstance(container, type) else container


def _distinct(problems: Sequence[Exception]) -> list[Exception]:
    """Name a problem once, also where several agents share the tool that has it."""
    seen: dict[str, Exception] = {}
    for problem in problems:
        seen.setdefault(str(problem), problem)
    return list(seen.values())
