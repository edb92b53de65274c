"""The layers around one call, outermost first as the file reads; each turns a handler into a handler.

They are composed once per tool when the app is built. An absent layer adds no frame, and a layer that has nothing to do
after the call is a plain function that returns what the next one made, to be awaited by whoever called: a frame less.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from inspect import isawaitable
from typing import Any

from pydantic import ValidationError

from thena_core._render import listed, qualified_name, said_by
from thena_core.call import Handler, Invocation, ToolCall, ToolMiddleware, ToolResult, settle, view
from thena_core.calls.observe import to_output
from thena_core.calls.policy import Word
from thena_core.definition import ToolDefinition
from thena_core.errors import BudgetExceededError, EndsRun, HookError, RunAborted
from thena_core.hooks.around import Middleware, call_around
from thena_core.hooks.chain import Hook
from thena_core.messages import CutOff
from thena_core.output import Outcome, ToolOutput
from thena_core.run import Place, current, passes, worded
from thena_core.schema.model import ArgumentsSchema
from thena_core.schema.parse import recover

NOT_WHOLE = (
    "not run: the answer hit its output limit (or was stopped by the service), so this call may lack its end and was "
    "discarded. Send it again, smaller: in several steps, or with shorter arguments."
)
"""What the model reads in place of the result of a call that was cut off."""


def record(inner: Handler) -> Handler:
    """Open the call's node, and close it with the outcome whatever happens."""

    async def recorded(inv: Invocation) -> ToolOutput:
        recorder = inv.run.recorder
        if recorder is None:
            return await inner(inv)
        node = inv.node = recorder.open("tool", inv.name, inv.parent, inv.raw, inv.position)
        token = current.set(Place(inv.run, node, current.get().lane))
        try:
            output = await inner(inv)
        except BaseException as error:
            outcome = _outcome_of(error)
            shown = inv.output.content if inv.output is not None else None
            recorder.close(node, "error", outcome=outcome, error=worded(inv.run, error), output=shown)
            raise
        finally:
            current.reset(token)
        if output.is_error or inv.outcome != "ok":
            settle(inv, output)
        if output.data is not None:
            node.meta["data"] = output.data
        failed = output.is_error
        recorder.close(
            node,
            "error" if failed else "ok",
            outcome=inv.outcome,
            error=output.content if failed else None,
            output=output.content,
        )
        return output

    return recorded


def after_hooks(inner: Handler, hooks: Sequence[Hook]) -> Handler:
    """Show every observation to `after_tool`, once; what a hook returns replaces what the model reads."""
    prepared = [(hook.function, hook.is_async, hook) for hook in hooks]

    async def observed(inv: Invocation) -> ToolOutput:
        output = inv.output = await inner(inv)
        if output.is_error or inv.outcome != "ok":
            settle(inv, output)
        call = view(inv, inv.args)
        context = inv.run.context
        result = ToolResult(call, output, inv.outcome)
        for function, is_async, hook in prepared:
            try:
                answer = function(result, context)
                if is_async or isawaitable(answer):
                    answer = await answer
            except EndsRun as error:
                inv.run.end(error)
                raise
            except (Exception, BaseExceptionGroup, asyncio.CancelledError) as error:
                if passes(error):
                    raise
                raise _hook_failed("after_tool", hook, inv, error) from error
            if answer is None:
                continue
            output = _replaced(inv, hook, output, answer)
            inv.output = output
            settle(inv, output)
            result = ToolResult(call, output, inv.outcome)
        return output

    return observed


def unknown_tool(names: Sequence[str]) -> Handler:
    """Answer a call of a tool that does not exist with the names of those that do."""

    async def unknown(inv: Invocation) -> ToolOutput:
        inv.outcome = "unknown"
        # a tool that calls the others is none of them
        others = names if inv.outer is None else [name for name in names if name != inv.outer.name]
        known = f"the tools are: {listed(others, 50)}" if others else "there are no tools"
        alike = [name for name in others if name.casefold() == inv.name.strip().casefold()]
        if len(alike) > 1:
            known = f"the name is ambiguous: {listed(alike, 50)}; {known}"
        return ToolOutput(f'unknown tool "{inv.name[:80]}" — {known}', is_error=True)

    return unknown


def validate(inner: Handler, definition: ToolDefinition, schema: ArgumentsSchema, word: Word) -> Handler:
    """Parse and validate what the model sent, in one step; only what that refuses is looked at more closely."""
    validate_json, validate_python = schema.validate_json, schema.validate_python

    def validated(inv: Invocation) -> Awaitable[ToolOutput]:
        inv.definition = definition
        inv.schema = schema
        raw = inv.raw
        try:
            if type(raw) is str:
                inv.args = validate_json(raw)
            elif type(raw) is CutOff:
                inv.outcome = "invalid"
                return _said(ToolOutput(NOT_WHOLE, is_error=True))
            else:
                inv.args = validate_python(raw)
        except Exception as error:  # noqa: BLE001 - an author's validator may raise anything
            refused = _refused(inv, schema, error, word)
            if refused is not None:
                return _said(refused)
        return inner(inv)

    return validated


