"""A provider that plays a script: no network, no model, the same answers each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from thena_core._render import listed, type_name
from thena_core.messages import ChatTurn, ToolRequest
from thena_core.providers.base import ChatRequest, Provider

ScriptedTurn = str | ToolRequest | Sequence[ToolRequest] | ChatTurn


class FakeProvider(Provider):
    """Answer with the given turns, one per model call; the last one repeats.

    Args:
        turns: A final text, a `ToolRequest`, a list of them, or a whole `ChatTurn` each.

    Raises:
        TypeError: For a turn that is none, and where what should be a list of turns is one.
        ValueError: Without any turn.

    Attributes:
        requests: What was asked, in order; the messages are copies, as they were then.
    """

    def __init__(self, turns: Sequence[ScriptedTurn] = ("",)) -> None:
        if isinstance(turns, str | ToolRequest | ChatTurn):
            raise TypeError(f"[thena] FakeProvider takes a list of turns. Write: FakeProvider([{turns!r}])")
        self._turns = [_turn(turn) for turn in turns]
        if not self._turns:
            raise ValueError('[thena] FakeProvider([]) has nothing to say. Write: FakeProvider(["done"])')
        self.requests: list[ChatRequest] = []

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Play the next turn."""
        self.requests.append(replace(request, messages=list(request.messages)))
        index = min(len(self.requests), len(self._turns)) - 1
        turn = replace(self._turns[index])
        if request.on_text is not None and turn.content:
            request.on_text(turn.content)
        return turn


def _turn(turn: ScriptedTurn) -> ChatTurn:
    if isinstance(turn, ChatTurn):
        return turn
    if isinstance(turn, str):
        return ChatTurn(turn, finish_reason="stop")
    requests: list[Any] = [turn] if isinstance(turn, ToolRequest) else list(turn)
    wrong = [type_name(type(request)) for request in requests if not isinstance(request, ToolRequest)]
    if wrong:
        raise TypeError(
            f"[thena] FakeProvider: a turn is a text, a ToolRequest, a list of them, or a ChatTurn; this one holds "
            f"{listed(wrong)}."
        )
    return ChatTurn("", requests, finish_reason="tool_calls")
