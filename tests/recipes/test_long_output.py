"""The recipe for long outputs: they are shortened, nothing of them is lost, and no run reads another's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dependency_injector import containers, providers

from tests.recipes.recipe import recipe
from thena_core import Prompt, Report, Thena, ToolOutput, ToolRequest, agent, tool
from thena_core.testing import FakeProvider
from thena_tools import ParallelTool

long_output = recipe("long_output")
LONG = "".join(f"line {number:04}\n" for number in range(1_000))


@tool(effect="read")
async def logs(fail: bool = False) -> ToolOutput:
    """Shows the logs."""
    return ToolOutput(LONG, is_error=fail, data=[1])


@tool(effect="read")
async def short() -> str:
    """Says little."""
    return "x" * 300


def app_of(shelf: Any, *turns: Any, more: Sequence[Any] = (), report: Report | bool = False) -> Thena:
    """Make an app whose model plays a script."""

    class Services(containers.DeclarativeContainer):
        shelf_ = providers.Object(shelf)

    tools = [logs, short, *more, long_output.read_rest, ParallelTool]

    @agent(provider=FakeProvider([*turns, "done"]), tools=tools, prompt=Prompt("Read."))
    class Reader: ...

    app = Thena(Reader, container=Services(), report=report)
    app.use(tool=shelf.shorten)
    return app


def observations(result: Any) -> list[str]:
    """List what the model read."""
    return [message.content for message in result.history if message.role == "tool"]


async def test_shortened_and_read_on() -> None:
    """The beginning and the end are shown; what was left out is read on, part by part, without a gap."""
    shelf = long_output.Shelf(limit=3_000)
    parts = [ToolRequest(f"c{n}", "read_rest", {"ref": 0, "start": n * 1_000}) for n in (2, 5, 8)]
    async with app_of(shelf, ToolRequest("c1", "logs", {}), *parts) as app:
        first, *rest = observations(await app.run("go"))
    head, tail = re.split(r"\n… \[7,000 characters left out; read on with read_rest\(ref=0, start=2000\)\] …\n", first)
    assert (head, tail) == (LONG[:2_000], LONG[-1_000:])
    read = head + "".join(part.partition("\n… [read on")[0] for part in rest)
    assert read == LONG
    assert rest[0].endswith("… [read on with start=5000, of 10,000]")


async def test_what_is_short_stays() -> None:
    """An output within the limit is passed on as it is, and nothing is put aside."""
    shelf = long_output.Shelf(limit=300)
    async with app_of(shelf, ToolRequest("c1", "short", {})) as app:
        assert observations(await app.run("go")) == ["x" * 300]
    assert shelf._texts == {}


async def test_failures_and_data_are_kept() -> None:
    """A long failure stays one, and its data goes along."""
    shelf = long_output.Shelf(limit=300)
    async with app_of(shelf) as app:
        output = await app.call("logs", {"fail": True})
    assert (output.is_error, output.data) == (True, [1])
    assert len(output.content) < 400


async def test_nothing_outlives_its_run() -> None:
    """What a run put aside is gone when it ends, and another run does not read it."""
    shelf = long_output.Shelf(limit=300)
    async with app_of(
        shelf, ToolRequest("c1", "logs", {}), "first is done", ToolRequest("c2", "read_rest", {"ref": 0})
    ) as app:
        await app.run("go")
        assert shelf._texts == {}
        assert observations(await app.run("go on")) == ["LookupError: there is no ref=0 in this run"]


async def test_no_run_reads_another_ones() -> None:
    """While one run has put something aside, another one beside it finds nothing under the same reference."""
    shelf = long_output.Shelf(limit=300)
    put_aside, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def waits() -> str:
        """Waits."""
        put_aside.set()
        await go_on.wait()
        return "went on"

    first = app_of(shelf, ToolRequest("c1", "logs", {}), ToolRequest("c2", "waits", {}), more=[waits])
    async with first, app_of(shelf, ToolRequest("c3", "read_rest", {"ref": 0})) as second:
        running = asyncio.create_task(first.run("go"))
        await put_aside.wait()
        assert len(shelf._texts) == 1
        assert observations(await second.run("go")) == ["LookupError: there is no ref=0 in this run"]
        go_on.set()
        assert observations(await running)[1] == "went on"


async def test_odd_references(tmp_path: Path) -> None:
    """References and places that are none are observations."""
    shelf = long_output.Shelf(limit=300)
    asked = [{"ref": -1}, {"ref": 9}, {"ref": 0, "start": 10**30}, {"ref": 0, "start": -1}]
    calls = [ToolRequest(f"c{n}", "read_rest", arguments) for n, arguments in enumerate(asked)]
    async with app_of(shelf, ToolRequest("c", "logs", {}), *calls) as app:
        _, *rest = observations(await app.run("go"))
    assert rest[:3] == [
        "LookupError: there is no ref=-1 in this run",
        "LookupError: there is no ref=9 in this run",
        "(the tool returned nothing)",
    ]
    assert rest[3].startswith("invalid arguments")


async def test_only_so_much_is_put_aside() -> None:
    """Beyond the limit of a run the output is shortened, and nothing promises that the rest can be read."""
    shelf = long_output.Shelf(limit=300, most=15_000)
    async with app_of(shelf, ToolRequest("c1", "logs", {}), ToolRequest("c2", "logs", {})) as app:
        first, second = observations(await app.run("go"))
    assert "read_rest(ref=0" in first
    assert "… [9,700 characters left out] …" in second


async def test_in_a_batch_and_in_the_report(tmp_path: Path) -> None:
    """Packed calls are shortened one by one, and then the whole, where it is still too long; the report says by how much."""
    shelf = long_output.Shelf(limit=3_000)
    batch = ToolRequest("c1", "parallel", {"calls": [{"name": "logs"}, {"name": "short"}]})
    read = [ToolRequest("c2", "read_rest", {"ref": 1, "start": 2_000}), ToolRequest("c3", "read_rest", {"ref": 0})]
    async with app_of(shelf, batch, *read, report=Report(folder=tmp_path)) as app:
        result = await app.run("go")
    whole, rest, inner = observations(result)
    assert "read_rest(ref=1, start=2000)" in whole
    assert "read_rest(ref=0, start=2000)" in rest
    assert inner.startswith("line 0000")
    report = json.loads((result.report_path / "report.json").read_text("utf-8"))
    assert '"left_out": 7000' in json.dumps(report)
