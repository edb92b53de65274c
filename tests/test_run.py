"""Runs end to end, with the cases that broke other frameworks: results, threads, time limits and feedback."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime as dt
import enum
import json
import subprocess
import sys
import textwrap
import threading
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.hooks.scripted import ask, assert_legal, scripted
from thena_core import Report, Thena, ToolDefinition, tool
from thena_tools import ParallelTool

rid: contextvars.ContextVar[str] = contextvars.ContextVar("rid", default="none")


@pytest.mark.behaviour("R07")
@pytest.mark.parametrize("way", ["plain", "timeout", "packed"])
async def test_context_variables_reach_threads_and_stay_there(way: str) -> None:
    """C02 (pydantic/pydantic-ai#1576): a sync tool sees its own run's values; what it sets stays in its call."""

    def who() -> str:
        value = rid.get()
        rid.set("changed in the tool")
        return value

    definition = ToolDefinition("who", "d", None, who, timeout=5 if way == "timeout" else None)
    two = ask("parallel", {"calls": [{"name": "who"}, {"name": "who"}]})
    asked: Any = two if way == "packed" else [ask("who"), ask("who", None, "c2")]

    async def run(name: str) -> tuple[str, str]:
        rid.set(name)
        ended = await scripted([definition, ParallelTool], asked, tool_calls="all").run()
        return "\n".join(ended.observations), rid.get()

    results = await asyncio.gather(*(asyncio.create_task(run(name)) for name in ("run-1", "run-2")))
    for name, (read, after) in zip(("run-1", "run-2"), results, strict=True):
        assert read.count(name) == 2
        assert "changed" not in read
        assert after == name


class Colour(enum.Enum):
    RED = "x"


class Invoice(BaseModel):
    when: dt.datetime
    amount: Decimal


@dataclasses.dataclass
class Row:
    id: uuid.UUID
    kind: Colour
    tags: set[str]


def self_referring() -> list[Any]:
    """A list that holds itself."""
    made: list[Any] = []
    made.append(made)
    return made


RESULTS = [
    pytest.param(
        Invoice(when=dt.datetime(2026, 2, 3, tzinfo=dt.UTC), amount=Decimal("0.10")),
        {"when": "2026-02-03T00:00:00Z", "amount": "0.10"},
        id="model",
    ),
    pytest.param(
        Row(uuid.UUID(int=1), Colour.RED, {"a"}),
        {"id": "00000000-0000-0000-0000-000000000001", "kind": "x", "tags": ["a"]},
        id="dataclass",
    ),
    pytest.param({1: "a", (2, 3): "b"}, {"1": "a", "2,3": "b"}, id="keys"),
    pytest.param({"mean": float("nan"), "max": float("inf"), "n": 0}, {"mean": None, "max": None, "n": 0}, id="nan"),
    pytest.param(None, None, id="none"),
    pytest.param([], [], id="empty-list"),
    pytest.param(0, 0, id="zero"),
    pytest.param(False, False, id="false"),
]


def strict_json(text: str) -> Any:
    """Parse as a strict reader does: no NaN, no Infinity."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.behaviour("R03", "R05", "R06")
@pytest.mark.parametrize(("value", "expected"), RESULTS)
async def test_results_are_strict_json(value: Any, expected: Any, tmp_path: Path) -> None:
    """C09, C10, C11 (github/copilot-sdk#2203, modelcontextprotocol/python-sdk#3385, latitude-dev/latitude-llm#810)."""
    definition = ToolDefinition("get", "d", None, lambda: value)
    ended = await scripted([definition], ask("get"), report=Report(folder=tmp_path)).run()
    assert ended.node("get").outcome == "ok"
    assert strict_json(ended.observation) == expected
    assert ended.result is not None
    assert ended.result.report_path is not None
    strict_json((ended.result.report_path / "report.json").read_text(encoding="utf-8"))


@pytest.mark.behaviour("R03", "R05")
@pytest.mark.parametrize(
    ("value", "text", "outcome"),
    [
        pytest.param(b"hi", "hi", "ok", id="text-bytes"),
        pytest.param(b"\xff\x00", "/wA=", "ok", id="raw-bytes"),
        pytest.param("", "(the tool returned nothing)", "ok", id="empty"),
        pytest.param(ValueError("returned, not raised"), "returned, not raised", "ok", id="exception"),
        pytest.param(self_referring(), "get returned a list", "error", id="cycle"),
        pytest.param(object(), "get returned a object", "error", id="object"),
        pytest.param({"deep": [object()]}, "object", "error", id="object-inside"),
    ],
)
async def test_results_without_a_natural_form(value: Any, text: str, outcome: str) -> None:
    """C09 (HKUDS/Vibe-Trading#849): text where there is one, else an observation that names the type; the run goes on."""
    ended = await scripted([ToolDefinition("get", "d", None, lambda: value)], ask("get")).run()
    assert ended.result is not None
    assert text in ended.observation
    assert "0x" not in ended.observation
    assert "b'" not in ended.observation
    assert ended.node("get").outcome == outcome


@pytest.mark.behaviour("T11", "F05")
async def test_time_limits() -> None:
    """C18 (openai/openai-agents-python#2479): the limit is told at once with the tool's name; its own error is not one."""
    release, ends = threading.Event(), []

    async def a() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled and awaited")
        return "late"

    def s() -> str:
        release.wait(10)
        return "late"

    async def own() -> str:
        raise TimeoutError("upstream db")

    tools = [
        ToolDefinition("a", "d", None, a, timeout=0.05),
        ToolDefinition("s", "d", None, s, timeout=0.05),
        ToolDefinition("own", "d", None, own, timeout=5),
    ]
    try:
        made = scripted(tools, [ask("a"), ask("s", None, "c2"), ask("own", None, "c3")], tool_calls="all")
        ended = await asyncio.wait_for(made.run(), 5)
    finally:
        release.set()
    assert ended.observations == ["a timed out after 0.05 s", "s timed out after 0.05 s", "TimeoutError: upstream db"]
    assert [ended.node(name).outcome for name in ("a", "s", "own")] == ["timeout", "timeout", "error"]
    assert ends == ["cancelled and awaited"]


@pytest.mark.behaviour("T11", "F05")
async def test_a_failing_clean_up_does_not_hide_the_time_limit() -> None:
    """A tool that raises while it is stopped has still run out of its time."""

    async def stopped() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("clean-up failed")

    ended = await scripted([ToolDefinition("stopped", "d", None, stopped, timeout=0.01)], ask("stopped")).run()
    assert ended.observation.startswith("stopped timed out after 0.01 s")
    assert ended.node("stopped").outcome == "timeout"


@pytest.mark.behaviour("T11")
async def test_stuck_threads_do_not_use_up_the_pool() -> None:
    """C18 (huggingface/OpenEnv#1214): after more stuck calls than the pool has threads, the next call runs."""
    release = threading.Event()

    def stuck() -> str:
        release.wait(30)
        return "late"

    tools = [ToolDefinition("stuck", "d", None, stuck, timeout=0.005), ToolDefinition("fine", "d", None, lambda: "ok")]
    try:
        async with Thena(tools=tools) as app:
            for _ in range(40):
                assert (await app.call("stuck")).is_error
            output = await asyncio.wait_for(app.call("fine"), 5)
    finally:
        release.set()
    assert output.content == "ok"


@pytest.mark.behaviour("T11")
def test_a_stuck_thread_does_not_hold_up_the_exit() -> None:
    """C18 (amd/gaia#1591): the interpreter leaves while a timed-out sync tool still sleeps."""
    script = """
        import asyncio, time
        from thena_core import Thena, ToolDefinition

        async def main():
            stuck = ToolDefinition("stuck", "d", None, lambda: time.sleep(60), timeout=0.05)
            async with Thena(tools=[stuck]) as app:
                print((await app.call("stuck")).content)

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=True, cwd=Path(__file__).parent.parent
    )
    assert done.stdout == "stuck timed out after 0.05 s\n"
    assert done.stderr == ""


@pytest.mark.behaviour("F02")
async def test_feedback_on_wrong_arguments_is_useful_and_bounded() -> None:
    """C22 (pydantic/pydantic-ai#7171, earendil-works/pi#7056): each wrong field is named, the input is not repeated."""
    saved: list[Any] = []

    @tool
    async def save(title: str, body: str, tags: list[int]) -> str:
        """Saves."""
        saved.append(title)
        return "saved"

    body = "HTTP 429 rate limit exceeded " + "x" * 5_000
    made = scripted([save], ask("save", json.dumps({"body": body, "tags": ["x", 2, "y"]})))
    ended = await made.run()
    assert "title: missing" in ended.observation
    assert "tags.0: " in ended.observation
    assert "tags.2: " in ended.observation
    assert len(ended.observation) <= 2_500
    assert "429" not in ended.observation
    assert "pydantic" not in ended.observation
    assert not saved
    assert len(made.provider.requests) == 2


@pytest.mark.behaviour("F02", "F12")
async def test_the_same_wrong_call_again_and_again_is_stopped_by_the_loop() -> None:
    """C22: there is no counter per tool; five failed turns in a row end the loop, in a legal history."""

    @tool
    async def save(title: str) -> str:
        """Saves."""
        return "saved"

    made = scripted([save], *[ask("save", {}, f"c{n}") for n in range(20)])
    ended = await made.run()
    assert ended.result is not None
    assert ended.result.stopped_by == "fails"
    assert ended.observations == ["invalid arguments — title: missing"] * 5
    assert_legal(ended.history)


async def test_a_run_of_an_app_that_has_nothing_to_run_says_so() -> None:
    """`Thena(tools=[…])` is for `app.call`; `run` says what to write instead."""
    async with Thena() as app:
        with pytest.raises(Exception, match=r"nothing to run\. Write: Thena\(MyWorkflow\)"):
            await app.run("go")


async def test_an_error_that_is_not_ours_names_its_run() -> None:
    """Whatever else leaves a run carries the run's id as a note."""

    class Fails:
        def before_prompt(self, prompt: str) -> None:
            raise LookupError("no template")

    ended = await scripted([], hooks=Fails).run(run_id="r-1")
    assert isinstance(ended.error, LookupError)
    assert ended.error.__notes__ == ["in the Thena run r-1"]


async def test_runs_of_one_app_share_nothing() -> None:
    """Two runs at once: each has its own history and its own count."""

    @tool
    async def echo(text: str) -> str:
        """Repeats."""
        await asyncio.sleep(0)
        return text

    made = scripted([echo], "one turn")
    async with made.app as app:
        first, second = await asyncio.gather(app.run("a"), app.run("b"))
    assert [first.history[0].content, second.history[0].content] == ["a", "b"]
    assert (first.usage.chat_calls, second.usage.chat_calls) == (1, 1)
    assert first.run_id != second.run_id
