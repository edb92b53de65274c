"""Agents: what `@agent` declares, and one turn: a model call, the tools that it asked for, and the history."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from thena_core._render import qualified_name, said_by
from thena_core.call import Invocation
from thena_core.calls.batch import run_together
from thena_core.calls.failure import comes_of_cancellation
from thena_core.calls.observe import clean
from thena_core.calls.toolset import Toolset
from thena_core.errors import AgentDefinitionError, BudgetExceededError, EndsRun, HookError, ThenaError
from thena_core.hooks.chain import Hook
from thena_core.messages import ChatTurn, Message, ToolRequest
from thena_core.output import ToolOutput
from thena_core.providers.base import ChatHandler, ChatRequest, ChatStep, Provider, Sampling, ToolCalls
from thena_core.record.tree import Node
from thena_core.run import Run, being_cancelled, passes

INTERRUPTED = "interrupted: the run ended before this call was answered; it may or may not have taken effect"
"""The result in the history of a call that was never answered, so that the history stays legal for every service."""

ClassT = TypeVar("ClassT", bound=type)
ProviderSource = Provider | type[Provider] | Callable[[], Provider]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt given inline, where a `str` or `Path` would be a file."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What `@agent` leaves on a class."""

    provider: ProviderSource
    tools: Sequence[Any]
    prompt: str | Path | Prompt
    tool_calls: ToolCalls
    sampling: Sampling | None
    name: str | None


def agent(
    *,
    provider: ProviderSource,
    tools: Sequence[Any] = (),
    prompt: str | Path | Prompt,
    tool_calls: ToolCalls = "one",
    sampling: Sampling | None = None,
    name: str | None = None,
) -> Callable[[ClassT], ClassT]:
    """Declare a class as an agent; its methods may be hooks (`before_tool`, `after_response`, …).

    Args:
        provider: The model: an instance, a class, or a function that makes one per run.
        tools: Tool classes, decorated functions, definitions, configured instances, or names of installed tools.
        prompt: A file, relative to the file of the agent's module, or `Prompt("text")`.
        tool_calls: `one` honours one call per model turn; `all` runs all of them, beside each other.
        sampling: How the model chooses its words.
        name: What the record calls it; the class's name unless given.
    """
    spec = AgentSpec(provider, tuple(tools), prompt, tool_calls, sampling, name)

    def declare(cls: ClassT) -> ClassT:
        cls.__thena_agent__ = spec  # type: ignore[attr-defined]
        return cls

    return declare


def agent_spec(cls: Any) -> AgentSpec:
    """Return what `@agent` declared.

    Raises:
        AgentDefinitionError: For a class without it.
    """
    spec: AgentSpec | None = getattr(cls, "__thena_agent__", None)
    if spec is None:
        name = getattr(cls, "__name__", repr(cls))
        raise AgentDefinitionError(
            f'[thena] The class "{name}" is not decorated with @agent().\n'
            f'Add above it: @agent(provider=…, tools=[…], prompt="./{name.lower()}.agent.md")'
        )
    return spec


def prompt_text(cls: type, prompt: str | Path | Prompt) -> str:
    """Read an agent's prompt, once.

    Raises:
        AgentDefinitionError: Where the file is missing or is not text, naming it and the agent's file.
    """
    if isinstance(prompt, Prompt):
        return prompt.text
    module = sys.modules.get(cls.__module__)
    home = getattr(module, "__file__", None)
    base = Path(home).resolve().parent if home else Path.cwd()
    path = base / prompt
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        hint = f' For a prompt that is no file, write Prompt("{str(prompt)[:30]}").' if "\n" in str(prompt) else ""
        reason = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise AgentDefinitionError(
            f"[thena] The prompt of {qualified_name(cls)} {reason}: {path}\n"
            f'prompt="{prompt}" is relative to the agent\'s file, {home or "which is unknown"}.{hint}'
        ) from error


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
        provider: Returns the run's provider.
        chat_layers: The middleware around its model calls by name, outermost first.
    """

    name: str
    spec: AgentSpec
    system: str
    toolset: Toolset
    hooks: dict[str, Hook]
    chat: ChatHandler
    chat_recorded: ChatHandler
    provider: Callable[[], Provider]
    chat_layers: tuple[str, ...] = ()

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
            text = str(error) if isinstance(error, EndsRun) else type(error).__name__
            recorder.close(node, "error", error=text)
            raise
        recorder.close(node, output=run.response)

    async def _turn(self, run: Run, node: Node | None) -> None:
        step: ChatStep = run.agents.get(self) or self._enter(run)
        run.turns += 1
        try:
            turn = await (self._ask(run, step, node) if self.hooks or node is not None else self.chat(step))
        except Exception as error:  # noqa: BLE001 - a budget may stop the run here, and the agent's own hook decides
            await self._failed(run, error)
            return
        requests, content = turn.tool_requests, turn.content
        if len(requests) > 1 and self.spec.tool_calls == "one":
            requests = requests[:1]
        history = run.history
        history.append(Message("assistant", content, requests, None, False, turn.extra))
        run.requests, run.response, run.tool_errors = requests, content, 0
        if content:
            run.output = content
        if len(requests) == 1:  # here and not in a function of its own: one frame less around every tool
            request = requests[0]
            inv = Invocation(run, self.toolset, request.id, request.name, request.arguments, node)
            try:
                output = await self.toolset.handler(run, request.name)(inv)
            except BaseException:
                history.append(_answer(request, inv.output))
                raise
            if output.is_error:
                run.tool_errors = 1
            history.append(_answer(request, output))
        elif requests:
            await self._call_all(run, requests, node)
        if run.ended is not None:  # somebody caught it on its way out
            raise run.ended

    async def _ask(self, run: Run, step: ChatStep, node: Node | None) -> ChatTurn:
        """Ask the model, with the agent's hooks around and the record where there is one."""
        hooks = self.hooks
        if "before_prompt" in hooks:
            said = await _call_hook(hooks["before_prompt"], self.system, run)
            step.request.system = self.system if said is None else said
        if node is None:
            turn = await self.chat(step)
        else:
            step.parent = node
            turn = await self.chat_recorded(step)
            if len(turn.tool_requests) > 1 and self.spec.tool_calls == "one" and step.node is not None:
                step.node.meta["dropped_calls"] = [request.name for request in turn.tool_requests[1:]]
        if "after_response" in hooks and turn.content:
            said = await _call_hook(hooks["after_response"], turn.content, run)
            if said is not None:
                turn.content = said
        return turn

    def _enter(self, run: Run) -> ChatStep:
        spec = self.spec
        request = ChatRequest(
            run.history, self.system, self.toolset.definitions, spec.sampling, spec.tool_calls, run.on_text
        )
        provider = self.provider()
        if run.tracker.limits_cost and not provider.knows_cost:
            raise ThenaError(
                f"[thena] The budget's max_cost_usd cannot be kept: {type(provider).__name__} of {self.name} knows no "
                f"price. Give it one: price=Price(prompt=…, completion=…), in US dollars per million tokens."
            )
        step = run.agents[self] = ChatStep(run, provider, request)
        return step

    async def _call_all(self, run: Run, requests: Sequence[ToolRequest], node: Node | None) -> None:
        toolset = self.toolset
        calls = [
            (
                toolset.handler(run, request.name),
                Invocation(run, toolset, request.id, request.name, request.arguments, node, None, index),
                toolset.definition(request.name),
            )
            for index, request in enumerate(requests)
        ]
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
