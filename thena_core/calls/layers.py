"""The layers around one call, outermost first as the file reads; each turns a handler into a handler.

They are composed once per tool when the app is built. An absent layer adds no frame.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import Any

from pydantic import ValidationError

from thena_core._render import listed, qualified_name, said_by
from thena_core.call import Handler, Invocation, ToolCall, ToolMiddleware, ToolResult, settle
from thena_core.calls.failure import comes_of_cancellation, decisive, leaves_of
from thena_core.calls.observe import to_output
from thena_core.definition import ToolDefinition
from thena_core.errors import BudgetExceededError, EndsRun, HookError, RunAborted
from thena_core.hooks.around import Middleware, call_around
from thena_core.hooks.chain import Hook
from thena_core.output import Outcome, ToolOutput
from thena_core.run import Place, being_cancelled, current, forget_cancellation, passes
from thena_core.schema.model import ArgumentsSchema
from thena_core.schema.parse import recover

Word = Callable[[BaseException], str]
"""Says to the model what an exception was."""


def record(inner: Handler) -> Handler:
    """Open the call's node, and close it with the outcome whatever happens."""

    async def recorded(inv: Invocation) -> ToolOutput:
        recorder = inv.run.recorder
        if recorder is None:
            return await inner(inv)
        node = inv.node = recorder.open("tool", inv.name, inv.parent, inv.raw)
        token = current.set(Place(inv.run, node))
        try:
            output = await inner(inv)
        except BaseException as error:
            outcome = _outcome_of(error)
            text = str(error) if isinstance(error, EndsRun) else type(error).__name__
            shown = inv.output.content if inv.output is not None else None
            recorder.close(node, "error", outcome=outcome, error=text, output=shown)
            raise
        finally:
            current.reset(token)
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
        call = inv.view or ToolCall(inv, inv.args)
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
        known = f"the tools are: {listed(names, 50)}" if names else "there are no tools"
        return ToolOutput(f'unknown tool "{inv.name[:80]}" — {known}', is_error=True)

    return unknown


def validate(inner: Handler, definition: ToolDefinition, schema: ArgumentsSchema, word: Word) -> Handler:
    """Parse and validate what the model sent, in one step; only what that refuses is looked at more closely."""
    validate_json, validate_python = schema.validate_json, schema.validate_python

    async def validated(inv: Invocation) -> ToolOutput:
        inv.definition = definition
        inv.schema = schema
        raw = inv.raw
        try:
            inv.args = validate_json(raw) if type(raw) is str else validate_python(raw)
        except Exception as error:  # noqa: BLE001 - an author's validator may raise anything
            refused = _refused(inv, schema, error, word)
            if refused is not None:
                return refused
        return await inner(inv)

    return validated


def before_hooks(inner: Handler, hooks: Sequence[Hook]) -> Handler:
    """Let `before_tool` keep the call, rewrite its arguments, or answer in the tool's place."""
    prepared = [(hook.function, hook.is_async, hook) for hook in hooks]

    async def guarded(inv: Invocation) -> ToolOutput:
        call = ToolCall(inv, inv.args)
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
                inv.view, inv.args = call, call.args
                return _answered(inv, answer, hook.owner)
            call = _rewritten(inv, hook, call, answer)
        inv.view, inv.args = call, call.args
        return await inner(inv)

    return guarded


def middleware(inner: Handler, function: ToolMiddleware) -> Handler:
    """Let a middleware decide whether the call goes on; it passes on the call that it got, once."""
    described = Middleware(function, qualified_name(function), ToolOutput)

    async def around(inv: Invocation) -> ToolOutput:
        call = inv.view
        if call is None:
            call = inv.view = ToolCall(inv, inv.args)
        output, went_on = await call_around(described, call, lambda: inner(inv), inv.run, inv.name)
        return to_output(inv, output, inv.max_output_chars) if went_on else _answered(inv, output, described.name)

    return around


