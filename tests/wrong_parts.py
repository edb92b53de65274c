"""Tools, hooks and middleware with one mistake each, and the services that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

from dependency_injector import containers, providers
from dependency_injector.wiring import Provide
from pydantic import BaseModel

from thena_core import CallNext, Context, Inject, Input, RunScoped, State, ToolCall, ToolOutput, hookimpl
from thena_core.providers import ChatRequest, ChatTurn, Provider

if TYPE_CHECKING:
    from datetime import date as OnlyForCheckers  # noqa: N812 - a name that is not there at run time


class Progress:
    """A workflow's state."""


class Clock:
    """A service."""


class Diary:
    """Holds a clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock


class OneClock(containers.DeclarativeContainer):
    """A container with a clock."""

    clock = providers.Singleton(Clock)


class TwoClocks(containers.DeclarativeContainer):
    """A container with two clocks."""

    utc = providers.Singleton(Clock)
    local = providers.Singleton(Clock)


def failing() -> Clock:
    raise OSError("disk full")


def closing_badly() -> Iterator[Clock]:
    yield Clock()
    raise OSError("disk full")


def for_checkers() -> OnlyForCheckers | Clock:
    return Clock()


def services(**named: Any) -> Any:
    """Make a container of these providers."""
    container = containers.DynamicContainer()
    container.set_providers(**named)
    return container


def a_circle() -> Any:
    """Make a container whose two providers need one another."""
    diary: Any = providers.Singleton(Diary)
    clock = providers.Singleton(Clock, diary)
    diary.add_kwargs(clock=clock)
    return services(clock=clock, diary=diary)


def a_captive() -> Any:
    """Make a container whose singleton holds a service of a run."""
    clock: Any = RunScoped(Clock)
    return services(clock=clock, diary=providers.Singleton(Diary, clock=clock))


def too_deep() -> Any:
    """Make a container with a chain of providers that nobody reads."""
    chain = providers.Factory(Clock)
    for _ in range(201):
        chain = providers.Factory(Clock, chain)
    return services(clock=chain)


class NeedsAKey(Provider):
    """A provider that cannot be made without arguments."""

    def __init__(self, key: str) -> None:
        self.key = key

    async def chat(self, request: ChatRequest) -> ChatTurn:
        return ChatTurn(self.key)


class Args(BaseModel):
    """A tool's arguments."""

    path: str


async def raising_hook(self: Any, call: ToolCall, ctx: Context[Any]) -> None:
    raise PermissionError("no access to a")


async def replacing_hook(self: Any, call: ToolCall, ctx: Context[Any]) -> ToolCall:
    return call.replace(arguments={"path": 7})


async def listing_hook(self: Any, result: Any, ctx: Any) -> Any:
    return ["not", "a", "text"]


async def answering_wrongly(self: Any, call: Any, ctx: Any) -> Any:
    return "allowed"


async def raising_middleware(call: ToolCall, call_next: CallNext) -> ToolOutput:
    raise KeyError("tenant")


async def twice(call: ToolCall, call_next: CallNext) -> ToolOutput:
    await call_next(call)
    return await call_next(call)


async def another_call(call: ToolCall, call_next: CallNext) -> ToolOutput:
    return await call_next(call.replace(arguments={"path": "b"}))


async def returning_text(call: Any, call_next: Any) -> Any:
    return (await call_next(call)).content


async def takes_model_and_more(self: Any, args: Annotated[Args, Input], query: Annotated[str, Input, Inject]) -> str:
    return ""


async def takes_state(self: Any, path: str, progress: Annotated[Progress, State]) -> str:
    return ""


async def takes_unknown_type(self: Any, day: OnlyForCheckers) -> str:
    return ""


async def takes_what_is_no_field(self: Any, paht: str) -> str:
    return ""


async def takes_clock(self: Any, path: str, clock: Annotated[Clock, Inject]) -> str:
    return ""


async def takes_diary(self: Any, path: str, diary: Annotated[Diary, Inject]) -> str:
    return ""


async def takes_unmarked_clock(self: Any, clock: Clock) -> str:
    return ""


async def takes_named(self: Any, path: str, clock: Annotated[Clock, Provide["clcok"]]) -> str:
    return ""


async def takes_anything(self: Any, **options: Any) -> str:
    return ""


async def takes_function(self: Any, function: Callable[[], int]) -> str:
    return ""


async def takes_marked_stars(self: Any, path: str, *rest: Annotated[Clock, Inject]) -> str:
    return ""


async def takes_path(self: Any, path: str) -> str:
    return path


async def takes_open_object(self: Any, filters: dict[str, str]) -> str:
    return ""


def raising_init(self: Any) -> None:
    raise FileNotFoundError("settings.toml")


def init_with_context(self: Any, ctx: Context[Any]) -> None: ...


def init_with_clock(self: Any, clock: Clock) -> None: ...


def init_with_text(self: Any, root: str) -> None: ...


def init_for_checkers(self: Any, day: OnlyForCheckers) -> None: ...


class Audit:
    """A plugin with nothing wrong."""

    @hookimpl
    def on_event(self, event: Any) -> None: ...


class Wrapping:
    """A plugin that wraps, as pluggy allows."""

    @hookimpl(wrapper=True)
    def before_tool(self, call: Any) -> Any:
        return (yield)


class Unmarked:
    """A plugin that forgot a mark."""

    @hookimpl
    def on_event(self, event: Any) -> None: ...

    def before_tool(self, call: Any) -> None: ...


async def on_event_async(self: Any, event: Any) -> None: ...


AUDIT = Audit()
WRAPPING = Wrapping()
UNMARKED = Unmarked()
