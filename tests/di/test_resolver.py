"""What constructors and `execute` get of the container, and what is said of what they cannot get."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Optional, Protocol, TypeVar

import pytest
from dependency_injector import containers, providers
from dependency_injector.wiring import Provide
from pydantic import BaseModel

from tests.di.apps import asking, container, refused, said, tool_of
from thena_core import (
    AmbiguousDependencyError,
    Context,
    DependencyError,
    Inject,
    Input,
    MissingDependencyError,
    Prompt,
    RunScoped,
    ScopeError,
    SignatureError,
    State,
    Thena,
    Toolbox,
    Tools,
    WorkflowRuntime,
    agent,
    hookimpl,
    tool,
    workflow,
)
from thena_core.testing import FakeProvider

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers

T = TypeVar("T")


class Clock(ABC):  # noqa: B024 - a base, and nothing more
    """A service."""

    name = "clock"


class Utc(Clock):
    """One kind of it."""

    name = "utc"


class Local(Clock):
    """Another."""

    name = "local"


class Tells(Protocol):
    """What a clock does."""

    name: str


class Told(Tells):
    """It says that it does."""

    name = "told"


class Repo(Generic[T]):
    """A generic service."""


class Session:
    """A service of a run."""


class Progress:
    """A workflow's state."""

    def __init__(self) -> None:
        self.steps: list[str] = []


async def made(init: Any, services: Any = None, **options: Any) -> Any:
    """Build an app with one tool of this constructor, and return the instance."""
    kept: list[Any] = []

    async def execute(self: Any) -> str:
        kept.append(self)
        return ""

    async with Thena(tools=[tool_of(execute, init)], container=services, **options) as app:
        await app.call("t")
        await app.call("t")
    assert kept[0] is kept[1]
    return kept[0]


async def got(execute: Any, services: Any = None) -> str:
    """Build an app with one tool, and return what the tool answers."""
    async with Thena(tools=[tool_of(execute)], container=services) as app:
        return (await app.call("t")).content


@pytest.mark.behaviour("D01")
async def test_a_constructor_gets_its_services_by_type() -> None:
    """Each parameter gets what the container provides for its type, by whatever kind of parameter; once per app."""

    def init(self: Any, clock: Clock, /, told: Told, *, repo: Repo[int], runtime: WorkflowRuntime) -> None:
        self.got = (clock, told, repo, runtime)

    def repo() -> Repo[int]:
        return Repo()

    services = container(clock=providers.Singleton(Utc), told=providers.Factory(Told), repo=providers.Singleton(repo))
    tool_object = await made(init, services)
    assert [type(part) for part in tool_object.got] == [Utc, Told, Repo, WorkflowRuntime]
    assert tool_object.got[0] is services.clock()


@pytest.mark.behaviour("D01")
async def test_a_constructor_gets_its_services_by_name() -> None:
    """`Provide["name"]` picks one of several, plain values and options of the configuration among them."""

    def init(
        self: Any,
        clock: Annotated[Clock, Provide["local"]],
        root: Annotated[str, Provide["root"]],
        retries: Annotated[int, Provide["config.retries"]],
    ) -> None:
        self.got = (clock.name, root, retries)

    class Services(containers.DeclarativeContainer):
        config = providers.Configuration()
        utc = providers.Singleton(Utc)
        local = providers.Singleton(Local)
        root = providers.Object("/srv")

    assert (await made(init, Services(config={"retries": 3}))).got == ("local", "/srv", 3)


@pytest.mark.behaviour("D01")
async def test_one_instance_for_the_app() -> None:
    """A tool that two agents and the app list is made once, and so is an agent that two workflows use."""
    made: list[str] = []

    def count(self: Any) -> None:
        made.append(type(self).__name__)

    item = tool_of(init=count)
    first, second = asking(tools=[item], __init__=count), asking(tools=[item])

    @workflow(steps=[first, second])
    class Flow: ...

    @workflow(steps=[first], state=Progress)
    class Other: ...

    async with Thena(Flow, tools=[item], workflows=[Other]):
        assert sorted(made) == ["Clerk", "Order"]


