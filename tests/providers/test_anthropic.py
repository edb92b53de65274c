"""The Anthropic provider against a server on the loopback interface: bodies, keys, streams, errors, whole runs."""

from __future__ import annotations

import asyncio
import itertools
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from tests.providers.anthropic_answers import SSE, THOUGHT, answer, events, message, streamed, text, use
from tests.providers.loopback import Answer, Loopback
from thena_core import Prompt, Thena, agent, tool
from thena_core.definition import ToolDefinition
from thena_core.errors import ProviderError, RunAborted
from thena_core.messages import ChatTurn, Message, ToolRequest, Usage
from thena_core.providers import AnthropicProvider, ChatRequest, Price, Retry, Sampling, Timeout, anthropic_wire
from thena_core.providers.anthropic import MAX_TOKENS, endpoint
from thena_core.providers.base import ChatCall, ChatNext
from thena_core.providers.transport import Transport

KEY = "sk-ant-test-Zm93c2VjcmV0"


def ask(words: str = "hi", **more: Any) -> ChatRequest:
    return ChatRequest([Message("user", words)], **more)


def impatient() -> Transport:
    """Retries without waiting."""

    async def sleep(seconds: float) -> None:
        return None

    return Transport("anthropic", Retry(attempts=3), sleep=sleep)


async def answered(provider: AnthropicProvider, request: ChatRequest | None = None) -> ChatTurn:
    try:
        return await provider.chat(request or ask())
    finally:
        await provider.aclose()


def listener(stream: bool) -> Callable[[str], None] | None:
    return (lambda _: None) if stream else None


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.mark.behaviour("V01")
@both_ways
async def test_answers_with_text_and_calls(loopback: Loopback, stream: bool) -> None:
    """Text, calls, usage and stop reason arrive, streamed or not, and the text reaches the listener as it comes."""
    loopback.script(
        answer(text("Look here."), use(path="a"), use("t2", path="b"), stream=stream, stop_reason="tool_use")
    )
    heard: list[str] = []
    turn = await answered(
        AnthropicProvider("m", KEY, loopback.url), ask(on_text=heard.append if stream else None, tool_calls="all")
    )
    calls = [(request.id, request.name, request.arguments) for request in turn.tool_requests]
    first, second = ('{"path": "a"}', '{"path": "b"}') if stream else ({"path": "a"}, {"path": "b"})
    assert calls == [("t1", "read_file", first), ("t2", "read_file", second)]
    assert (turn.content, turn.usage, turn.finish_reason) == ("Look here.", Usage(12, 3, 8), "tool_use")
    assert (turn.extra, turn.meta) == (None, {"attempts": 1})
    assert heard == (["Look ", "here."] if stream else [])
    asked = loopback.asked[0]
    assert (asked.path, asked.headers["x-api-key"]) == ("/v1/messages", KEY)
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert asked.body.get("stream") is (True if stream else None)


@pytest.mark.behaviour("V02")
async def test_writes_the_whole_body(loopback: Loopback) -> None:
    """System, history, tools, sampling and raw fields stand where the service expects them, and nothing else does."""
    loopback.script(Answer(message(text("ok"))))
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    request = ChatRequest(
        [
            Message("system", "Be brief."),
            Message("user", "Look."),
            Message("assistant", "", [ToolRequest("c1", "read_file", '{"path": "é"}')]),
            Message("tool", "content", tool_call_id="c1"),
        ],
        system="You explore.",
        tools=[ToolDefinition("read_file", "Reads.", json_schema=schema)],
        sampling=Sampling(temperature=0.0, top_p=0.9, max_tokens=50, stop=("END",), seed=7),
    )
    await answered(AnthropicProvider("m", KEY, loopback.url, raw={"top_k": 5, "top_p": 1}), request)
    assert loopback.asked[0].body == {
        "model": "m",
        "system": "You explore.\n\nBe brief.",
        "max_tokens": 50,
        "temperature": 0.0,
        "top_p": 1,
        "top_k": 5,
        "stop_sequences": ["END"],
        "tools": [{"name": "read_file", "description": "Reads.", "input_schema": schema}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "messages": [
            {"role": "user", "content": [text("Look.")]},
            {"role": "assistant", "content": [use("c1", path="é")]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "content"}]},
        ],
    }


