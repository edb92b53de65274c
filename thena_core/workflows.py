"""Workflows: what `@workflow`, `loop` and `parallel` declare, and how it becomes the steps that a run takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from thena_core.context import Context
from thena_core.errors import WorkflowDefinitionError
from thena_core.run import Run, StoppedBy
from thena_core.steps import BuiltEnding, BuiltLoop, BuiltParallel, BuiltSteps, BuiltWorkflow, Step

ClassT = TypeVar("ClassT", bound=type)
Until = Callable[..., Any]
Ending = Callable[..., Any] | Sequence[Any]
"""What is done where a loop ends: a function of the context (and the state), or steps."""

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
    on_fail: Ending | None
    on_exhausted: Ending | None


@dataclass(frozen=True, slots=True)
class Parallel:
    """Steps that are taken beside each other; made by `parallel`."""

    steps: Sequence[Any]


def loop(
    steps: Sequence[Any],
    *,
    until: Until = until_answered,
    max_iterations: int = MAX_ITERATIONS,
    max_fails: int = MAX_FAILS,
    on_fail: Ending | None = None,
    on_exhausted: Ending | None = None,
) -> Loop:
    """Repeat steps until a condition holds.

    Args:
        steps: Agents, or other steps.
        until: Asked after each iteration: `until(ctx)` or `until(ctx, state)`, sync or async.
        max_iterations: How many iterations at most.
        max_fails: How many failed turns in a row end it; a turn fails when every call of it failed.
        on_fail: Done once where failed turns end it: a function `fn(ctx)` or `fn(ctx, state)`, sync or async, whose
            result (unless `None`) is the output, or a list of steps. The run goes on with what follows the loop.
        on_exhausted: The same, where `max_iterations` ends it.
    """
    return Loop(tuple(steps), until, max_iterations, max_fails, on_fail, on_exhausted)


def parallel(steps: Sequence[Any]) -> Parallel:
    """Take steps beside each other: each reads the history as it was, their turns are added in the order listed.

    They share the run's state, services, budget and data; where one fails, the others are cancelled first.

    Args:
        steps: Agents, or other steps.
    """
    return Parallel(tuple(steps))


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


@dataclass(slots=True)
class _Builder:
    """Makes the steps of one workflow; what is wrong is added to `problems`."""

    name: str
    state: type | None
    make_agent: Callable[[Any, type | None], Step | None]
    problems: list[Exception]

    def sequence(self, steps: Sequence[Any], where: str) -> BuiltSteps:
        if not steps:
            self._wrong(f"{where} has no steps. Write: steps=[MyAgent]")
        found = [self.step(step) for step in steps]
        return BuiltSteps([step for step in found if step is not None])

    def step(self, step: Any) -> Step | None:
        if isinstance(step, Loop):
            return self._loop(step)
        if isinstance(step, Parallel):
            return BuiltParallel(self.sequence(step.steps, f'parallel([…]) in the workflow "{self.name}"').steps)
        if hasattr(step, "__thena_agent__"):
            return self.make_agent(step, self.state)
        shown = f'the class "{step.__name__}"' if inspect.isclass(step) else repr(step)
        self._wrong(
            f'A step of the workflow "{self.name}" is {shown}: steps are classes decorated with @agent, loop([…]) '
            f"and parallel([…])."
        )
        return None

    def _loop(self, loop: Loop) -> BuiltLoop:
        where = f'a loop in the workflow "{self.name}"'
        for name, value in (("max_iterations", loop.max_iterations), ("max_fails", loop.max_fails)):
            if value < 1:
                self._wrong(f"The {name} of {where} is {value}: 1 is the least.")
        given: Mapping[StoppedBy, Ending | None] = {"fails": loop.on_fail, "exhausted": loop.on_exhausted}
        names: Mapping[StoppedBy, str] = {"fails": "on_fail", "exhausted": "on_exhausted"}
        return BuiltLoop(
            self.sequence(loop.steps, where).steps,
            _answered if loop.until is until_answered else self._function(loop.until, "until"),
            loop.max_iterations,
            loop.max_fails,
            loop.until is until_answered,
            {end: self._ending(ending, names[end]) for end, ending in given.items() if ending is not None},
        )

    def _ending(self, ending: Ending, name: str) -> Step:
        if callable(ending) and not hasattr(ending, "__thena_agent__"):
            return BuiltEnding(self._function(ending, name))
        steps = cast("Sequence[Any]", ending if isinstance(ending, Sequence) else [ending])
        return self.sequence(steps, f'the {name} of a loop in the workflow "{self.name}"')

    def _function(self, function: Callable[..., Any], name: str) -> Callable[[Run], Any]:
        """Adapt `fn(ctx)` or `fn(ctx, state)`."""
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        needed = [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
        count = len(needed)
        if count == 2 or (count == 1 and any(one.name == "state" for one in parameters[1:])):  # noqa: PLR2004
            return lambda run: function(run.context, run.state)
        if count == 1:
            return lambda run: function(run.context)
        self._wrong(
            f'The `{name}` of a loop in the workflow "{self.name}" takes {count} parameters: '
            f"write `def {name}(ctx)` or `def {name}(ctx, state)`."
        )
        return lambda _run: True

    def _wrong(self, problem: str) -> None:
        self.problems.append(WorkflowDefinitionError(f"[thena] {problem}"))


def _answered(run: Run) -> bool:
    return not run.requests


def build_workflow(
    cls: Any, make_agent: Callable[[Any, type | None], Step | None], problems: list[Exception]
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
        return BuiltWorkflow(name, BuiltSteps(()), None)
    builder = _Builder(name, spec.state, make_agent, problems)
    steps = builder.sequence(spec.steps, f'The workflow "{name}"')
    return BuiltWorkflow(spec.name or name, steps.steps[0] if len(steps.steps) == 1 else steps, spec.state)
