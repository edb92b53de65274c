"""From `tools=[…]` to a toolset: every tool inspected first, then composed with its layers, once per agent."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from thena_core._render import qualified_name, said_by
from thena_core.call import Handler, ToolMiddleware
from thena_core.calls import layers, policy
from thena_core.calls.declared import ToolSource, read_tool
from thena_core.calls.explain import Explanation
from thena_core.calls.failure import failure_text
from thena_core.calls.plan import Filler, Inspected, inspect_tool, make_handler
from thena_core.calls.threads import ThreadPool
from thena_core.calls.toolset import Handlers, Toolbox, Toolset
from thena_core.definition import Disclosure, ToolDefinition
from thena_core.di.catalog import Lifetime
from thena_core.di.resolver import Resolver
from thena_core.errors import SignatureError, ThenaError, ToolDefinitionError
from thena_core.hooks.chain import Hook
from thena_core.schema.signature import Parameter

_CALL: dict[str, Filler] = {
    "context": lambda inv: inv.run.context,
    "tools": lambda inv: Toolbox(inv),  # noqa: PLW0108 - a class is no function to the checkers
    "state": lambda inv: inv.run.state,
}


@dataclass(frozen=True, slots=True)
class Draft:
    """The tools of an agent, inspected.

    Attributes:
        tools: Name to tool, in the order listed.
        state: The workflow's state, which the agent's tools may ask for.
    """

    tools: Mapping[str, Inspected]
    state: type | None


@dataclass(slots=True)
class ToolsetBuilder:
    """Everything of an app that toolsets are made of.

    Attributes:
        resolver: Makes instances and finds services.
        threads: Where sync tools run.
        middleware: The app's own, first added outermost.
        plugin_before: The plugins' `before_tool`, in order.
        plugin_after: The plugins' `after_tool`, in order.
        plugin_middleware: Asks the plugins for their middleware of one tool: a name for each, and the function.
        disclose: The app's disclosure table.
        redact: Masks secrets in error texts.
    """

    resolver: Resolver
    threads: ThreadPool
    middleware: Sequence[ToolMiddleware]
    plugin_before: Sequence[Hook]
    plugin_after: Sequence[Hook]
    plugin_middleware: Callable[[ToolDefinition], Sequence[tuple[str, ToolMiddleware]]]
    disclose: Disclosure
    redact: Callable[[str], str]
    _seen: dict[int, tuple[ToolSource, Inspected | None]] = field(default_factory=dict[int, Any])

    def draft(
        self, items: Sequence[Any], *, owner: str, state: type | None, any_state: bool, problems: list[Exception]
    ) -> Draft:
        """Inspect the tools of an agent (or of the app, which takes any state); problems are collected, not raised."""
        tools: dict[str, Inspected] = {}
        sources: dict[str, ToolSource] = {}
        for item in items:
            try:
                source = read_tool(item)
            except ThenaError as problem:
                problem.add_note(f"in tools=[…] of {owner}")
                problems.append(problem)
                continue
            name = source.definition.name
            if name in sources:
                problems.extend(_clash(sources[name], source, owner))
                continue
            sources[name] = source
            tool = self._inspected(source, problems)
            if tool is not None:
                tools[name] = tool
                if not any_state:
                    problems.extend(_state_problems(tool, owner, state))
        problems.extend(_taken_aliases(sources))
        return Draft(tools, state)

    async def compose(self, draft: Draft, hooks: Mapping[str, Hook]) -> Toolset:
        """Make the tools' instances and put every layer around them.

        Raises:
            DependencyError: Where a constructor fails.
            ToolDefinitionError: Where a tool's `schema_for` fails.
        """
        before = [hook for hook in [hooks.get("before_tool"), *self.plugin_before] if hook is not None]
        after = [hook for hook in [hooks.get("after_tool"), *self.plugin_after] if hook is not None]
        plain: dict[str, Handler] = {}
        explained: dict[str, Explanation] = {}
        definitions: list[ToolDefinition] = []
        for name, inspected in draft.tools.items():
            tool, source = inspected, inspected.source
            instance = source.instance if source.cls is None else await self.resolver.instance(source.cls)
            tool = _shown(tool, instance, others=[one for one in draft.tools.values() if one is not tool])
            definitions.append(tool.definition)
            handler = make_handler(tool, instance, self.threads)
            plain[name], names = self._wrap(tool, handler, before, after)
            explained[name] = Explanation(tool.definition, tool.filled, names, source.origin)
        unknown = layers.unknown_tool(list(plain))
        unknown = layers.after_hooks(unknown, after[::-1]) if after else unknown
        recorded = {name: layers.record(handler) for name, handler in plain.items()}
        handlers = Handlers(plain, recorded, unknown, layers.record(unknown))
        return Toolset(definitions, handlers, explained, draft.state)

    def _inspected(self, source: ToolSource, problems: list[Exception]) -> Inspected | None:
        """Inspect a tool once, also where several agents list it."""
        key = id(source.instance if source.instance is not None else source.cls or source.definition)
        if key not in self._seen:
            if source.cls is not None:
                self.resolver.inspect(source.cls, f'tool "{source.definition.name}" ({source.origin})', problems)
            self._seen[key] = source, inspect_tool(source, _Sources(self.resolver, source), problems)
        return self._seen[key][1]

    def _wrap(
        self, tool: Inspected, innermost: Handler, before: Sequence[Hook], after: Sequence[Hook]
    ) -> tuple[Handler, list[str]]:
        """Compose the layers around one tool, innermost first; say what they are, outermost first."""
        definition = tool.definition
        tables = tuple(table for table in (definition.disclose, self.disclose) if table)
        word = functools.partial(failure_text, tables=tables, redact=self.redact)
        around = [*self.plugin_middleware(definition), *((qualified_name(fn), fn) for fn in self.middleware)]
        handler = innermost
        if definition.timeout is not None:
            handler = policy.time_limit(handler, definition.timeout)
        handler = layers.budget(policy.error_policy(handler, word))
        for _, function in reversed(around):
            handler = layers.middleware(handler, function)
        if before:
            handler = layers.before_hooks(handler, before)
        handler = layers.validate(handler, definition, tool.schema, word)
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

    def __init__(self, resolver: Resolver, source: ToolSource) -> None:
        self._resolver = resolver
        self._path = [f'tool "{source.definition.name}" ({source.origin})']

    def filler(self, parameter: Parameter, where: str, problems: list[Exception]) -> tuple[Lifetime, Filler]:
        """Return what fills a parameter."""
        own = _CALL.get(parameter.role)
        if own is not None:
            return "app", own
        path = [*self._path, f"{where}, parameter `{parameter.name}`"]
        return self._resolver.call_source(parameter, where, path, problems)

    def provides(self, tp: Any) -> bool:
        """Whether the app's container provides a type."""
        return self._resolver.provides(tp)


