"""What cannot be asked for where it is asked for, and how each is to be written instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pytest
from dependency_injector import providers
from dependency_injector.wiring import Provide
from pydantic import BaseModel

from tests.di.apps import asking, container, refused, said, tool_of
from thena_core import (
    Context,
    DependencyError,
    Inject,
    Input,
    RunScoped,
    ScopeError,
    SignatureError,
    State,
    Thena,
    WorkflowRuntime,
    hookimpl,
    tool,
    workflow,
)

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers
from tests.di.clocks import Clock, Local, Progress, Repo, Session, Told, Utc, got


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
