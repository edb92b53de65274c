"""The OpenAI provider while it streams: what is asked, what is heard when, and how it ends where the service fails."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from tests.providers.loopback import DONE, Answer, Loopback, chunk, completion, streamed, tool_call
from thena_core import Prompt, Thena, agent
from thena_core.errors import ProviderError
from thena_core.messages import ChatTurn, Message, Usage
from thena_core.providers import ChatRequest, OpenAIProvider, Retry
from thena_core.providers import openai as module
from thena_core.providers.transport import Transport

KEY = "sk-test-Zm93c2VjcmV0"


async def no_wait(seconds: float) -> None:
    """Take the place of `asyncio.sleep`."""


async def spoken(loopback: Loopback, **settings: Any) -> tuple[ChatTurn, list[str]]:
    """Ask with a listener, and return the turn and what was heard."""
    heard: list[str] = []
    provider = OpenAIProvider(
        "m", KEY, loopback.url, transport=Transport("openai", Retry(attempts=3), sleep=no_wait), **settings
    )
    try:
        return await provider.chat(ChatRequest([Message("user", "hi")], on_text=heard.append)), heard
    finally:
        await provider.aclose()


@pytest.mark.behaviour("V01", "S02")
async def test_streaming_is_asked_for_only_where_somebody_listens(loopback: Loopback) -> None:
    """With `on_text` the body asks for a stream with its usage, without it for neither."""
    loopback.script(streamed("It is ", "9."), Answer(completion("It is 9.")))
    turn, heard = await spoken(loopback)
    assert turn == ChatTurn("It is 9.", [], Usage(12, 3, 8), "stop", meta={"attempts": 1})
    assert heard == ["It is ", "9."]
    provider = OpenAIProvider("m", KEY, loopback.url)
    assert await provider.chat(ChatRequest([Message("user", "hi")])) == turn
    await provider.aclose()
    first, second = (asked.body for asked in loopback.asked)
    assert first == second | {"stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.behaviour("S01", "S02")
async def test_text_appears_token_by_token(loopback: Loopback) -> None:
    """A started run hands each token on before the service sends the next; `run` does not ask for them."""
    gate = threading.Semaphore(0)
    words = ["It ", "is ", "9."]
    loopback.script(Answer(pieces=[chunk({"content": word}) for word in words] + [chunk({}, "stop"), DONE], gate=gate))

    @agent(provider=OpenAIProvider("m", KEY, loopback.url), prompt=Prompt("p"))
    class Worker:
        pass

    async with Thena(Worker) as app:
        async with app.start("go") as handle:
            heard: list[str] = []
            async for text in handle.text():
                heard.append(text)
                gate.release(5 if len(heard) == len(words) else 1)
            assert (await handle.result()).output == "It is 9."
        assert heard == words
        assert [text async for text in handle.text()] == words
        loopback.script(Answer(completion("again")))
        loopback.asked.clear()
        assert (await app.run("go")).output == "again"
        assert "stream" not in loopback.asked[0].body


@pytest.mark.behaviour("V08")
@pytest.mark.parametrize("hold", [False, True], ids=["killed", "aborted"])
async def test_a_service_that_dies_in_mid_stream_ends_the_run(loopback: Loopback, hold: bool) -> None:
    """The run ends with one line that says so, and no task and no connection of it is left; so does an abort."""
    loopback.script(Answer(pieces=[chunk({"content": "It is"})], drop=not hold, hold=hold))
    before = asyncio.all_tasks()

    @agent(provider=OpenAIProvider("m", KEY, loopback.url), prompt=Prompt("p"))
    class Worker:
        pass

    async with Thena(Worker) as app:
        handle = app.start("go")
        async for text in handle.text():
            assert text == "It is"
            if hold:
                handle.abort("enough")
        with pytest.raises(Exception, match="enough" if hold else "broke off") as caught:
            await handle.result()
        assert hold or isinstance(caught.value, ProviderError)
        assert "\n" not in str(caught.value)
        if hold:
            assert await asyncio.to_thread(loopback.left.wait, 10)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before


@pytest.mark.behaviour("V08")
@pytest.mark.parametrize(
    ("pieces", "status", "words"),
    [
        pytest.param([b'data: {"error": {"message": "over", "code": 502}}\n\n'], 502, "over", id="code"),
        pytest.param([b'data: {"error": {"message": "over", "type": "overloaded_error"}}\n\n'], 529, "over", id="type"),
        pytest.param([b'event: error\ndata: {"message": "over"}\n\n'], 200, "over", id="event"),
        pytest.param([b'error: {"code": 500, "message": "over"}\n\n'], 500, "over", id="field"),
        pytest.param([b'data: {"error": "' + KEY.encode() + b' over"}\n\n'], 200, r"\*\*\* over", id="text-with-key"),
        pytest.param([b'data: {"error": {"param": "x"}}\n\n'], 200, "param", id="no-words"),
        pytest.param([b'{"error": {"message": "over", "code": 429}}'], 429, "over", id="json-body"),
    ],
)
async def test_an_error_in_the_stream_is_the_callers(
    loopback: Loopback, pieces: list[bytes], status: int, words: str
) -> None:
    """An error object in place of a chunk, or of the stream, is reported with its status and words, keys masked."""
    loopback.script(Answer(pieces=pieces, headers={"x-request-id": "r1"}))
    with pytest.raises(ProviderError, match=words) as caught:
        await spoken(loopback)
    error = caught.value
    assert (error.status, error.request_id) == (status, "r1")
    assert error.attempts == len(loopback.asked) == (3 if status >= 429 else 1)
    assert KEY not in str(error)


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Answer("busy", 503), id="503"),
        pytest.param(Answer(pieces=[chunk({"role": "assistant"})], drop=True), id="dropped"),
        pytest.param(Answer(pieces=[chunk({"role": "assistant"})]), id="cut"),
        pytest.param(Answer(pieces=[b"data: {malformed\n\n"]), id="malformed"),
        pytest.param(Answer(pieces=[b'data: {"error": {"type": "overloaded"}}\n\n']), id="overloaded"),
        pytest.param(Answer(pieces=[chunk({"content": "<think>I"})], drop=True), id="only-thoughts"),
    ],
)
async def test_tries_again_before_any_text(loopback: Loopback, first: Answer) -> None:
    """Until a listener has heard something, a stream that fails is asked for again."""
    loopback.script(first, streamed("fine"))
    turn, heard = await spoken(loopback)
    assert (turn.content, turn.meta, heard) == ("fine", {"attempts": 2}, ["fine"])


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize("rest", [b"", b"data: {malformed\n\n", b'data: {"error": {"code": 503}}\n\n'])
async def test_never_tries_again_after_text(loopback: Loopback, rest: bytes) -> None:
    """What was heard stays heard: the failure ends the call."""
    loopback.script(Answer(pieces=[chunk({"content": "It"}), *([rest] if rest else [])]), streamed("fine"))
    with pytest.raises(ProviderError):
        await spoken(loopback)
    assert len(loopback.asked) == 1


@pytest.mark.parametrize("drop", [False, True], ids=["holds-the-line", "drops"])
async def test_what_follows_the_finish_reason_is_not_waited_for_long(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, drop: bool
) -> None:
    """A service that says why it stopped and then nothing more has answered."""
    monkeypatch.setattr(module, "LAST_WORDS", 0.05)
    loopback.script(Answer(pieces=[chunk({"content": "fine"}), chunk({}, "stop")], drop=drop, hold=not drop))
    turn, _ = await spoken(loopback)
    assert (turn.content, turn.finish_reason, turn.usage) == ("fine", "stop", None)


@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_that_refuses_the_usage_is_asked_without(loopback: Loopback, status: int) -> None:
    """A strict server that does not know `stream_options` is asked again without it, from then on."""
    refusal = Answer({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}, status)
    loopback.script(refusal, streamed("fine"))
    provider = OpenAIProvider("m", KEY, loopback.url)
    for _ in range(2):
        assert (await provider.chat(ChatRequest([Message("user", "hi")], on_text=print))).content == "fine"
    await provider.aclose()
    assert ["stream_options" in asked.body for asked in loopback.asked] == [True, False, False]


async def test_another_refusal_is_an_error(loopback: Loopback) -> None:
    """A refusal for another reason is not asked again."""
    loopback.script(Answer({"error": {"message": "no such model"}}, 400))
    with pytest.raises(ProviderError, match="no such model"):
        await spoken(loopback)
    assert len(loopback.asked) == 1


async def test_signatures_of_calls_go_back_with_them(loopback: Loopback) -> None:
    """What Gemini puts beside a call stands beside it in the next request, under the id that the call got."""
    call = tool_call("ping", "{}", id="", extra_content={"google": {"thought_signature": "s"}})
    loopback.script(streamed({"tool_calls": [{"index": 0, **call}]}), Answer(completion("done")))
    turn, _ = await spoken(loopback)
    provider = OpenAIProvider("m", KEY, loopback.url)
    history = [Message("user", "hi"), Message("assistant", "", turn.tool_requests, extra=turn.extra)]
    history.append(Message("tool", "ok", tool_call_id=turn.tool_requests[0].id))
    await provider.chat(ChatRequest(history))
    await provider.aclose()
    asked = loopback.asked[1].body["messages"][1]["tool_calls"][0]
    assert (asked["id"], asked["extra_content"]) == ("call_1", {"google": {"thought_signature": "s"}})
    assert json.dumps(turn.extra)
