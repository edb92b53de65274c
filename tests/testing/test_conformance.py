"""`assert_plugin_conforms`: it passes what keeps the contract, and says of everything else what is wrong and where."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from dependency_injector import containers, providers

import thena_core.calls.failure
from thena_core import Context, Inject, ThenaError, ToolOutput, hookimpl
from thena_core.hooks.manager import Plugins
from thena_core.testing import assert_plugin_conforms, conformance
from thena_core.testing.broken import CallsTwice, LeaksTask, Swallows

Only = Callable[..., None]


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Only:
    """Play only the scenes of these names, where one of them shows what the test is about."""

    def chosen(*names: str) -> None:
        scenes = [scene for scene in conformance.SCENES if scene.name in names]
        assert len(scenes) == len(names)
        monkeypatch.setattr(conformance, "SCENES", scenes)

    return chosen


def plugin(name: str = "Acme", **functions: Any) -> Any:
    """Make a plugin of functions, named as their hooks; they take no `self`."""
    return type(name, (), {hook: staticmethod(hookimpl(function)) for hook, function in functions.items()})()


def around(function: Any) -> Any:
    """Make a plugin with one middleware around every tool."""
    return plugin(tool_middleware=lambda: function)


def said_of(broken: Any, **options: Any) -> str:
    """Return what is said of a plugin that must be rejected."""
    with pytest.raises(AssertionError) as caught:
        assert_plugin_conforms(broken, **options)
    return str(caught.value)


class Everything:
    """A plugin with every hook, and a task that lives as long as the app."""

    def __init__(self) -> None:
        self.beating: asyncio.Task[Any] | None = None
        self.seen: list[str] = []

    @hookimpl
    async def startup(self, app: Any) -> None:
        self.beating = asyncio.create_task(asyncio.Event().wait())

    @hookimpl
    async def shutdown(self) -> None:
        assert self.beating is not None
        self.beating.cancel()
        await asyncio.wait([self.beating])

    @hookimpl
    async def before_tool(self, call: Any, ctx: Any) -> Any:
        self.seen.append(call.name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):  # a cancellation of its own is nobody's business
                await asyncio.sleep(1)
        return call.replace(arguments=dict(call.arguments))

    @hookimpl(trylast=True)
    def after_tool(self, result: Any) -> str:
        return f"{result.output.content}!"

    @hookimpl
    def tool_middleware(self, tool: Any) -> Any:
        async def timed(call: Any, call_next: Any) -> ToolOutput:
            try:
                output: ToolOutput = await call_next(call)
                return output
            finally:
                call.meta(seen=True)

        return timed if tool.effect is not None else None

    @hookimpl
    def chat_middleware(self) -> Any:
        async def chat(call: Any, call_next: Any) -> Any:
            await asyncio.sleep(0)
            return await call_next(call)

        return chat

    @hookimpl
    def on_event(self, event: Any) -> None:
        self.seen.append(event.name)


@pytest.mark.behaviour("P09")
def test_a_plugin_with_everything_passes() -> None:
    """A plugin that has every hook and keeps the contract passes, and its own functions were called."""
    good = Everything()
    assert_plugin_conforms(good)
    assert {"look", "pack", "delegate", "ConformanceAgent"} <= set(good.seen)


def test_modules_pass() -> None:
    """A plugin that is a module is as good as an object."""
    module = types.ModuleType("acme_plugin")
    vars(module).update(before_tool=hookimpl(lambda call: None), after_tool=hookimpl(lambda: None))
    assert_plugin_conforms(module)


REFUSAL = ToolOutput("Not allowed.", is_error=True)


async def refuse(_call: Any, _call_next: Any) -> ToolOutput:
    return REFUSAL


@pytest.mark.parametrize(
    "guard",
    [
        plugin(before_tool=lambda: REFUSAL),
        around(refuse),
        plugin(before_tool=lambda call: REFUSAL if call.name == "look" else None, tool_middleware=lambda: refuse),
    ],
    ids=["before", "around", "both"],
)
def test_a_guard_that_refuses_everything_passes(guard: Any) -> None:
    """A plugin may answer in the place of each tool, also of those on which a scene waits."""
    assert_plugin_conforms(guard)


def test_data_and_container(only: Only) -> None:
    """What a plugin expects of its app can be given: the run's data, and services for what it adds."""
    only("direct calls")

    class Services(containers.DeclarativeContainer):
        limit = providers.Object(3)

    def needs_user(call: Any) -> None:
        assert call.ctx.data["user"]

    assert_plugin_conforms(plugin(before_tool=needs_user), data={"user": "ann"}, container=Services)
    assert "before_tool raised TypeError" in said_of(plugin(before_tool=needs_user))


