"""What a tool answers: the text that the model reads, whether it failed, and data that the model never sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from thena_core._frozen import opened

Outcome = Literal["ok", "error", "invalid", "unknown", "denied", "over_budget", "timeout", "cancelled", "fatal"]
"""How a call ended; see `ToolResult.outcome`."""


@dataclass(frozen=True, slots=True, init=False)
class ToolOutput:
    """Return it from `execute` for full control over the observation.

    Attributes:
        content: The text that the model reads.
        is_error: Marks the call as failed: its node says `status="error"`, and `ctx.turn.tool_error` counts it.
        data: Anything for hooks, middleware, events and the report; the model never sees it.
    """

    content: str
    is_error: bool = False
    data: object = None

    def __init__(self, content: str, is_error: bool = False, data: object = None) -> None:
        # setting the slots past the frozen __setattr__ takes two thirds of the time
        _set_content(self, content)
        _set_is_error(self, is_error)
        _set_data(self, data)


_OpenOutput = opened(ToolOutput)


def text_output(content: str) -> ToolOutput:
    """Return `ToolOutput(content)`, as one is made per call."""
    output = _OpenOutput()
    output.content = content
    output.is_error = False
    output.data = None
    output.__class__ = ToolOutput
    return cast("ToolOutput", output)


_slots: Any = ToolOutput
_set_content = _slots.content.__set__
_set_is_error = _slots.is_error.__set__
_set_data = _slots.data.__set__
