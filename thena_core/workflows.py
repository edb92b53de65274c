"""Workflows: what `@workflow` declares, the loop around agents, and how both become steps that a run takes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from thena_core.agents import BuiltAgent
from thena_core.context import Context
from thena_core.errors import EndsRun, WorkflowDefinitionError
from thena_core.record.tree import Node
from thena_core.run import LoopState, Run, StoppedBy

ClassT = TypeVar("ClassT", bound=type)
Until = Callable[..., Any]

MAX_ITERATIONS = 10
MAX_FAILS = 5


def until_answered(ctx: Context[Any]) -> bool:
    """End a loop when the model answered without asking for a tool."""
    return not ctx.turn.called_tool


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps that are repeated; made by `loop`."""

    steps: Sequence[Any]
    until: Until
    max_iterations: int
    max_fails: int


def loop(
    steps: Sequence[Any],
    *,
    until: Until = until_answered,
    max_iterations: int = MAX_ITERATIONS,
    max_fails: int = MAX_FAILS,
) -> Loop:
    """Repeat steps until a condition holds.

    Args:
        steps: Agents, or other steps.
        until: Asked after each iteration: `until(ctx)` or `until(ctx, state)`.
        max_iterations: How many iterations at most.
        max_fails: How many failed turns in a row end it; a turn fails when every call of it failed.
    """
    return Loop(tuple(steps), until, max_iterations, max_fails)


@dataclass(frozen=True, slots=True)
class WorkflowSpec:
    """What `@workflow` leaves on a class."""

    steps: Sequence[Any]
    state: type | None
    name: str | None


def workflow(*, steps: Sequence[Any], state: type | None = None, name: str | None = None) -> Callable[[ClassT], ClassT]:
    """Declare a class as a workflow.

    Args:
        steps: Agents, loops, other steps, in order.
        state: A class, called without arguments for each run; tools and `until` share the instance.
        name: What the record calls it; the class's name unless given.
    """
    spec = WorkflowSpec(tuple(steps), state, name)

    def declare(cls: ClassT) -> ClassT:
        cls.__thena_workflow__ = spec  # type: ignore[attr-defined]
        return cls

    return declare


