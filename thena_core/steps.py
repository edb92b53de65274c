"""The steps that a run takes: a loop, steps beside each other, and the workflow that holds them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from thena_core.calls.batch import together
from thena_core.context import Context
from thena_core.messages import History
from thena_core.record.tree import Kind, Node
from thena_core.run import LoopState, Place, Run, StoppedBy, current, worded


class Step(Protocol):
    """Something that a run does."""

    def step(self, run: Run, parent: Node | None) -> Awaitable[None]:
        """Do it once, under `parent` in the record."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class BuiltLoop:
    """A loop, ready to run.

    Attributes:
        steps: What is repeated.
        until: Whether it is done; what it returns may have to be awaited.
        max_iterations: How many iterations at most.
        max_fails: How many failed turns in a row end it.
        answers: Whether `until` means that the model has answered.
        endings: What is done where it ends in some way (`fails`, `exhausted`).
    """

    steps: Sequence[Step]
    until: Callable[[Run], Any]
    max_iterations: int
    max_fails: int
    answers: bool
    endings: Mapping[StoppedBy, Step]

    def step(self, run: Run, parent: Node | None) -> Awaitable[None]:
        """Repeat the steps until something ends the loop."""
        return self._iterate(run, None) if run.recorder is None else _recorded(run, parent, "loop", self._iterate)

    async def _iterate(self, run: Run, node: Node | None) -> None:
        fails = 0
        stopped_by: StoppedBy = "exhausted"
        steps, until, max_fails = self.steps, self.until, self.max_fails
        around = run.loop
        state = run.loop = LoopState(0, 0, self.max_iterations)
        top = run if run.parent is None else run.top  # asked once, and without a call where there is none above
        for iteration in range(1, self.max_iterations + 1):
            state.iteration = iteration
            state.fails = fails
            for step in steps:
                await step.step(run, node)
                if run.stopped_by is not None or top.stopped_by is not None or top.abort_reason is not None:
                    stopped_by = run.stopped_by or top.stopped_by or "stop"
                    break
            else:
                fails = fails + 1 if run.tool_errors and run.turn.tool_error else 0
                done = until(run)
                if done is not False and (done is True or await _truth(done)):
                    stopped_by = "until"
                elif fails >= max_fails:
                    stopped_by = "fails"
                else:
                    continue
            break
        run.loop_ended = "answered" if stopped_by == "until" and self.answers else stopped_by
        if node is not None:
            node.meta.update(iterations=state.iteration, fails=fails, stopped_by=stopped_by)
        if stopped_by in self.endings:
            await self.endings[stopped_by].step(run, node)
        run.loop = around


@dataclass(frozen=True, slots=True, eq=False)
class BuiltEnding:
    """A function that is called where a loop ends, ready to be one of its steps."""

    function: Callable[[Run], Any]

    async def step(self, run: Run, parent: Node | None) -> None:  # noqa: ARG002 - it has no node of its own
        """Call it; what it returns, unless `None`, is the run's output."""
        said = self.function(run)
        if inspect.isawaitable(said):
            said = await said
        if said is not None:
            run.output = said


@dataclass(frozen=True, slots=True, eq=False)
class BuiltSteps:
    """Steps one after the other, ready to be one step."""

    steps: Sequence[Step]

    async def step(self, run: Run, parent: Node | None) -> None:
        """Take them in order, until something stops the run."""
        for step in self.steps:
            await step.step(run, parent)
            if run.is_over:
                return


@dataclass(frozen=True, slots=True, eq=False)
class BuiltParallel:
    """Steps that are taken beside each other, ready to run."""

    steps: Sequence[Step]

    def step(self, run: Run, parent: Node | None) -> Awaitable[None]:
        """Take all of them at once, each on the history as it is now."""
        return self._at_once(run, None) if run.recorder is None else _recorded(run, parent, "parallel", self._at_once)

    async def _at_once(self, run: Run, node: Node | None) -> None:
        begun = len(run.history)
        branches = [branched(run) for _ in self.steps]
        tasks = [
            asyncio.create_task(_taken(step, branch, node)) for step, branch in zip(self.steps, branches, strict=True)
        ]
        try:
            await together(tasks)
        finally:
            joined(run, branches, begun)


@dataclass(frozen=True, slots=True, eq=False)
class BuiltWorkflow:
    """A workflow, ready to run any number of times.

    Attributes:
        name: What the record calls it.
        steps: What a run of it does, as one step.
        state: The class of its state.
    """

    name: str
    steps: Step
    state: type | None


def branched(run: Run) -> Run:
    """Make a line of its own for a step that is taken beside others: the same run, with the history as it is now."""
    run.nested += 1
    branch = Run(
        f"{run.id}.{run.nested}",
        history=History(run.history),
        data=run.data,
        state=run.state,
        tracker=run.tracker,
        recorder=run.recorder,
        parent=run,
    )
    branch.branch_of = run
    branch.root, branch.loop, branch.calls, branch.started = run.root, run.loop, run.calls, run.started
    branch.context = Context(branch)
    return branch


def joined(run: Run, branches: Sequence[Run], begun: int) -> None:
    """Add what was said on each line, in the order of the branches; together they are the newest turn.

    Args:
        run: The run.
        branches: Its lines.
        begun: How long the history was when they began.
    """
    for branch in branches:
        run.history.extend(branch.history[begun:])
        if branch.output is not None:
            run.output = branch.output
        run.stopped_by = run.stopped_by or branch.stopped_by
    run.requests = tuple(request for branch in branches for request in branch.requests)
    run.tool_errors = sum(branch.tool_errors for branch in branches)
    run.response = next((branch.response for branch in reversed(branches) if branch.response), "")
    for branch in branches:
        if run.loop_ended in (None, "answered", "until"):  # the first that was cut short tells how the run ended
            run.loop_ended = branch.loop_ended or run.loop_ended
    for branch in branches:
        branch.forget()


async def _taken(step: Step, branch: Run, node: Node | None) -> None:
    current.set(Place(branch, node))  # the task's own context: nothing to reset
    await step.step(branch, node)


async def _recorded(
    run: Run, parent: Node | None, kind: Kind, work: Callable[[Run, Node | None], Coroutine[Any, Any, None]]
) -> None:
    recorder = run.recorder
    node = None if recorder is None else recorder.open(kind, kind, parent)
    try:
        await work(run, node)
    except BaseException as error:
        if recorder is not None and node is not None:
            recorder.close(node, "error", error=worded(run, error))
        raise
    if recorder is not None and node is not None:
        recorder.close(node)


async def _truth(value: Any) -> bool:
    """Read what an `until` returned that is no plain bool; it may be `async def`."""
    return bool(await value if inspect.isawaitable(value) else value)