@pytest.mark.behaviour("V02")
async def test_what_is_not_given_is_not_sent(loopback: Loopback) -> None:
    """A body holds the model, the limit that the service insists on, and the messages; `raw` may replace each."""
    loopback.script(Answer(message(text("ok"))))
    await answered(AnthropicProvider("m", KEY, loopback.url))
    await answered(AnthropicProvider("m", KEY, loopback.url, raw={"messages": [], "max_tokens": 1}))
    assert loopback.asked[0].body == {
        "model": "m",
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": [text("hi")]}],
    }
    assert loopback.asked[1].body == {"model": "m", "max_tokens": 1, "messages": []}


class Notes:
    """What the run's tool was called with."""

    def __init__(self) -> None:
        self.paths: list[str] = []


def reader(provider: AnthropicProvider, notes: Notes, **more: Any) -> type:
    """Make an agent with one tool."""

    @tool
    async def read_file(path: str) -> str:
        """Reads a file."""
        notes.paths.append(path)
        return f"content of {path}"

    @agent(provider=provider, tools=[read_file], prompt=Prompt("Read."), **more)
    class Reader:
        pass

    return Reader


@pytest.mark.behaviour("V01")
@both_ways
async def test_a_run_sends_thinking_back(loopback: Loopback, stream: bool) -> None:
    """In a run, thinking goes back unchanged with the call that it led to, and is never part of the answer."""
    loopback.script(
        answer(THOUGHT, text("I look."), use(path="a"), stream=stream, stop_reason="tool_use"),
        answer(THOUGHT, text("done"), stream=stream),
    )
    notes = Notes()
    async with Thena(reader(AnthropicProvider("m", KEY, loopback.url), notes)) as app:
        if stream:
            async with app.start("go") as handle:
                heard = [piece async for piece in handle.text()]
                result = await handle.result()
            assert "".join(heard) == "I look.done"
        else:
            result = await app.run("go")
    assert (result.output, notes.paths) == ("done", ["a"])
    assert loopback.asked[1].body["messages"][1:] == [
        {"role": "assistant", "content": [THOUGHT, text("I look."), use(path="a")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "content of a"}]},
    ]


@both_ways
async def test_four_results_in_one_message(loopback: Loopback, stream: bool) -> None:
    """Results of one turn go back in one message of the user, and nothing stands before them (case A27).

    Sources: langchain-ai/langchain#23911, BerriAI/litellm#5063, Yeachan-Heo/gajae-code#1895.
    """
    calls = [use(f"toolu_{number}", path=f"f{number}") for number in range(1, 5)]
    loopback.script(answer(*calls, stream=stream, stop_reason="tool_use"), answer(text("done"), stream=stream))
    notes = Notes()
    async with Thena(reader(AnthropicProvider("m", KEY, loopback.url), notes, tool_calls="all")) as app:
        if stream:
            async with app.start("go") as handle:
                await handle.result()
        else:
            await app.run("go")
    assert sorted(notes.paths) == ["f1", "f2", "f3", "f4"]
    newest = loopback.asked[1].body["messages"][-1]
    assert newest["role"] == "user"
    assert [(block["type"], block["tool_use_id"]) for block in newest["content"]] == [
        ("tool_result", f"toolu_{number}") for number in range(1, 5)
    ]


async def test_the_next_body_begins_like_the_last(loopback: Loopback) -> None:
    """Consecutive bodies share all bytes up to the newest messages, for the service's cache."""
    loopback.script(
        Answer(message(use(path="a"), stop_reason="tool_use")),
        Answer(message(use("t2", path="b"), stop_reason="tool_use")),
        Answer(message(text("done"))),
    )
    async with Thena(reader(AnthropicProvider("m", KEY, loopback.url), Notes())) as app:
        await app.run("go")
    bodies = [asked.raw for asked in loopback.asked]
    for earlier, later in itertools.pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}"))


