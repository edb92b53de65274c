"""Carrying a run out: its time, its clean-up, one tool alone, and workflows that tools start."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from thena_core._render import qualified_name, said_by
from thena_core.budget import Budget, Tracker
from thena_core.call import Handler, Invocation
from thena_core.context import Context
from thena_core.errors import EndsRun, NestingError, ResourceCloseError, ThenaError
from thena_core.messages import History, Message
from thena_core.output import ToolOutput
from thena_core.record.tree import Node
from thena_core.run import Place, Run, RunResult, StoppedBy, current, worded
from thena_core.steps import BuiltWorkflow

T = TypeVar("T")

MAX_DEPTH = 16
"""How deep workflows may start one another; each level holds a run, its services and its frames."""


async def carry_out(
    workflow: BuiltWorkflow, run: Run, parent: Node | None, message: str | None, position: int | None = None
) -> StoppedBy:
    """Carry out a run from its first step to the closing of its services; say why it ended.

    Args:
        workflow: What it does.
        run: The run.
        parent: The node that it stands under: a tool's, for a nested run.
        message: What it is asked, for the record.
        position: Where under `parent`, if that was settled before.

    Raises:
        ThenaError: Where it fails; whatever leaves it, its services are closed and its nodes ended.
    """
    recorder = run.recorder
    node = run.root = None if recorder is None else recorder.open("workflow", workflow.name, parent, message, position)
    token = current.set(Place(run, node))
    try:
        try:
            if run.tracker.is_timed:
                await in_time(run, lambda: workflow.steps.step(run, node))
            else:
                await workflow.steps.step(run, node)
        except BaseException as error:
            if run.parent is None:
                run.tell("the run is ending")
            await clean_up(run, error)
            raise
        if run.parent is None:
            run.tell("the run is ending")  # a sync tool that was abandoned may still look
        if run.disposers is not None or run.services is not None:  # asked here, too: most runs save the coroutine
            await clean_up(run, None)
    except BaseException as error:
        if recorder is not None and node is not None:
            recorder.close(node, "error", error=worded(run, error))
        raise
    finally:
        current.reset(token)
    if recorder is not None and node is not None:
        recorder.close(node, output=run.output)
    stopped_by = run.stopped_by if run.parent is None else run.stopped_by or run.top.stopped_by
    return stopped_by or run.loop_ended or "answered"


async def in_time(run: Run, work: Callable[[], Awaitable[T]]) -> T | None:
    """Do something within the budget's `max_duration`; what is in flight then is cancelled, and `None` returned.

    Raises:
        BudgetExceededError: Where time is up and the budget says `mode="throw"`.
    """
    tracker = run.tracker
    budget = tracker.budget
    if budget is None or budget.max_duration is None:
        return await work()
    tracker.start(asyncio.get_running_loop().time())
    limit = asyncio.timeout(budget.max_duration)
    result = None
    try:
        async with limit:
            result = await work()
    except TimeoutError:
        if not limit.expired():
            raise
    if not limit.expired():
        return result
    over = tracker.exceed("max_duration", budget.max_duration, run.usage().elapsed)
    if not over.stops:
        raise run.end(over)
    run.stopped_by = "budget"
    return None


async def call_alone(run: Run, inv: Invocation) -> ToolOutput:
    """Run one tool through every layer in a run of its own, and close the run's services."""
    token = current.set(Place(run, None))
    handler: Handler = inv.toolset.handler(run, inv.name)
    try:
        output = await in_time(run, lambda: handler(inv))
    except BaseException as error:
        run.tell("the run is ending")
        await clean_up(run, error)
        raise
    else:
        run.tell("the run is ending")
        await clean_up(run, None)
        return output or ToolOutput("not finished: the budget's max_duration is used up", is_error=True)
    finally:
        current.reset(token)


async def clean_up(run: Run, error: BaseException | None) -> None:
    """Call what `on_dispose` was given, last first, and close the run's services.

    Raises:
        ResourceCloseError: Where something failed and the run had no error of its own; where it had, the failures
            are notes on it.
    """
    if run.disposers is None and run.services is None:
        return
    failures: list[tuple[str, BaseException]] = []
    try:
        await unbroken(_close_all(run, error, failures))
    except asyncio.CancelledError as cancelled:
        # where the run has an error of its own, the caller raises that: a cancellation meanwhile must not hide it
        if error is None:
            _note(failures, cancelled)
            raise
    if error is not None:
        _note(failures, error)
    elif failures:
        raise ResourceCloseError(failures)


