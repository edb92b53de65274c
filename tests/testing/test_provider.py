"""`FakeProvider`: what counts as a turn, and what it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from thena_core import Message, ToolRequest
from thena_core.messages import ChatTurn
from thena_core.providers import ChatRequest
from thena_core.testing import FakeProvider

CALL = ToolRequest("c1", "look", {})


async def test_turns_in_order() -> None:
    """A text, a request, several of them and a whole turn are played in order; the last one repeats."""
    provider = FakeProvider(["hello", CALL, [CALL, CALL], ChatTurn("bye", finish_reason="length")])
    turns = [await provider.chat(ChatRequest([])) for _ in range(5)]
    assert [(turn.content, len(turn.tool_requests), turn.finish_reason) for turn in turns] == [
        ("hello", 0, "stop"),
        ("", 1, "tool_calls"),
        ("", 2, "tool_calls"),
        ("bye", 0, "length"),
        ("bye", 0, "length"),
    ]


async def test_requests_are_kept_as_they_were() -> None:
    """What was asked is kept, and does not grow with the history; a listener gets the text."""
    provider, messages, heard = FakeProvider(["hello"]), [Message("user", "hi")], list[str]()
    await provider.chat(ChatRequest(messages, on_text=heard.append))
    messages.append(Message("assistant", "hello"))
    assert [len(request.messages) for request in provider.requests] == [1]
    assert heard == ["hello"]


@pytest.mark.parametrize(
    ("turns", "error", "text"),
    [
        ("done", TypeError, "[thena] FakeProvider takes a list of turns. Write: FakeProvider(['done'])"),
        ([], ValueError, '[thena] FakeProvider([]) has nothing to say. Write: FakeProvider(["done"])'),
        (
            [[CALL, {"name": "look"}]],
            TypeError,
            "[thena] FakeProvider: a turn is a text, a ToolRequest, a list of them, or a ChatTurn; this one holds dict.",
        ),
    ],
    ids=["no-list", "empty", "no-request"],
)
def test_what_is_no_script(turns: Any, error: type[Exception], text: str) -> None:
    """A script that cannot be played is refused when it is given."""
    with pytest.raises(error) as caught:
        FakeProvider(turns)
    assert str(caught.value) == text
