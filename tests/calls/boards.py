"""A state, agents that write to it, and tools that call others: for tests of toolsets."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from thena_core import (
    Prompt,
    State,
    ToolDefinition,
    agent,
    loop,
    tool,
    workflow,
)
from thena_core.testing import FakeProvider

PATIENCE = 10


class Board:
    made: ClassVar[list[Board]] = []

    def __init__(self) -> None:
        self.notes: list[str] = []
        Board.made.append(self)


@tool(name="note", description="Notes.")
class Note:
    async def execute(self, text: str, board: Annotated[Board, State]) -> str:
        board.notes.append(text)
        return f"{id(board)}"


def noting(turns: list[Any], until: Any, **options: Any) -> type:
    """Make a workflow whose model plays `turns`, with a board as state."""

    @agent(provider=lambda: FakeProvider(turns), tools=[Note], prompt=Prompt(""), **options)
    class Writer: ...

    @workflow(steps=[loop([Writer], until=until)], state=Board)
    class Writing: ...

    return Writing


def outer(function: Any, name: str = "outer") -> ToolDefinition:
    """Make a tool that uses its toolbox."""
    return ToolDefinition(name, "d", None, function)


async def inner(n: int) -> str:
    return f"inner {n}"


INNER = ToolDefinition("inner", "d", None, inner)