def before_hooks(inner: Handler, hooks: Sequence[Hook]) -> Handler:
    """Let `before_tool` keep the call, rewrite its arguments, or answer in the tool's place."""
    prepared = [(hook.function, hook.is_async, hook) for hook in hooks]

    async def guarded(inv: Invocation) -> ToolOutput:
        call = view(inv, inv.args)
        context = inv.run.context
        for function, is_async, hook in prepared:
            try:
                answer = function(call, context)
                if is_async or isawaitable(answer):
                    answer = await answer
            except HookError as error:  # call.replace() with arguments that do not fit
                raise _hook_failed("before_tool", hook, inv, error) from None
            except EndsRun as error:
                inv.run.end(error)
                raise
            except (Exception, BaseExceptionGroup, asyncio.CancelledError) as error:
                if passes(error):
                    raise
                raise _hook_failed("before_tool", hook, inv, error) from error
            if answer is None or answer is call:
                continue
            if isinstance(answer, ToolOutput):
                return _answered(inv, answer, hook.owner)
            call = _rewritten(inv, hook, call, answer)
            inv.args = call.args
        return await inner(inv)

    return guarded


def middleware(inner: Handler, function: ToolMiddleware) -> Handler:
    """Let a middleware decide whether the call goes on; it passes on the call that it got, once."""
    described = Middleware(function, qualified_name(function), ToolOutput)

    async def around(inv: Invocation) -> ToolOutput:
        call = view(inv, inv.args)
        output, went_on = await call_around(described, call, lambda: inner(inv), inv.run, inv.name)
        return to_output(inv, output, inv.max_output_chars) if went_on else _answered(inv, output, described.name)

    return around


def budget(inner: Handler) -> Handler:
    """Count the call before it runs, or refuse it."""

    def counted(inv: Invocation) -> Awaitable[ToolOutput]:
        run = inv.run
        if run.ended is not None:  # a tool that caught the end of its run calls on
            raise run.ended
        if (run if run.parent is None else run.top).stopping is not None:  # or swallowed its cancellation
            raise asyncio.CancelledError
        tracker = run.tracker
        if tracker.is_plain and tracker.tool_calls < tracker.max_tool_calls:
            tracker.tool_calls += 1  # the common case: no run above, no quota, no deadline
            return inner(inv)
        try:
            limit = tracker.take_tool(inv.name)
        except BudgetExceededError as error:
            run.end(error)
            raise
        if limit is None:
            return inner(inv)
        inv.outcome = "over_budget"
        return _said(ToolOutput(f"not run: the budget's {limit} is used up", is_error=True))

    return counted


async def _said(output: ToolOutput) -> ToolOutput:
    """Answer in the place of the rest, from a layer that is no coroutine."""
    return output


def _refused(inv: Invocation, schema: ArgumentsSchema, error: Exception, word: Word) -> ToolOutput | None:
    """Look closer at what validation refused; return `None` where it could be read after all."""
    try:
        if not isinstance(error, ValidationError):
            raise error
        found = recover(schema, inv.raw, error)
    except EndsRun as ender:
        inv.run.end(ender)
        raise
    except Exception as failure:  # noqa: BLE001 - an author's validator may raise anything
        inv.outcome = "error"
        return ToolOutput(word(failure), is_error=True)
    if isinstance(found, str):
        inv.outcome = "invalid"
        return ToolOutput(found, is_error=True)
    inv.args, repaired = found
    strict = inv.definition is not None and inv.definition.strict
    if repaired and not strict:  # in strict mode a null for a default is the contract, not a repair
        inv.note(repaired=True)
    return None


def _outcome_of(error: BaseException) -> Outcome:
    if isinstance(error, BudgetExceededError):
        return "over_budget"
    return "cancelled" if isinstance(error, asyncio.CancelledError | RunAborted) else "fatal"


def _answered(inv: Invocation, output: ToolOutput, by: str) -> ToolOutput:
    """Note who answered in the tool's place; an error is a refusal."""
    if output.is_error:
        inv.outcome = "denied"
    inv.note(answered_by=by)
    return to_output(inv, output, inv.max_output_chars)


def _rewritten(inv: Invocation, hook: Hook, call: ToolCall, answer: Any) -> ToolCall:
    """Accept the call that a hook returned, if it is this one with other arguments."""
    if not isinstance(answer, ToolCall) or not answer.is_view_of(inv):
        problem = "it must return None, call.replace(…) of the call that it got, or a ToolOutput"
        raise inv.run.end(HookError("before_tool", hook.owner, problem, inv.name))
    _note_change(inv, hook.owner, "arguments", call.arguments, answer.arguments)
    return answer


def _replaced(inv: Invocation, hook: Hook, output: ToolOutput, answer: Any) -> ToolOutput:
    if isinstance(answer, str):
        replaced = to_output(inv, ToolOutput(answer, output.is_error, output.data), inv.max_output_chars)
    elif isinstance(answer, ToolOutput):
        replaced = to_output(inv, answer, inv.max_output_chars)
    else:
        problem = f"it must return None, a str or a ToolOutput, not {type(answer).__name__}"
        raise inv.run.end(HookError("after_tool", hook.owner, problem, inv.name))
    _note_change(inv, hook.owner, "output", output.content, replaced.content)
    return replaced


def _note_change(inv: Invocation, by: str, what: str, before: Any, after: Any) -> None:
    if inv.node is not None:
        changes: list[Any] = inv.node.meta.setdefault("changed_by", [])
        changes.append({"by": by, "what": what, "before": before, "after": after})


def _hook_failed(name: str, hook: Hook, inv: Invocation, error: BaseException) -> BaseException:
    """Word a hook's failure, which ends the run."""
    problem = error.problem if isinstance(error, HookError) else said_by(error)
    return inv.run.end(HookError(name, hook.owner, problem, inv.name))
