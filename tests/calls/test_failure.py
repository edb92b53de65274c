"""From an exception in a tool to what the model reads; the run goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hooks.scripted import ask, assert_legal, scripted
from thena_core import FatalToolError, ProviderError, Thena, ToolDefinition, tool


class SilentError(Exception):
    """Says nothing."""


class UnprintableError(Exception):
    """Cannot say anything."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raising(error: BaseException, *, sync: bool = False, **options: Any) -> Any:
    """Make a tool that raises."""
    if sync:

        def fails_in_thread() -> str:
            raise error

        return ToolDefinition("fails", "Fails.", None, fails_in_thread, **options)

    async def fails() -> str:
        raise error

    return ToolDefinition("fails", "Fails.", None, fails, **options)


def nested(levels: int) -> Exception:
    """A failure wrapped in many groups."""
    error: Exception = ValueError("the leaf")
    for _ in range(levels):
        error = ExceptionGroup("unhandled errors", [error])
    return error


@pytest.mark.behaviour("F01")
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_an_exception_is_the_observation_and_the_run_goes_on(sync: bool) -> None:
    """The model reads the class and the message, gets another turn, and the node keeps the failure."""
    made = scripted([raising(ValueError("no such row"), sync=sync)], ask("fails"))
    ended = await made.run()
    assert ended.observation == "ValueError: no such row"
    assert ended.history[-2].is_error
    assert len(made.provider.requests) == 2
    assert made.provider.requests[1].messages[-1].content == "ValueError: no such row"
    assert ended.node("fails").error == "ValueError: no such row"


@pytest.mark.behaviour("F01", "F09")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(SilentError(), "SilentError", id="silent"),
        pytest.param(UnprintableError(), "UnprintableError: (its message cannot be shown)", id="unprintable"),
        pytest.param(KeyError("k"), "KeyError: 'k'", id="key"),
        pytest.param(
            ProviderError("busy", provider="openai", status=429),
            "ProviderError: openai: busy (status 429)",
            id="provider",
        ),
        pytest.param(
            ExceptionGroup("g", [ValueError("v1"), ExceptionGroup("h", [KeyError("k2")])]),
            "ValueError: v1; KeyError: 'k2'",
            id="groups",
        ),
        pytest.param(
            ExceptionGroup("g", [UnprintableError(), SilentError()]),
            "UnprintableError: (its message cannot be shown); SilentError",
            id="group-of-odd-ones",
        ),
        pytest.param(
            BaseExceptionGroup("g", [ValueError("v1"), asyncio.CancelledError()]),
            "ValueError: v1",
            id="group-with-cancellation",
        ),
        pytest.param(nested(3_000), "ValueError: the leaf", id="deep-groups"),
        pytest.param(TimeoutError("upstream db"), "TimeoutError: upstream db", id="own-timeout"),
    ],
)
async def test_odd_exceptions_are_worded(error: BaseException, expected: str) -> None:
    """Whatever is raised, the observation names its class; a group names its leaves and not itself."""
    ended = await scripted([raising(error)], ask("fails")).run()
    assert ended.observation.startswith(expected)
    assert "sub-exception" not in ended.observation
    assert ended.node("fails").outcome == "error"
    assert ended.result is not None


@pytest.mark.behaviour("F09")
@pytest.mark.parametrize("blocking", [True, False], ids=["thread", "inline"])
async def test_stop_iteration_of_a_sync_tool(blocking: bool) -> None:
    """C07 (langchain-ai/langchain#22997): a sync tool that lets `StopIteration` out fails like any other, no hang."""

    def first() -> str:
        return next(iter([]))

    made = scripted([ToolDefinition("first", "First.", None, first, blocking=blocking)], ask("first"))
    ended = await asyncio.wait_for(made.run(), 5)
    assert "StopIteration" in ended.observation
    assert ended.node("first").outcome == "error"


@pytest.mark.behaviour("F09")
async def test_stop_async_iteration_of_an_async_tool() -> None:
    """C07 (python/cpython#112182): the same for `StopAsyncIteration`."""

    async def nobody() -> Any:
        for none in ():
            yield none

    @tool
    async def first() -> str:
        """First."""
        return str(await anext(nobody()))

    ended = await asyncio.wait_for(scripted([first], ask("first")).run(), 5)
    assert "StopAsyncIteration" in ended.observation