TWICE = """\
The plugin "CallsTwice" does not conform:
1. the tool_middleware thena_core.testing.broken.CallsTwice.retry called call_next twice: a call runs once, whatever came of it
   in: calls of one turn (fail); packed calls (fail); calls of nested runs (fail); failing calls (fail); \
refused calls (look); calls over the budget (look); a call cancelled by its id (wait)"""

SWALLOWS = """\
The plugin "Swallows" does not conform:
1. the tool_middleware thena_core.testing.broken.Swallows.shield swallowed FatalToolError, which must end the run: \
catch no more than you can handle
   in: a fatal call (ruin); a fatal call in a pack (ruin, pack)
2. the tool_middleware thena_core.testing.broken.Swallows.shield swallowed the cancellation of the run: \
let CancelledError pass
   in: """


@pytest.mark.behaviour("P09")
def test_one_that_calls_twice() -> None:
    """It is rejected with the middleware's name, and each call that showed it."""
    assert said_of(CallsTwice()) == TWICE


@pytest.mark.behaviour("P09")
def test_one_that_swallows() -> None:
    """It is rejected for the fatal error and for the cancellation, which the framework saves it from in a run."""
    text = said_of(Swallows())
    assert text.startswith(SWALLOWS)
    assert {"an aborted run (wait, pack)", "a run out of time (wait)"} <= set(text.rpartition("in: ")[2].split("; "))


@pytest.mark.behaviour("P09")
def test_one_that_leaks_a_task() -> None:
    """It is rejected with the place where the task stands."""
    lines = said_of(LeaksTask()).splitlines()
    assert lines[0] == 'The plugin "LeaksTask" does not conform:'
    assert lines[1].startswith("1. it left behind a task in LeaksTask.beat at testing/broken.py:")
    assert lines[2].startswith("   in: direct calls; calls of one turn; packed calls; calls of nested runs;")
    assert len(lines) == 3


def raising(error: BaseException) -> Any:
    def hook() -> None:
        raise error

    return hook


async def returns_nothing(call: Any, call_next: Any) -> Any:
    await call_next(call)


async def passes_another(call: Any, call_next: Any) -> Any:
    return await call_next(call.replace(arguments=dict(call.arguments)))


async def goes_its_way(call: Any, call_next: Any) -> Any:
    going = asyncio.ensure_future(call_next(call))
    await asyncio.sleep(0)
    going.cancel()
    return ToolOutput("soon")


async def stubborn() -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0.01)


def appends(call: Any) -> None:
    if call.name == "look":
        call.args.lines.append(3) if hasattr(call.args, "lines") else call.arguments["lines"].append(3)


def sets_output(result: Any) -> None:
    result.output = ToolOutput("other")


@pytest.mark.parametrize(
    ("broken", "scene", "problem"),
    [
        pytest.param(
            plugin(before_tool=raising(ValueError("bad"))),
            "refused calls",
            "before_tool raised ValueError: bad\n   in: refused calls (look, remove)",
            id="guard-raises",
        ),
        pytest.param(
            plugin(after_tool=lambda result: result.call.definition.name and None),
            "invalid calls",
            "after_tool raised AttributeError: 'NoneType' object has no attribute 'name'\n"
            "   in: invalid calls (no_such_tool)",
            id="unknown-tool-has-no-definition",
        ),
        pytest.param(
            plugin(before_tool=appends),
            "direct calls",
            "before_tool changed the call's arguments in place: return call.replace(arguments=…) instead\n"
            "   in: direct calls (look)",
            id="arguments-in-place",
        ),
        pytest.param(
            plugin(after_tool=sets_output),
            "failing calls",
            "after_tool changed the result in place: return the text or the ToolOutput instead",
            id="result-in-place",
        ),
        pytest.param(
            around(returns_nothing),
            "direct calls",
            f"the tool_middleware {__name__}.returns_nothing returned NoneType where a ToolOutput was due",
            id="middleware-returns-nothing",
        ),
        pytest.param(
            around(passes_another),
            "direct calls",
            f"the tool_middleware {__name__}.passes_another passed on another call than the one that it got",
            id="another-call",
        ),
        pytest.param(
            around(goes_its_way),
            "a run out of time",
            f"the tool_middleware {__name__}.goes_its_way returned before call_next had: await it",
            id="not-awaited",
        ),
        pytest.param(
            plugin(chat_middleware=lambda: returns_nothing),
            "direct calls",
            f"the chat_middleware {__name__}.returns_nothing returned NoneType where a ChatTurn was due",
            id="chat-returns-nothing",
        ),
        pytest.param(
            plugin(before_tool=stubborn),
            "a run aborted in before_tool",
            "before_tool swallowed the cancellation of the run: let CancelledError pass",
            id="before-tool-swallows",
        ),
        pytest.param(
            plugin(after_tool=stubborn),
            "a run aborted in after_tool",
            "after_tool swallowed the cancellation of the run: let CancelledError pass",
            id="after-tool-swallows",
        ),
        pytest.param(
            plugin(before_tool=raising(asyncio.CancelledError())),
            "direct calls",
            "before_tool raised CancelledError, and nobody cancelled the run",
            id="cancels-itself",
        ),
        pytest.param(
            plugin(on_event=raising(ValueError("bad"))),
            "direct calls",
            "on_event, for the start of a tool raised ValueError: bad",
            id="observer-raises",
        ),
        pytest.param(
            plugin(startup=raising(ValueError("no network"))),
            "direct calls",
            "startup raised ValueError: no network\n   in: direct calls",
            id="startup-raises",
        ),
        pytest.param(
            plugin(shutdown=raising(ValueError("stuck"))),
            "direct calls",
            "shutdown raised ValueError: stuck",
            id="shutdown",
        ),
        pytest.param(
            plugin(tool_middleware=raising(KeyError("x"))),
            "direct calls",
            "tool_middleware raised KeyError: 'x'",
            id="asked",
        ),
        pytest.param(
            plugin(tool_middleware=lambda: "not a function"),
            "direct calls",
            'the run ended with BuildError: [thena] The plugin "Acme" cannot be loaded: tool_middleware returned str',
            id="no-function",
        ),
        pytest.param(
            plugin(services=raising(ValueError("bad"))),
            "direct calls",
            '[thena] The plugin "Acme" cannot be loaded: services failed: ValueError: bad',
            id="services",
        ),
    ],
)
def test_what_it_finds_in_hooks(only: Only, broken: Any, scene: str, problem: str) -> None:
    """Each way to break the contract is told with the hook, and with the calls that showed it."""
    only(scene)
    assert problem in said_of(broken)


