"""The toolset of an agent: the only place where services, hooks and layers meet, and the only door to a tool."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thena_core._render import qualified_name
from thena_core.call import Handler, Invocation, ToolCall, ToolMiddleware, ToolResult
from thena_core.calls import layers
from thena_core.calls.batch import Call, run_together
from thena_core.calls.declared import ToolSource, read_tool
from thena_core.calls.explain import Explanation
from thena_core.calls.failure import failure_text
from thena_core.calls.plan import Filler, Plan, make_plan
from thena_core.calls.threads import ThreadPool
from thena_core.definition import Disclosure, ToolDefinition
from thena_core.di.resolver import Resolver
from thena_core.errors import DependencyError, SignatureError, ThenaError, ToolDefinitionError
from thena_core.hooks.chain import Hook
from thena_core.output import ToolOutput
from thena_core.run import Run
from thena_core.schema.signature import Parameter


@dataclass(frozen=True, slots=True)
class Handlers:
    """A tool's two doors: without and with the record."""

    plain: Mapping[str, Handler]
    recorded: Mapping[str, Handler]
    unknown: Handler
    unknown_recorded: Handler


class Toolset:
    """The tools of one agent, each with every layer around it; frozen once the app is built."""

    __slots__ = ("_by_name", "definitions", "explained", "handlers")

    def __init__(
        self, definitions: Sequence[ToolDefinition], handlers: Handlers, explained: Mapping[str, Explanation]
    ) -> None:
        self.definitions = tuple(definitions)
        self.handlers = handlers
        self.explained = explained
        self._by_name = {definition.name: definition for definition in definitions}

    def handler(self, run: Run, name: str) -> Handler:
        """Return the one way to call a tool in this run; an unknown name has a handler, too."""
        handlers = self.handlers
        if run.recorder is None:
            return handlers.plain.get(name, handlers.unknown)
        return handlers.recorded.get(name, handlers.unknown_recorded)

    def definition(self, name: str) -> ToolDefinition | None:
        """Return a tool's definition."""
        return self._by_name.get(name)