@pytest.mark.behaviour("F01", "F12")
async def test_one_failing_call_leaves_its_siblings_alone() -> None:
    """C03 (openai/openai-agents-python#2580): the others keep their results, each under its id, in the order asked."""
    failed = asyncio.Event()

    @tool
    async def waits() -> str:
        """Ends after the failure."""
        await failed.wait()
        return "A"

    @tool
    async def fails() -> str:
        """Fails without a text."""
        failed.set()
        raise ValueError

    made = scripted(
        [waits, fails], [ask("waits"), ask("fails", None, "c2"), ask("waits", None, "c3")], tool_calls="all"
    )
    ended = await made.run()
    assert_legal(ended.history)
    assert ended.observations == ["A", "ValueError", "A"]
    assert ended.history[-1].content == "done"


@pytest.mark.behaviour("F08")
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("batch", [False, True], ids=["alone", "with-sibling"])
@pytest.mark.parametrize(
    ("error", "kind"), [(KeyboardInterrupt(), KeyboardInterrupt), (SystemExit(3), SystemExit)], ids=["ctrl-c", "exit"]
)
def test_the_process_is_never_held_up(sync: bool, batch: bool, error: BaseException, kind: type[BaseException]) -> None:
    """C06 (HKUDS/nanobot#4788): Ctrl-C and an exit leave the run as themselves, also from a thread; siblings end."""
    ends: list[str] = []

    async def sibling() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled")
        return "late"

    async def main() -> None:
        tools = [raising(error, sync=sync), ToolDefinition("sibling", "Waits.", None, sibling)]
        asked = [ask("sibling", None, "c0"), ask("fails")] if batch else ask("fails")
        await scripted(tools, asked, tool_calls="all" if batch else "one").run()

    with pytest.raises(kind) as caught:
        asyncio.run(main())
    assert caught.value is error
    assert ends == (["cancelled"] if batch else [])


@pytest.mark.behaviour("F08")
def test_ctrl_c_in_a_group_leaves_the_run() -> None:
    """C21 (sailingsam/tryjarvis#13): a group that holds a `KeyboardInterrupt` is no observation."""
    ended = scripted([raising(BaseExceptionGroup("g", [KeyboardInterrupt()]))], ask("fails"))
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
        asyncio.run(ended.run())
    assert len(ended.provider.requests) == 1


@pytest.mark.behaviour("F08")
@pytest.mark.parametrize("batch", [False, True], ids=["alone", "with-sibling"])
async def test_a_tool_that_cancels_itself_is_an_observation(batch: bool) -> None:
    """C06 (google/adk-python#7180): `CancelledError` while nobody cancels the run is a failure of the tool, no hang."""
    asked = [ask("fails"), ask("fails", None, "c2")] if batch else [ask("fails")]
    made = scripted([raising(asyncio.CancelledError())], asked, tool_calls="all")
    ended = await asyncio.wait_for(made.run(), 5)
    assert ended.observations == ["fails cancelled itself"] * len(asked)
    assert {node.outcome for node in ended.nodes("fails")} == {"cancelled"}


@pytest.mark.behaviour("F09")
async def test_a_task_group_of_a_tool_shows_its_leaf() -> None:
    """C21 (IBM/mcp-context-forge#1902): the model reads what failed, not that a task group did."""

    async def fail() -> None:
        raise ValueError("quota exceeded")

    @tool
    async def grouped() -> str:
        """Works in a group."""
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
        return "ok"

    assert (await scripted([grouped], ask("grouped")).run()).observation == "ValueError: quota exceeded"


@pytest.mark.behaviour("F08")
@pytest.mark.parametrize(
    "group",
    [
        pytest.param(ExceptionGroup("g", [ValueError("v1"), FatalToolError("stop")]), id="group"),
        pytest.param(ExceptionGroup("g", [ExceptionGroup("h", [FatalToolError("stop")])]), id="nested"),
        pytest.param(
            BaseExceptionGroup("g", [asyncio.CancelledError(), FatalToolError("stop")]), id="with-cancellation"
        ),
    ],
)
async def test_a_fatal_leaf_is_fatal(group: BaseException) -> None:
    """C21 (pydantic/pydantic-ai#6004): what ends the run leaves a tool's group as itself."""
    ended = await scripted([raising(group)], ask("fails")).run()
    assert isinstance(ended.error, FatalToolError)
    assert str(ended.error) == "stop"


def worded(error: Exception) -> str:
    """Word an error for the model."""
    return f"no access ({error.args[0]})"


DISCLOSED: Sequence[Any] = [
    pytest.param({PermissionError: "ask an admin"}, None, "ask an admin", id="app"),
    pytest.param(None, {PermissionError: "not yours"}, "not yours", id="tool"),
    pytest.param({PermissionError: "ask an admin"}, {PermissionError: "not yours"}, "not yours", id="tool-first"),
    pytest.param({OSError: "a system error"}, None, "a system error", id="base-class"),
    pytest.param({Exception: "failed", OSError: "a system error"}, None, "a system error", id="nearest-class"),
    pytest.param({PermissionError: worded}, None, "no access (/etc/secrets)", id="function"),
    pytest.param({KeyError: "no key"}, {ValueError: "x"}, "PermissionError: /etc/secrets", id="another-class"),
]


