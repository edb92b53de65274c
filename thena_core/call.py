"""One call of a tool: the framework's own record of it, and the read-only view that hooks and middleware get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from thena_core.definition import MAX_OUTPUT_CHARS, ToolDefinition
from thena_core.errors import HookError
from thena_core.output import Outcome, ToolOutput

if TYPE_CHECKING:
    from thena_core.context import Context
    from thena_core.record.tree import Node
    from thena_core.run import Run


class ArgumentsReader(Protocol):
    """What a call needs of a tool's schema: to show its arguments and to check new ones."""

    def mapping(self, args: Any) -> Mapping[str, Any]:
        """Show validated arguments under their names on the wire."""
        ...

    def check(self, arguments: Mapping[str, Any]) -> Any:
        """Validate a mapping at once.

        Raises:
            ValueError: With each field that is wrong.
        """
        ...


class Invocation:
    """One call on its way through the layers: the only thing made per call, mutable, and never handed out.

    It refers to no view of itself: with such a cycle each call would wait for the garbage collector.
    """

    run: Run
    toolset: Any
    id: str
    name: str
    raw: Any  # what the model sent
    turn: int
    time_limit: float | None
    parent: Node | None
    outcome: Outcome
    # defaults of the class, not set one by one: most calls need none of them, and one of these is made per call
    outer: Invocation | None = None
    index: int = 0
    position: int | None = None  # in the record, where it was asked for together with others
    args: Any = None
    node: Node | None = None
    output: ToolOutput | None = None
    definition: ToolDefinition | None = None
    schema: ArgumentsReader | None = None
    services: dict[str, Any] | None = None
    cancelled: bool = False
    nested: int = 0  # how many nested runs it has started, where it runs beside other calls

    @property
    def max_output_chars(self) -> int:
        """The most characters of its observation."""
        return MAX_OUTPUT_CHARS if self.definition is None else self.definition.max_output_chars

    @property
    def key(self) -> str:
        """The call's position in the run: the same when the run is resumed."""
        if self.outer is not None:
            return f"{self.outer.key}/{self.index}"
        return f"{self.run.id}/{self.turn}/{self.index}"

    def note(self, **facts: Any) -> None:
        """Write to the call's node; nothing happens where nobody looks."""
        if self.node is not None:
            self.node.meta.update(facts)


def invocation(
    run: Run,
    toolset: Any,
    call_id: str,
    name: str,
    raw: Any,
    parent: Node | None = None,
    outer: Invocation | None = None,
    index: int = 0,
) -> Invocation:
    """Make the record of one call; a function, which Python 3.11 calls in two thirds of the time of a constructor."""
    inv = Invocation()
    inv.run = run
    inv.toolset = toolset
    inv.id = call_id
    inv.name = name
    inv.raw = raw
    inv.turn = run.turns
    inv.parent = parent
    inv.outcome = "ok"
    inv.time_limit = None
    if outer is not None:
        inv.outer = outer
    if index:
        inv.index = index
    return inv


class ToolCall:
    """A call, as hooks and middleware see it: read-only. A hook changes it by returning `call.replace(arguments=…)`.

    Changing what `args` refers to in place is not supported: nothing would validate it, and the report would not
    show it.
    """

    __slots__ = ("_args", "_inv")
    _inv: Invocation
    _args: Any

    @property
    def id(self) -> str:
        """The model's id of the call; inner calls have derived ones."""
        return self._inv.id

    @property
    def name(self) -> str:
        """The tool's real name, also inside a batch."""
        return self._inv.name

    @property
    def args(self) -> Any:
        """The validated object; `None` where there is none (unknown tool, invalid arguments)."""
        return self._args

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The validated arguments as a read-only mapping, under their names on the wire."""
        schema = self._inv.schema
        if schema is None or self._args is None:
            return MappingProxyType({})
        return MappingProxyType(dict(schema.mapping(self._args)))

    @property
    def raw(self) -> Any:
        """What the model sent."""
        return self._inv.raw

    @property
    def ctx(self) -> Context[Any]:
        """The run."""
        return self._inv.run.living_context()

    @property
    def definition(self) -> ToolDefinition | None:
        """The tool's definition; `None` for an unknown name."""
        return self._inv.definition

    @property
    def key(self) -> str:
        """An idempotency key: derived from the call's position, stable when a run is resumed."""
        return self._inv.key

    def is_view_of(self, invocation: Invocation) -> bool:
        """Whether it shows this call; ids alone do not tell, since some services repeat them."""
        return self._inv is invocation

    def meta(self, **data: Any) -> None:
        """Write to the node of this call; nothing happens where nobody looks."""
        self._inv.note(**data)

    def replace(self, *, arguments: Mapping[str, Any]) -> ToolCall:
        """Return the call with other arguments, the whole mapping, validated at once. Only for hooks.

        Raises:
            HookError: Where the new arguments do not fit the tool's schema.
        """
        schema = self._inv.schema
        if schema is None:
            raise HookError("before_tool", "call.replace", "a call of an unknown tool has no arguments", self.name)
        try:
            args = schema.check(arguments)
        except ValueError as error:
            raise HookError("before_tool", "call.replace", str(error), self.name) from None
        return view(self._inv, args)

    def __repr__(self) -> str:
        return f"<ToolCall {self.name!r} id={self.id!r}>"


def view(inv: Invocation, args: Any) -> ToolCall:
    """Show a call with these arguments; a function, as `invocation` is, since each hook and middleware gets one."""
    call = ToolCall()
    call._inv = inv  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    call._args = args  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return call


@dataclass(slots=True)
class ToolResult:
    """What came of a call.

    Attributes:
        call: The call.
        output: What the model reads, and the data that it does not.
        outcome: How it ended: `ok`, `error`, `invalid`, `unknown`, `denied`, `over_budget`, `timeout`, `cancelled`.
    """

    call: ToolCall
    output: ToolOutput
    outcome: Outcome


def settle(inv: Invocation, output: ToolOutput) -> None:
    """Make the outcome agree with what the model is going to read."""
    if output.is_error:
        if inv.outcome == "ok":
            inv.outcome = "error"
    elif inv.outcome != "ok":
        inv.outcome = "ok"


Handler = Callable[[Invocation], Awaitable[ToolOutput]]
"""One flat function per tool, with every layer around it; composed when the app is built."""

CallNext = Callable[[ToolCall], Awaitable[ToolOutput]]
ToolMiddleware = Callable[[ToolCall, CallNext], Awaitable[ToolOutput]]
