"""The services of one run: opened at first use and closed in reverse by one task, so that task groups in them work."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from thena_core._render import said_by
from thena_core.di.catalog import effective, is_kind
from thena_core.di.graph import lifetime, needed_by
from thena_core.errors import CircularDependencyError, ResourceCloseError, ScopeError
from thena_core.run import Run

Exit = Callable[..., Any]

PATIENCE = 5.0
"""Seconds that a cancelled keeper waits for its run to end: the run's tools may still use what it keeps."""


def services_of(run: Run) -> RunServices:
    """Return a run's services, made at their first use."""
    whole = run.whole
    if whole.services is None:
        whole.services = RunServices()
    found: RunServices = whole.services
    return found


class RunServices:
    """Everything of one run that must be closed.

    A single task, the keeper, opens and closes all of it: what is opened in one task and closed in another breaks
    task groups and cancel scopes inside.
    """

    def __init__(self) -> None:
        self._values: dict[int, asyncio.Future[Any]] = {}
        self._jobs: asyncio.Queue[Any] = asyncio.Queue()
        self._exits: list[tuple[str, Exit]] = []
        self._keeper: asyncio.Task[None] | None = None
        self._opening: list[Any] = []
        self._closing = False
        self._run_error: BaseException | None = None
        self._failures: list[tuple[str, BaseException]] = []

    async def get(self, provider: Any) -> Any:
        """Return the run's object of a provider, opened once also where several calls ask at the same time.

        A failure to open is not kept: the next one who asks tries again. What is itself being opened may ask, too,
        by a handle.

        Raises:
            CircularDependencyError: Where it asks for what waits for it.
            ScopeError: Where the run has ended.
        """
        if asyncio.current_task() is self._keeper and self._keeper is not None:
            return await self._opened(provider)
        future = self._values.get(id(provider))
        if future is None and self._closing:
            raise ScopeError("[thena] A RunScoped service was asked for after its run has ended.")
        if future is None:
            future = self._expect(provider)
            self._jobs.put_nowait(provider)
            if self._keeper is None:
                self._keeper = asyncio.create_task(self._keep(), name="thena-run-services")
        return await asyncio.shield(future)  # one who gives up does not take it from the others

    async def resolve(self, provider: Any) -> Any:
        """Return what a provider gives in this run: itself run-scoped, or with something run-scoped behind it."""
        provider = effective(provider)
        if is_kind(provider, {"RunScoped"}):
            return await self.get(provider)
        return await _made(provider, self.resolve)

    async def close(self, error: BaseException | None) -> None:
        """Close everything, in reverse order, also where one fails and where the run is cancelled meanwhile.

        Args:
            error: What the run ends with; generators see it at their `yield`.

        Raises:
            ResourceCloseError: Where something failed to close and the run had no error of its own; where it had one,
                the failures are notes on it.
        """
        keeper = self._keeper
        if keeper is None:
            return
        self._run_error = error
        self._closing = True
        self._jobs.put_nowait(None)
        if self._opening:
            keeper.cancel()  # what is not open yet need not be
        cancelled: asyncio.CancelledError | None = None
        while not keeper.done():
            try:
                await asyncio.wait([keeper])
            except asyncio.CancelledError as stop:
                cancelled = stop
        for name, failure in self._failures:
            for leaving in (error, cancelled):
                if leaving is not None:
                    leaving.add_note(f'the run-scoped service "{name}" also failed to close: {said_by(failure)}')
        if cancelled is not None:
            raise cancelled
        if error is None and self._failures:
            raise ResourceCloseError(self._failures)

    def _expect(self, provider: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # a failure that nobody waits for any more is no news
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._values[id(provider)] = future
        return future

    async def _keep(self) -> None:
        while (provider := await self._next_job()) is not None:
            if self._closing:
                self._values[id(provider)].cancel()
                continue
            try:
                await self._opened(provider)
            except asyncio.CancelledError:
                asyncio.current_task().uncancel()  # type: ignore[union-attr]  # this is a task
            except BaseException:  # noqa: BLE001, S112 - it stands in the future, and is raised to who asked
                continue
        for name, leave in reversed(self._exits):
            await self._close_one(name, leave)

    async def _next_job(self) -> Any:
        """Wait for the next job. A loop that stops cancels every task: `close` is about to come, if it ever will."""
        patience: float | None = None
        while True:
            try:
                async with asyncio.timeout(patience):
                    return await self._jobs.get()
            except TimeoutError:
                self._closing = True
                return None
            except asyncio.CancelledError:
                asyncio.current_task().uncancel()  # type: ignore[union-attr]  # this is a task
                patience = PATIENCE

    async def _opened(self, provider: Any) -> Any:
        """Open a provider in the keeper's own task; what it needs of the run is opened before it."""
        future = self._values.get(id(provider)) or self._expect(provider)
        if future.done():
            return future.result()
        if provider in self._opening:
            circle = [_name_of(link) for link in [*self._opening[self._opening.index(provider) :], provider]]
            raise CircularDependencyError(
                f"[thena] A circle of run-scoped services, closed by a handle: {' -> '.join(circle)}\n"
                f"Call the handle later, in a method, not while its holder is being opened."
            )
        self._opening.append(provider)
        try:
            value = await self._enter(provider)
        except BaseException as error:
            del self._values[id(provider)]
            if isinstance(error, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(error)
            raise
        finally:
            self._opening.pop()
        future.set_result(value)
        return value

    async def _inside(self, provider: Any) -> Any:
        provider = effective(provider)
        if is_kind(provider, {"RunScoped"}):
            return await self._opened(provider)
        return await _made(provider, self._inside)

    async def _enter(self, provider: Any) -> Any:
        provides = provider.provides
        if inspect.isasyncgenfunction(provides):
            provides = contextlib.asynccontextmanager(provides)
        elif inspect.isgeneratorfunction(provides):
            provides = contextlib.contextmanager(provides)
        made: Any = await _called(provides, provider, self._inside)
        if inspect.isclass(provider.provides):
            return made
        name = _name_of(provider)
        if isinstance(made, contextlib.AbstractAsyncContextManager):
            entering = cast("contextlib.AbstractAsyncContextManager[Any]", made)
            value = await entering.__aenter__()
            self._exits.append((name, _leaving(entering.__aexit__, provider)))
            return value
        if isinstance(made, contextlib.AbstractContextManager):
            plain = cast("contextlib.AbstractContextManager[Any]", made)
            value = plain.__enter__()
            self._exits.append((name, _leaving(plain.__exit__, provider)))
            return value
        return made

    async def _close_one(self, name: str, leave: Exit) -> None:
        error = self._run_error
        try:
            result = leave(type(error) if error else None, error, error.__traceback__ if error else None)
            if inspect.isawaitable(result):
                await result
        except BaseException as failure:  # noqa: BLE001 - the others must be closed, too; `close` reports it
            if failure is not error:
                self._failures.append((name, failure))


def _leaving(leave: Exit, provider: Any) -> Exit:
    """Say how to leave a context: a plain generator goes on after its `yield` whatever happened.

    That is dependency-injector's own rule for its resources: what stands after the `yield` must run, also where nobody
    wrote `try`. Who wants to see the run's error gives a function that returns a context manager.
    """
    provides = provider.provides
    if inspect.isasyncgenfunction(provides) or inspect.isgeneratorfunction(provides):
        return lambda *_error: leave(None, None, None)
    return leave


async def value_of(provider: Any) -> Any:
    """Return what a provider gives where no run is involved; dependency-injector's awaitables are awaited."""
    value = provider()
    return await value if inspect.isawaitable(value) else value


async def _made(provider: Any, resolve: Callable[[Any], Awaitable[Any]]) -> Any:
    """Call a provider; where something run-scoped stands behind it, with arguments resolved in the run."""
    if lifetime(provider) != "run":
        return await value_of(provider)
    if is_kind(provider, {"Factory", "Callable"}):
        value = await _called(provider.provides, provider, resolve)
        for name, argument in getattr(provider, "attributes", {}).items():
            setattr(value, name, await _given(argument, resolve))
        return value
    if is_kind(provider, {"Selector"}):
        return await resolve(provider.providers[await value_of(provider.selector)])
    return await value_of(await _with_values(provider, resolve))


async def _with_values(provider: Any, resolve: Callable[[Any], Awaitable[Any]]) -> Any:
    """Copy a provider of parts (`session.provided.user`, a `List`), with the run's objects in their place."""
    from dependency_injector import providers  # noqa: PLC0415 - who comes here has it loaded

    memo: dict[int, Any] = {}
    for inner in needed_by(provider):
        in_run = lifetime(inner) == "run"
        memo[id(inner)] = providers.Object(await resolve(inner)) if in_run else inner
    given = list(provider.args) if is_kind(provider, {"List", "MethodCaller"}) else []
    given += provider.kwargs.values() if is_kind(provider, {"Dict", "MethodCaller"}) else []
    for argument in given:
        memo.setdefault(id(argument), argument)  # plain values stay themselves
    return providers.deepcopy(provider, memo)


async def _called(provides: Callable[..., Any], provider: Any, resolve: Callable[[Any], Awaitable[Any]]) -> Any:
    args = [await _given(argument, resolve) for argument in provider.args]
    kwargs = {name: await _given(argument, resolve) for name, argument in provider.kwargs.items()}
    value = provides(*args, **kwargs)
    return await value if inspect.isawaitable(value) else value


async def _given(argument: Any, resolve: Callable[[Any], Awaitable[Any]]) -> Any:
    """Resolve a provider; a delegated one is handed on as it is, and so is a plain value."""
    is_provider = hasattr(argument, "last_overriding") and callable(argument)
    return await resolve(argument) if is_provider and not getattr(argument, "__IS_DELEGATED__", False) else argument


def _name_of(provider: Any) -> str:
    return getattr(provider.provides, "__name__", type(provider).__name__)
