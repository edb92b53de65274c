"""The field cases of category D that speak of injection: public reports, reduced; the inputs are written anew."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import warnings
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

import pytest
from dependency_injector import containers, providers
from dependency_injector.wiring import Provide

from tests.di.apps import container, refused, said, tool_of
from thena_core import (
    AmbiguousDependencyError,
    CircularDependencyError,
    Inject,
    MissingDependencyError,
    Prompt,
    RunScoped,
    ScopeError,
    Thena,
    agent,
    tool,
)
from thena_core.testing import FakeProvider, overridden

if TYPE_CHECKING:
    from array import array as Heavy  # noqa: N812 - a name that is not there at run time

T_co = TypeVar("T_co", covariant=True)


class Address:
    """Where a warehouse is."""


class Harbour(Address):
    """A kind of address."""


class Warehouse:
    """Needs an address."""

    def __init__(self, address: Address) -> None:
        self.address = address


class Shop:
    """Needs a warehouse."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse


class Sale:
    """A thing."""


class Client:
    """A thing."""


class Store(Protocol[T_co]):
    """Keeps things of a kind."""

    def get(self) -> T_co: ...


class Orders(Store[Sale]):
    """Keeps orders."""

    def get(self) -> Sale:
        return Sale()


class Clients(Store[Client]):
    """Keeps clients."""

    def get(self) -> Client:
        return Client()


class Cache(Generic[T_co]):
    """Keeps anything."""


def report_init(self: Any, shop: Shop) -> None:
    self.shop = shop


@pytest.mark.behaviour("D03")
async def test_d01_missing_along_the_path() -> None:
    """D01 (reagento/dishka#66, #245, #425): what, for whom and along which path, before any instance exists."""

    class Services(containers.DeclarativeContainer):
        harbour = providers.Singleton(Harbour)
        warehouse = providers.Singleton(Warehouse)
        shop = providers.Singleton(Shop, warehouse)

    async def also(self: Any, nothing: Annotated[Client, Inject]) -> str:
        return ""

    services = Services()
    found = await refused(tool_of(init=report_init), tool_of(also, name="u"), services=services)
    assert [type(problem) for problem in found] == [MissingDependencyError] * 2
    text = str(found[0])
    line = Warehouse.__init__.__code__.co_firstlineno
    steps = ["Order", "shop: Shop", '"shop"', '"warehouse"', "address: Address", f"{__name__}.Warehouse, line {line}"]
    drawn = text.partition("\n")[2]
    places = [drawn.index(step) for step in steps]
    assert places == sorted(places)
    assert text.endswith("Write: warehouse = providers.Singleton(Warehouse, address=harbour)")


@pytest.mark.behaviour("D03")
async def test_d02_circles_and_depth() -> None:
    """D02 (maldoinc/wireup#80, modern-python/modern-di#272, OpenRAE/rae#1103): the circle's path, no overflow."""
    ring = [providers.Singleton(Shop) for _ in range(3)]
    for here, there in zip(ring, [*ring[1:], ring[0]], strict=True):
        here.add_args(there)
    (problem,) = await refused(
        tool_of(init=report_init), services=container(shop=ring[0], b=providers.Object(1), c=providers.Object(2))
    )
    assert type(problem) is CircularDependencyError
    assert str(problem).startswith("[thena] A circle of providers: shop -> Shop -> Shop -> shop\n")
    selfish = providers.Factory(Shop)
    selfish.add_args(selfish)
    (text,) = await said(tool_of(init=report_init), services=container(shop=selfish))
    assert text.startswith("[thena] A circle of providers: shop -> shop\n")
    chain: Any = providers.Factory(Address)
    for _ in range(299):
        chain = providers.Factory(Warehouse, chain)
    (text,) = await said(tool_of(init=report_init), services=container(shop=providers.Factory(Shop, chain)))
    assert text.startswith("[thena] More than 200 providers stand behind one another.")


