"""One turn of an agent: a model call, the tools that it asked for, and what the history keeps of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from thena_core._render import said_by
from thena_core.agents import AgentSpec
from thena_core.answers import AGAIN, AnswerForm
from thena_core.call import invocation
from thena_core.calls.batch import run_together
from thena_core.calls.failure import comes_of_cancellation
from thena_core.calls.observe import clean
from thena_core.calls.toolset import Toolset
from thena_core.errors import AgentOutputError, BudgetExceededError, EndsRun, HookError, ThenaError
from thena_core.hooks.chain import Hook
from thena_core.messages import CUT_OFF, ChatTurn, CutOff, Message, ToolRequest
from thena_core.output import ToolOutput
from thena_core.providers.base import ChatHandler, ChatRequest, ChatStep, Provider
from thena_core.record.tree import Node
from thena_core.run import Run, being_cancelled, passes, worded

INTERRUPTED = "interrupted: the run ended before this call was answered; it may or may not have taken effect"
"""The result in the history of a call that was never answered, so that the history stays legal for every service."""


@dataclass(frozen=True, slots=True, eq=False)
class BuiltAgent:
    """An agent, ready to take turns in any number of runs.

    Attributes:
        name: What the record calls it.
        spec: What was declared.
        system: Its prompt.
        toolset: Its tools.
        hooks: Its own hooks by name.
        chat: The model call without the record.
        chat_recorded: The model call with it.
        provider: Returns a run's provider.
        form: What its answer must be; `None` for text.
        chat_layers: The middleware around its model calls by name, outermost first.
        is_plain: Whether nothing stands around its model calls: no hook, no form.
    """

    name: str
    spec: AgentSpec
    system: str
    toolset: Toolset
    hooks: dict[str, Hook]
    chat: ChatHandler
    chat_recorded: ChatHandler
    provider: Callable[[Run], Provider]
    form: AnswerForm | None = None
    chat_layers: tuple[str, ...] = ()
    is_plain: bool = False

    def step(self, run: Run, parent: Node | None) -> Awaitable[None]:
        """Take one turn.

        Raises:
            EndsRun: What must end the run, wherever in the turn it arose and whoever caught it on the way.
        """
        # returned, not awaited: one frame less on the way to every tool
        if run.recorder is not None:
            return self._recorded(run, parent)
        return self._own_turn(run, None) if "run" in self.hooks else self._turn(run, None)

    async def _recorded(self, run: Run, parent: Node | None) -> None:
        recorder = run.recorder
        if recorder is None:
            return
        node = recorder.open("agent", self.name, parent)
        take_turn = self._own_turn if "run" in self.hooks else self._turn
        try:
            await take_turn(run, node)
        except BaseException as error:
            recorder.close(node, "error", error=worded(run, error))
            raise
        recorder.close(node, output=run.response)

    async def _turn(self, run: Run, node: Node | None) -> None:
        step: ChatStep = run.agents.get(self) or self._enter(run)
        run.turns += 1
        try:
            if self.is_plain:  # two frames less
                step.parent = node
                ask = self.chat if node is None else self.chat_recorded
                turn = await ask(step)
            else:
                turn = await self._answer(run, step, node)
        except Exception as error:  # noqa: BLE001 - a budget may stop the run here, and the agent's own hook decides
            await self._failed(run, error)
            return
        toolset, history = self.toolset, run.history
        requests, content = turn.tool_requests, turn.content
        asked = len(requests)
        if asked > 1 or turn.finish_reason in CUT_OFF or toolset.aliases:
            requests = self._honoured(turn, step.node)
            asked = len(requests)
        history.append(Message("assistant", content, requests, None, False, turn.extra))
        run.requests = requests
        run.response = content
        run.tool_errors = 0
        if content and self.form is None:
            run.output = content
        if asked == 1:  # here and not in a function of its own: one frame less around every tool
            request = requests[0]
            inv = invocation(run, toolset, request.id, request.name, request.arguments, node)
            try:
                output = await toolset.handler(run, request.name)(inv)
            except BaseException:
                history.append(_answer(request, inv.output))
                raise
            if output.is_error:
                run.tool_errors = 1
            history.append(_answer(request, output))
        elif asked:
            await self._call_all(run, requests, node)
        if run.ended is not None:  # somebody caught it on its way out
            raise run.ended

    def _honoured(self, turn: ChatTurn, node: Node | None) -> Sequence[ToolRequest]:
        """Return the calls of a turn that are answered: as many as the agent allows, marked where they were cut off."""
        requests = turn.tool_requests
        if self.spec.tool_calls == "one" and len(requests) > 1:
            if node is not None:
                node.meta["dropped_calls"] = [request.name for request in requests[1:]]
            requests = requests[:1]
        if turn.finish_reason in CUT_OFF:
            requests = [replace(request, arguments=CutOff.of(request.arguments)) for request in requests]
        return self.toolset.real_names(requests)

    async def _answer(self, run: Run, step: ChatStep, node: Node | None) -> ChatTurn:
        """Ask the model; where its answer does not fit `output`, tell it so and ask once more."""
        turn = await self._ask(run, step, node)
        form = self.form
        if form is None or turn.tool_requests:
            return turn
        try:
            run.output = form.read(turn.content)
        except AgentOutputError as unfit:
            run.history.append(Message("assistant", turn.content, (), None, False, turn.extra))
            run.history.append(Message("user", AGAIN.format(problem=unfit.problem)))
            turn = await self._ask(run, step, node)
            if not turn.tool_requests:
                run.output = form.read(turn.content)
        return turn

    async def _ask(self, run: Run, step: ChatStep, node: Node | None) -> ChatTurn:
        """Ask the model, with the agent's hooks around and the record where there is one."""
        hooks = self.hooks
        if "before_prompt" in hooks:
            said = await _call_hook(hooks["before_prompt"], self.system, run)
            step.request.system = self._system(self.system if said is None else said)
        step.parent = node
        ask = self.chat if node is None else self.chat_recorded
        turn = await ask(step)
        if "after_response" in hooks and turn.content:
            said = await _call_hook(hooks["after_response"], turn.content, run)
            if said is not None:
                turn.content = said
        return turn

    def _enter(self, run: Run) -> ChatStep:
        spec = self.spec
        request = ChatRequest(
            run.history,
            self._system(self.system),
            self.toolset.definitions,
            spec.sampling,
            spec.tool_calls,
            run.on_text,
        )
        # a function makes the provider once per run, also for steps that are taken beside each other
        provider = self.provider(run) if run.branch_of is None else self._of_whole(run).provider
        if not run.tracker.is_plain and run.tracker.limits_cost and not provider.knows_cost:
            raise ThenaError(
                f"[thena] The budget's max_cost_usd cannot be kept: {type(provider).__name__} of {self.name} knows no "
                f"price. Give it one: price=Price(prompt=…, completion=…), in US dollars per million tokens."
            )
        step = run.agents[self] = ChatStep(run, provider, request)
        return step

    def _of_whole(self, run: Run) -> ChatStep:
        whole = run.whole
        step: ChatStep = whole.agents.get(self) or self._enter(whole)
        return step

    def _system(self, prompt: str) -> str:
        return prompt if self.form is None else f"{prompt}\n\n{self.form.instruction}"

    async def _call_all(self, run: Run, requests: Sequence[ToolRequest], node: Node | None) -> None:
        toolset = self.toolset
        calls = [
            (
                toolset.handler(run, request.name),
                invocation(run, toolset, request.id, request.name, request.arguments, node, None, index),
                toolset.definition(request.name),
            )
            for index, request in enumerate(requests)
        ]
        if node is not None:
            for _, inv, _ in calls:
                inv.position = node.take_position()
        try:
            outputs = await run_together(calls)
            run.tool_errors = sum(output.is_error for output in outputs)
        finally:
            for request, (_, inv, _) in zip(requests, calls, strict=True):
                run.history.append(_answer(request, inv.output))

    async def _own_turn(self, run: Run, _node: Node | None) -> None:
        """Let the agent's own `run(message, ctx)` take the turn over; no hook is called around it."""
        newest = next((message.content for message in reversed(run.history) if message.role == "user"), "")
        run.turns += 1
        said = await _call_hook(self.hooks["run"], newest, run)
        self._said(run, said)

    async def _failed(self, run: Run, error: Exception) -> None:
        """Stop, end, or let the agent's `on_error` answer, where the model gave no answer."""
        if isinstance(error, EndsRun):
            if not isinstance(error, BudgetExceededError) or not error.stops:
                raise run.end(error)
            run.stopped_by = "budget"
            return
        if being_cancelled() and comes_of_cancellation(error):
            raise asyncio.CancelledError from error  # the provider made a failure of the run's cancellation
        hook = self.hooks.get("on_error")
        if hook is None:
            raise error
        try:
            said = await _call_hook(hook, error, run)
        except EndsRun:
            raise
        except (Exception, BaseExceptionGroup, asyncio.CancelledError) as second:
            if passes(second):
                raise
            raise run.end(HookError("on_error", self.name, said_by(second))) from error
        if said is None:
            raise error
        self._said(run, said)

    def _said(self, run: Run, said: Any) -> None:
        text = said if isinstance(said, str) else "" if said is None else str(said)
        run.history.append(Message("assistant", text))
        run.requests, run.response, run.tool_errors = (), text, 0
        run.output = said


async def _call_hook(hook: Hook, value: Any, run: Run) -> Any:
    answer = hook.function(value, run.context)
    return await answer if hook.is_async or inspect.isawaitable(answer) else answer


def _answer(request: ToolRequest, output: ToolOutput | None) -> Message:
    if output is None:
        return Message("tool", INTERRUPTED, (), request.id, True)
    return Message("tool", clean(output.content), (), request.id, output.is_error)
