"""The app: collect, build once, run any number of times, close."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from thena_core._render import did_you_mean
from thena_core.budget import Budget, Tracker
from thena_core.build import Assembly, Built, Collected, OnPluginError
from thena_core.call import Invocation, ToolMiddleware
from thena_core.calls.explain import Explanation
from thena_core.calls.threads import ThreadPool
from thena_core.context import Context
from thena_core.definition import Disclosure
from thena_core.errors import ThenaError
from thena_core.life import Life
from thena_core.messages import Message
from thena_core.observers import LogOption, Observers
from thena_core.output import ToolOutput
from thena_core.providers.base import ChatMiddleware
from thena_core.record.tree import Recorder
from thena_core.run import Run, RunResult, StoppedBy
from thena_core.workflows import call_alone, opening

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

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
        self._tool_middleware: list[ToolMiddleware] = []
        self._chat_middleware: list[ChatMiddleware] = []
        self._threads = ThreadPool()
        self._built: Built | None = None
        self._life: Life | None = None
        self._building = asyncio.Lock()
        self._builder: asyncio.Task[Any] | None = None
        self._closed = False
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
        history: Sequence[Message] | None = None,
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
        built = self._built or await self._ready()
        target = built.target
        if target is None:
            raise ThenaError("[thena] This app has nothing to run. Write: Thena(MyWorkflow), or use app.call(…).")
        state = target.state() if target.state is not None else None
        run_id = run_id or new_run_id()
        recorder = self._observers.recorder(run_id, log, report, built.listeners)
        run = self._new_run(opening(message, history, memory), data, state, budget, run_id, recorder)
        try:
            stopped_by = await target.carry_out(run, None, message)
        except BaseException as error:
            self._failed(run, error, report)
            raise
        return self._result(run, stopped_by, report)

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
        run_id = new_run_id()
        run = self._new_run(
            [], data, state, budget, run_id, self._observers.recorder(run_id, None, False, built.listeners)
        )
        raw = arguments if isinstance(arguments, str) else dict(arguments or {})
        try:
            return await call_alone(run, Invocation(run, toolset, "call", tool, raw))
        except BaseException as error:
            self._failed(run, error, None)
            raise

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
        if self._closed:
            return
        self._closed = True
        if self._life is not None:
            await self._life.close()
        self._threads.close()

    async def _ready(self) -> Built:
        if self._builder is not None and self._builder is asyncio.current_task():
            raise ThenaError("[thena] A plugin's startup cannot run the app: it is built when all of them are done.")
        async with self._building:
            if self._built is None:
                self._builder = asyncio.current_task()
                try:
                    assembly = Assembly(self._collected(), self._threads)
                    assembly.inspect()
                    life = Life(assembly)
                    self._built = await life.open(self)
                    self._life = life
                finally:
                    self._builder = None
            return self._built

    def _collected(self) -> Collected:
        target, tools, workflows, container, blocked, on_plugin_error, disclose = self._given
        return Collected(
            target,
            tools,
            workflows,
            container,
            self._plugins,
            blocked,
            on_plugin_error,
            tuple(self._tool_middleware),
            tuple(self._chat_middleware),
            disclose,
            self._observers.masker(),
        )

    def _new_run(
        self,
        messages: list[Message],
        data: Any,
        state: Any,
        budget: Budget | None,
        run_id: str | None,
        recorder: Recorder | None = None,
    ) -> Run:
        tracker = None if budget is None else Tracker(budget)
        run = Run(run_id or new_run_id(), history=messages, data=data, state=state, tracker=tracker, recorder=recorder)
        run.context = Context(run)
        return run

    def _failed(self, run: Run, error: BaseException, report: bool | Report | None) -> None:
        """Hang what there was on the error: as `.run` where it is ours, else the id as a note."""
        result = self._result(run, run.stopped_by or "stop", report)
        if isinstance(error, ThenaError):
            error.run = error.run or result
        elif not isinstance(error, asyncio.CancelledError):
            error.add_note(f"in the Thena run {run.id}")

    def _result(self, run: Run, stopped_by: StoppedBy, report: bool | Report | None) -> RunResult:
        usage = run.usage()
        return RunResult(
            run.output, usage, stopped_by, run.history, run.id, self._observers.write(run, stopped_by, report)
        )


def new_run_id() -> str:
    """Make up an id: the time, so that folders sort, and six random hexadecimal digits."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"