class Toolbox:
    """The other tools of the same agent, wrapped in all layers: `Annotated[Toolbox, Tools]`, or `toolbox: Toolbox`.

    `await toolbox["read_file"]({"path": "a"})` calls one and returns its `ToolOutput`; iterating gives the
    `ToolDefinition`s; `batch` calls several.
    """

    __slots__ = ("_calls", "_inv", "_toolset")
    __thena_role__ = "tools"

    def __init__(self, inv: Invocation, toolset: Toolset) -> None:
        self._inv = inv
        self._toolset = toolset
        self._calls = 0

    def __iter__(self) -> Iterator[ToolDefinition]:
        return (definition for definition in self._toolset.definitions if definition.name != self._inv.name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return any(definition.name == name for definition in self)

    def __getitem__(self, name: str) -> BoundTool:
        return BoundTool(self, name)

    async def batch(
        self,
        calls: Sequence[tuple[str, Mapping[str, Any] | str]],
        *,
        concurrency: int | None = None,
        timeout: float | None = None,
    ) -> list[ToolResult]:
        """Call several tools beside each other; those that write run one after the other, in the order asked.

        Args:
            calls: Name and arguments of each; an unknown name or wrong arguments are an error in their place.
            concurrency: How many run at once (16 unless given).
            timeout: Seconds for each call.

        Returns:
            The results, in the order asked.

        Raises:
            EndsRun: What ends the run, as itself; the other calls are cancelled and awaited first.
        """
        made = [self._prepare(name, arguments) for name, arguments in calls]
        outputs = await run_together(made, concurrency=concurrency, timeout=timeout)
        return [_result(call[1], output) for call, output in zip(made, outputs, strict=True)]

    async def _call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolOutput:
        handler, inv, _ = self._prepare(name, arguments)
        return await handler(inv)

    def _prepare(self, name: str, arguments: Mapping[str, Any] | str) -> Call:
        outer, toolset = self._inv, self._toolset
        index = self._calls
        self._calls += 1
        raw = arguments if isinstance(arguments, str) else dict(arguments)
        inv = Invocation(outer.run, f"{outer.id}.{index}", name, raw, outer.node, outer, index)
        if name == outer.name:  # a tool does not contain itself
            handlers = toolset.handlers
            unknown = handlers.unknown if outer.run.recorder is None else handlers.unknown_recorded
            return unknown, inv, None
        return toolset.handler(outer.run, name), inv, toolset.definition(name)


class BoundTool:
    """One tool of a toolbox; await it with the arguments."""

    __slots__ = ("_name", "_toolbox")

    def __init__(self, toolbox: Toolbox, name: str) -> None:
        self._toolbox = toolbox
        self._name = name

    async def __call__(self, arguments: Mapping[str, Any] | str | None = None) -> ToolOutput:
        """Call the tool through all its layers.

        Raises:
            EndsRun: What ends the run.
        """
        return await self._toolbox._call(self._name, arguments or {})  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _result(inv: Invocation, output: ToolOutput) -> ToolResult:
    layers.settle(inv, output)
    return ToolResult(inv.view or ToolCall(inv, inv.args), output, inv.outcome)


@dataclass(slots=True)
class ToolsetBuilder:
    """Everything of an app that toolsets are made of; lives while the app is built.

    Attributes:
        resolver: Makes instances and finds services.
        threads: Where sync tools run.
        middleware: The app's own, first added outermost.
        plugin_before: The plugins' `before_tool`, in order.
        plugin_after: The plugins' `after_tool`, in order.
        plugin_middleware: Asks the plugins for their middleware of one tool: name of the plugin and function.
        disclose: The app's disclosure table.
        redact: Masks secrets in error texts.
        problems: Everything that is wrong, so far.
    """

    resolver: Resolver
    threads: ThreadPool
    middleware: Sequence[ToolMiddleware]
    plugin_before: Sequence[Hook]
    plugin_after: Sequence[Hook]
    plugin_middleware: Callable[[ToolDefinition], Sequence[tuple[str, ToolMiddleware]]]
    disclose: Disclosure
    redact: Callable[[str], str]
    problems: list[Exception]

    def build(self, items: Sequence[Any], *, owner: str, hooks: Mapping[str, Hook], state: type | None) -> Toolset:
        """Make the toolset of an agent (or of the app); problems are collected, not raised."""
        before = [hook for hook in [hooks.get("before_tool"), *self.plugin_before] if hook is not None]
        after = [hook for hook in [hooks.get("after_tool"), *self.plugin_after] if hook is not None]
        toolset_later: list[Toolset] = []
        plans: dict[str, tuple[ToolSource, Plan]] = {}
        for item in items:
            source = self._read(item, owner)
            if source is None or self._is_duplicate(source, plans, owner):
                continue
            sources = _Sources(self.resolver, source.definition.name, owner, state, toolset_later)
            plan = self._plan(source, sources)
            if plan is not None:
                plans[source.definition.name] = (source, plan)
        plain: dict[str, Handler] = {}
        explained: dict[str, Explanation] = {}
        for name, (source, plan) in plans.items():
            plain[name], names = self._wrap(plan, before, after)
            explained[name] = Explanation(plan.definition, plan.filled, names, source.origin)
        unknown = layers.unknown_tool(list(plans))
        unknown = layers.after_hooks(unknown, after[::-1]) if after else unknown
        recorded = {name: layers.record(handler) for name, handler in plain.items()}
        handlers = Handlers(plain, recorded, unknown, layers.record(unknown))
        toolset = Toolset([plan.definition for _, plan in plans.values()], handlers, explained)
        toolset_later.append(toolset)
        return toolset

    def _read(self, item: Any, owner: str) -> ToolSource | None:
        try:
            return read_tool(item)
        except ThenaError as problem:
            problem.add_note(f"in tools=[…] of {owner}")
            self.problems.append(problem)
            return None

    def _is_duplicate(self, source: ToolSource, plans: Mapping[str, tuple[ToolSource, Plan]], owner: str) -> bool:
        name = source.definition.name
        if name not in plans:
            return False
        first = plans[name][0]
        if first.definition is source.definition and first.instance is source.instance and first.cls is source.cls:
            return True  # the same tool listed twice is kept once
        self.problems.append(
            ToolDefinitionError(
                f'[thena] {owner} has two tools named "{name}": {first.origin} and {source.origin}. Rename one of them.'
            )
        )
        return True

    def _plan(self, source: ToolSource, sources: _Sources) -> Plan | None:
        instance = source.instance
        if source.cls is not None:
            try:
                instance = self.resolver.build(source.cls)
            except DependencyError as problem:
                self.problems.append(problem)
        return make_plan(source, instance, sources, self.threads, self.problems)

    def _wrap(self, plan: Plan, before: Sequence[Hook], after: Sequence[Hook]) -> tuple[Handler, list[str]]:
        """Compose the layers around one tool, innermost first; say what they are, outermost first."""
        definition = plan.definition
        tables = tuple(table for table in (definition.disclose, self.disclose) if table)
        redact = self.redact
        around = [*self.plugin_middleware(definition), *((qualified_name(fn), fn) for fn in self.middleware)]
        word = functools.partial(failure_text, tables=tables, redact=redact)
        handler = plan.handler
        if definition.timeout is not None:
            handler = layers.time_limit(handler, definition.timeout)
        handler = layers.budget(layers.error_policy(handler, word))
        for _, function in reversed(around):
            handler = layers.middleware(handler, function)
        if before:
            handler = layers.before_hooks(handler, before)
        handler = layers.validate(handler, definition, plan.schema, word)
        if after:
            handler = layers.after_hooks(handler, after[::-1])
        names = ["record"]
        names += [f"after_tool of {hook.owner}" for hook in after]
        names += ["validate"]
        names += [f"before_tool of {hook.owner}" for hook in before]
        names += [f"middleware {name}" for name, _ in around]
        names += ["budget", "error policy", "execute"]
        return handler, names


class _Sources:
    """Fill the parameters of one tool's `execute` that are not input."""

    def __init__(
        self, resolver: Resolver, tool: str, owner: str, state: type | None, toolset_later: list[Toolset]
    ) -> None:
        self._resolver = resolver
        self._tool = tool
        self._owner = owner
        self._state = state
        self._toolset_later = toolset_later

    def filler(self, parameter: Parameter, where: str) -> Filler:
        """Return what fills a parameter per call."""
        if parameter.role == "context":
            return lambda inv: inv.run.context
        if parameter.role == "tools":
            later = self._toolset_later
            return lambda inv: Toolbox(inv, later[0])
        if parameter.role == "state":
            self._check_state(parameter, where)
            return lambda inv: inv.run.state
        service = self._resolver.service(parameter, where)
        return lambda _inv: service

    def _check_state(self, parameter: Parameter, where: str) -> None:
        if self._state is None:
            raise SignatureError(
                where,
                parameter.name,
                f"it asks for the workflow's state, but no workflow that uses {self._owner} declares one. "
                f"Add: @workflow(steps=[…], state={getattr(parameter.type, '__name__', 'MyState')})",
            )
        wanted = parameter.type
        if isinstance(wanted, type) and not issubclass(self._state, wanted):
            raise SignatureError(
                where,
                parameter.name,
                f"it asks for the state as {wanted.__name__}, but the workflow's state is {self._state.__name__}.",
            )