@pytest.mark.behaviour("D01")
async def test_a_dataclass_is_a_constructor_too() -> None:
    """The fields of a dataclass are the parameters of its constructor."""

    @tool(name="t", description="d")
    @dataclass
    class Ask:
        clock: Clock

        async def execute(self) -> str:
            return self.clock.name

    async with Thena(tools=[Ask], container=container(clock=providers.Singleton(Utc))) as app:
        assert (await app.call("t")).content == "utc"


@pytest.mark.behaviour("D01")
async def test_a_runtime_in_a_constructor_starts_nested_runs() -> None:
    """The `WorkflowRuntime` that a constructor keeps starts a nested run under whatever run calls the tool."""

    @workflow(steps=[agent(provider=FakeProvider(["inner"]), prompt=Prompt("p"), tools=[])(type("Inner", (), {}))])
    class Inner: ...

    @tool(name="t", description="d")
    class Ask:
        def __init__(self, runtime: WorkflowRuntime) -> None:
            self.runtime = runtime

        async def execute(self, ctx: Context) -> str:
            result = await self.runtime.run(Inner, message="go")
            return f"{result.output} {result.run_id.startswith(ctx.run_id + '.')}"

    async with Thena(asking("t", "t", tools=[Ask]), workflows=[Inner]) as app:
        result = await app.run("go")
    assert [message.content for message in result.history if message.role == "tool"] == ["inner True"] * 2


@pytest.mark.behaviour("D01")
async def test_a_workflow_that_was_not_listed_gets_its_services() -> None:
    """A nested workflow that is built in the run has its tools' services of every lifetime."""

    @tool
    async def look(
        clock: Annotated[Clock, Inject], told: Annotated[Told, Inject], s: Annotated[Session, Inject]
    ) -> str:
        """Looks."""
        return f"{clock.name} {told.name} {type(s).__name__}"

    @workflow(steps=[asking("look", tools=[look])])
    class Inner: ...

    @tool
    async def delegate(runtime: WorkflowRuntime) -> str:
        """Starts it."""
        result = await runtime.run(Inner, message="go")
        return next(message.content for message in result.history if message.role == "tool")

    services = container(clock=providers.Singleton(Utc), told=providers.Factory(Told), session=RunScoped(Session))
    async with Thena(asking("delegate", tools=[delegate]), container=services) as app:
        result = await app.run("go")
    assert [message.content for message in result.history if message.role == "tool"] == ["utc told Session"]


@pytest.mark.behaviour("I04")
async def test_execute_gets_services_by_type_and_by_name() -> None:
    """`Inject` picks by type and `Provide["name"]` by name, beside what the model fills in."""

    async def execute(
        self: Any, path: str, clock: Annotated[Told, Inject], local: Annotated[Clock, Provide["inner.local"]]
    ) -> str:
        return f"{path} {clock.name} {local.name}"

    class Inner(containers.DeclarativeContainer):
        local = providers.Singleton(Local)
        utc = providers.Singleton(Utc)

    class Services(containers.DeclarativeContainer):
        inner = providers.Container(Inner)
        told = providers.Singleton(Told)

    async with Thena(tools=[tool_of(execute)], container=Services()) as app:
        assert (await app.call("t", {"path": "p"})).content == "p told local"
        assert list(app.explain("t", show=False).definition.json_schema["properties"]) == ["path"]
        assert (await app.call("t", {"path": "p", "clock": "x"})).is_error


@pytest.mark.behaviour("I04")
async def test_a_function_gets_services() -> None:
    """A decorated function gets services as a class's `execute` does."""

    @tool(name="t")
    async def ask(clock: Annotated[Clock, Inject]) -> str:
        """Asks."""
        return clock.name

    async with Thena(tools=[ask], container=container(clock=providers.Singleton(Utc))) as app:
        assert (await app.call("t")).content == "utc"


