"""The layers around one model call, outermost first: record, middleware, budget; composed once per agent."""

from __future__ import annotations

from collections.abc import Sequence

from thena_core._render import qualified_name, said_by
from thena_core.errors import ThenaError
from thena_core.hooks.around import Middleware, call_around
from thena_core.messages import ChatTurn
from thena_core.providers.base import ChatCall, ChatHandler, ChatMiddleware, ChatStep
from thena_core.run import passes, worded


def chat_handler(around: Sequence[ChatMiddleware]) -> tuple[ChatHandler, ChatHandler]:
    """Compose the model call of an agent: without and with the record; the first middleware is the outermost."""
    handler: ChatHandler = ask
    for function in reversed(around):
        handler = middleware(handler, function)
    return handler, record(handler)


async def ask(step: ChatStep) -> ChatTurn:
    """Count the call, ask the provider, and settle what it used."""
    tracker = step.run.tracker
    if tracker.is_plain and tracker.chat_calls < tracker.max_chat_calls:
        tracker.chat_calls += 1
    else:
        tracker.take_chat()
    turn = await step.provider.chat(step.request)
    if turn.usage is not None:
        tracker.settle(turn.usage)
    return turn


def middleware(inner: ChatHandler, function: ChatMiddleware) -> ChatHandler:
    """Let a middleware decide whether the model is asked; it passes on the call that it got, once."""
    described = Middleware(function, qualified_name(function), ChatTurn)

    async def around(step: ChatStep) -> ChatTurn:
        turn, went_on = await call_around(described, ChatCall(step), lambda: inner(step), step.run, "chat")
        if not went_on and step.node is not None:
            step.node.meta["answered_by"] = described.name
        return turn

    return around


def record(inner: ChatHandler) -> ChatHandler:
    """Open the chat's node, and close it with what the model said and what it cost."""

    async def recorded(step: ChatStep) -> ChatTurn:
        recorder = step.run.recorder
        if recorder is None:
            return await inner(step)
        request = step.request
        newest = request.messages[-1].content if request.messages else ""
        node = step.node = recorder.open("chat", type(step.provider).__name__, step.parent, newest)
        try:
            turn = await inner(step)
        except BaseException as error:
            text = worded(step.run, error) if passes(error) or isinstance(error, ThenaError) else said_by(error)
            recorder.close(node, "error", error=text)
            raise
        if turn.meta is not None:
            node.meta.update(turn.meta)
        if turn.usage is not None:
            usage = turn.usage
            node.meta.update(
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cached_tokens=usage.cached_tokens,
                cost_usd=usage.cost_usd,
            )
        node.asked = turn.tool_requests
        recorder.close(node, output=turn.content)
        return turn

    return recorded
