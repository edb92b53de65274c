"""Mistakes in a plugin: found when the app is built, before anything of it is registered."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

from tests.plugins.watched import guarding, hooks_of, plugin, ran, refused
from thena_core import hookimpl


class OldArgument:
    """D13: a plugin for a host that had other parameters."""

    @hookimpl
    def after_tool(self) -> None:
        """Be right."""
        ran.append("after")

    @hookimpl
    def before_tool(self, call: Any, arguments: Any) -> None:
        """Be wrong."""
        ran.append("before")


class Typo:
    """D13: a hook that does not exist."""

    @hookimpl
    def before_tol(self, call: Any) -> None:
        """Be wrong."""


class Unmarked:
    """D13: somebody forgot the mark."""

    def before_tool(self, call: Any) -> None:
        """Be wrong."""


class HalfMarked(Unmarked):
    """D13: one function is marked, and one is not."""

    @hookimpl
    def after_tool(self) -> None:
        """Be right."""


class Several(Typo, OldArgument):
    """D13: several mistakes at once."""


class Wrapper:
    """D14: a wrapper in pluggy's sense."""

    @hookimpl(wrapper=True)
    def before_tool(self, call: Any) -> Any:
        """Be wrong."""
        return (yield)


class OldWrapper:
    """D14: the same as pluggy had it before."""

    @hookimpl(hookwrapper=True)
    def before_tool(self, call: Any) -> Any:
        """Be wrong."""
        yield


class Generator:
    """A generator without the option."""

    @hookimpl
    def startup(self, app: Any) -> Any:
        """Be wrong."""
        yield


class AsyncGenerator:
    """An async generator."""

    @hookimpl
    async def after_tool(self, result: Any) -> Any:
        """Be wrong."""
        yield


class AsyncAsked:
    """A coroutine where nobody awaits."""

    @hookimpl
    async def tool_middleware(self, tool: Any) -> None:
        """Be wrong."""


class Direct:
    """The middleware itself, where a function that returns it is due."""

    @hookimpl
    def tool_middleware(self, call: Any, call_next: Any) -> Any:
        """Be wrong."""


class Raising:
    """An attribute that cannot even be looked at."""

    @property
    def connection(self) -> Any:
        """Be wrong."""
        raise RuntimeError("not connected")

    @hookimpl
    def before_tool(self) -> None:
        """Be right."""


NAMES = "before_tool, after_tool, tool_middleware, chat_middleware, on_event, services, startup, shutdown"
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "old-argument": (
        OldArgument,
        "before_tool has no parameter `arguments`. Write: def before_tool(self, call, ctx)",
    ),
    "typo": (Typo, f'before_tol is no hook. Did you mean "before_tool"? Hooks are: {NAMES}'),
    "unmarked": (Unmarked, "before_tool is not marked: write @hookimpl above it"),
    "half-marked": (HalfMarked, "before_tool is not marked: write @hookimpl above it"),
    "several": (
        Several,
        (
            f'before_tol is no hook. Did you mean "before_tool"? Hooks are: {NAMES}; '
            "before_tool has no parameter `arguments`. Write: def before_tool(self, call, ctx)"
        ),
    ),
    "wrapper": (Wrapper, "before_tool is a wrapper; write a tool_middleware to stand around a call"),
    "old-wrapper": (OldWrapper, "before_tool is a wrapper; write a tool_middleware to stand around a call"),
    "generator": (Generator, "startup is a generator; write a tool_middleware to stand around a call"),
    "async-generator": (AsyncGenerator, "after_tool is a generator; write a tool_middleware to stand around a call"),
    "async": (AsyncAsked, "tool_middleware is `async def`, and nobody awaits it; write `def tool_middleware`"),
    "direct": (
        Direct,
        (
            "tool_middleware has no parameter `call`. Write: def tool_middleware(self, tool); "
            "tool_middleware has no parameter `call_next`. Write: def tool_middleware(self, tool)"
        ),
    ),
    "raising": (Raising, "its attribute `connection` cannot be read: RuntimeError: not connected"),
    "no-hook": (lambda: plugin("NoHook"), "it has no hook: mark its functions with @hookimpl"),
    "class": (lambda: OldArgument, "it is a class; give an instance: plugins=[OldArgument()]"),
}


@pytest.mark.behaviour("P04")
@pytest.mark.parametrize(("make", "problem"), WRONG.values(), ids=list(WRONG))
async def test_mistakes(make: Callable[[], Any], problem: str) -> None:
    """D13 (pytest-dev/pytest#14651, kedro-org/kedro#2862): found at build, with the name and the way out."""
    made = make()
    name = made.__name__ if isinstance(made, type) else type(made).__name__
    assert await refused([made]) == [f'[thena] The plugin "{name}" cannot be loaded: {problem}']


@pytest.mark.behaviour("P04")
@pytest.mark.filterwarnings("ignore:.thena. The plugin")
@pytest.mark.parametrize("make", [OldArgument, Several, HalfMarked], ids=lambda cls: cls.__name__)
async def test_never_half(make: Callable[[], Any]) -> None:
    """D13 (pytest-dev/pluggy#733): of a plugin with one wrong hook the right ones are not called either."""
    assert await hooks_of([make(), guarding("Mine")], on_plugin_error="warn") == ["Mine"]


@pytest.mark.behaviour("P04")
async def test_all_at_once() -> None:
    """Every broken plugin is named in the one `BuildError`, in the order in which they were named."""
    assert [text.split('"')[1] for text in await refused([Typo(), guarding("Mine"), OldArgument()])] == [
        "Typo",
        "OldArgument",
    ]


@pytest.mark.behaviour("P01")
async def test_a_module_has_no_self() -> None:
    """The line to paste into a module has no `self`."""
    module = types.ModuleType("guard")
    module.before_tool = hookimpl(lambda cal: None)  # type: ignore[attr-defined]
    assert await refused([module]) == [
        (
            '[thena] The plugin "guard" cannot be loaded: before_tool has no parameter `cal`. Did you mean "call"? '
            "Write: def before_tool(call, ctx)"
        )
    ]
