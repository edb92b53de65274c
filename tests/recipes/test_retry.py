"""The recipe for retries: what may pass is tried again, within one call, and nothing else is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.recipes.recipe import recipe
from thena_core import Budget, FatalToolError, Prompt, Report, Thena, ToolRequest, agent, tool
from thena_core.testing import FakeProvider

retry = recipe("retry")


class Flaky:
    """A tool that fails as the test says, and how long it waited in between."""

    def __init__(self, *failures: BaseException, **settings: Any) -> None:
        self.failures = list(failures)
        self.ran = 0
        self.waits: list[float] = []

        @tool(effect="read")
        @retry.retried(**{"sleep": self.sleep, **settings})
        async def fetch(url: str) -> str:
            """Fetches."""
            self.ran += 1
            if self.failures:
                raise self.failures.pop(0)
            return f"fetched {url}"

        self.fetch = fetch

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def called(self) -> str:
        async with Thena(tools=[self.fetch]) as app:
            return (await app.call("fetch", {"url": "x"})).content


async def test_what_may_pass() -> None:
    """Two failures that may pass, and the third attempt answers; the tool's schema is the function's own."""
    flaky = Flaky(ConnectionError("reset"), TimeoutError())
    assert await flaky.called() == "fetched x"
    assert flaky.ran == 3
    assert len(flaky.waits) == 2
    assert await flaky.fetch(url="y") == "fetched y"


async def test_when_it_does_not_pass() -> None:
    """After the last attempt its failure is what the model reads."""
    flaky = Flaky(*[ConnectionError(str(number)) for number in range(9)])
    assert await flaky.called() == "ConnectionError: 2"
    assert flaky.ran == 3


@pytest.mark.parametrize("failure", [ValueError("wrong"), PermissionError("no"), KeyError("k")], ids=repr)
async def test_what_does_not_pass(failure: Exception) -> None:
    """A failure that is not listed is not tried again."""
    flaky = Flaky(failure)
    assert (await flaky.called()).startswith(type(failure).__name__)
    assert (flaky.ran, flaky.waits) == (1, [])


async def test_what_ends_the_run() -> None:
    """`FatalToolError` ends the run at once, also where everything is listed."""
    flaky = Flaky(FatalToolError("gone"), on=(Exception,))
    with pytest.raises(FatalToolError):
        await flaky.called()
    assert flaky.ran == 1


async def test_the_waits() -> None:
    """Waits are random, below a limit that doubles and then stays."""
    flaky = Flaky(*[ConnectionError()] * 7, attempts=8, base=1.0, cap=4.0)
    assert await flaky.called() == "fetched x"
    assert all(0 <= wait <= limit for wait, limit in zip(flaky.waits, [1, 2, 4, 4, 4, 4, 4], strict=True))
    assert len(set(flaky.waits)) > 1


async def test_it_is_one_call(tmp_path: Path) -> None:
    """Three attempts are one call in the budget, and one node, which says how often it was tried."""
    flaky = Flaky(ConnectionError(), ConnectionError())

    @agent(
        provider=FakeProvider([ToolRequest("c1", "fetch", {"url": "x"}), "done"]),
        tools=[flaky.fetch],
        prompt=Prompt("Go."),
    )
    class Fetcher: ...

    async with Thena(Fetcher, report=Report(folder=tmp_path)) as app:
        result = await app.run("go", budget=Budget(max_tool_calls=1))
    assert (result.output, result.usage.tool_calls) == ("done", 1)
    assert result.report_path is not None
    report = json.loads((result.report_path / "report.json").read_text("utf-8"))
    [fetched] = tools_of(report["root"])
    assert (fetched["name"], fetched["meta"]["attempts"]) == ("fetch", 3)


def tools_of(node: dict[str, Any]) -> list[dict[str, Any]]:
    """List the tool nodes under a node."""
    own = [node] if node["kind"] == "tool" else []
    return [*own, *(one for child in node["children"] for one in tools_of(child))]


async def test_cancelled_while_it_waits() -> None:
    """A cancellation ends the wait, and nothing is tried after it."""
    waiting = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    flaky = Flaky(ConnectionError(), sleep=sleep)
    task = asyncio.create_task(flaky.called())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert flaky.ran == 1


async def test_on_a_class() -> None:
    """It goes on the `execute` of a class as well."""

    class Failing:
        ran = 0

    @tool(name="look", description="Looks.")
    class LookTool:
        @retry.retried(base=0.0)
        async def execute(self, what: str) -> str:
            Failing.ran += 1
            if Failing.ran < 3:
                raise TimeoutError
            return f"saw {what}"

    async with Thena(tools=[LookTool]) as app:
        assert (await app.call("look", {"what": "it"})).content == "saw it"


def test_no_attempt_at_all() -> None:
    """It is refused where it is written."""
    with pytest.raises(ValueError, match="1 is the least"):
        retry.retried(attempts=0)
