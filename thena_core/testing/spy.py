"""A plugin under observation: its functions are called in their places, and held to what the contract says of them."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

from thena_core._render import qualified_name
from thena_core.errors import EndsRun
from thena_core.hooks.manager import LoadedPlugin
from thena_core.hooks.specs import hookimpl
from thena_core.messages import ChatTurn
from thena_core.output import ToolOutput
from thena_core.testing.ledger import Ledger

ABORTED = "the conformance suite aborts here"


def spied(loaded: LoadedPlugin, ledger: Ledger) -> Any:
    """Make a plugin that has the hooks of another one, and calls them under observation."""
    members: dict[str, Any] = {"__name__": loaded.name}
    for index, (hook, implementation) in enumerate(loaded.implementations):
        watch = _WATCHES.get(hook, _watch_plain)
        function = watch(ledger, hook, implementation.function)
        mark = hookimpl(specname=hook, tryfirst=implementation.tryfirst, trylast=implementation.trylast)
        members[f"{hook}_{index}"] = mark(function)
    return SimpleNamespace(**members)


def _fitted(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a hook with those values that it takes."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return function(**values)
    wanted = {name: values[name] for name in (parameter.name for parameter in parameters) if name in values}
    positional = [wanted.pop(one.name) for one in parameters if one.kind is one.POSITIONAL_ONLY and one.name in wanted]
    return function(*positional, **wanted)


def _watch_plain(_ledger: Ledger, hook: str, function: Callable[..., Any]) -> Any:
    """Leave a hook as it is: `services`, whose failure the build tells."""

    def services() -> Any:
        return function()

    services.__name__ = hook
    return services


def _watch_before(ledger: Ledger, hook: str, function: Callable[..., Any]) -> Any:
    async def before_tool(call: Any, ctx: Any) -> Any:
        answer = await _hooked(ledger, hook, call, ctx, lambda: _fitted(function, {"call": call, "ctx": ctx}))
        if isinstance(answer, ToolOutput):
            ledger.answered[call.name] += 1
        return answer

    return before_tool


def _watch_after(ledger: Ledger, hook: str, function: Callable[..., Any]) -> Any:
    async def after_tool(result: Any, ctx: Any) -> Any:
        shown = copy.copy(result)
        answer = await _hooked(ledger, hook, shown.call, ctx, lambda: _fitted(function, {"result": shown, "ctx": ctx}))
        if shown.output is not result.output or shown.outcome != result.outcome:
            problem = "after_tool changed the result in place: return the text or the ToolOutput instead"
            ledger.blame(problem, result.call.name)
        return answer

    return after_tool


async def _hooked(ledger: Ledger, hook: str, call: Any, ctx: Any, ask: Callable[[], Any]) -> Any:
    """Call a hook for a call of a tool; what it is shown must be afterwards as it was."""
    ledger.calls[hook, call.name] += 1
    if ledger.abort_in == hook:
        ledger.abort_in = None
        ctx.abort(ABORTED)
    shown = copy.deepcopy(dict(call.arguments))
    with ledger.blaming(hook, call.name):
        answer = await ledger.awaited(ask(), hook, call.name)
    if dict(call.arguments) != shown:
        problem = f"{hook} changed the call's arguments in place: return call.replace(arguments=…) instead"
        ledger.blame(problem, call.name)
    return answer


def _watch_tool_middleware(ledger: Ledger, hook: str, function: Callable[..., Any]) -> Any:
    def tool_middleware(tool: Any) -> Any:
        with ledger.blaming(hook, tool.name):
            made = _fitted(function, {"tool": tool})
        if not callable(made):
            return made
        ledger.standing.add((tool.name, id(function)))
        return _around(ledger, hook, made, ToolOutput)

    return tool_middleware


def _watch_chat_middleware(ledger: Ledger, hook: str, function: Callable[..., Any]) -> Any:
    def chat_middleware(agent: type) -> Any:
        with ledger.blaming(hook):
            made = _fitted(function, {"agent": agent})
        return _around(ledger, hook, made, ChatTurn) if callable(made) else made

    return chat_middleware


def _around(ledger: Ledger, hook: str, function: Callable[..., Any], kind: type) -> Any:
    """Stand in a middleware's place, call it, and see what it does with the rest of the chain."""
    name = qualified_name(function)

    @functools.wraps(function)
    async def around(call: Any, call_next: Any) -> Any:
        step = getattr(call, "name", "chat")
        where = f"the {hook} {name}"
        ledger.calls[hook, step] += 1
        if ledger.abort_in == hook:
            ledger.abort_in = None
            call.ctx.abort(ABORTED)
        rest = _Rest(functools.partial(_blamed, ledger, where, step), call, call_next)
        try:
            output = await ledger.awaited(function(call, rest), where, step)
        except BaseException as error:
            if error is rest.failed:
                raise
            with ledger.blaming(where, step):
                raise
        rest.left(output, kind)
        return output

    around.__qualname__, around.__module__ = _named(function)
    return around


def _named(function: Any) -> tuple[str, str]:
    """Return how messages name a middleware, also one that is an object with `__call__`."""
    named: Any = function if hasattr(function, "__qualname__") else function.__class__
    return named.__qualname__, named.__module__


def _blamed(ledger: Ledger, where: str, tool: str, problem: str) -> None:
    ledger.blame(f"{where} {problem}", tool)


class _Rest:
    """The rest of the chain, as a middleware under observation gets it."""

    def __init__(self, blame: Callable[[str], None], call: Any, call_next: Callable[[Any], Awaitable[Any]]) -> None:
        self._blame = blame
        self._call = call
        self._call_next = call_next
        self._running = 0
        self._count = 0
        self.failed: BaseException | None = None

    async def __call__(self, passed: Any) -> Any:
        self._count += 1
        if self._count > 1:
            self._blame("called call_next twice: a call runs once, whatever came of it")
        if passed is not self._call:
            self._blame("passed on another call than the one that it got")
        self._running += 1
        try:
            return await self._call_next(passed)
        except BaseException as error:
            self.failed = error
            raise
        finally:
            self._running -= 1

    def left(self, output: Any, kind: type) -> None:
        """Look at what a middleware returned in view of what the rest of the chain had come to."""
        if self._running:
            self._blame("returned before call_next had: await it")
        if not isinstance(output, kind):
            self._blame(f"returned {type(output).__name__} where a {kind.__name__} was due")
        if self._count == 1 and isinstance(self.failed, EndsRun):
            name = type(self.failed).__name__
            self._blame(f"swallowed {name}, which must end the run: catch no more than you can handle")


def _watch_event(ledger: Ledger, hook: str, function: Callable[..., Any]) -> Any:
    def on_event(event: Any) -> None:
        with ledger.blaming(f"{hook}, for the {event.phase} of a {event.kind}", event.name):
            _fitted(function, {"event": event})

    return on_event


def _watch_life(ledger: Ledger, hook: str, function: Callable[..., Any]) -> Any:
    async def life(app: Any) -> None:
        ledger.calls[hook, ""] += 1
        with ledger.blaming(hook):
            await ledger.awaited(_fitted(function, {"app": app}), hook)

    return life


_WATCHES: Mapping[str, Callable[[Ledger, str, Callable[..., Any]], Any]] = {
    "before_tool": _watch_before,
    "after_tool": _watch_after,
    "tool_middleware": _watch_tool_middleware,
    "chat_middleware": _watch_chat_middleware,
    "on_event": _watch_event,
    "startup": _watch_life,
    "shutdown": _watch_life,
}
