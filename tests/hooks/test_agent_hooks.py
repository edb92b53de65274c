"""The methods of an agent class that are hooks: which there are, what they may return, and what they may look like."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from tests.hooks.variants import echo, sync_and_async
from thena_core import (
    AgentHooks,
    BuildError,
    ToolOutput,
)


def prompting(_self: Any, prompt: str, ctx: Any) -> str:
    """Add a line to the prompt."""
    return f"{prompt} Turn {len(ctx.history)}."


def shouting(_self: Any, text: str, ctx: Any) -> str:
    """Change the answer."""
    return text.upper()


def marking(_self: Any, result: Any, ctx: Any) -> str:
    """Change the observation."""
    return f"<{result.output.content}>"


def rewriting(_self: Any, call: Any, ctx: Any) -> Any:
    """Change the arguments."""
    return call.replace(arguments={"text": "rewritten"})


@pytest.mark.behaviour("H01")
@pytest.mark.parametrize("hook", sync_and_async(prompting))
async def test_before_prompt(hook: Any) -> None:
    """It replaces the prompt of each turn, starting from the agent's own."""
    made = scripted([echo], ask("echo"), hooks=type("A", (), {"before_prompt": hook}))
    await made.run()
    assert [request.system for request in made.provider.requests] == ["You act. Turn 1.", "You act. Turn 3."]


@pytest.mark.behaviour("H01")
@pytest.mark.parametrize("hook", sync_and_async(shouting))
async def test_after_response(hook: Any) -> None:
    """It replaces the model's text in output and history."""
    ended = await scripted([], hooks=type("A", (), {"after_response": hook})).run()
    assert ended.result is not None
    assert (ended.result.output, ended.history[-1].content) == ("DONE", "DONE")


@pytest.mark.behaviour("H01")
@pytest.mark.parametrize("hook", sync_and_async(marking))
async def test_after_tool(hook: Any) -> None:
    """It replaces the observation."""
    ended = await scripted([echo], ask("echo"), hooks=type("A", (), {"after_tool": hook})).run()
    assert ended.observation == "<a>"


@pytest.mark.behaviour("H01")
@pytest.mark.parametrize("hook", sync_and_async(rewriting))
async def test_before_tool(hook: Any) -> None:
    """It replaces the arguments."""
    ended = await scripted([echo], ask("echo"), hooks=type("A", (), {"before_tool": hook})).run()
    assert ended.observation == "rewritten"


@pytest.mark.behaviour("H01")
async def test_none_keeps() -> None:
    """Hooks that return `None` change nothing."""

    class Silent(AgentHooks):
        def before_prompt(self, prompt: str) -> None: ...
        async def before_tool(self, call: Any) -> None: ...
        def after_tool(self, result: Any) -> None: ...
        async def after_response(self, text: str) -> None: ...

    made = scripted([echo], ask("echo"), hooks=Silent)
    ended = await made.run()
    assert made.provider.requests[0].system == "You act."
    assert [message.content for message in ended.history] == ["go", "", "a", "done"]
    assert "changed_by" not in ended.node("echo").meta


def both(_self: Any, result: Any, ctx: Any) -> str:
    return f"{type(result).__name__} {type(ctx).__name__}"


def swapped(_self: Any, ctx: Any, result: Any) -> str:
    return both(None, result, ctx)


def keyword_only(_self: Any, *, result: Any, ctx: Any) -> str:
    return both(None, result, ctx)


def half_keyword(_self: Any, result: Any, *, ctx: Any) -> str:
    return both(None, result, ctx)


def stranger_between(_self: Any, result: Any, note: str = "n", ctx: Any = None) -> str:
    assert note == "n"
    return both(None, result, ctx)


def stranger_first(_self: Any, note: str = "n", result: Any = None, ctx: Any = None) -> str:
    assert note == "n"
    return both(None, result, ctx)


def anything(_self: Any, *args: Any, **kwargs: Any) -> str:
    values = {type(value).__name__: value for value in [*args, *kwargs.values()]}
    return both(None, values["ToolResult"], values["Context"])


def keywords(_self: Any, **kwargs: Any) -> str:
    return both(None, kwargs["result"], kwargs["ctx"])


@pytest.mark.behaviour("H01")
@pytest.mark.parametrize(
    "hook",
    [both, swapped, keyword_only, half_keyword, stranger_between, stranger_first, anything, keywords],
    ids=lambda function: function.__name__,
)
async def test_parameters_are_known_by_name(hook: Any) -> None:
    """However a hook writes its parameters, each gets what its name says."""
    ended = await scripted([echo], ask("echo"), hooks=type("A", (), {"after_tool": hook})).run()
    assert ended.observation == "ToolResult Context"


@pytest.mark.behaviour("H01")
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        pytest.param({"before_tool": lambda self, tool: None}, "tool", id="unknown-parameter"),
        pytest.param({"before_tol": lambda self, call: None}, 'Did you mean "before_tool"?', id="misspelt"),
        pytest.param({"on_eror": lambda self, error: None}, 'Did you mean "on_error"?', id="misspelt-on"),
    ],
)
async def test_wrong_hooks_are_build_errors(wrong: dict[str, Any], text: str) -> None:
    """A hook that nobody would call, or that cannot be called, is found when the app is built."""
    ended = await scripted([echo], hooks=type("Wrong", (), wrong)).run()
    assert isinstance(ended.error, BuildError)
    assert text in str(ended.error)
    assert "Wrong" in str(ended.error)


def test_outputs_are_frozen() -> None:
    """A `ToolOutput` cannot be changed behind the back of a layer that has seen it."""
    with pytest.raises(AttributeError):
        ToolOutput("a").content = "b"  # type: ignore[misc]
