"""The walk through the providers behind a service: lifetimes, and what is missing, circular or captive in it."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import pytest
from dependency_injector import providers
from dependency_injector.wiring import Provide

from tests.di.apps import container, refused, said, tool_of
from thena_core import (
    CircularDependencyError,
    DependencyError,
    Inject,
    MissingDependencyError,
    RunScoped,
    ScopeError,
)
from thena_core.di.graph import drawn, lifetime


class Dsn:
    """A leaf."""


class Repo:
    """Needs a leaf."""

    def __init__(self, dsn: Dsn) -> None:
        self.dsn = dsn


class Service:
    """Needs a repo."""

    def __init__(self, repo: Repo, *, retries: int = 3) -> None:
        self.repo = repo


class Session:
    """A service of a run."""


INIT = Repo.__init__.__code__.co_firstlineno
HERE = __name__


def taking_service(self: Any, service: Service) -> None: ...


async def using_service(self: Any, service: Annotated[Service, Inject]) -> str:
    return ""


@pytest.mark.behaviour("D04")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda session: session, "run"),
        (lambda session: providers.Factory(Service, session), "run"),
        (lambda session: providers.Factory(Service, providers.List(session.provided.x)), "run"),
        (lambda session: providers.Dependency(default=session), "run"),
        (lambda session: providers.Factory(Service), "call"),
        (lambda session: providers.DelegatedFactory(Service), "call"),
        (lambda session: providers.List(providers.Factory(Service)), "call"),
        (lambda session: providers.Callable(Service), "call"),
        (lambda session: providers.Singleton(Service, session), "app"),
        (lambda session: providers.ThreadSafeSingleton(Service), "app"),
        (lambda session: providers.Resource(Service), "app"),
        (lambda session: providers.Object(1), "app"),
        (lambda session: providers.Configuration().root, "app"),
        (lambda session: providers.Configuration().root.as_int(), "app"),
        (lambda session: session.provider, "app"),
    ],
    ids=range(15),
)
def test_how_long_each_lives(make: Any, expected: str) -> None:
    """A `RunScoped` anywhere behind a factory makes it the run's; what is kept, a value or a handle is the app's."""
    assert lifetime(make(RunScoped(Session))) == expected


def test_a_wide_graph_is_walked_once() -> None:
    """Forty levels, each needing the one below twice, take no time that doubles with each level."""
    provider: Any = providers.Factory(Session)
    for _ in range(40):
        provider = providers.Factory(Service, provider, provider)
    started = time.process_time()
    assert lifetime(provider) == "call"
    assert time.process_time() - started < 1


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize("where", ["constructor", "execute"])
async def test_an_argument_that_a_provider_does_not_give(where: str) -> None:
    """The message names provider, class and parameter, draws the path to the line, and gives the line to paste."""
    services = container(dsn=providers.Factory(Dsn), repo=providers.Singleton(Repo))
    services.set_provider("service", providers.Singleton(Service, services.repo))
    tool = tool_of(init=taking_service) if where == "constructor" else tool_of(using_service)
    step = (
        "Order.__init__, parameter `service: Service`"
        if where == "constructor"
        else "Order.execute, parameter `service`"
    )
    steps = ['   tool "t" (shop.Order)', f"   └─ {step}"]
    assert await said(tool, services=services) == [
        '[thena] The provider "repo" does not give Repo its `dsn: Dsn`.\n'
        + "\n".join(steps)
        + '\n      └─ provider "service" (Service)\n'
        '         └─ provider "repo" (Repo)\n'
        f"            └─ dsn: Dsn — of {HERE}.Repo, line {INIT}\n"
        "Write: repo = providers.Singleton(Repo, dsn=dsn)"
    ]


@pytest.mark.behaviour("D03")
async def test_a_missing_argument_of_an_almost_known_type() -> None:
    """Where nothing provides the argument's type, the nearest type that is provided is named."""

    class Dsns:
        """Almost."""

    services = container(dsns=providers.Factory(Dsns), service=providers.Factory(Service, providers.Factory(Repo)))
    (text,) = await said(tool_of(using_service), services=services)
    assert text.startswith('[thena] The provider "Repo" does not give Repo its `dsn: Dsn`. Did you mean "Dsns"?\n')
    assert text.endswith("\nWrite: Repo = providers.Factory(Repo, dsn=dsn)")