@pytest.mark.behaviour("F10")
@pytest.mark.parametrize(("app", "own", "expected"), DISCLOSED)
@pytest.mark.parametrize("kind", ["function", "class"])
async def test_the_disclosure_table(app: Any, own: Any, expected: str, kind: str) -> None:
    """The table of the tool, then that of the app, words an exception; the nearest class decides."""

    @tool(disclose=own)
    async def reads() -> str:
        """Reads."""
        raise PermissionError("/etc/secrets")

    @tool(name="reads", description="Reads.", disclose=own)
    class Reads:
        async def execute(self) -> str:
            raise PermissionError("/etc/secrets")

    ended = await scripted([reads if kind == "function" else Reads], ask("reads"), disclose=app).run()
    assert ended.observation == expected
    if "/etc" not in expected:
        assert "/etc/secrets" not in repr(ended.events)


@pytest.mark.behaviour("F10")
@pytest.mark.parametrize("through", ["disclose", "redact"])
async def test_a_disclosure_that_fails_shows_the_class_only(through: str) -> None:
    """Where the function that words an exception fails itself, the model reads the class and never the message."""

    def fails(_value: Any) -> str:
        raise IndexError("faulty wording")

    options: dict[str, Any] = {"disclose": {ValueError: fails}} if through == "disclose" else {"redact": fails}
    ended = await scripted([raising(ValueError("TOPSECRET"))], ask("fails"), **options).run()
    assert ended.error is None
    assert "ValueError" in ended.observation
    assert "TOPSECRET" not in ended.observation


@pytest.mark.behaviour("F10")
async def test_secrets_in_a_message_are_masked() -> None:
    """Without a table the model reads the message, known secret shapes masked, unless the app says otherwise."""
    key = "sk-proj-" + "a1B2c3D4" * 6
    error = RuntimeError(f"refused with key {key}")
    ended = await scripted([raising(error)], ask("fails")).run()
    assert ended.observation.startswith("RuntimeError: refused with key ")
    assert key not in ended.observation
    bare = await scripted([raising(error)], ask("fails"), redact=False).run()
    assert key in bare.observation


@pytest.mark.behaviour("F01")
async def test_a_long_message_is_cut() -> None:
    """A message of any length is a bounded observation."""
    ended = await scripted([raising(ValueError("x" * 1_000_000))], ask("fails")).run()
    assert len(ended.observation) <= 2_100


@pytest.mark.behaviour("F01")
async def test_app_call_has_the_same_policy() -> None:
    """Without a model, a failing tool is an output, too."""
    async with Thena(tools=[raising(ValueError("no such row"))]) as app:
        output = await app.call("fails")
    assert (output.content, output.is_error) == ("ValueError: no such row", True)


ERRORS: st.SearchStrategy[Exception] = st.recursive(
    st.builds(
        lambda cls, text: cls(text),
        st.sampled_from([ValueError, KeyError, OSError, RuntimeError, StopAsyncIteration, TimeoutError]),
        st.text(max_size=20),
    )
    | st.sampled_from([SilentError, UnprintableError]).map(lambda cls: cls()),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda leaves: ExceptionGroup("g", leaves)),
    max_leaves=6,
)


def leaf_names(error: Exception) -> set[str]:
    """Name the classes that are no groups."""
    if isinstance(error, ExceptionGroup):
        return set().union(*(leaf_names(inner) for inner in error.exceptions))
    return {type(error).__name__}


@pytest.mark.behaviour("F01", "F09")
@settings(max_examples=60, deadline=None)
@given(error=ERRORS)
async def test_any_exception_is_one_observation(error: Exception) -> None:
    """Whatever a tool raises, alone or in groups, every class is named, the history is legal, and the run goes on."""
    ended = await scripted([raising(error)], ask("fails")).run()
    assert_legal(ended.history)
    assert all(name in ended.observation for name in leaf_names(error))
    assert ended.node("fails").outcome == "error"


def test_what_a_thread_raises_is_the_same_object() -> None:
    """A base exception from a thread is not re-made on its way (its traceback is the tool's)."""
    names: list[str] = []

    def fails() -> str:
        names.append(threading.current_thread().name)
        raise SystemExit(7)

    made = scripted([ToolDefinition("t", "d", None, fails)], ask("t"))
    with pytest.raises(SystemExit) as caught:
        asyncio.run(made.run())
    assert caught.value.code == 7
    assert names == ["thena-tool"]
