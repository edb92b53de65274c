"""The four kinds of schema, each describing the same arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import typing_extensions
from pydantic import BaseModel, Field

from thena_core import ToolDefinition


class Model(BaseModel):
    path: str = Field(description="which file")
    limit: int = 10
    tags: list[str] = []


@dataclass
class Data:
    path: str
    limit: int = 10
    tags: list[str] = field(default_factory=list)


class Typed(typing_extensions.TypedDict):
    path: str
    limit: typing_extensions.NotRequired[int]
    tags: typing_extensions.NotRequired[list[str]]


JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "which file"},
        "limit": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}

KINDS: dict[str, Any] = {"model": Model, "dataclass": Data, "typed dict": Typed, "json schema": JSON_SCHEMA}


class Received:
    """A tool of one kind that keeps what reached its `execute`."""

    def __init__(self, schema: Any, **options: Any) -> None:
        self.args: list[Any] = []
        self.definition = ToolDefinition("t", "d", schema, self._execute, **options)

    async def _execute(self, args: Any) -> str:
        self.args.append(args)
        return "ran"

    @property
    def path(self) -> Any:
        """The `path` of the newest call."""
        return self.field("path")

    def field(self, name: str) -> Any:
        """Return a field of the newest call, from whatever kind of object it is."""
        newest = self.args[-1]
        return newest.get(name) if isinstance(newest, dict) else getattr(newest, name)
