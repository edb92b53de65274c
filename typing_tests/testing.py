"""What type checkers know of the testing kit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

from thena_core import Event, RunHandle, RunResult, Thena, ToolRequest, ToolResult
from thena_core.messages import ChatTurn
from thena_core.testing import (
    FakeProvider,
    Record,
    Step,
    assert_calls,
    assert_outcome,
    assert_plugin_conforms,
    overridden,
    run_tool,
)

FakeProvider(["text", ToolRequest("c1", "look", {}), [ToolRequest("c1", "look", {})], ChatTurn("text")])
FakeProvider([1])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


async def asserted(tool: Any, events: Sequence[Event], handle: RunHandle, result: RunResult) -> None:
    record = Record()
    Thena(tools=[tool], log=record)
    assert_type(assert_calls(record, "look", ("read", {"path": "a"}), under="pack", any_order=True), list[Step])
    assert_calls(events)
    assert_calls(handle)
    assert_calls(result)
    assert_outcome(record, "denied", "look", saying="Not allowed")
    assert_outcome(record, "denid")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(await run_tool(tool, {"path": "a"}), ToolResult)


def conforming(plugin: object, services: Any) -> None:
    with overridden(services, clock=1):
        assert_plugin_conforms(plugin, data={"user": "ann"}, container=services)
