"""The conformance suite for plugins: every kind of call, watched hooks, and a look at what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings
from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any

from thena_core._render import indented, listed, said_by
from thena_core.errors import ThenaError
from thena_core.hooks.manager import LoadedPlugin, load_plugins
from thena_core.testing import traces
from thena_core.testing.ledger import Ledger
from thena_core.testing.scenes import SCENES, Scene, Stage
from thena_core.testing.spy import spied

PATIENCE = 10.0
"""Seconds after which a scene is taken to hang; each takes a few hundredths of one."""


def assert_plugin_conforms(plugin: Any, *, data: Any = None, container: Any = None) -> None:
    """Assert that a plugin keeps the contract, whatever becomes of the calls: `assert_plugin_conforms(MyPlugin())`.

    It is used in apps of the suite's own, one after the other: direct calls, calls of one turn, packed and nested ones,
    failing, invalid, unknown, refused and fatal ones, calls over the budget, out of time, cancelled by id or with their
    run, and runs that are aborted in the midst of the plugin's own hooks. Its hooks are called as an app calls them,
    and watched:

    - nothing of it raises; each middleware goes on once, with the call that it got, and returns what is due;
    - it swallows no cancellation and nothing that ends a run, and changes neither arguments nor results in place;
    - it starts and shuts down once in each app, and `after_tool` is called once for each observation;
    - afterwards no task, thread or open file of it is left, and no global is changed: the environment, the working
      directory, signal handlers, logging, `warnings`, `builtins`, and the functions of `asyncio` and `thena_core`.

    Open files are compared where the system lists them, which Windows does not.

    Args:
        plugin: An object, a module, or the name of an installed plugin.
        data: What the plugin expects in `ctx.data`, if anything.
        container: The container with the services that the plugin expects, if any.

    Raises:
        AssertionError: With everything that is wrong, where it was seen, and what to do.
        ThenaError: Inside of an event loop: the suite runs loops of its own. Call it from a plain `def` test.
    """
    __tracebackhide__ = True
    _refuse_a_loop()
    loaded = _loaded(plugin)
    ledger = Ledger()
    hooks = {hook for hook, _ in loaded.implementations}
    scenes = [scene for scene in SCENES if scene.abort_in is None or scene.abort_in in hooks]
    for scene in scenes:  # without the plugin first: what a first use makes, imports and keeps is not the plugin's
        if scene.abort_in is None:
            _play(scene, Stage([], data, container), Ledger())
    with traces.only_new_garbage():
        _play_all(scenes, loaded, ledger, data, container)
    if ledger.problems:
        raise AssertionError(_told(loaded, ledger))


def _play_all(scenes: Sequence[Scene], loaded: LoadedPlugin, ledger: Ledger, data: Any, container: Any) -> None:
    before = traces.taken()
    for scene in scenes:
        ledger.begin(scene.name, cancels=scene.cancels, abort_in=scene.abort_in)
        _watched(scene, loaded, ledger, Stage([spied(loaded, ledger)], data, container))
        before, left = traces.left_since(before)
        for trace in left:
            ledger.blame(trace)


def _refuse_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ThenaError(
        "[thena] assert_plugin_conforms() runs event loops of its own. Call it from a plain `def` test, without await."
    )


def _loaded(plugin: Any) -> LoadedPlugin:
    problems: list[Exception] = []
    plugins = load_plugins([plugin], problems=problems)
    if problems:
        raise AssertionError(str(problems[0])) from problems[0]
    if not plugins.loaded:
        raise AssertionError(f'[thena] The plugin "{plugin}" is switched off: THENA_PLUGINS=0 is in the environment.')
    return plugins.loaded[0]


def _watched(scene: Scene, loaded: LoadedPlugin, ledger: Ledger, stage: Stage) -> None:
    """Play a scene, and note what is wrong with it."""
    with _watched_warnings(ledger):
        error = _play(scene, stage, ledger)
    if isinstance(error, TimeoutError):
        ledger.blame(f"it did not end within {PATIENCE:g} s")
    elif error is None and scene.ends is not None and _is_due(scene, ledger, stage):
        ledger.blame(f"the run went on where {scene.ends.__name__} was due")
    elif error is not None and not ledger.is_blamed and not (scene.ends and isinstance(error, scene.ends)):
        ledger.blame(f"the run ended with {said_by(error)}")
    if not ledger.is_blamed:
        _count(scene, loaded, ledger, stage)


def _play(scene: Scene, stage: Stage, ledger: Ledger) -> BaseException | None:
    """Play a scene in a loop of its own; return what it ended with."""

    async def played() -> BaseException | None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: ledger.blame(f"the event loop says: {context['message']}"))
        error: BaseException | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                await scene.play(stage)
        except Exception as ended:  # noqa: BLE001 - what the scene ended with is looked at by the caller
            error = ended
        for task in await traces.tasks_left():
            ledger.blame(task)
        return error

    with asyncio.Runner() as runner:
        return runner.run(played())


def _is_due(scene: Scene, ledger: Ledger, stage: Stage) -> bool:
    """Whether the scene came to what ends its run: a plugin may answer in the place of the tool that does."""
    return ledger.abort_in is None and (scene.by is None or scene.by in stage.ran)


def _count(scene: Scene, loaded: LoadedPlugin, ledger: Ledger, stage: Stage) -> None:
    """Compare how often the hooks were called with the calls that were made."""
    hooks = Counter(hook for hook, _ in loaded.implementations)
    calls = [step for top in stage.record.steps for step in (top, *top.below()) if step.kind == "tool"]
    valid = Counter(step.name for step in calls if step.outcome not in ("invalid", "unknown"))
    due = {"before_tool": valid, "after_tool": Counter(step.name for step in calls if step.output is not None)}
    for hook, expected in due.items():
        for name in {**expected, **valid} if hook in hooks else ():
            _compare(ledger, hook, name, expected[name] * hooks[hook], expected[name])
    for name, functions in Counter(name for name, _ in ledger.standing).items():
        if not scene.cancels:  # else it may end before it comes to its middleware
            times = valid[name] - ledger.answered[name]
            _compare(ledger, "tool_middleware", name, times * functions, times)
    for hook in ("startup", "shutdown"):
        if hook in hooks and ledger.calls[hook, ""] != hooks[hook]:
            ledger.blame(f"{hook} was called {ledger.calls[hook, '']} times, where the app was opened and closed once")


def _compare(ledger: Ledger, hook: str, name: str, due: int, calls: int) -> None:
    seen = ledger.calls[hook, name]
    if seen != due:
        ledger.blame(f"{hook} was called {seen} times for {calls} calls, where {due} times were due", name)


@contextlib.contextmanager
def _watched_warnings(ledger: Ledger) -> Generator[None, None, None]:
    """Note what Python says of code that forgets to await or to close; other warnings go where they were going."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        yield
        gc.collect()  # what is collected now may warn, and is not left behind
        if filters != list(warnings.filters):
            ledger.blame("it changed warnings.filters")
    for warning in caught:
        text = str(warning.message)
        if "was never awaited" in text or issubclass(warning.category, ResourceWarning):
            ledger.blame(f"Python warns: {text}")
        elif not ledger.is_blamed:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _told(loaded: LoadedPlugin, ledger: Ledger) -> str:
    origin = f" (from {loaded.distribution})" if loaded.distribution else ""
    rows = [
        f"{number}. {indented(problem)}\n   in: {'; '.join(_place(*place) for place in places.items())}"
        for number, (problem, places) in enumerate(ledger.problems.items(), 1)
    ]
    return "\n".join([f'The plugin "{loaded.name}"{origin} does not conform:', *rows])


def _place(scene: str, tools: Sequence[str]) -> str:
    return f"{scene} ({listed(tools)})" if tools else scene