@pytest.mark.behaviour("V03")
@both_ways
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Answer({"type": "error", "error": {"type": "overloaded_error", "message": "!"}}, 529), id="529"),
        pytest.param(Answer({"type": "error", "error": {"type": "rate_limit_error", "message": "!"}}, 429), id="429"),
        pytest.param(Answer({"type": "error", "error": {"type": "overloaded_error", "message": "!"}}), id="A17-in-200"),
        pytest.param(Answer(drop=True), id="dropped"),
    ],
)
async def test_tries_again(loopback: Loopback, first: Answer, stream: bool) -> None:
    """A failure that may pass is tried again with the same body, and the turn says how often."""
    loopback.script(first, answer(text("at last"), stream=stream))
    heard: list[str] = []
    request = ask(on_text=heard.append if stream else None)
    turn = await answered(AnthropicProvider("m", KEY, loopback.url, transport=impatient()), request)
    assert (turn.content, turn.meta) == ("at last", {"attempts": 2})
    assert loopback.asked[0].raw == loopback.asked[1].raw
    assert "".join(heard) == ("at last" if stream else "")


OVERLOADED = events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(OVERLOADED, id="error-at-once"),
        pytest.param(streamed(use(path="a"), end=False) + OVERLOADED, id="error-after-a-call"),
        pytest.param(streamed(use(path="a"), end=False), id="A18-no-terminator"),
        pytest.param(streamed(use(path="a"), end=False)[:-40], id="A18-half-an-event"),
        pytest.param("", id="nothing"),
    ],
)
async def test_a_broken_stream_is_tried_again(loopback: Loopback, first: str) -> None:
    """A stream that fails before any text was shown is tried again, and nothing of it is left in the answer."""
    loopback.script(Answer(first, headers=SSE), answer(text("whole"), stream=True))
    heard: list[str] = []
    provider = AnthropicProvider("m", KEY, loopback.url, transport=impatient())
    turn = await answered(provider, ask(on_text=heard.append))
    assert (turn.content, turn.tool_requests, turn.meta) == ("whole", [], {"attempts": 2})
    assert "".join(heard) == "whole"


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    ("rest", "words", "status"),
    [
        pytest.param(OVERLOADED, "Overloaded", 529, id="error"),
        pytest.param("", "the answer ended before it was complete", None, id="A18-no-terminator"),
    ],
)
async def test_is_not_tried_again_after_text(loopback: Loopback, rest: str, words: str, status: int | None) -> None:
    """Once text was handed on, a failing stream ends in an error: nobody can take back what was read."""
    loopback.script(Answer(streamed(text("half"), end=False) + rest, headers=SSE))
    heard: list[str] = []
    with pytest.raises(ProviderError, match=words) as caught:
        await answered(AnthropicProvider("m", KEY, loopback.url, transport=impatient()), ask(on_text=heard.append))
    assert (caught.value.status, caught.value.attempts, len(loopback.asked)) == (status, 1, 1)
    assert "".join(heard) == "half"


@pytest.mark.behaviour("S01", "V01")
async def test_text_appears_while_the_model_writes(loopback: Loopback) -> None:
    """Each piece is handed on before the next one was sent."""
    gate = threading.Semaphore(0)
    whole = streamed(text("abcd"))
    second, end = whole.index("event", whole.index('"ab"')), whole.index("event", whole.index('"cd"'))
    pieces = [part.encode() for part in (whole[:second], whole[second:end], whole[end:])]
    loopback.script(Answer(headers=SSE, pieces=pieces, gate=gate))
    heard: list[str] = []

    def listen(piece: str) -> None:
        heard.append(piece)
        gate.release()  # without it the server sends no more

    turn = await answered(AnthropicProvider("m", KEY, loopback.url, timeout=Timeout(read=10)), ask(on_text=listen))
    assert (heard, turn.content) == (["ab", "cd"], "abcd")


