"""Long histories: what was sent is encoded once, bodies begin alike, and nothing of a run stays in a shared provider."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.providers.loopback import Answer, Loopback, completion, streamed, tool_call
from thena_core import Prompt, Thena, agent, tool
from thena_core.messages import ChatTurn, Message, ToolRequest
from thena_core.providers import ChatRequest, OpenAIProvider
from thena_core.providers import openai as module
from thena_core.providers.transport import StreamedReply

TURNS = 12


def call_of(number: int, *, streams: bool) -> Answer:
    call = tool_call("look", json.dumps({"place": f"é{number}"}, ensure_ascii=False), id=f"c{number}")
    if streams:
        return streamed({"reasoning_content": f"r{number}"}, {"tool_calls": [{"index": 0, **call}]})
    body = completion(None, [call], "tool_calls")
    body["choices"][0]["message"]["reasoning_content"] = f"r{number}"
    return Answer(body)


async def explored(loopback: Loopback, *, streams: bool) -> None:
    """Run an agent that looks `TURNS` times and answers."""

    @tool
    def look(place: str) -> str:
        """Looks."""
        return f"seen {place}"

    @agent(provider=OpenAIProvider("m", "k", loopback.url), tools=[look], prompt=Prompt("Look around."))
    class Looker:
        pass

    last = streamed("done") if streams else Answer(completion("done"))
    loopback.script(*(call_of(number, streams=streams) for number in range(TURNS)), last)
    async with Thena(Looker) as app:
        if streams:
            async with app.start("go", budget=None) as handle:
                await handle.result()
        else:
            await app.run("go")


@pytest.mark.behaviour("V09")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_a_message_is_encoded_once(loopback: Loopback, monkeypatch: pytest.MonkeyPatch, streams: bool) -> None:
    """Each turn encodes the two messages that are new in it, however long the history is."""
    encoded: list[int] = []
    original = module.encode_message

    def counting(message: Message, **settings: Any) -> Any:
        encoded.append(len(loopback.asked))
        return original(message, **settings)

    monkeypatch.setattr(module, "encode_message", counting)
    await explored(loopback, streams=streams)
    turns = len(loopback.asked)
    assert turns > 5
    assert [encoded.count(turn) for turn in range(turns)] == [1] + [2] * (turns - 1)


@pytest.mark.behaviour("V09")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_each_body_begins_with_the_one_before(loopback: Loopback, streams: bool) -> None:
    """Up to the end of its messages, a body is to the byte the beginning of the next one."""
    await explored(loopback, streams=streams)
    bodies = [asked.raw for asked in loopback.asked]
    for earlier, later in pairwise(bodies):
        assert earlier.endswith(b"]}")
        assert later.startswith(earlier[:-2])
        json.loads(later)


class Silent:
    """Takes the transport's place: answers from memory, whole or streamed."""

    def __init__(self, transport: Any, answers: Callable[[], list[bytes]]) -> None:
        self._transport = transport
        self._answers = answers

    async def post(self, url: str, body: bytes, headers: Any, *, status_of: Any = None) -> Any:
        from thena_core.providers.reply import Reply

        return Reply(200, {}, self._answers()[0])

    async def stream(self, url: str, body: bytes, headers: Any, read: Any, *, accept: str = "") -> Any:
        return await read(FromMemory(self._answers()))

    async def aclose(self) -> None:
        return None


class FromMemory(StreamedReply):
    """A streamed answer without a connection."""

    def __init__(self, pieces: list[bytes]) -> None:
        from thena_core.providers.reply import Reply

        self.head = Reply(200, {}, b"")
        self.handed_on = False
        self._begun = b""
        self._left = list(pieces)

    async def __anext__(self) -> bytes:
        if self._begun:
            piece, self._begun = self._begun, b""
            return piece
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop(0)


@pytest.mark.behaviour("V09")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_nothing_of_a_run_stays_in_a_shared_provider(streams: bool) -> None:
    """After 1,000 runs over one provider, no request and no message of them is left, and it holds no more than before."""
    pieces = streamed("done").pieces if streams else [json.dumps(completion("done")).encode()]
    provider = OpenAIProvider("m", "k", "http://127.0.0.1:1/v1")
    provider._transport = Silent(None, lambda: list(pieces or ()))  # type: ignore[assignment]
    left: list[weakref.ref[Any]] = []
    heard: list[str] = []

    class Noted(list[Message]):
        """A history that can be watched."""

    async def run(number: int) -> ChatTurn:
        history = Noted([Message("user", f"question {number}")])
        left.append(weakref.ref(history))
        request = ChatRequest(history, on_text=heard.append if streams else None)
        await provider.chat(request)
        history += [Message("assistant", "", [ToolRequest("c", "x")]), Message("tool", "y", tool_call_id="c")]
        return await provider.chat(request)

    def held() -> int:
        gc.collect()
        return sum(isinstance(thing, (Message, ChatRequest)) for thing in gc.get_objects())

    await run(0)
    before = held()
    for number in range(1, 1001):
        assert (await run(number)).content == "done"
    assert held() == before
    assert [ref for ref in left if ref() is not None] == []
    assert len(heard) == (2002 if streams else 0)
