"""The encoded history: each message once, whatever happens to the list in between."""

from __future__ import annotations

from thena_core.messages import Message, ToolRequest
from thena_core.providers import ChatRequest
from thena_core.providers.sent import Sent, sent


class Encoder:
    def __init__(self) -> None:
        self.encoded: list[str] = []

    def __call__(self, message: Message) -> str:
        self.encoded.append(message.content)
        return f"<{message.content}>"


def test_only_what_is_new_is_encoded() -> None:
    """A second look at a longer history encodes what was added."""
    encode, known = Encoder(), Sent()
    history = [Message("user", "a"), Message("assistant", "b", [ToolRequest("c1", "x")])]
    known.update(history, encode)
    history.append(Message("tool", "c", tool_call_id="c1"))
    known.update(history, encode)
    known.update(history, encode)
    assert encode.encoded == ["a", "b", "c"]
    assert (known.parts, known.call_ids) == (["<a>", "<b>", "<c>"], {"c1"})


def test_what_was_changed_is_encoded_again() -> None:
    """A message that was replaced, changed in place or removed is seen, and so is all that follows it."""
    encode, known = Encoder(), Sent()
    history = [Message("user", "a"), Message("assistant", "b", [ToolRequest("c1", "x")]), Message("user", "c")]
    known.update(history, encode)
    history[1] = Message("assistant", "B", [ToolRequest("c2", "x")])
    known.update(history, encode)
    assert (known.parts, known.call_ids) == (["<a>", "<B>", "<c>"], {"c2"})
    history[2].content = "C"
    known.update(history, encode)
    assert known.parts == ["<a>", "<B>", "<C>"]
    del history[1:]
    known.update(history, encode)
    assert (known.parts, known.call_ids) == (["<a>"], set())
    assert encode.encoded == ["a", "b", "c", "B", "c", "C"]


def test_it_lives_in_the_request() -> None:
    """Each owner has its own in a request, and another request begins anew."""
    request, one, two = ChatRequest([]), object(), object()
    assert sent(request, one) is sent(request, one)
    assert sent(request, one) is not sent(request, two)
    assert ChatRequest([]).kept == {}