@pytest.mark.behaviour("D07")
async def test_d03_overrides_reach_what_was_built_before() -> None:
    """D03 (ets-labs/python-dependency-injector#421, #413; maldoinc/wireup#13): they nest and always unwind."""

    class Services(containers.DeclarativeContainer):
        address = providers.Singleton(Address)
        warehouse = providers.Singleton(Warehouse, address)
        shop = providers.Singleton(Shop, warehouse)

    services = Services()
    before = services.shop()
    fake, other = Harbour(), Harbour()

    def nested() -> None:
        with overridden(services, address=fake):
            assert services.shop().warehouse.address is fake
            with overridden(services, address=other):
                assert services.shop().warehouse.address is other
            assert services.shop().warehouse.address is fake
            raise LookupError

    with pytest.raises(LookupError):
        nested()
    assert type(services.shop().warehouse.address) is Address
    assert type(before.warehouse.address) is Address
    with pytest.raises(MissingDependencyError), overridden(services, adress=fake):
        pass


@pytest.mark.behaviour("D06")
async def test_d05_concurrent_first_use() -> None:
    """D05 (modern-python/that-depends#69, modern-di#188; python-dependency-injector#322): one object, no dead-lock."""
    made: list[int] = []
    attempts: list[int] = []

    async def client() -> Client:
        await asyncio.sleep(0)
        made.append(1)
        return Client()

    async def flaky() -> Sale:
        attempts.append(1)
        await asyncio.sleep(0)
        if len(attempts) == 1:
            raise ConnectionError("first")
        return Sale()

    async def outer(get_client: Any) -> Shop:
        shop = Shop(await get_client())
        assert shop.warehouse is await get_client()
        return shop

    services = {"client": RunScoped(client), "flaky": RunScoped(flaky)}
    services["outer"] = RunScoped(outer, services["client"].provider)
    got: list[Any] = []

    async def gather(self: Any, get: Annotated[Any, Provide["get"]], again: Annotated[Any, Provide["again"]]) -> str:
        got.extend(await asyncio.gather(*[get() for _ in range(20)]))
        first = await asyncio.gather(*[again() for _ in range(5)], return_exceptions=True)
        assert all(isinstance(one, (ConnectionError, Sale)) for one in first)
        return type(await again()).__name__

    async def nested(self: Any, shop: Annotated[Shop, Inject], client: Annotated[Client, Inject]) -> str:
        return str(shop.warehouse is client)

    handles = {"get": services["client"].provider, "again": services["flaky"].provider}
    tools = [tool_of(gather), tool_of(nested, name="u")]
    async with Thena(tools=tools, container=container(**services, **handles)) as app:
        assert (await app.call("t")).content == "Sale"
        assert len({id(one) for one in got}) == len(made) == 1
        assert (await asyncio.wait_for(app.call("u"), 1)).content == "True"


@pytest.mark.behaviour("D04")
def test_d06_one_event_loop_after_another() -> None:
    """D06 (encode/httpx#2473, pydantic/pydantic-ai#6850, conductor-oss/python-sdk#507): again and again, and threads."""

    class Connection:
        """Bound to the loop that opened it, as a pooled connection is."""

        def __init__(self) -> None:
            self.loop = asyncio.get_running_loop()

    async def connect() -> AsyncIterator[Connection]:
        connection = Connection()
        yield connection
        assert asyncio.get_running_loop() is connection.loop

    @tool
    async def ask(connection) -> str:
        """Uses the connection in the loop that runs."""
        return str(connection.loop is asyncio.get_running_loop())

    async def kept() -> Sale:
        return Sale()

    connected = tool_of(_asking(Connection))
    services = container(connection=_run_scoped(connect, Connection), kept=providers.Resource(kept))
    app = Thena(tools=[connected], container=services)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [asyncio.run(app.call("t")).content for _ in range(3)] == ["True"] * 3
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda _: asyncio.run(app.call("t")).content, range(2)))
        assert both == ["True"] * 2
        asyncio.run(app.close())


def _asking(wanted: type) -> Any:
    async def execute(self: Any, connection) -> str:
        return str(connection.loop is asyncio.get_running_loop())

    execute.__annotations__["connection"] = Annotated[wanted, Inject]
    return execute


def _run_scoped(function: Any, gives: type) -> Any:
    function.__annotations__["return"] = AsyncIterator[gives]  # type: ignore[valid-type]
    return RunScoped(function)


