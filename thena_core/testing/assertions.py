"""Asserting on what happened in a run: which tools were called, and how the calls ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from thena_core._render import did_you_mean, listed, shortened
from thena_core.call import ToolResult
from thena_core.output import Outcome
from thena_core.testing.recorded import Step, shown_call, steps_of, tree

Expected = str | tuple[str, Mapping[str, Any]]
"""A call: a tool's name, or its name and its arguments."""

_MAX_SAID = 200
"""Characters of what a call said in a message."""


def assert_calls(source: Any, *expected: Expected, under: str | None = None, any_order: bool = False) -> list[Step]:
    """Assert that a run made exactly these tool calls, in this order, as its tree reads from top to bottom.

    Packed calls and those of nested runs count like all others, and stand after the tool that made them. Without any
    expected call: that there was none.

    Args:
        source: A `Record`, the handle of a run that has ended, the result of a run with a report, or events.
        expected: A tool's name each, or `(name, arguments)`: the arguments are compared with those that the model sent.
        under: Look only at the calls under the steps of this name: an agent's, a workflow's, a packing tool's.
        any_order: Whether the order does not matter.

    Returns:
        The calls, for a closer look.

    Raises:
        AssertionError: With what was expected, what was called, and the tree of the run.
        ThenaError: Where there is no record of the run.
    """
    __tracebackhide__ = True
    steps = steps_of(source)
    tops = steps if under is None else [step for step in _all(steps) if step.name == under]
    if under is not None and not tops:
        names = dict.fromkeys(step.name for step in _all(steps))
        _fail(f'There is no step "{under}" in the run.{did_you_mean(under, names)}', steps)
    # a step of that name may stand under another one: its calls are counted once
    below = _all(tops) if under is None else list(dict.fromkeys(step for top in tops for step in top.below()))
    calls = [step for step in below if step.kind == "tool"]
    wrong = _differences_in_any_order(expected, calls) if any_order else _differences(expected, calls)
    if wrong:
        where = f' under "{under}"' if under is not None else ""
        _fail("\n".join([f"The calls{where} are not the expected ones:", *wrong]), steps)
    return calls


def assert_outcome(source: Any, outcome: Outcome, tool: str | None = None, *, saying: str | None = None) -> None:
    """Assert how calls ended: each call of the tool, or each call of the run; and that there was one.

    Args:
        source: What `run_tool` returned, or a record of a run, as for `assert_calls`.
        outcome: `ok`, `error`, `invalid`, `unknown`, `denied`, `over_budget`, `timeout`, `cancelled` or `fatal`.
        tool: Whose calls; all unless given.
        saying: A part of what the model reads of each of them (of a call that ended the run: of its error).

    Raises:
        AssertionError: With the calls that ended otherwise, and the tree of the run.
        ThenaError: Where there is no record of the run.
        ValueError: For an outcome that there is not.
    """
    __tracebackhide__ = True
    if outcome not in get_args(Outcome):
        raise ValueError(f'[thena] There is no outcome "{outcome}".{did_you_mean(outcome, get_args(Outcome))}')
    steps = [_step(source)] if isinstance(source, ToolResult) else steps_of(source)
    calls = [step for step in _all(steps) if step.kind == "tool"]
    meant = [step for step in calls if tool is None or step.name == tool]
    if not meant:
        names = dict.fromkeys(step.name for step in calls)
        called = f"{did_you_mean(tool or '', names)} Called: {listed(names)}." if names else " No tool was called."
        _fail(f"No call{f' of {tool}' if tool else ''} was made, where one should be {outcome}.{called}", steps)
    wrong = [f"{shown_call(step.name, step.arguments)}: {_but(step, outcome, saying)}" for step in meant]
    wrong = [f"  {text}" for text, step in zip(wrong, meant, strict=True) if not _fits(step, outcome, saying)]
    if wrong:
        _fail("\n".join([f"{len(wrong)} of {len(meant)} calls ended otherwise:", *wrong]), steps)


def _all(steps: Sequence[Step]) -> list[Step]:
    return [inner for step in steps for inner in (step, *step.below())]


def _fail(problem: str, steps: Sequence[Step]) -> None:
    __tracebackhide__ = True
    drawn = f"The run:\n{tree(steps)}" if steps else "Nothing was recorded: was the app made with log=record?"
    raise AssertionError(f"{problem}\n{drawn}")


def _matches(expected: Expected, step: Step) -> bool:
    if isinstance(expected, str):
        return step.name == expected
    name, arguments = expected
    return bool(step.name == name and (step.arguments or {}) == arguments)


def _wanted(expected: Expected) -> str:
    return expected if isinstance(expected, str) else shown_call(*expected)


def _made(step: Step) -> str:
    return shown_call(step.name, step.arguments)


def _differences(expected: Sequence[Expected], calls: Sequence[Step]) -> list[str]:
    lines: list[str] = []
    right = len(expected) == len(calls)
    for index in range(max(len(expected), len(calls))):
        number = f"{index + 1}."
        if index >= len(calls):
            lines.append(f"  ✗ {number} expected {_wanted(expected[index])}, and no call came")
        elif index >= len(expected):
            lines.append(f"  ✗ {number} {_made(calls[index])} was not expected")
        elif _matches(expected[index], calls[index]):
            lines.append(f"    {number} {_made(calls[index])}")
        else:
            right = False
            lines.append(f"  ✗ {number} expected {_wanted(expected[index])}, was {_made(calls[index])}")
    return [] if right else lines


def _differences_in_any_order(expected: Sequence[Expected], calls: Sequence[Step]) -> list[str]:
    rest, missing = list(calls), list[Expected]()
    # those with arguments choose first: a bare name would take a call that only they fit
    for one in sorted(expected, key=lambda item: isinstance(item, str)):
        found = next((step for step in rest if _matches(one, step)), None)
        if found is None:
            missing.append(one)
        else:
            rest.remove(found)
    lines = [f"  ✗ expected {_wanted(one)}, and no such call came" for one in missing]
    return lines + [f"  ✗ {_made(step)} was not expected" for step in rest]


def _step(result: ToolResult) -> Step:
    output = result.output
    status = "error" if output.is_error else "ok"
    error = output.content if output.is_error else None
    return Step("tool", result.call.name, result.call.raw, status, result.outcome, error, output.content)


def _said(step: Step) -> str:
    return str(step.output if step.output is not None else step.error or "")


def _fits(step: Step, outcome: str, saying: str | None) -> bool:
    return step.outcome == outcome and (saying is None or saying in _said(step))


def _but(step: Step, outcome: str, saying: str | None) -> str:
    if step.outcome != outcome:
        ended = "it still runs" if step.status == "running" else f"it was {step.outcome}"
        return f"expected {outcome}, but {ended}: {shortened(_said(step), _MAX_SAID)}"
    return f'it does not say "{saying}", but: {shortened(_said(step), _MAX_SAID)}'