@pytest.mark.behaviour("D09")
@pytest.mark.parametrize(
    ("wanted", "provider", "name"),
    [
        (Clock, providers.Singleton(Utc), "Utc"),
        (Tells, providers.Singleton(Told), "Told"),
        (Repo[int], providers.Singleton(Repo[int]), "Repo"),
        (Clock | None, providers.Singleton(Utc), "Utc"),
        (Optional[Clock], providers.Singleton(Told), "NoneType"),  # noqa: UP045 - the older form
        (Clock, providers.Object(Local()), "Local"),
    ],
    ids=["base", "protocol", "alias", "optional, provided", "optional, not provided", "object"],
)
@pytest.mark.parametrize("place", ["constructor", "execute"])
async def test_what_answers_for_a_type(place: str, wanted: Any, provider: Any, name: str) -> None:
    """Bases, protocols, generic aliases and optional types are found in constructors and in `execute` alike."""

    def init(self: Any, part) -> None:
        self.got = type(part).__name__

    async def execute(self: Any, part) -> str:
        return type(part).__name__

    init.__annotations__["part"] = wanted
    execute.__annotations__["part"] = Annotated[wanted, Inject]
    services = container(part=provider)
    answer = (await made(init, services)).got if place == "constructor" else await got(execute, services)
    assert answer == name


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


@pytest.mark.behaviour("I08")
@pytest.mark.parametrize("deep", [False, True], ids=["itself", "behind a factory"])
async def test_a_run_scoped_service_in_a_constructor(deep: bool) -> None:
    """A constructor cannot hold what lives as long as one run; the path shows how it would."""

    def init(self: Any, repo: Repo) -> None: ...

    services = container(repo=providers.Factory(Repo, RunScoped(Session)) if deep else RunScoped(Repo))
    (problem,) = await refused(tool_of(init=init), services=services)
    assert type(problem) is ScopeError
    assert str(problem) == (
        "[thena] Order.__init__, parameter `repo`: the service lives as long as one run, and no run exists yet when "
        "the constructor is called.\n"
        '   tool "t" (shop.Order)\n'
        "   └─ Order.__init__, parameter `repo: Repo`\n"
        '      └─ provider "repo" (Repo)\n'
        + ('         └─ provider "Session" (Session)\n' if deep else "")
        + "Ask for it in execute: `repo: Annotated[Repo, Inject]`."
    )


@pytest.mark.behaviour("I10")
async def test_an_unmarked_parameter_of_a_provided_type() -> None:
    """Nothing says who fills it, so the build asks, with the two lines to choose from."""

    class Settings(BaseModel):
        depth: int = 1

    async def execute(self: Any, settings) -> str:
        return str(settings.depth)

    execute.__annotations__["settings"] = Settings
    services = container(settings=providers.Singleton(Settings))
    (problem,) = await refused(tool_of(execute), services=services)
    assert type(problem) is SignatureError
    assert str(problem) == (
        "[thena] Order.execute, parameter `settings`: the container provides Settings, and nothing says whether the "
        "model or the container fills it. Write one of\n"
        "  settings: Annotated[Settings, Inject]   # a service\n"
        "  settings: Annotated[Settings, Input]    # the model fills it in"
    )
    execute.__annotations__["settings"] = Annotated[Settings, Input]
    async with Thena(tools=[tool_of(execute)], container=services) as app:
        assert (await app.call("t", {"depth": 7})).content == "7"
    execute.__annotations__["settings"] = Annotated[Settings, Inject]
    assert await got(execute, services) == "1"


@pytest.mark.behaviour("I10")
async def test_an_unmarked_service_of_a_plain_class() -> None:
    """A forgotten marker is told as that, and not as a class that has no schema."""

    async def execute(self: Any, path: str, clock: Clock) -> str:
        return ""

    assert await said(tool_of(execute), services=container(clock=providers.Singleton(Utc))) == [
        (
            "[thena] Order.execute, parameter `clock`: the container provides Clock, and nothing says whether the "
            "model or the container fills it. Write one of\n"
            "  clock: Annotated[Clock, Inject]   # a service\n"
            "  clock: Annotated[Clock, Input]    # the model fills it in"
        )
    ]


@pytest.mark.behaviour("I10")
@pytest.mark.parametrize("kind", ["schema", "built-in"])
async def test_a_parameter_that_is_plainly_input(kind: str) -> None:
    """The type of `schema=`, and built-in types, are input although the container provides them."""

    class Settings(BaseModel):
        depth: int = 1

    async def execute(self: Any, settings) -> str:
        return str(settings if kind == "built-in" else settings.depth)

    execute.__annotations__["settings"] = Settings if kind == "schema" else str
    schema = Settings if kind == "schema" else None
    item = tool(name="t", description="d", schema=schema)(type("Order", (), {"execute": execute}))
    services = container(settings=providers.Singleton(Settings), root=providers.Object("/"))
    async with Thena(tools=[item], container=services) as app:
        answer = await app.call("t", {"depth": 7} if kind == "schema" else {"settings": "7"})
    assert answer.content == "7"