class Step(Protocol):
    """Something that a run does."""

    def step(self, run: Run, parent: Node | None) -> Awaitable[None]:
        """Do it once, under `parent` in the record."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class BuiltLoop:
    """A loop, ready to run."""

    steps: Sequence[Step]
    until: Callable[[Run], Any]
    max_iterations: int
    max_fails: int
    answers: bool

    def step(self, run: Run, parent: Node | None) -> Awaitable[None]:
        """Repeat the steps until something ends the loop."""
        return self._iterate(run, None) if run.recorder is None else self._recorded(run, parent)

    async def _recorded(self, run: Run, parent: Node | None) -> None:
        recorder = run.recorder
        if recorder is None:
            return
        node = recorder.open("loop", "loop", parent)
        try:
            await self._iterate(run, node)
        except BaseException as error:
            recorder.close(node, "error", error=str(error) if isinstance(error, EndsRun) else type(error).__name__)
            raise
        recorder.close(node)

    async def _iterate(self, run: Run, node: Node | None) -> None:
        fails = iterations = 0
        over = False
        stopped_by: StoppedBy = "exhausted"
        steps, until = self.steps, self.until
        state = run.loop = LoopState(0, 0, self.max_iterations)
        top = run.top
        while iterations < self.max_iterations:
            iterations += 1
            state.iteration = iterations
            state.fails = fails
            for step in steps:
                await step.step(run, node)
                if run.stopped_by is not None or top.stopped_by is not None or top.abort_reason is not None:
                    over = True
                    break
            if over:
                stopped_by = run.stopped_by or top.stopped_by or "stop"
                break
            fails = fails + 1 if run.tool_errors and run.turn.tool_error else 0
            done = until(run)
            if done is not False and (done is True or await _truth(done)):
                stopped_by = "until"
                break
            if fails >= self.max_fails:
                stopped_by = "fails"
                break
        run.loop_ended = "answered" if stopped_by == "until" and self.answers else stopped_by
        if node is not None:
            node.meta.update(iterations=iterations, fails=fails, stopped_by=stopped_by)


@dataclass(frozen=True, slots=True, eq=False)
class BuiltWorkflow:
    """A workflow, ready to run any number of times."""

    name: str
    steps: Sequence[Step]
    state: type | None

    async def step(self, run: Run, parent: Node | None) -> None:
        """Take the steps in order."""
        for step in self.steps:
            await step.step(run, parent)
            if run.is_over:
                return


async def _truth(value: Any) -> bool:
    """Read what an `until` returned that is no plain bool; it may be `async def`."""
    return bool(await value if inspect.isawaitable(value) else value)


def build_workflow(
    cls: Any, make_agent: Callable[[Any, type | None], BuiltAgent | None], problems: list[Exception]
) -> BuiltWorkflow:
    """Make the steps of a workflow; what is wrong is added to `problems`.

    Args:
        cls: A workflow class, or an agent class, which is looped until it answers.
        make_agent: Builds an agent for the workflow's state; returns `None` where it only inspects it.
        problems: Where problems go.
    """
    spec: WorkflowSpec | None = getattr(cls, "__thena_workflow__", None)
    name = getattr(cls, "__name__", repr(cls))
    if spec is None and hasattr(cls, "__thena_agent__"):
        spec = WorkflowSpec((loop([cls]),), None, None)
    if spec is None:
        problems.append(
            WorkflowDefinitionError(
                f'[thena] The class "{name}" is not decorated with @workflow() or @agent().\n'
                f"Add above it: @workflow(steps=[loop([MyAgent], until=until_answered)])"
            )
        )
        return BuiltWorkflow(name, (), None)
    if not spec.steps:
        problems.append(
            WorkflowDefinitionError(f'[thena] The workflow "{name}" has no steps. Write: @workflow(steps=[MyAgent])')
        )
    steps = [_build_step(step, name, spec.state, make_agent, problems) for step in spec.steps]
    return BuiltWorkflow(spec.name or name, [step for step in steps if step is not None], spec.state)


def _build_step(
    step: Any,
    where: str,
    state: type | None,
    make_agent: Callable[[Any, type | None], BuiltAgent | None],
    problems: list[Exception],
) -> Step | None:
    if isinstance(step, Loop):
        inner = [_build_step(part, where, state, make_agent, problems) for part in step.steps]
        return BuiltLoop(
            [part for part in inner if part is not None],
            _condition(step.until, where, problems),
            step.max_iterations,
            step.max_fails,
            step.until is until_answered,
        )
    if hasattr(step, "__thena_agent__"):
        return make_agent(step, state)
    shown = f'the class "{step.__name__}"' if inspect.isclass(step) else repr(step)
    problems.append(
        WorkflowDefinitionError(
            f'[thena] A step of the workflow "{where}" is {shown}: steps are classes decorated with @agent, '
            f"and loop([…])."
        )
    )
    return None


def _condition(until: Until, where: str, problems: list[Exception]) -> Callable[[Run], Any]:
    """Adapt `until(ctx)` or `until(ctx, state)`."""
    if until is until_answered:
        return lambda run: not run.requests
    try:
        count = len(inspect.signature(until).parameters)
    except (TypeError, ValueError):
        count = 0
    if count == 1:
        return lambda run: until(run.context)
    if count == 2:  # noqa: PLR2004 - the context and the state
        return lambda run: until(run.context, run.state)
    problems.append(
        WorkflowDefinitionError(
            f'[thena] The `until` of a loop in the workflow "{where}" takes {count} parameters: '
            f"write `def until(ctx)` or `def until(ctx, state)`."
        )
    )
    return lambda _run: True