@pytest.mark.behaviour("V08")
async def test_a_server_that_dies_ends_the_run(loopback: Loopback) -> None:
    """A connection that breaks in mid-stream ends the run with one line, and with nothing left open."""
    begun = streamed(text("half an answer"), end=False).encode()
    loopback.script(Answer(headers=SSE, pieces=[begun], drop=True))
    provider = AnthropicProvider("m", KEY, loopback.url)
    async with Thena(reader(provider, Notes())) as app, app.start("go") as handle:
        heard = [piece async for piece in handle.text()]
        with pytest.raises(ProviderError, match="broke off") as caught:
            await handle.result()
    assert "".join(heard) == "half an answer"
    assert (str(caught.value).count("\n"), len(loopback.asked)) == (0, 1)
    assert provider._transport.clients.opened == {}


@pytest.mark.behaviour("X01", "X04")
async def test_cancelling_in_mid_stream_closes_the_answer(loopback: Loopback) -> None:
    """A run that is aborted while the model writes closes the connection at once."""
    loopback.script(Answer(headers=SSE, pieces=[streamed(text("half"), end=False).encode()], hold=True))
    async with Thena(reader(AnthropicProvider("m", KEY, loopback.url), Notes())) as app, app.start("go") as handle:
        async for _ in handle.text():
            handle.abort("enough")
        with pytest.raises(RunAborted):
            await handle.result()
        assert await asyncio.to_thread(loopback.left.wait, 10)


@both_ways
@pytest.mark.behaviour("V04", "V05")
async def test_thoughts_and_calls_in_the_text(loopback: Loopback, stream: bool) -> None:
    """Behind a compatible server, thoughts in tags are not shown and a call that is the whole answer is run."""
    written = '<think>hm</think>{"name": "read_file", "arguments": {"path": "a"}}'
    loopback.script(answer(text(written), stream=stream), answer(text("<think>hm</think>done"), stream=stream))
    notes = Notes()
    async with Thena(reader(AnthropicProvider("m", KEY, loopback.url), notes)) as app:
        if stream:
            async with app.start("go") as handle:
                assert [piece async for piece in handle.text()] in (["done"], ["do", "ne"])
                result = await handle.result()
        else:
            result = await app.run("go")
    assert (result.output, notes.paths) == ("done", ["a"])
    sent = loopback.asked[1].body["messages"][1:]
    assert sent[0]["content"] == [use("call_1", path="a")]
    assert sent[1]["content"][0]["tool_use_id"] == "call_1"