def _clash(first: ToolSource, second: ToolSource, owner: str) -> list[Exception]:
    if first.definition is second.definition and first.instance is second.instance and first.cls is second.cls:
        return []  # the same tool listed twice is kept once
    name = first.definition.name
    places = f"{first.origin} and {second.origin}"
    return [ToolDefinitionError(f'[thena] Two tools are named "{name}" in {owner}: {places}. Rename one of them.')]


def _taken_aliases(sources: Mapping[str, ToolSource]) -> list[Exception]:
    """List the aliases that another tool has, too, as its name or its alias: the model's call would have two owners."""
    found: list[Exception] = []
    taken = dict(sources)
    for source in sources.values():
        for alias in source.definition.aliases:
            first = taken.setdefault(alias, source)
            if first is not source:
                text = f'[thena] "{alias}" is an alias of {source.origin} and already means {first.origin}.'
                found.append(ToolDefinitionError(f"{text} Take the alias away, or leave one of the tools out."))
    return found


def _shown(tool: Inspected, instance: Any, others: Sequence[Inspected]) -> Inspected:
    """Let a tool whose schema depends on the agent's other tools say what the model sees (`schema_for`)."""
    schema_for = getattr(instance, "schema_for", None)
    if schema_for is None:
        return tool
    try:
        schema = schema_for([other.definition for other in others])
    except Exception as error:
        raise ToolDefinitionError(f"[thena] schema_for of {tool.source.origin} failed: {said_by(error)}") from error
    if schema is None:
        return tool
    if not isinstance(schema, Mapping) or cast("Mapping[str, Any]", schema).get("type") != "object":
        raise ToolDefinitionError(
            f"[thena] schema_for of {tool.source.origin} returned no JSON Schema of an object: "
            f'write {{"type": "object", "properties": …}}, or None for the tool\'s own schema.'
        )
    return replace(tool, definition=replace(tool.definition, json_schema=schema))


def _state_problems(tool: Inspected, owner: str, state: type | None) -> list[Exception]:
    found: list[Exception] = []
    for parameter in tool.signature.parameters:
        if parameter.role != "state":
            continue
        wanted = parameter.type
        name = getattr(wanted, "__name__", "MyState")
        if state is None:
            text = (
                f"it asks for the workflow's state, but no workflow that uses {owner} declares one. "
                f"Add: @workflow(steps=[…], state={name})"
            )
        elif isinstance(wanted, type) and not issubclass(state, wanted):
            text = f"it asks for the state as {name}, but the workflow's state is {state.__name__}."
        else:
            continue
        found.append(SignatureError(tool.source.where, parameter.name, text))
    return found
