"""The toolset of an agent: the only place where services, hooks and layers meet, and the only door to a tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from thena_core.call import Handler, Invocation, ToolResult, invocation, settle, view
from thena_core.calls.batch import Call, run_together
from thena_core.calls.explain import Explanation
from thena_core.definition import ToolDefinition
from thena_core.messages import ToolRequest
from thena_core.output import ToolOutput
from thena_core.run import Run


@dataclass(frozen=True, slots=True)
class Handlers:
    """A tool's two doors: without and with the record."""

    plain: Mapping[str, Handler]
    recorded: Mapping[str, Handler]
    unknown: Handler
    unknown_recorded: Handler


class Toolset:
    """The tools of one agent, each with every layer around it; frozen once the app is built."""

    __slots__ = ("_by_name", "aliases", "definitions", "explained", "handlers", "state")

    def __init__(
        self,
        definitions: Sequence[ToolDefinition],
        handlers: Handlers,
        explained: Mapping[str, Explanation],
        state: type | None = None,
    ) -> None:
        self.definitions = tuple(definitions)
        self.handlers = handlers
        self.explained = explained
        self.state = state
        self._by_name = {definition.name: definition for definition in definitions}
        self.aliases = {alias: definition.name for definition in definitions for alias in definition.aliases}

    def handler(self, run: Run, name: str) -> Handler:
        """Return the one way to call a tool in this run; an unknown name has a handler, too."""
        handlers = self.handlers
        if run.recorder is None:
            return handlers.plain.get(name, handlers.unknown)
        return handlers.recorded.get(name, handlers.unknown_recorded)

    def definition(self, name: str) -> ToolDefinition | None:
        """Return a tool's definition."""
        return self._by_name.get(name)

    def real_name(self, name: str) -> str:
        """Return the tool's own name where a model wrote one of its aliases, else the name as it is."""
        return self.aliases.get(name, name)

    def real_names(self, requests: Sequence[ToolRequest]) -> Sequence[ToolRequest]:
        """Put the tools' own names into calls, for the layers and for the history: a service may refuse an alias."""
        if not any(request.name in self.aliases for request in requests):
            return requests
        return [replace(request, name=self.real_name(request.name)) for request in requests]


class Toolbox:
    """The other tools of the same agent, wrapped in all layers: `Annotated[Toolbox, Tools]`, or `toolbox: Toolbox`.

    `await toolbox["read_file"]({"path": "a"})` calls one and returns its `ToolOutput`; iterating gives the
    `ToolDefinition`s; `batch` calls several.
    """

    __slots__ = ("_calls", "_inv", "_toolset")
    __thena_role__ = "tools"

    def __init__(self, inv: Invocation) -> None:
        self._inv = inv
        self._toolset: Toolset = inv.toolset
        self._calls = 0

    def __iter__(self) -> Iterator[ToolDefinition]:
        return (definition for definition in self._toolset.definitions if definition.name != self._inv.name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name != self._inv.name and isinstance(name, str) and self._toolset.definition(name) is not None

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
        name = toolset.real_name(name)
        index = self._calls
        self._calls += 1
        raw = arguments if isinstance(arguments, str) else dict(arguments)
        inv = invocation(outer.run, toolset, f"{outer.id}.{index}", name, raw, outer.node, outer, index)
        if outer.node is not None:
            inv.position = outer.node.take_position()
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
    settle(inv, output)
    return ToolResult(view(inv, inv.args), output, inv.outcome)