@both_ways
@pytest.mark.behaviour("V09")
async def test_a_message_is_encoded_once(loopback: Loopback, monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    """However long the history grows, a turn encodes only the messages that are new in it."""
    counts: list[int] = []

    def counted(message: Message) -> str:
        counts[-1] += 1
        return anthropic_wire.encode_message(message)

    monkeypatch.setattr("thena_core.providers.anthropic.encode_message", counted)
    loopback.script(answer(use("t", path="a"), stream=stream, stop_reason="tool_use"))

    async def counting(call: ChatCall, call_next: ChatNext) -> ChatTurn:
        counts.append(0)
        return await call_next(call)

    app = Thena(reader(AnthropicProvider("m", KEY, loopback.url), Notes()))
    app.use(chat=counting)
    async with app:
        if stream:
            async with app.start("go") as handle:
                await handle.result()
        else:
            await app.run("go")
    assert counts == [1] + [2] * 9


@both_ways
@pytest.mark.behaviour("F07")
async def test_a_call_that_was_cut_off_says_so(loopback: Loopback, stream: bool) -> None:
    """An answer at the limit says `length`, which keeps its calls from being run (case A07)."""
    loopback.script(answer(use(path="a"), stream=stream, stop_reason="max_tokens"))
    turn = await answered(AnthropicProvider("m", KEY, loopback.url), ask(on_text=listener(stream)))
    assert (turn.finish_reason, len(turn.tool_requests)) == ("length", 1)


async def test_a_server_that_does_not_stream_is_understood(loopback: Loopback) -> None:
    """An answer in one piece, where a stream was asked for, is read like one, and its text handed on."""
    loopback.script(Answer(message(text("whole"))))
    heard: list[str] = []
    turn = await answered(AnthropicProvider("m", KEY, loopback.url), ask(on_text=heard.append))
    assert (turn.content, heard) == ("whole", ["whole"])


@pytest.mark.behaviour("V08")
@both_ways
async def test_an_error_carries_what_the_service_said(loopback: Loopback, stream: bool) -> None:
    """Status, request id, attempts and the service's words are in the error, the key is nowhere in it."""
    body = {"type": "error", "error": {"type": "authentication_error", "message": f"invalid x-api-key {KEY}"}}
    loopback.script(Answer(body, 401, {"request-id": "req_1"}))
    with pytest.raises(ProviderError) as caught:
        await answered(AnthropicProvider("m", KEY, loopback.url), ask(on_text=listener(stream)))
    error = caught.value
    assert str(error) == "anthropic: invalid x-api-key *** (status 401, request req_1)"
    assert (error.status, error.provider, error.request_id, error.attempts) == (401, "anthropic", "req_1", 1)
    assert KEY not in "".join(traceback.format_exception(error)) + repr(vars(error))


@both_ways
@pytest.mark.behaviour("V08")
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(
            Answer("<title>Bad Gateway</title>", 502, {"content-type": "text/html"}), "Bad Gateway", id="html"
        ),
        pytest.param(Answer("nope", 400), "nope", id="text"),
        pytest.param(Answer("", 500), "an empty answer, 500 Internal Server Error", id="empty"),
        pytest.param(Answer({"type": "error", "error": {"type": "x", "message": "over"}}), "over", id="A17-in-200"),
        pytest.param(Answer({"type": "message", "content": None}), "no content in the answer", id="no-content"),
        pytest.param(Answer([1]), "not a JSON object", id="list"),
        pytest.param(Answer("<title>Log in</title>"), "not a JSON object: Log in", id="A17-page-in-200"),
    ],
)
async def test_error_bodies_of_every_kind(loopback: Loopback, reply: Answer, words: str, stream: bool) -> None:
    """Whatever the body is, the error is a `ProviderError` with words in it."""
    loopback.script(reply)
    with pytest.raises(ProviderError) as caught:
        await answered(AnthropicProvider("m", KEY, loopback.url, retry=False), ask(on_text=listener(stream)))
    assert words in str(caught.value)


@pytest.mark.parametrize("ending", [events({"type": "message_stop"}), "data: [DONE]\n\n"], ids=["stop", "A13-done"])
async def test_a_stream_without_a_message(loopback: Loopback, ending: str) -> None:
    """A terminator alone is no answer (case A13)."""
    loopback.script(Answer(ending, headers=SSE))
    with pytest.raises(ProviderError, match="an empty answer: no message in the stream"):
        await answered(AnthropicProvider("m", KEY, loopback.url), ask(on_text=lambda _: None))


@pytest.mark.parametrize(
    ("content", "said"),
    [pytest.param([], "", id="empty"), pytest.param("plain", "plain", id="text-of-a-compatible-server")],
)
async def test_odd_contents(loopback: Loopback, content: Any, said: str) -> None:
    """An empty content is an answer, as the service gives it after a last call; a bare text is one, too."""
    loopback.script(Answer(message() | {"content": content}))
    assert (await answered(AnthropicProvider("m", KEY, loopback.url))).content == said


@pytest.mark.parametrize("url", [None, "https://api.anthropic.com/"], ids=["default", "official"])
async def test_a_missing_key_names_the_variable(url: str | None) -> None:
    """Anthropic itself without a key fails before anything is sent, and says what to set."""
    with pytest.raises(ProviderError, match=r"no API key. Set the environment variable ANTHROPIC_API_KEY") as caught:
        await AnthropicProvider("claude-x", base_url=url).chat(ask())
    assert 'AnthropicProvider("claude-x", api_key=…)' in str(caught.value)


