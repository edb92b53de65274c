"""`on_error` and an agent's own `run`: what they answer for, and what passes by them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal, scripted
from tests.hooks.variants import echo, sync_and_async
from thena_core import (
    Budget,
    BudgetExceededError,
    FatalToolError,
    HookError,
    MiddlewareError,
    Prompt,
    ProviderError,
    Thena,
    agent,
    tool,
)
from thena_core.messages import ChatTurn
from thena_core.providers.base import ChatRequest, Provider
from thena_core.testing import FakeProvider


def mending(_self: Any, error: Exception, ctx: Any) -> str:
    """Answer in the model's place."""
    return f"sorry: {error}"


class Failing(Provider):
    """A service that fails, after some turns that it plays."""

    def __init__(self, error: BaseException, turns: list[ChatTurn] | None = None) -> None:
        self.error = error
        self.turns = turns or []
        self.asked = 0

    async def chat(self, request: ChatRequest) -> ChatTurn:
        self.asked += 1
        if self.turns:
            return self.turns.pop(0)
        raise self.error


async def run_failing(provider: Provider, hooks: dict[str, Any], **options: Any) -> Any:
    """Run an agent with those hooks."""
    made = agent(provider=provider, tools=[echo, fatal], prompt=Prompt("p"))(type("Mending", (), hooks))
    async with Thena(made) as app:
        for function in options.pop("chat", ()):
            app.use(chat=function)
        return await app.run("go", **options)


@tool
async def fatal() -> str:
    """Ends the run."""
    raise FatalToolError("disk gone")


@pytest.mark.behaviour("H09")
@pytest.mark.parametrize("hook", sync_and_async(mending))
async def test_on_error_answers_for_a_failed_provider(hook: Any) -> None:
    """What it returns is the agent's output and stands in the history; no further model call is made."""
    provider = Failing(ProviderError("busy"), [ChatTurn("", [ask("echo")])])
    result = await run_failing(provider, {"on_error": hook})
    assert (result.output, result.stopped_by) == ("sorry: busy", "answered")
    assert [message.role for message in result.history] == ["user", "assistant", "tool", "assistant"]
    assert result.history[-1].content == "sorry: busy"
    assert_legal(result.history)
    assert provider.asked == 2


@pytest.mark.behaviour("H09")
@pytest.mark.parametrize("where", ["before_prompt", "after_response"])
async def test_on_error_sees_the_agents_own_errors(where: str) -> None:
    """An exception in the agent's other hooks is its own error."""

    def fails(_self: Any, text: Any = None, ctx: Any = None) -> None:
        raise LookupError("no template")

    hooks = {
        where: (lambda self, prompt: fails(self)) if where == "before_prompt" else (lambda self, text: fails(self))
    }
    result = await run_failing(FakeProvider(["hello"]), {**hooks, "on_error": mending})
    assert result.output == "sorry: no template"
    with pytest.raises(LookupError, match="no template"):
        await run_failing(FakeProvider(["hello"]), hooks)


@pytest.mark.behaviour("H09")
async def test_on_error_that_returns_none_lets_the_error_out() -> None:
    """It may look and decide not to answer; the caller gets the very error."""
    error = ProviderError("busy", status=503)
    seen: list[Exception] = []
    with pytest.raises(ProviderError) as caught:
        await run_failing(Failing(error), {"on_error": lambda self, error: seen.append(error)})
    assert caught.value is error
    assert seen == [error]
    assert caught.value.run.history[-1].content == "go"


@pytest.mark.behaviour("H09")
async def test_an_on_error_that_raises_is_a_hook_error() -> None:
    """Its own failure ends the run as such, with the first error behind it."""

    def fails(_self: Any, error: Exception) -> None:
        raise KeyError("lost")

    with pytest.raises(HookError, match="on_error of Mending failed: KeyError: 'lost'") as caught:
        await run_failing(Failing(ProviderError("busy")), {"on_error": fails})
    assert isinstance(caught.value.__cause__, ProviderError)


@pytest.mark.behaviour("H09", "F08")
async def test_what_ends_a_run_never_goes_through_on_error() -> None:
    """Fatal errors, a thrown budget, failed guards and middleware pass by it."""
    seen: list[Exception] = []

    def forgives(_self: Any, error: Exception) -> str:
        seen.append(error)
        return "all is well"

    def denies(_self: Any, call: Any) -> None:
        raise PermissionError("no")

    async def breaks(call: Any, call_next: Any) -> ChatTurn:
        raise OSError("cache gone")

    hooks = {"on_error": forgives}
    with pytest.raises(FatalToolError):
        await run_failing(FakeProvider([ask("fatal"), "done"]), hooks)
    with pytest.raises(HookError):
        await run_failing(FakeProvider([ask("echo"), "done"]), {**hooks, "before_tool": denies})
    with pytest.raises(BudgetExceededError):
        await run_failing(FakeProvider([ask("echo"), "done"]), hooks, budget=Budget(max_chat_calls=1, mode="throw"))
    made = scripted([echo], hooks=type("Mending", (), hooks))
    made.app.use(chat=breaks)
    assert isinstance((await made.run()).error, MiddlewareError)
    assert seen == []


@pytest.mark.behaviour("H09")
async def test_cancellation_never_goes_through_on_error() -> None:
    """A provider that is cancelled is no error to be mended."""
    import asyncio

    seen: list[Exception] = []
    with pytest.raises(asyncio.CancelledError):
        await run_failing(Failing(asyncio.CancelledError()), {"on_error": lambda self, error: seen.append(error)})
    assert seen == []


@pytest.mark.behaviour("H10")
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_an_agents_own_run_takes_the_turn_over(is_async: bool) -> None:
    """`run(message, ctx)` is the whole turn: the model is not asked, and no hook is called around it."""
    called: list[str] = []

    def run(_self: Any, message: str, ctx: Any) -> str:
        return f"{message} by hand in {ctx.run_id}"

    async def run_async(_self: Any, message: str, ctx: Any) -> str:
        return run(None, message, ctx)

    others = {
        "before_prompt": lambda self, prompt: called.append("before_prompt"),
        "after_response": lambda self, text: called.append("after_response"),
        "on_error": lambda self, error: called.append("on_error"),
        "before_tool": lambda self, call: called.append("before_tool"),
        "after_tool": lambda self, result: called.append("after_tool"),
    }
    made = scripted([echo], hooks=type("Own", (), {"run": run_async if is_async else run, **others}))
    ended = await made.run(run_id="r1")
    assert ended.result is not None
    assert ended.result.output == ended.history[-1].content == "go by hand in r1"
    assert made.provider.requests == []
    assert called == []


@pytest.mark.behaviour("H10")
async def test_an_own_run_that_fails_is_not_mended() -> None:
    """No automatic hook means that `on_error` is not asked either."""

    def run(_self: Any, message: str) -> str:
        raise LookupError("gone")

    ended = await scripted([], hooks=type("Own", (), {"run": run, "on_error": mending})).run()
    assert isinstance(ended.error, LookupError)