@pytest.mark.behaviour("D03")
async def test_an_argument_without_a_type() -> None:
    """A parameter without annotation is named by its name alone."""

    def bare(thing):
        return Service(thing)

    bare.__annotations__["return"] = Service
    (text,) = await said(tool_of(using_service), services=container(service=RunScoped(bare)))
    assert text.startswith('[thena] The provider "service" does not give bare its `thing`.\n')
    assert text.endswith("\nWrite: service = RunScoped(bare, thing=thing)")


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize(
    "provides", [dict, Dsn, lambda *args, **kwargs: Service(Repo(Dsn()))], ids=["C", "none", "any"]
)
async def test_what_takes_nothing_lacks_nothing(provides: Any) -> None:
    """A class written in C, one without parameters and a function of `*args` have nothing missing."""
    from thena_core import Thena

    async def using(self: Any, part: Annotated[Any, Provide["part"]]) -> str:
        return "ok"

    async with Thena(tools=[tool_of(using)], container=container(part=providers.Factory(provides))) as app:
        assert (await app.call("t")).content == "ok"


@pytest.mark.behaviour("D03")
async def test_a_dependency_that_nobody_fills() -> None:
    """A `Dependency` without a value is told with the line that fills it."""
    services = container(dsn=providers.Dependency(instance_of=Dsn))
    services.set_provider("service", providers.Factory(Service, providers.Factory(Repo, services.dsn)))
    assert await said(tool_of(using_service), services=services) == [
        (
            '[thena] The provider "dsn" is a Dependency(Dsn) that nobody fills.\n'
            '   tool "t" (shop.Order)\n'
            "   └─ Order.execute, parameter `service`\n"
            '      └─ provider "service" (Service)\n'
            '         └─ provider "Repo" (Repo)\n'
            '            └─ provider "dsn"\n'
            "Give it when you make the container: MyContainer(dsn=providers.Singleton(Dsn))"
        )
    ]


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize(
    "kind", [providers.Factory, providers.Singleton, RunScoped], ids=["factory", "singleton", "run"]
)
async def test_a_circle_is_drawn(kind: Any) -> None:
    """Providers that need one another are named in their order, from the one that is asked for round to it again."""
    service, repo, dsn = kind(Service), kind(Repo), kind(Dsn)
    service.add_args(repo)
    repo.add_args(dsn)
    dsn.add_args(service)
    (problem,) = await refused(tool_of(using_service), services=container(service=service, repo=repo, dsn=dsn))
    assert type(problem) is CircularDependencyError
    written = "RunScoped" if kind is RunScoped else f"providers.{kind.__name__}"
    assert str(problem) == (
        "[thena] A circle of providers: service -> repo -> dsn -> service\n"
        '   tool "t" (shop.Order)\n'
        "   └─ Order.execute, parameter `service`\n"
        '      └─ provider "service" (Service)\n'
        '         └─ provider "repo" (Repo)\n'
        '            └─ provider "dsn" (Dsn)\n'
        '               └─ provider "service" (Service)\n'
        f"Let one of them take a handle, and call it later: dsn = {written}(…, service=service.provider)"
    )


@pytest.mark.behaviour("D03")
async def test_a_provider_that_needs_itself() -> None:
    """A circle of one is told as `service -> service`."""
    service = providers.Factory(Service)
    service.add_args(service)
    (text,) = await said(tool_of(init=taking_service), services=container(service=service))
    assert text.splitlines()[0] == "[thena] A circle of providers: service -> service"


@pytest.mark.behaviour("D03")
async def test_a_circle_behind_what_is_asked_for() -> None:
    """A circle further down is drawn with the way to it."""
    repo, dsn = providers.Factory(Repo), providers.Factory(Dsn)
    repo.add_args(dsn)
    dsn.add_args(repo)
    services = container(service=providers.Factory(Service, repo), repo=repo, dsn=dsn)
    (text,) = await said(tool_of(using_service), services=services)
    assert text.splitlines()[0] == "[thena] A circle of providers: repo -> dsn -> repo"
    assert '\n      └─ provider "service" (Service)\n         └─ provider "repo" (Repo)\n' in text