@pytest.mark.behaviour("I10")
@pytest.mark.parametrize("place", ["constructor", "execute"])
@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (
            Annotated[Clock, Inject, Provide["utc"]],
            "parameter `clock`: it carries Inject and Provide[…]; keep one of them.",
        ),
        (Annotated[Clock, State, Inject], "parameter `clock`: it carries State and Inject; keep one of them."),
    ],
    ids=["inject and provide", "state and inject"],
)
async def test_two_markers(place: str, annotation: Any, text: str) -> None:
    """Two markers on one parameter are refused, in constructors and in `execute`."""

    def init(self: Any, clock) -> None: ...

    async def execute(self: Any, clock) -> str:
        return ""

    init.__annotations__["clock"] = execute.__annotations__["clock"] = annotation
    asks = tool_of(init=init) if place == "constructor" else tool_of(execute)
    method = "__init__" if place == "constructor" else "execute"
    services = container(utc=providers.Singleton(Utc))
    assert await said(asks, services=services) == [f"[thena] Order.{method}, {text}"]


@pytest.mark.behaviour("I10")
async def test_a_marker_on_args() -> None:
    """A marker on `*args` or `**kwargs` is refused."""

    async def execute(self: Any, *clocks: Annotated[Clock, Inject], **more: Annotated[Clock, Inject]) -> str:
        return ""

    found = await said(tool_of(execute), services=container(clock=providers.Singleton(Utc)))
    assert found == [
        f"[thena] Order.execute, parameter `{stars}`: a marker cannot stand on it; give the value a parameter of its own."
        for stars in ("*clocks", "**more")
    ]


@pytest.mark.behaviour("D03")
async def test_a_type_that_exists_only_for_type_checkers() -> None:
    """A constructor that needs such a type is refused, with the cause and the cure."""

    def init(self: Any, amount: OnlyForCheckers) -> None: ...

    assert await said(tool_of(init=init)) == [
        (
            "[thena] Order.__init__, parameter `amount`: its type `OnlyForCheckers` cannot be found at run time. If it is "
            "imported under `if TYPE_CHECKING:`, import it normally; if it is misspelt, correct it."
        )
    ]


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize("asks", ["in a constructor", "in execute"])
async def test_a_provider_that_fails(asks: str) -> None:
    """What makes a service and fails, fails the build by the provider's name; the exception is the cause."""

    def broken() -> Clock:
        raise OSError("no battery")

    def init(self: Any, clock: Clock) -> None: ...

    async def execute(self: Any, clock: Annotated[Clock, Inject]) -> str:
        return ""

    item = tool_of(init=init) if asks == "in a constructor" else tool_of(execute)
    (problem,) = await refused(item, services=container(clock=providers.Singleton(broken)))
    assert type(problem) is DependencyError
    assert str(problem) == '[thena] The provider "clock" failed: OSError: no battery'
    assert isinstance(problem.__cause__, OSError)


@pytest.mark.behaviour("D03")
async def test_a_constructor_that_fails() -> None:
    """A constructor that raises fails the build by the class's name; the exception is the cause."""

    def init(self: Any) -> None:
        raise OSError("no battery")

    (problem,) = await refused(tool_of(init=init))
    assert str(problem) == "[thena] Order cannot be built: OSError: no battery"
    assert isinstance(problem.__cause__, OSError)


@pytest.mark.behaviour("D10")
async def test_an_agents_constructor_gets_services() -> None:
    """An agent class is made once, with its services, and its hooks reach the workflow's state."""

    def init(self: Any, clock: Clock, runtime: WorkflowRuntime) -> None:
        self.clock = clock

    async def before_tool(self: Any, call: Any, ctx: Context) -> None:
        ctx.state.steps.append(f"{self.clock.name} {call.name}")

    @tool
    async def step(progress: Annotated[Progress, State]) -> str:
        """Steps."""
        return ", ".join(progress.steps)

    clerk = asking("step", tools=[step], __init__=init, before_tool=before_tool)

    @workflow(steps=[clerk], state=Progress)
    class Flow: ...

    async with Thena(Flow, container=container(clock=providers.Singleton(Utc))) as app:
        result = await app.run("go")
    assert [message.content for message in result.history if message.role == "tool"] == ["utc step"]