@pytest.mark.behaviour("D04")
def test_d06_runs_of_an_agent() -> None:
    """D06: `asyncio.run(app.run(…))` answers each time, in one thread, in several, and through `run_sync`."""
    clerk = agent(provider=FakeProvider(["answer"]), prompt=Prompt("p"), tools=[])(type("Clerk", (), {}))
    app, other, third = Thena(clerk), Thena(clerk), Thena(clerk)
    assert [asyncio.run(app.run("a")).output, asyncio.run(app.run("b")).output] == ["answer"] * 2
    assert [other.run_sync("a").output, other.run_sync("b").output] == ["answer"] * 2
    start = threading.Barrier(2)

    def run(message: str) -> Any:
        start.wait()
        return asyncio.run(third.run(message)).output

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, ["a", "b"], timeout=10)) == ["answer"] * 2
    if other._runner is not None:
        other._runner.close()


@pytest.mark.behaviour("D03")
async def test_d07_string_annotations() -> None:
    """D07 (maldoinc/wireup#39, taskiq-python/taskiq#265, reagento/dishka#369): resolved late, each on its own."""

    def later(self: Any, shop: LateShop, tag: Annotated[str, "cfg:tag"] = "t") -> None:
        self.got = (type(shop), tag)

    def needs_heavy(self: Any, heavy: Heavy) -> None: ...

    def optional_heavy(self: Any, shop: LateShop, heavy: Heavy | None = None) -> None:
        self.got = (type(shop), heavy)

    services = container(shop=providers.Factory(make_late_shop))
    for init, expected in ((later, "t"), (optional_heavy, None)):

        async def execute(self: Any) -> str:
            assert self.got[0] is LateShop
            return repr(self.got[1])

        async with Thena(tools=[tool_of(execute, init)], container=services) as app:
            assert (await app.call("t")).content == repr(expected)
    (text,) = await said(tool_of(init=needs_heavy), services=services)
    assert text.startswith("[thena] Order.__init__, parameter `heavy`: its type `Heavy` cannot be found at run time.")
    assert "TYPE_CHECKING" in text


def make_late_shop() -> LateShop:
    return LateShop()


class LateShop:
    """Defined after what names it."""


@pytest.mark.behaviour("D09")
async def test_d09_generics_as_keys() -> None:
    """D09 (reagento/dishka#98, #506, #421): parametrised types are distinct keys, nothing is matched by structure."""

    def init(self: Any, orders: Store[Sale], clients: Store[Client], cache: Cache[int]) -> None:
        self.got = (orders, clients, cache)

    async def execute(self: Any) -> str:
        return " ".join(type(part).__name__ for part in self.got)

    class Structural:
        """Has the method, and does not say that it is a store."""

        def get(self) -> Address:
            return Address()

    services = container(
        orders=providers.Singleton(Orders),
        clients=providers.Singleton(Clients),
        cache=providers.Singleton(Cache[int]),
        structural=providers.Singleton(Structural),
    )
    async with Thena(tools=[tool_of(execute, init)], container=services) as app:
        assert (await app.call("t")).content == "Orders Clients Cache"

    async def wrong(
        self: Any, a: Annotated[Cache[str], Inject], b: Annotated[Store, Inject], c: Annotated[Store[Address], Inject]
    ) -> str:
        return ""

    a, b, c = await refused(tool_of(wrong), services=services)
    assert [type(problem) for problem in (a, b, c)] == [
        MissingDependencyError,
        AmbiguousDependencyError,
        MissingDependencyError,
    ]
    assert 'Did you mean "Cache[int]"?' in str(a)
    assert "2 providers give a Store: orders, clients" in str(b)


@pytest.mark.behaviour("D03")
async def test_d10_a_captive_object_of_a_run() -> None:
    """D10 (mikelane/dioxide#338, modern-python/modern-di#71, fluojs/fluo#3135): refused at build, a handle is fine."""
    state = RunScoped(Address)

    (problem,) = await refused(
        tool_of(init=report_init), services=container(state=state, shop=providers.Singleton(Shop, state))
    )
    assert type(problem) is ScopeError
    assert "Order.__init__, parameter `shop: Shop`" in str(problem)
    assert '"shop" lives as long as the app and holds "state", which lives as long as one run' in str(problem)

    async def execute(self: Any, state: Annotated[Address, Inject]) -> str:
        return str(await self.shop.warehouse() is state)

    services = container(state=state, shop=providers.Singleton(Shop, state.provider))
    async with Thena(tools=[tool_of(execute, report_init)], container=services) as app:
        assert (await app.call("t")).content == "True"
    with pytest.raises(ScopeError):
        services.state()