def beats() -> None:
    stop.wait()


def starts_thread() -> None:
    threading.Thread(target=beats, name="acme-beat", daemon=True).start()


def opens_file() -> None:
    kept.append(os.open(os.devnull, os.O_RDONLY))


def patches() -> None:
    thena_core.calls.failure.failure_text = lambda *_args, **_options: "patched"


def forgets_to_await() -> None:
    asyncio.sleep(0)


def fails_in_a_task() -> None:
    async def fail() -> None:
        raise ValueError("nobody looks")

    kept_tasks.append(asyncio.get_running_loop().create_task(fail()))
    kept_tasks.clear()


def leaves_open() -> None:
    open(os.devnull).close  # noqa: B018, SIM115, PTH123 - the call is forgotten, that is the point


stop = threading.Event()
kept: list[int] = []
kept_tasks: list[Any] = []


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take back everything that the plugins below change."""
    stop.clear()
    monkeypatch.setattr(thena_core.calls.failure, "failure_text", thena_core.calls.failure.failure_text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("ACME_KEY", raising=False)
    monkeypatch.setenv("ACME_SET", "secret-before")
    folder, handler, limit = Path.cwd(), signal.getsignal(signal.SIGTERM), sys.getrecursionlimit()
    handlers = list(logging.getLogger().handlers)
    yield
    stop.set()
    os.chdir(folder)
    signal.signal(signal.SIGTERM, handler)
    sys.setrecursionlimit(limit)
    logging.getLogger().handlers[:] = handlers
    os.environ.pop("ACME_KEY", None)
    while kept:
        os.close(kept.pop())


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("leave", "problem"),
    [
        pytest.param(
            starts_thread,
            'it left behind the thread "acme-beat", in beats at testing/test_conformance.py:',
            id="thread",
        ),
        pytest.param(opens_file, "it left behind the open file ", id="file"),
        pytest.param(leaves_open, "Python warns: unclosed file", id="unclosed"),
        pytest.param(forgets_to_await, "Python warns: coroutine 'sleep' was never awaited", id="unawaited"),
        pytest.param(fails_in_a_task, "the event loop says: Task exception was never retrieved", id="failed-task"),
        pytest.param(patches, "it changed thena_core.calls.failure.failure_text", id="patch"),
        pytest.param(lambda: os.environ.update(ACME_KEY="secret-4711"), 'it set os.environ["ACME_KEY"]', id="env-set"),
        pytest.param(lambda: os.environ.update(ACME_SET="secret-4711"), 'it changed os.environ["ACME_SET"]', id="env"),
        pytest.param(
            lambda: os.environ.pop("ACME_SET", None) and None, 'it removed os.environ["ACME_SET"]', id="env-gone"
        ),
        pytest.param(lambda: os.chdir("/"), "it changed the working directory", id="cwd"),
        pytest.param(lambda: sys.path.append("/acme"), "it changed sys.path", id="path"),
        pytest.param(lambda: sys.setrecursionlimit(4321), "it changed the recursion limit", id="limit"),
        pytest.param(
            lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN) and None,
            f"it changed the handler of signal {signal.SIGTERM.value}",
            id="signal",
        ),
        pytest.param(
            lambda: logging.getLogger().addHandler(logging.NullHandler()),
            'it changed the handlers of the logger "root"',
            id="logging",
        ),
        pytest.param(lambda: warnings.simplefilter("ignore"), "it changed warnings.filters", id="warnings"),
    ],
)
def test_what_it_finds_left_behind(only: Only, leave: Any, problem: str) -> None:
    """What a plugin leaves in the process is told, without any value of the environment."""
    only("direct calls")
    text = said_of(plugin(before_tool=leave))
    assert problem in text
    assert "secret-" not in text


def test_one_that_hangs(only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that never returns is given up, and told."""
    only("failing calls")
    monkeypatch.setattr(conformance, "PATIENCE", 0.3)

    async def hangs(call: Any) -> None:
        if call.name == "late":
            await asyncio.Event().wait()

    text = said_of(plugin(before_tool=hangs))
    assert "it did not end within 0.3 s\n   in: failing calls" in text