@pytest.mark.behaviour("D03", "D10")
async def test_what_is_wrong_with_an_agents_constructor() -> None:
    """An agent's missing service is a problem of the build, beside those of its tools."""

    def init(self: Any, clock: Clock) -> None: ...

    async def execute(self: Any, told: Annotated[Told, Inject]) -> str:
        return ""

    assert await said(target=asking(tools=[tool_of(execute)], __init__=init)) == [
        (
            "[thena] Clerk.__init__, parameter `clock`: nothing in the container provides Clock.\n"
            "Add to your container: clock = providers.Singleton(Clock)"
        ),
        (
            "[thena] Order.execute, parameter `told`: nothing in the container provides Told.\n"
            "Add to your container: told = providers.Singleton(Told)"
        ),
    ]


@pytest.mark.behaviour("D02", "D08")
async def test_the_apps_container_shadows_a_plugins() -> None:
    """What a plugin's container provides is there, and the app's own of the same name or type comes before it."""

    class Plugin:
        @hookimpl
        def services(self) -> Any:
            return container(clock=providers.Singleton(Utc), told=providers.Singleton(Told))

    async def execute(
        self: Any,
        clock: Annotated[Clock, Inject],
        named: Annotated[Any, Provide["clock"]],
        told: Annotated[Told, Inject],
    ) -> str:
        return f"{clock.name} {named.name} {told.name}"

    answers = []
    for services in (None, container(clock=providers.Singleton(Local))):
        async with Thena(tools=[tool_of(execute)], container=services, plugins=[Plugin()]) as app:
            answers.append((await app.call("t")).content)
    assert answers == ["utc utc told", "local local told"]


@pytest.mark.behaviour("D02", "D08")
async def test_a_plugins_service_under_a_name_that_the_app_takes() -> None:
    """A plugin's app-lived service is still found by its type where the app uses its name for something else."""

    class Plugin:
        @hookimpl
        def services(self) -> Any:
            return container(clock=providers.Singleton(Utc))

    async def execute(self: Any, clock: Annotated[Clock, Inject], named: Annotated[Any, Provide["clock"]]) -> str:
        return f"{clock.name} {named}"

    services = container(clock=providers.Object("the app's"))
    async with Thena(tools=[tool_of(execute)], container=services, plugins=[Plugin()]) as app:
        assert (await app.call("t")).content == "utc the app's"


@pytest.mark.behaviour("D08")
async def test_nothing_of_the_class_is_changed() -> None:
    """Building an app leaves the tool's class and its methods as they were."""

    def init(self: Any, clock: Clock) -> None: ...

    item = tool_of(init=init)
    before = dict(vars(item))
    async with Thena(tools=[item], container=container(clock=providers.Singleton(Utc))):
        pass
    assert dict(vars(item)) == before


@pytest.mark.behaviour("D04")
async def test_an_app_lived_service_is_made_at_start() -> None:
    """A singleton that a tool asks for is made when the app starts, not at the first call."""
    log: list[str] = []

    def make() -> Clock:
        log.append("made")
        return Utc()

    async def execute(self: Any, clock: Annotated[Clock, Inject]) -> str:
        return ""

    async with Thena(tools=[tool_of(execute)], container=container(clock=providers.Singleton(make))) as app:
        assert log == ["made"]
        await app.call("t")
        await app.call("t")
    assert log == ["made"]


@pytest.mark.behaviour("D03")
async def test_nothing_is_made_where_something_is_wrong() -> None:
    """A build that fails has made no instance and opened no resource."""
    log: list[str] = []

    def init(self: Any) -> None:
        log.append("made")

    def opened() -> Iterator[Clock]:
        log.append("opened")
        yield Utc()

    async def execute(self: Any, told: Annotated[Told, Inject]) -> str:
        return ""

    await refused(tool_of(init=init), tool_of(execute, name="u"), services=container(clock=providers.Resource(opened)))
    assert log == []