def budget(inner: Handler) -> Handler:
    """Count the call before it runs, or refuse it."""

    async def counted(inv: Invocation) -> ToolOutput:
        run = inv.run
        if run.ended is not None:  # a tool that caught the end of its run calls on
            raise run.ended
        if (run if run.parent is None else run.top).stopping is not None:  # or swallowed its cancellation
            raise asyncio.CancelledError
        try:
            limit = run.tracker.take_tool(inv.name)
        except BudgetExceededError as error:
            run.end(error)
            raise
        if limit is None:
            return await inner(inv)
        inv.outcome = "over_budget"
        return ToolOutput(f"not run: the budget's {limit} is used up", is_error=True)

    return counted


def error_policy(inner: Handler, word: Word) -> Handler:
    """Turn a tool's exception into an observation; what ends the run passes, and is noted."""
    watched = cancellable(inner, time_limit(inner))

    async def forgiving(inv: Invocation) -> ToolOutput:
        try:
            if inv.run.calls is None and inv.time_limit is None:
                output = await inner(inv)
            else:
                output = await watched(inv)
        except EndsRun as error:
            inv.run.end(error)
            raise
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - any failure of a tool ends here
            failure: BaseException = error
        except asyncio.CancelledError:
            return _cancelled(inv)
        else:
            if inv.run.ended is not None:  # the tool caught what must end the run
                raise inv.run.ended
            return output
        return _observed(inv, failure, word)  # out here, so that the failure is not the context of what it raises

    return forgiving


def cancellable(inner: Handler, limited: Handler) -> Handler:
    """Let a call be found by its id while it runs, and cancelled alone; with a batch's time limit, where there is."""

    async def found(inv: Invocation) -> ToolOutput:
        calls = inv.run.calls
        if calls is None:
            return await limited(inv)
        calls[inv] = asyncio.current_task()
        output = failure = None
        try:
            output = await (inner(inv) if inv.time_limit is None else limited(inv))
        except BaseException as error:
            if not inv.cancelled or isinstance(error, EndsRun):
                raise
            failure = error
        finally:
            del calls[inv]
        if not inv.cancelled:
            return output or ToolOutput("")
        await _take_back(inv)
        if failure is None and output is not None:
            return output  # it had ended when it was cancelled
        inv.outcome = "cancelled"
        return ToolOutput(f"{inv.name} was cancelled", is_error=True)

    return found


async def _take_back(inv: Invocation) -> None:
    """Take back the cancellation of one call, delivered or not.

    Raises:
        asyncio.CancelledError: Where the run is being cancelled as well.
    """
    inv.cancelled = False
    task = asyncio.current_task()
    if task is None:
        return
    if being_cancelled():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)  # where nothing was awaited any more, it is delivered here and to nobody else
        task.uncancel()
    if being_cancelled():
        raise asyncio.CancelledError


def time_limit(inner: Handler, seconds: float | None = None) -> Handler:
    """Stop a tool that takes longer than it may: its own limit, or that of the batch that it is called in."""

    async def limited(inv: Invocation) -> ToolOutput:
        allowed = inv.time_limit if seconds is None else seconds
        limit = asyncio.timeout(allowed)
        try:
            async with limit:
                return await inner(inv)
        except EndsRun:
            raise
        except Exception:
            if not limit.expired():
                raise  # the tool's own; after the limit, its clean-up's
        inv.outcome = "timeout"
        return ToolOutput(f"{inv.name} timed out after {allowed:g} s", is_error=True)

    return limited


def _cancelled(inv: Invocation) -> ToolOutput:
    """Answer a call that cancelled itself; a cancellation of the run passes.

    Raises:
        asyncio.CancelledError: Where the run is being cancelled.
    """
    if being_cancelled():
        raise asyncio.CancelledError
    inv.outcome = "cancelled"
    return ToolOutput(f"{inv.name} cancelled itself", is_error=True)


def _observed(inv: Invocation, failure: BaseException, word: Word) -> ToolOutput:
    """Word a tool's failure for the model, unless the run must end."""
    run = inv.run
    if run.ended is not None:
        raise run.ended
    if being_cancelled() and all(comes_of_cancellation(leaf) for leaf in leaves_of(failure)):
        raise asyncio.CancelledError  # the tool made a failure of the run's cancellation
    passing = decisive(failure)
    if passing is not None:
        raise run.end(passing) if isinstance(passing, EndsRun) else passing
    if issubclass(type(failure), BaseExceptionGroup):
        forget_cancellation()
    inv.outcome = "error"
    return ToolOutput(word(failure), is_error=True)


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