def test_other_warnings_go_on(only: Only) -> None:
    """A warning that says nothing of what the suite looks for reaches whoever called it."""
    only("direct calls")
    with pytest.warns(FutureWarning, match="acme"):
        assert_plugin_conforms(plugin(startup=lambda: warnings.warn("acme", FutureWarning, stacklevel=2)))


@pytest.mark.parametrize("hook", ["before_tool", "after_tool"])
def test_it_counts(only: Only, monkeypatch: pytest.MonkeyPatch, hook: str) -> None:
    """Where a hook is not called for each call, the suite says so; here because the framework was broken."""
    only("direct calls")
    chain = Plugins.chain
    monkeypatch.setattr(Plugins, "chain", lambda self, name: [] if name == hook else chain(self, name))
    text = said_of(plugin(**{hook: lambda: None}))
    assert f"{hook} was called 0 times for 2 calls, where 2 times were due\n   in: direct calls (look)" in text


@pytest.mark.parametrize("hook", ["startup", "shutdown"])
def test_it_counts_starts(only: Only, monkeypatch: pytest.MonkeyPatch, hook: str) -> None:
    """A plugin that is not started, or not shut down, is told, too."""
    only("direct calls")
    lives = Plugins.lives
    monkeypatch.setattr(Plugins, "lives", lambda self: [dataclasses.replace(one, **{hook: []}) for one in lives(self)])
    text = said_of(plugin(startup=lambda: None, shutdown=lambda: None))
    assert f"{hook} was called 0 times, where the app was opened and closed once" in text


def test_a_run_that_goes_on(only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends well where it was aborted is told; here because the framework was broken."""
    only("a run aborted in before_tool")
    monkeypatch.setattr(Context, "abort", lambda *_: None)
    assert "the run went on where RunAborted was due" in said_of(plugin(before_tool=lambda: None))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (object(), 'The plugin "object" cannot be loaded: it has no hook'),
        (Everything, 'The plugin "Everything" cannot be loaded: it is a class'),
        ("no-such-plugin", 'The plugin "no-such-plugin" cannot be loaded: no installed package brings it'),
        (plugin(befor_tool=lambda: None), "befor_tool is no hook. Did you mean"),
    ],
    ids=["no-hook", "class", "name", "misspelt"],
)
def test_what_is_no_plugin(wrong: Any, problem: str) -> None:
    """What cannot be loaded is told as a build tells it."""
    assert problem in said_of(wrong)


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named plugin that the environment switches off was not looked at, which is no success."""
    monkeypatch.setenv("THENA_PLUGINS", "0")
    assert "THENA_PLUGINS=0 is in the environment" in said_of("audit")


async def test_inside_of_a_loop() -> None:
    """In an `async def` test it says how to call it."""
    with pytest.raises(ThenaError, match="Call it from a plain `def` test"):
        assert_plugin_conforms(Everything())


def test_services_for_others(only: Only) -> None:
    """A plugin that brings services, and uses hooks twice through `specname`, is watched in all of them."""
    only("direct calls", "calls of nested runs")

    class Brings:
        def __init__(self) -> None:
            self.seen: list[str] = []

        @hookimpl
        def services(self) -> Any:
            made = containers.DynamicContainer()
            made.number = providers.Object(7)
            return made

        @hookimpl(specname="after_tool", tryfirst=True)
        def first(self) -> None:
            self.seen.append("first")

        @hookimpl(specname="after_tool", trylast=True)
        async def last(self, ctx: Annotated[Any, Inject]) -> None:
            self.seen.append("last")

    brings = Brings()
    assert_plugin_conforms(brings)
    assert brings.seen[:4] == ["last", "first"] * 2