@pytest.mark.behaviour("D03")
async def test_a_handle_breaks_a_circle() -> None:
    """A handle in a circle is no need, so nothing is circular."""
    from thena_core import Thena

    service, repo = providers.Singleton(Service), providers.Singleton(Repo)
    service.add_args(repo)
    repo.add_args(service.provider)
    async with Thena(tools=[tool_of(using_service)], container=container(service=service, repo=repo)):
        pass


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize("holder", [providers.Singleton, providers.Resource], ids=["singleton", "resource"])
@pytest.mark.parametrize("deep", [False, True], ids=["directly", "behind a factory"])
async def test_what_lives_as_long_as_the_app_holds_nothing_of_a_run(holder: Any, deep: bool) -> None:
    """A singleton or a resource that would capture the first run's object is refused, with the way to it."""
    session = RunScoped(Session)
    held = providers.Factory(Repo, session) if deep else session
    services = container(session=session, repo=held if deep else providers.Object(1), service=holder(Service, held))
    (problem,) = await refused(tool_of(using_service), services=services)
    assert type(problem) is ScopeError
    name, shown = ("repo", "Repo") if deep else ("session", "Session")
    assert str(problem) == (
        f'[thena] The provider "service" lives as long as the app and holds "{name}", which lives as long as one run.\n'
        '   tool "t" (shop.Order)\n'
        "   └─ Order.execute, parameter `service`\n"
        '      └─ provider "service" (Service)\n'
        f'         └─ provider "{name}" ({shown})\n'
        + ('            └─ provider "session" (Session)\n' if deep else "")
        + "Make it live as long as a run, too: service = RunScoped(…)"
    )


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize("length", [150, 250, 500], ids=["deep", "too deep", "much too deep"])
async def test_a_deep_chain(length: int) -> None:
    """A long chain is built or refused with a clear text; it never ends in a `RecursionError`."""
    provider: Any = providers.Factory(Dsn)
    for _ in range(length):
        provider = providers.Factory(Repo, provider)
    problems: list[Exception] = []
    from thena_core.di.catalog import Catalog
    from thena_core.di.graph import check_graph

    assert lifetime(provider) == "call"
    problems.extend(check_graph(Catalog(), provider, ["the tool"]))
    if length < 200:
        assert problems == []
        return
    (problem,) = problems
    assert type(problem) is DependencyError
    assert str(problem) == (
        "[thena] More than 200 providers stand behind one another.\n"
        "   the tool\n"
        '   └─ provider "Repo" (Repo)\n'
        '      └─ provider "Repo" (Repo)\n'
        '         └─ provider "Repo" (Repo)\n'
        "   …"
    )
    assert length < sys.getrecursionlimit()


@pytest.mark.behaviour("D03")
async def test_everything_is_told_at_once() -> None:
    """Missing, ambiguous, circular and captive ones of several tools come in one error, each once."""
    one, other = providers.Factory(Repo), providers.Factory(Dsn)
    one.add_args(other)
    other.add_args(one)
    services = container(
        one=one,
        first=providers.Factory(Session),
        second=providers.Factory(Session),
        captive=providers.Singleton(Service, RunScoped(Dsn)),
    )

    async def wrong(
        self: Any,
        repo: Annotated[Repo, Inject],
        session: Annotated[Session, Inject],
        service: Annotated[Service, Inject],
        missing: Annotated[int, Provide["missing"]],
    ) -> str:
        return ""

    async def wrong_again(self: Any, repo: Annotated[Repo, Inject], nothing: Annotated[ScopeError, Inject]) -> str:
        return ""

    found = await refused(tool_of(wrong), tool_of(wrong_again, name="u"), services=services)
    assert sorted(type(problem).__name__ for problem in found) == [
        "AmbiguousDependencyError",
        "CircularDependencyError",
        "MissingDependencyError",
        "MissingDependencyError",
        "ScopeError",
    ]
    assert sum(isinstance(problem, MissingDependencyError) for problem in found) == 2


def test_a_path_is_drawn() -> None:
    """Each step stands under the one that asks for it."""
    assert drawn(["a", "b", "c"]) == "   a\n   └─ b\n      └─ c"
