"""One batch with everything in it: printed as the page on batches prints it, reported under `parallel`, and stopped whole."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.scripted import NoHooks, packed
from tests.limits.scenes import actor
from thena_core import CallNext, FatalToolError, Prompt, Report, Thena, ToolCall, ToolOutput, agent, tool
from thena_core.testing import FakeProvider
from thena_tools import ParallelTool, workflow_tool

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "a"}),
    ("read_file", {"path": 7}),
    ("raed_file", {"path": "a"}),
    ("delete", {"path": "a"}),
    ("fails", {}),
    ("research", {"message": "why?"}),
]


@tool
async def read_file(path: str) -> str:
    """Reads a file."""
    return f"{path}: export const config = 1"


@tool(effect="destructive")
async def delete(path: str) -> str:
    """Deletes a file."""
    raise AssertionError(f"deleted {path}")


@tool
async def fails() -> str:
    """Fails."""
    raise ConnectionError("no route")


@tool
async def fatal() -> str:
    """Ends the run."""
    await asyncio.sleep(0)
    raise FatalToolError("database unavailable")


@tool
async def waits() -> str:
    """Waits for ever."""
    await asyncio.Event().wait()
    return "never"


async def reads_only(call: ToolCall, call_next: CallNext) -> ToolOutput:
    """Refuse what destroys."""
    if call.definition is not None and call.definition.effect == "destructive":
        return ToolOutput(f"Not allowed: {call.name}.", is_error=True)
    return await call_next(call)


def app_of(calls: list[tuple[str, dict[str, Any]]], folder: Path) -> Thena:
    """Make the app."""
    inner = actor([], then="because")
    research = workflow_tool(inner, name="research", description="Researches one question.")
    provider = FakeProvider([packed(*calls), "done"])

    @agent(
        provider=provider,
        tools=[read_file, delete, fails, fatal, waits, research, ParallelTool],
        prompt=Prompt("Explore."),
    )
    class Explorer(NoHooks): ...

    app = Thena(Explorer, log=True, report=Report(folder=folder))
    app.use(tool=reads_only)
    return app


@pytest.mark.behaviour("L02", "L03", "L04", "O01")
async def test_the_tree_and_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each call, good or not, has its line under `parallel` and its node in the report, and the model reads all."""
    async with app_of(CALLS, tmp_path) as app:
        result = await app.run("go")
    printed = re.sub(r"\d+ms", "0ms", capsys.readouterr().err)
    lines = printed.splitlines()
    start, end = (
        next(n for n, line in enumerate(lines) if line.strip().startswith(f"{s} tool parallel")) for s in "▸◂"
    )
    margin = lines[start].index("▸")
    block = [line[margin:] for line in lines[start : end + 1]]
    assert block[0] == "▸ tool parallel"
    assert block[-1] == "◂ tool parallel  0ms ✓"
    ends = {line.strip() for line in block if line.strip().startswith("◂") and line.startswith("  ◂ tool")}
    assert ends >= {
        "◂ tool raed_file  0ms ✗ unknown: " + result.history[2].content.split("\n\n")[2].partition("\n")[2],
        "◂ tool delete  0ms ✗ denied: Not allowed: delete.",
        "◂ tool fails  0ms ✗ error: ConnectionError: no route",
    }
    assert sum(line.startswith("  ▸ tool") for line in block) == len(CALLS)
    assert "    ▸ workflow Inner" in block

    assert result.report_path is not None
    report = json.loads((result.report_path / "report.json").read_text("utf-8"))
    [batch] = [node for node in nodes(report["root"]) if node["name"] == "parallel"]
    assert sorted((node["name"], node["outcome"]) for node in batch["children"]) == [
        ("delete", "denied"),
        ("fails", "error"),
        ("raed_file", "unknown"),
        ("read_file", "invalid"),
        ("read_file", "ok"),
        ("research", "ok"),
    ]
    [research] = [node for node in batch["children"] if node["name"] == "research"]
    assert [node["kind"] for node in research["children"]] == ["workflow"]
    assert re.findall(r"^\[(\d)\] (\w+) → (\w+)$", result.history[2].content, re.MULTILINE) == [
        ("1", "read_file", "ok"),
        ("2", "read_file", "error"),
        ("3", "raed_file", "error"),
        ("4", "delete", "error"),
        ("5", "fails", "error"),
        ("6", "research", "ok"),
    ]


@pytest.mark.behaviour("L08", "X06")
async def test_a_fatal_call_among_them(tmp_path: Path) -> None:
    """The same batch with a fatal call ends the run; the report has every call, and nothing is left running."""
    async with app_of([*CALLS, ("waits", {}), ("fatal", {})], tmp_path) as app:
        with pytest.raises(FatalToolError) as caught:
            await app.run("go")
        assert len(asyncio.all_tasks()) == 1
    path = caught.value.run.report_path
    assert path is not None
    report = json.loads((path / "report.json").read_text("utf-8"))
    [batch] = [node for node in nodes(report["root"]) if node["name"] == "parallel"]
    assert batch["outcome"] == "fatal"
    outcomes = {node["name"]: node["outcome"] for node in batch["children"]}
    assert outcomes.keys() == {name for name, _ in CALLS} | {"waits", "fatal"}
    assert (outcomes["waits"], outcomes["fatal"], outcomes["raed_file"]) == ("cancelled", "fatal", "unknown")


def nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    """List a node and everything under it."""
    return [node, *(one for child in node["children"] for one in nodes(child))]
