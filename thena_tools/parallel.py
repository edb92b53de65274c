"""`ParallelTool`: several calls of the agent's other tools, packed into one turn of the model."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from thena_core import Input, Toolbox, ToolOutput, ToolResult, Tools, tool


class PackedCall(BaseModel):
    """One call of a batch."""

    name: str = Field(description="the tool's name")
    arguments: dict[str, Any] = Field(default_factory=dict, description="the tool's arguments, by its own schema")


class Batch(BaseModel):
    """What the model fills in."""

    calls: list[PackedCall] = Field(min_length=2, description="the calls; none may need the result of another")


@tool(
    name="parallel",
    description="Runs several calls of your other tools at once and returns all their results. Use it whenever you "
    "need two or more results that do not depend on each other; for a single call, call the tool itself.",
    schema=Batch,
)
class ParallelTool:
    """List it among an agent's tools; that is the whole configuration.

    It calls the agent's other tools already wrapped, so each inner call keeps its node in the report, the hooks, the
    middleware with the tool's real name and final arguments, the budget's count, and the error policy.
    """

    async def execute(self, batch: Annotated[Batch, Input], toolbox: Annotated[Toolbox, Tools]) -> ToolOutput:
        """Run the calls; the batch is an error only when every call of it failed."""
        results = await toolbox.batch([(call.name, call.arguments) for call in batch.calls])
        failed = sum(result.output.is_error for result in results)
        text = "\n\n".join(_described(number, result) for number, result in enumerate(results, 1))
        return ToolOutput(text, is_error=failed == len(results), data={"calls": len(results), "failed": failed})


def _described(number: int, result: ToolResult) -> str:
    verdict = "error" if result.output.is_error else "ok"
    return f"[{number}] {result.call.name} → {verdict}\n{result.output.content}"