def _note(failures: Sequence[tuple[str, BaseException]], error: BaseException) -> None:
    for name, failure in failures:
        error.add_note(f'the run-scoped service "{name}" also failed to close: {said_by(failure)}')


async def _close_all(run: Run, error: BaseException | None, failures: list[tuple[str, BaseException]]) -> None:
    if run.disposers is not None:
        await _dispose(run.disposers, failures)
    if run.services is not None:
        try:
            await run.services.close(error)
        except ResourceCloseError as closing:
            failures.extend(closing.failures)


async def unbroken(work: Coroutine[Any, Any, None]) -> None:
    """Do something to its end, also where it is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


async def _dispose(disposers: list[Callable[[], Any]], failures: list[tuple[str, BaseException]]) -> None:
    while disposers:
        function = disposers.pop()
        try:
            result = function()
            if inspect.isawaitable(result):
                await result
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - the others must be called, too
            failures.append((qualified_name(function), failure))


class WorkflowRuntime:
    """Start a workflow from inside a tool: ask for it in a constructor, or in `execute`."""

    __thena_role__ = "runtime"

    def __init__(self, find: Callable[[Any], Awaitable[BuiltWorkflow]]) -> None:
        self._find = find

    async def run(
        self,
        workflow: type,
        *,
        message: str | None = None,
        memory: str | Sequence[Message] | None = None,
        budget: Budget | None = None,
    ) -> RunResult:
        """Run a workflow with a history of its own, in the budget, the record and the `data` of the run around it.

        Args:
            workflow: A workflow class, or an agent class; listed in `Thena(workflows=[…])`, it is checked at build.
            message: What it is asked.
            memory: Text or messages put before the message; nothing else of the outer history is passed.
            budget: What it may use; the outer run's limits hold as well.

        Raises:
            EndsRun: What ends the outer run, too.
            ThenaError: Outside of a run.
        """
        place = current.get(None)
        if place is None:
            raise ThenaError("[thena] WorkflowRuntime.run() was called outside of a run: it starts nested ones.")
        outer = place.run
        if outer.depth >= MAX_DEPTH:
            raise outer.end(NestingError(MAX_DEPTH))
        run_id, position = nested_id(place), None if place.node is None else place.node.take_position()
        built = await self._found(outer, workflow)
        run = Run(
            run_id,
            history=opening(message, None, memory),
            data=outer.data,
            state=built.state() if built.state is not None else None,
            tracker=Tracker(budget, outer.tracker),
            recorder=outer.recorder,
            parent=outer,
        )
        run.context = Context(run)
        run.calls = outer.calls  # its calls can be cancelled by id, too
        try:
            stopped_by = await carry_out(built, run, place.node, message, position)
        except EndsRun as error:
            outer.end(error)
            raise
        finally:
            run.forget()
        return run.result(stopped_by)

    async def _found(self, outer: Run, workflow: type) -> BuiltWorkflow:
        try:
            return await self._find(workflow)
        except EndsRun as error:  # a workflow that cannot be built
            outer.end(error)
            raise


def nested_id(place: Place) -> str:
    """Name a nested run by its place, so that the keys of its calls are the same when the run is repeated.

    The runs that a run starts are counted. Where calls run beside each other, it depends on their timing which of them
    starts one first, so each of them counts its own.
    """
    run, lane = place.run, place.lane
    if lane is None:
        run.nested += 1
        return f"{run.id}.{run.nested}"
    lane.nested += 1
    path = lane.key.removeprefix(f"{run.id}/").replace("/", "-")
    return f"{run.id}.{path}-{lane.nested}"


def opening(
    message: str | None, history: Sequence[Message] | str | None, memory: str | Sequence[Message] | None
) -> History:
    """Return what a run's history begins with: a former one, what is remembered, what is said now.

    Raises:
        ValueError: For a text that is no history.
    """
    if history is None:
        messages = History()
    else:
        messages = History.from_json(history) if isinstance(history, str | bytes) else History(history)
    if memory is not None:
        messages.extend([Message("user", memory)] if isinstance(memory, str) else memory)
    if message is not None:
        messages.append(Message("user", message))
    return messages
