"""What constructors and `execute` get: services by type and by name, one instance for the app."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Optional

import pytest
from dependency_injector import containers, providers
from dependency_injector.wiring import Provide

from tests.di.apps import asking, container, refused, said, tool_of
from tests.di.clocks import Clock, Local, Progress, Repo, Session, Tells, Told, Utc, got, made
from thena_core import (
    Context,
    Inject,
    Prompt,
    RunScoped,
    Thena,
    WorkflowRuntime,
    agent,
    hookimpl,
    tool,
    workflow,
)
from thena_core.testing import FakeProvider


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
