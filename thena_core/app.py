"""The app: collect, build once, run any number of times, close."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from thena_core._render import did_you_mean
from thena_core.budget import Budget
from thena_core.call import ToolMiddleware, invocation
from thena_core.definition import Disclosure
from thena_core.errors import HookError, ThenaError
from thena_core.execution import call_alone, unbroken
from thena_core.handle import RunHandle
from thena_core.hooks.chain import OnPluginError
from thena_core.messages import Message
from thena_core.observers import LogOption, Observers
from thena_core.output import ToolOutput
from thena_core.providers.base import ChatMiddleware
from thena_core.run import RunResult, being_cancelled, current
from thena_core.runner import Given, Runner

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from thena_core.build import Built
    from thena_core.calls.explain import Explanation
    from thena_core.life import Life
    from thena_core.record.report import Report


class Thena:
    """An app of tools, agents and workflows. The constructor and `use` collect; entering it, or its first run, builds.

    Args:
        target: What `run` runs: a workflow class, or an agent class, which is looped until it answers.
        tools: Tools for `app.call`, beside those of the agents.
        workflows: Workflows that tools start, so that they too are checked at build.
        container: The app's dependency-injector container.
        plugins: Entry-point names and plugin objects, first named outermost; `"installed"` for all installed ones.
        blocked: Plugin names to leave out.
        report: Write `report/<run_id>/`; a `Report` says where and how much.
        log: Print the tree on stderr, `"verbose"` with short content; a function gets the events.
        redact: Mask known secret shapes in report, log and error texts; `False` does not, a function does its own.
        on_plugin_error: `"warn"` goes on without a plugin that cannot be loaded.
        disclose: What the model may read of exceptions: class to a text, or to a function that words it.
    """

    def __init__(
        self,
        target: Any = None,
        *,
        tools: Sequence[Any] = (),
        workflows: Sequence[Any] = (),
        container: Any = None,
        plugins: Sequence[Any] | Literal["installed"] = (),
        blocked: Sequence[str] = (),
        report: bool | Report = False,
        log: LogOption = False,
        redact: bool | Callable[[str], str] = True,
        on_plugin_error: OnPluginError = "fail",
        disclose: Disclosure | None = None,
    ) -> None:
        self._given = (target, tools, workflows, container, blocked, on_plugin_error, disclose or {})
        named = [plugins] if isinstance(plugins, str) and plugins != "installed" else plugins
        self._plugins: list[Any] | Literal["installed"] = "installed" if named == "installed" else list(named)
        self._observers = Observers(log, report, redact)
        self._runs = Runner(self._observers)
        self._tool_middleware: list[ToolMiddleware] = []
        self._chat_middleware: list[ChatMiddleware] = []
        self._built: Built | None = None
        self._life: Life | None = None
        self._building = asyncio.Lock()
        self._builder: asyncio.Task[Any] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._runner: asyncio.Runner | None = None

    def use(
        self, plugin: Any = None, *, tool: ToolMiddleware | None = None, chat: ChatMiddleware | None = None
    ) -> None:
        """Add a plugin or a middleware; the first added is the outermost.

        Args:
            plugin: An entry-point name or a plugin object.
            tool: `async def fn(call, call_next) -> ToolOutput`, around every tool call.
            chat: `async def fn(call, call_next) -> ChatTurn`, around every model call.

        Raises:
            ThenaError: After the app is built.
        """
        if self._built is not None or self._builder is not None:
            raise ThenaError(
                "[thena] use() comes before the app is built, and it is built already. "
                "Call it before `async with app` and before the first run."
            )
        if plugin is not None:
            if self._plugins == "installed":
                raise ThenaError('[thena] plugins="installed" already uses every installed plugin.')
            self._plugins.append(plugin)
        if tool is not None:
            self._tool_middleware.append(tool)
        if chat is not None:
            self._chat_middleware.append(chat)

    async def __aenter__(self) -> Self:
        """Build the app.

        Raises:
            BuildError: With every problem that was found.
        """
        await self._ready()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the app."""
        await self.close()

    async def run(
        self,
        message: str | None = None,
        *,
        history: Sequence[Message] | str | None = None,
        memory: str | Sequence[Message] | None = None,
        data: Any = None,
        budget: Budget | None = None,
        run_id: str | None = None,
        report: bool | Report | None = None,
        log: LogOption | None = None,
    ) -> RunResult:
        """Run the app's workflow once.

        Args:
            message: What the user says.
            history: A former run's history, to go on from.
            memory: Text or messages put before the message.
            data: Anything for tools, hooks and middleware (`ctx.data`); it never leaves the process.
            budget: What the run may use.
            run_id: Its id; made up unless given.
            report: As in the constructor, for this run.
            log: As in the constructor, for this run.

        Raises:
            BuildError: Where the app cannot be built.
            EndsRun: Where a tool, a guard or a budget ended the run; `.run` holds what there was.
            ProviderError: Where the model service failed.
        """
        given = Given(message, history, memory, data, budget, self._runs.id_for(run_id), report, log)
        return await self._runs.carry(self._built or await self._ready(), given, None)

    def start(
        self,
        message: str | None = None,
        *,
        history: Sequence[Message] | str | None = None,
        memory: str | Sequence[Message] | None = None,
        data: Any = None,
        budget: Budget | None = None,
        run_id: str | None = None,
        report: bool | Report | None = None,
        log: LogOption | None = None,
    ) -> RunHandle:
        """Start a run in a task of its own and return its handle at once; the arguments are those of `run`.

        Raises:
            RuntimeError: Outside of an event loop.
        """
        given = Given(message, history, memory, data, budget, self._runs.id_for(run_id), report, log)

        async def carried(handle: RunHandle) -> RunResult:
            return await self._runs.carry(self._built or await self._ready(), given, handle)

        return RunHandle(given.run_id, carried)

    def run_sync(self, message: str | None = None, **options: Any) -> RunResult:
        """Run the app from a script without an event loop; the arguments are those of `run`.

        All such runs of an app share one loop, so that its HTTP clients stay usable.

        Raises:
            ThenaError: Inside of an event loop, where `await app.run(…)` belongs.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._runner is None:
                self._runner = asyncio.Runner()
            return self._runner.run(self.run(message, **options))
        raise ThenaError("[thena] run_sync() was called inside of an event loop. Write: await app.run(…)")

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        data: Any = None,
        budget: Budget | None = None,
        state: Any = None,
        agent: str | type | None = None,
    ) -> ToolOutput:
        """Run one tool through every layer, without a model.

        Args:
            tool: Its name; an unknown one is an observation, as it is for a model.
            arguments: A mapping, or JSON text as a model sends it.
            data: What the tool sees as `ctx.data`.
            budget: What the call may use.
            state: What the tool sees as the workflow's state.
            agent: Whose tool, with that agent's hooks; needed where several agents have a tool of that name.

        Raises:
            EndsRun: Where a layer or the tool ends the run.
        """
        built = self._built or await self._ready()
        toolset = built.toolset_for(tool, agent)
        if state is None and toolset.state is not None:
            state = toolset.state()
        given = Given(None, None, None, data, budget, self._runs.id_for(None), False, None)
        run = self._runs.new_run(given, built, state, None)
        raw = arguments if isinstance(arguments, str) else dict(arguments or {})
        work = call_alone(run, invocation(run, toolset, "call", toolset.real_name(tool), raw))
        return await self._runs.guard(run, work)

    def explain(self, tool: str, *, agent: str | type | None = None, show: bool = True) -> Explanation:
        """Return, and print, a tool's schema, what fills its parameters, and its layers in order with their origin.

        Raises:
            ThenaError: Before the app is built, and for a tool that there is not.
        """
        built = self._built
        if built is None:
            raise ThenaError("[thena] explain() comes after the app is built. Write: async with app: app.explain(…)")
        toolset = built.toolset_for(tool, agent)
        found = toolset.explained.get(tool)
        if found is None:
            raise ThenaError(f'[thena] There is no tool "{tool}".{did_you_mean(tool, toolset.explained)}')
        if show:
            sys.stdout.write(str(found) + "\n")
        return found

    async def close(self) -> None:
        """Close what the app opened: plugins in reverse order, model providers, the container's resources.

        Raises:
            HookError: Where a plugin's `shutdown` failed; everything else is closed first.
        """
        place = current.get(None)
        if place is not None and self._runs.holds(place.run.top):
            raise ThenaError("[thena] close() was called from inside a run of the app, which it would wait for.")
        first = self._closing is None
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="thena-close")
        closing = self._closing
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            if first and not closing.done():
                closing.cancel()  # ends the shutdown that is waited for; the rest is closed all the same
            while not closing.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([closing])
            if first or being_cancelled():
                raise
        except HookError as error:
            if first:  # told once
                self._observers.mask(error)
                raise

    async def _close(self) -> None:
        try:
            await unbroken(self._runs.close())
        finally:
            async with self._building:  # what is being built is there to be closed when it is done
                if self._life is not None:
                    await self._life.close()

    async def _ready(self) -> Built:
        if self._builder is not None and self._builder is asyncio.current_task():
            raise ThenaError("[thena] A plugin's startup cannot run the app: it is built when all of them are done.")
        async with self._building:
            if self._closing is not None:
                raise ThenaError("[thena] The app is closed. Make a new one, or keep it open around its runs.")
            if self._built is None:
                self._builder = asyncio.current_task()
                try:
                    self._built = await self._build()
                finally:
                    self._builder = None
            return self._built

    async def _build(self) -> Built:
        # inspecting tools takes pydantic's types, the services and more: nothing that an import should pay for
        from thena_core.build import Assembly, Collected  # noqa: PLC0415
        from thena_core.life import Life  # noqa: PLC0415

        life = Life(Assembly(Collected(*self._given, **self._used())))
        try:
            built = await life.open(self)
        except Exception as error:
            self._observers.mask(error)
            raise
        self._life = life
        return built

    def _used(self) -> dict[str, Any]:
        """Return what `use` collected, as `Collected` names it."""
        return {
            "plugins": self._plugins,
            "tool_middleware": tuple(self._tool_middleware),
            "chat_middleware": tuple(self._chat_middleware),
            "redact": self._observers.masker(),
        }
