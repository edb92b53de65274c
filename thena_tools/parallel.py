"""`ParallelTool`: several calls of the agent's other tools, packed into one turn of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Field, model_validator

from thena_core import Input, Toolbox, ToolDefinition, ToolOutput, ToolResult, Tools, tool
from thena_tools.union import call_schemas

NAME = "the tool's name"
ARGUMENTS = "the tool's arguments, by its own schema"
CALLS = "the calls; none may need the result of another"

_INVENTED = {"recipient_name": "name", "parameters": "arguments"}
"""Words of `multi_tool_use.parallel`, a tool of ChatGPT's own that OpenAI's models call where there is none."""


class PackedCall(BaseModel):
    """One call of a batch."""

    name: str = Field(description=NAME)
    arguments: dict[str, Any] = Field(default_factory=dict, description=ARGUMENTS)


class Batch(BaseModel):
    """What the model fills in."""

    calls: list[PackedCall] = Field(min_length=2, description=CALLS)

    @model_validator(mode="before")
    @classmethod
    def _in_our_words(cls, data: Any) -> Any:
        return in_our_words(data)


@tool(
    name="parallel",
    description="Runs several calls of your other tools at once and returns all their results. Use it whenever you "
    "need two or more results that do not depend on each other; for a single call, call the tool itself.",
    schema=Batch,
    aliases=["multi_tool_use.parallel"],
)
class ParallelTool:
    """List it among an agent's tools; that is the whole configuration.

    It calls the agent's other tools already wrapped, so each inner call keeps its node in the report, the hooks, the
    middleware with the tool's real name and final arguments, the budget's count, and the error policy.

    Args:
        schemas: `names` shows the model one short form for all tools; `full` puts each tool's own schema into it, for
            models that trip over the short one. It costs the tokens of every schema once more.
        concurrency: How many calls of a batch run at once (16 unless given).
        timeout: Seconds for each call.

    Raises:
        ValueError: For a setting that cannot be meant.
    """

    def __init__(
        self,
        schemas: Literal["names", "full"] = "names",
        concurrency: int | None = None,
        timeout: float | None = None,
    ) -> None:
        if schemas not in ("names", "full"):
            raise ValueError(f'ParallelTool(schemas={schemas!r}): write schemas="names" or schemas="full".')
        if concurrency is not None and concurrency < 1:
            raise ValueError(f"ParallelTool(concurrency={concurrency}): 1 is the least.")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"ParallelTool(timeout={timeout}): seconds, more than 0.")
        self.schemas = schemas
        self.concurrency = concurrency
        self.timeout = timeout

    def schema_for(self, tools: Sequence[ToolDefinition]) -> Mapping[str, Any] | None:
        """Return what the model sees instead of the schema, given the agent's other tools; asked at the build."""
        if self.schemas == "names" or not tools:
            return None
        union, definitions = call_schemas(tools)
        calls = {"type": "array", "minItems": 2, "description": CALLS, "items": union}
        schema = {"type": "object", "properties": {"calls": calls}, "required": ["calls"]}
        return schema | {"additionalProperties": False} | ({"$defs": definitions} if definitions else {})

    async def execute(self, batch: Annotated[Batch, Input], toolbox: Annotated[Toolbox, Tools]) -> ToolOutput:
        """Run the calls; the batch is an error only when every call of it failed."""
        calls = [(call.name, call.arguments) for call in batch.calls]
        results = await toolbox.batch(calls, concurrency=self.concurrency, timeout=self.timeout)
        failed = sum(result.output.is_error for result in results)
        text = "\n\n".join(_described(number, result) for number, result in enumerate(results, 1))
        return ToolOutput(text, is_error=failed == len(results), data={"calls": len(results), "failed": failed})


def in_our_words(data: Any) -> Any:
    """Rename the fields of the invented form; anything else is left for the validation to refuse."""
    if not isinstance(data, dict) or "tool_uses" not in data or "calls" in data:
        return cast("Any", data)
    fields = cast("dict[str, Any]", data)
    uses = fields["tool_uses"]
    calls = [_renamed(use) for use in cast("list[Any]", uses)] if isinstance(uses, list) else uses
    return {"calls" if key == "tool_uses" else key: calls if key == "tool_uses" else fields[key] for key in fields}


def _renamed(use: Any) -> Any:
    """Rename the fields of one call, and take the `functions.` away that stands before its name."""
    if not isinstance(use, dict) or use.keys() & set(_INVENTED.values()):
        return cast("Any", use)
    fields = {_INVENTED.get(key, key): value for key, value in cast("dict[str, Any]", use).items()}
    name = fields.get("name")
    return fields | {"name": name.removeprefix("functions.")} if isinstance(name, str) else fields


def _described(number: int, result: ToolResult) -> str:
    verdict = "error" if result.output.is_error else "ok"
    return f"[{number}] {result.call.name} → {verdict}\n{result.output.content}"
