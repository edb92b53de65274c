"""The life of a built app: opened in order, closed in reverse, also where opening stopped half-way."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from thena_core._render import said_by
from thena_core.build import Assembly, Built
from thena_core.errors import EndsRun, HookError
from thena_core.record.logs import warn

if TYPE_CHECKING:
    from thena_core.app import Thena
    from thena_core.hooks.manager import Plugins


class Life:
    """What an app has opened, to be closed again."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._built: Built | None = None
        self._app: Thena | None = None
        self._started: list[tuple[str, Sequence[Callable[[Any], Any]]]] = []
        self._interrupted: BaseException | None = None

    async def open(self, app: Thena) -> Built:
        """Open the resources, make the instances, start the plugins; what fails or is cancelled closes all of it.

        Raises:
            BuildError: Where a resource or a constructor fails.
            HookError: Where a plugin's `startup` fails.
        """
        self._app = app
        try:
            self._assembly.inspect()
            built = self._built = await self._assembly.start()
            if built.plugins is not None:
                await self._start(built.plugins)
        except BaseException as error:
            # what stopped the opening is what the caller must see; what failed because of it stands in its notes
            for name, failure in await self._shut_down():
                error.add_note(f"[thena] shutdown of {name} failed, too: {said_by(failure)}")
            self._warn(await self._close_services())
            raise
        return built

    async def close(self) -> None:
        """Shut the plugins down in reverse order, close the providers and the resources.

        Raises:
            HookError: Where a plugin's `shutdown` failed; everything else is closed first.
        """
        failures = await self._shut_down()
        closing = await self._close_services()
        interrupted, self._interrupted = self._interrupted, None
        self._warn(closing)
        if interrupted is not None:
            raise interrupted
        if failures:
            name, first = failures[0]
            others = "".join(f"; {other} failed, too: {said_by(second)}" for other, second in failures[1:])
            raise HookError("shutdown", name, f"{said_by(first)}{others}") from first

    async def _start(self, plugins: Plugins) -> None:
        for plugin in plugins.lives():
            try:
                for function in plugin.startup:
                    await self._called(function)
            except EndsRun as error:
                error.add_note(f"[thena] in startup of {plugin.name}")
                raise
            except Exception as error:
                raise HookError("startup", plugin.name, said_by(error)) from error
            self._started.append((plugin.name, plugin.shutdown))

    async def _shut_down(self) -> list[tuple[str, Exception]]:
        failures: list[tuple[str, Exception]] = []
        while self._started:
            name, functions = self._started.pop()
            for function in functions:
                try:
                    await self._called(function)
                except Exception as error:  # noqa: BLE001 - the others must be shut down, too
                    failures.append((name, error))
                except BaseException as error:  # noqa: BLE001 - cancelled: raised again when all is closed
                    self._interrupted = self._interrupted or error
        return failures

    async def _close_services(self) -> list[str]:
        """Close providers and resources; return what failed, in words."""
        failures: list[str] = []
        self._assembly.threads.close()
        for provider in self._built.providers if self._built is not None else ():
            try:
                await provider.aclose()
            except Exception as error:  # noqa: BLE001 - the others must be closed, too
                failures.append(f"[thena] A model provider failed to close: {said_by(error)}")
            except BaseException as error:  # noqa: BLE001 - cancelled: raised again when all is closed
                self._interrupted = self._interrupted or error
        while True:
            try:
                closed = await self._assembly.resources.close()
            except BaseException as error:  # noqa: BLE001 - the same; the next turn closes those that are left
                self._interrupted = self._interrupted or error
                continue
            failures += [
                f'[thena] The resource "{name}" failed to shut down: {said_by(error)}' for name, error in closed
            ]
            return failures

    def _warn(self, failures: Sequence[str]) -> None:
        for failure in failures:
            warn(failure, UserWarning, stacklevel=3, may_raise=True)

    async def _called(self, function: Callable[[Any], Any]) -> None:
        result = function(self._app)
        if inspect.isawaitable(result):
            await result
