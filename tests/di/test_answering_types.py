"""Which provider answers for a type, and what is said where none does, or two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pytest
from dependency_injector import providers
from dependency_injector.wiring import Provide

from tests.di.apps import asking, container, refused, said, tool_of
from thena_core import (
    AmbiguousDependencyError,
    Context,
    Inject,
    MissingDependencyError,
    ScopeError,
    State,
    Toolbox,
    Tools,
)

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers
from tests.di.clocks import Clock, Local, Progress, Utc, got, made


@pytest.mark.behaviour("D09")
async def test_a_default_stands_where_nothing_provides() -> None:
    """A parameter with a default keeps it where the container has nothing, and gets the service where it has."""

    def init(self: Any, clock: Clock = Utc(), root: str = "/", later: OnlyForCheckers = 1) -> None:  # noqa: B008
        self.got = (clock.name, root, later)

    async def execute(self: Any, clock: Annotated[Clock | str, Inject] = "none") -> str:
        return getattr(clock, "name", clock)

    assert (await made(init)).got == ("utc", "/", 1)
    assert (await made(init, container(clock=providers.Singleton(Local)))).got == ("local", "/", 1)
    assert await got(execute) == "none"


@pytest.mark.behaviour("D09")
async def test_the_exact_type_wins_over_a_subclass() -> None:
    """A provider of the type itself is chosen where one of a subclass exists, too."""

    class Base:
        name = "base"

    class Derived(Base):
        name = "derived"

    def init(self: Any, part) -> None:
        self.got = part.name

    init.__annotations__["part"] = Base
    services = container(derived=providers.Singleton(Derived), base=providers.Singleton(Base))
    assert (await made(init, services)).got == "base"


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize("place", ["constructor", "execute"])
async def test_nothing_provides_it(place: str) -> None:
    """The message names parameter and type, the nearest type, and the line that provides it."""

    def init(self: Any, clock: Clock) -> None: ...

    async def execute(self: Any, clock: Annotated[Clock, Inject]) -> str:
        return ""

    class Clocks:
        """Almost."""

    asks = tool_of(init=init) if place == "constructor" else tool_of(execute)
    method = "__init__" if place == "constructor" else "execute"
    assert await said(asks, services=container(clocks=providers.Factory(Clocks))) == [
        (
            f"[thena] Order.{method}, parameter `clock`: nothing in the container provides Clock. "
            'Did you mean "Clocks"?\n'
            "Add to your container: clock = providers.Singleton(Clock)"
        )
    ]


@pytest.mark.behaviour("D03")
async def test_a_provider_whose_type_cannot_be_read() -> None:
    """Where a provider says that it gives the type, by a name that is not there at run time, the message says so."""

    def open_clock() -> OnlyForCheckers:
        return Utc()

    def init(self: Any, amount: Any) -> None: ...

    import decimal

    init.__annotations__["amount"] = type("OnlyForCheckers", (decimal.Decimal,), {})
    assert await said(tool_of(init=init), services=container(clock=providers.Singleton(open_clock))) == [
        (
            "[thena] Order.__init__, parameter `amount`: nothing in the container provides OnlyForCheckers. "
            'The provider "clock" says that it gives `OnlyForCheckers`, but that name cannot be found at run time. '
            "Import or define it in its module, outside of any function."
        )
    ]


@pytest.mark.behaviour("D03")
async def test_two_provide_it() -> None:
    """Where two match equally, the message lists both and gives the line that chooses."""

    def init(self: Any, clock: Clock) -> None: ...

    services = container(utc=providers.Singleton(Utc), local=providers.Singleton(Local))
    (problem,) = await refused(tool_of(init=init), services=services)
    assert type(problem) is AmbiguousDependencyError
    assert str(problem) == (
        "[thena] Order.__init__, parameter `clock`: 2 providers give a Clock: utc, local. "
        'Choose one: `clock: Annotated[Clock, Provide["utc"]]`.'
    )


@pytest.mark.behaviour("D03")
async def test_no_provider_of_that_name() -> None:
    """A misspelt name is told with the nearest one."""

    def init(self: Any, clock: Annotated[Clock, Provide["clcok"]]) -> None: ...

    (problem,) = await refused(tool_of(init=init), services=container(clock=providers.Singleton(Utc)))
    assert type(problem) is MissingDependencyError
    assert str(problem) == (
        '[thena] Order.__init__, parameter `clock`: the container has no provider named "clcok". Did you mean "clock"?'
    )


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize("wanted", [str, int, dict, list[str]], ids=["str", "int", "dict", "list[str]"])
async def test_a_builtin_type_is_never_injected_by_type(wanted: Any) -> None:
    """A plain `str` is not taken from a provider of a `str`: the message says to name it."""

    def init(self: Any, root) -> None: ...

    def strings() -> list[str]:
        return []

    init.__annotations__["root"] = wanted
    services = container(
        root=providers.Object("/"),
        number=providers.Object(1),
        mapping=providers.Object({}),
        strings=providers.Callable(strings),
    )
    name = str(wanted) if wanted == list[str] else wanted.__name__
    assert await said(tool_of(init=init), services=services) == [
        (
            f"[thena] Order.__init__, parameter `root`: a plain `{name}` is never injected by its type. "
            f'Name the provider: `root: Annotated[{name}, Provide["root"]]`.'
        )
    ]


@pytest.mark.behaviour("I08")
@pytest.mark.parametrize(
    ("annotation", "line"),
    [
        (Context, "ctx: Context"),
        (Annotated[Context, Context], "ctx: Context"),
        (Context[int], "ctx: Context"),
        (Annotated[Progress, State], "part: Annotated[Progress, State]"),
        (Toolbox, "toolbox: Toolbox"),
        (Annotated[Toolbox, Tools], "toolbox: Toolbox"),
    ],
    ids=["context", "marked context", "typed context", "state", "toolbox", "marked toolbox"],
)
@pytest.mark.parametrize("whose", ["tool", "agent"])
async def test_what_belongs_to_a_run_in_a_constructor(whose: str, annotation: Any, line: str) -> None:
    """No run exists yet when a constructor is called; the message says where it goes, for tools and agents."""

    def init(self: Any, part) -> None: ...

    init.__annotations__["part"] = annotation
    if whose == "tool":
        name, (problem,) = "Order", await refused(tool_of(init=init))
    else:
        name, (problem,) = "Clerk", await refused(target=asking(tools=[], __init__=init))
    assert type(problem) is ScopeError
    assert str(problem) == (
        f"[thena] {name}.__init__, parameter `part`: no run exists yet when the constructor is called. "
        f"Ask for it in execute: `{line}`."
    )