@pytest.mark.behaviour("W02")
async def test_the_environment_is_read_at_the_call(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key and address of the environment may be set after the provider is made; an empty key sends none."""
    provider, keyless = AnthropicProvider("m"), AnthropicProvider("m", api_key="")
    monkeypatch.setenv("ANTHROPIC_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url.removesuffix("/v1"))
    loopback.script(Answer(message(text("ok"))))
    await answered(provider)
    await answered(keyless)
    assert loopback.asked[0].headers["x-api-key"] == KEY
    assert "x-api-key" not in loopback.asked[1].headers


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-é"], ids=["line-break", "not-ascii"])
async def test_a_key_that_no_header_takes_is_not_shown(loopback: Loopback, key: str) -> None:
    """A key with impossible characters is refused in words, without being repeated."""
    with pytest.raises(ProviderError, match="characters that no HTTP header may have") as caught:
        await answered(AnthropicProvider("m", key, loopback.url))
    assert key not in str(caught.value)


def test_repr_shows_no_secret() -> None:
    """Neither the key nor a password in the address is shown."""
    provider = AnthropicProvider("m", KEY, "https://me:hunter2@host?token=hunter2")
    assert repr(provider) == "AnthropicProvider(model='m', base_url='https://host')"
    assert repr(AnthropicProvider("m", KEY)) == "AnthropicProvider(model='m')"


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        pytest.param("http://h", "http://h/v1/messages", id="plain"),
        pytest.param(" http://h:8/ ", "http://h:8/v1/messages", id="slash-and-space"),
        pytest.param("http://h/v1", "http://h/v1/messages", id="with-the-version"),
        pytest.param("http://h/v1/messages", "http://h/v1/messages", id="whole"),
        pytest.param("https://h/anthropic?x=1", "https://h/anthropic/v1/messages?x=1", id="path-and-query"),
        pytest.param("http://[::1]:8", "http://[::1]:8/v1/messages", id="ipv6"),
    ],
)
def test_addresses_are_completed(base_url: str, url: str) -> None:
    """The path of the messages is added once, before a query."""
    assert endpoint(base_url) == url


@pytest.mark.parametrize("base_url", ["", "localhost:8080", "http://", "http://h:x/", "ftp://h/"])
def test_a_wrong_address_is_refused_at_once(base_url: str) -> None:
    """An address that is none is refused where it is written, with the line to write instead."""
    with pytest.raises(ProviderError, match=r'base_url="http://localhost:8080"'):
        AnthropicProvider("m", base_url=base_url)


@pytest.mark.parametrize("value", [float("nan"), object()], ids=["nan", "object"])
async def test_a_body_that_is_not_json_is_refused(loopback: Loopback, value: object) -> None:
    """A value that JSON does not have is reported before anything is sent."""
    with pytest.raises(ProviderError, match="cannot be written as JSON"):
        await answered(AnthropicProvider("m", KEY, loopback.url, raw={"x": value}))
    assert loopback.asked == []


@both_ways
async def test_cancellation_reaches_the_caller(loopback: Loopback, stream: bool) -> None:
    """A cancelled chat ends with the cancellation and not with an error of the provider."""
    loopback.script(Answer(hold=True))
    request = ask(on_text=listener(stream))
    task = asyncio.create_task(answered(AnthropicProvider("m", KEY, loopback.url), request))
    assert await asyncio.to_thread(loopback.arrived.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.behaviour("V07")
async def test_a_price_gives_a_cost(loopback: Loopback) -> None:
    """With a price, the usage has a cost, in which cached tokens count less."""
    loopback.script(Answer(message(text("ok"))))
    turn = await answered(AnthropicProvider("m", KEY, loopback.url, price=Price(1.0, 2.0, 0.1)))
    assert turn.usage is not None
    assert turn.usage.cost_usd == pytest.approx((4 + 0.8 + 6) * 1e-6)


def test_settings_reach_the_transport() -> None:
    """Retry, timeout and their short forms arrive where they are used."""
    chosen = AnthropicProvider("m", retry=Retry(attempts=9), timeout=5)._transport
    assert (chosen.retry.attempts, chosen.timeout) == (9, Timeout(5, 5, 5))
    assert AnthropicProvider("m", retry=False)._transport.retry.attempts == 1
