"""The Ollama provider against a server on the loopback interface: bodies, hosts, streams, errors, whole runs."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from typing import Any

import pytest

from tests.providers.loopback import Answer, Loopback
from tests.providers.ollama_answers import NDJSON, answer, call, jsonl
from thena_core import Prompt, Thena, agent, tool
from thena_core.definition import ToolDefinition
from thena_core.errors import ProviderError
from thena_core.messages import ChatTurn, Message, ToolRequest, Usage
from thena_core.providers import ChatRequest, OllamaProvider, Retry, Sampling, Timeout, ollama_wire
from thena_core.providers.base import ChatCall, ChatNext
from thena_core.providers.ollama import endpoint
from thena_core.providers.transport import Transport


def ask(words: str = "hi", *, stream: bool = False, **more: Any) -> ChatRequest:
    if stream:
        more.setdefault("on_text", lambda _: None)
    return ChatRequest([Message("user", words)], **more)


def impatient() -> Transport:
    """Retries without waiting."""

    async def sleep(seconds: float) -> None:
        return None

    return Transport("ollama", Retry(attempts=3), sleep=sleep)


async def answered(provider: OllamaProvider, request: ChatRequest | None = None) -> ChatTurn:
    try:
        return await provider.chat(request or ask())
    finally:
        await provider.aclose()


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.mark.behaviour("V01")
@both_ways
async def test_answers_with_text_and_calls(loopback: Loopback, stream: bool) -> None:
    """Text, calls with ids of our own, usage and reason arrive, and the text reaches the listener as it comes."""
    loopback.script(answer("Look here.", call(path="a"), call(path="b"), stream=stream, thinking="Hm."))
    heard: list[str] = []
    turn = await answered(OllamaProvider("m", loopback.url), ask(on_text=heard.append if stream else None))
    assert turn == ChatTurn(
        "Look here.",
        [ToolRequest("call_1", "read_file", {"path": "a"}), ToolRequest("call_2", "read_file", {"path": "b"})],
        Usage(5, 7),
        "stop",
        {"ollama": {"thinking": "Hm."}},
        {"attempts": 1},
    )
    assert heard == (["Look ", "here."] if stream else [])
    assert (loopback.asked[0].path, loopback.asked[0].body["stream"]) == ("/api/chat", stream)


@pytest.mark.behaviour("V02")
async def test_writes_the_whole_body(loopback: Loopback) -> None:
    """System, history, tools, options, thinking and raw fields stand where Ollama expects them, and nothing else."""
    loopback.script(answer("ok", stream=False))
    request = ChatRequest(
        [
            Message("user", "Look."),
            Message("assistant", "", [ToolRequest("c1", "ping", "{}")]),
            Message("tool", "pong", tool_call_id="c1"),
        ],
        system="You explore.",
        tools=[ToolDefinition("ping", "Pings.")],
        sampling=Sampling(temperature=0.0, max_tokens=50),
    )
    raw = {"keep_alive": "5m", "options": {"num_ctx": 8192, "num_predict": 60}}
    await answered(OllamaProvider("m", loopback.url, think="low", raw=raw), request)
    function = {"name": "ping", "description": "Pings.", "parameters": {"type": "object", "properties": {}}}
    assert loopback.asked[0].body == {
        "model": "m",
        "stream": False,
        "think": "low",
        "keep_alive": "5m",
        "options": {"temperature": 0.0, "num_predict": 60, "num_ctx": 8192},
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "You explore."},
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "function": {"name": "ping", "arguments": {}}}],
            },
            {"role": "tool", "content": "pong", "tool_name": "ping", "tool_call_id": "c1"},
        ],
    }


@pytest.mark.behaviour("V02")
async def test_what_is_not_given_is_not_sent(loopback: Loopback) -> None:
    """A body holds model, messages and whether to stream, which Ollama does unasked; `raw` may replace each."""
    loopback.script(answer("ok", stream=False))
    await answered(OllamaProvider("m", loopback.url))
    await answered(OllamaProvider("m", loopback.url, raw={"messages": []}, think=False))
    assert loopback.asked[0].body == {"model": "m", "stream": False, "messages": [{"role": "user", "content": "hi"}]}
    assert loopback.asked[1].body == {"model": "m", "stream": False, "think": False, "messages": []}


@pytest.mark.behaviour("V01")
@both_ways
async def test_a_run_with_calls_without_ids(loopback: Loopback, stream: bool) -> None:
    """In a run, calls that came without ids are answered under ours, thinking goes back, and ids never repeat."""
    paths: list[str] = []

    @tool
    async def read_file(path: str) -> str:
        """Reads a file."""
        paths.append(path)
        return f"content of {path}"

    @agent(provider=OllamaProvider("m", loopback.url), tools=[read_file], prompt=Prompt("Read."))
    class Reader:
        pass

    loopback.script(
        answer("", call(path="a"), stream=stream, thinking="Hm."),
        answer("", call(path="b"), stream=stream),
        answer("done", stream=stream),
    )
    async with Thena(Reader) as app:
        if stream:
            async with app.start("go") as handle:
                result = await handle.result()
        else:
            result = await app.run("go")
    assert (result.output, paths) == ("done", ["a", "b"])
    sent = loopback.asked[2].body["messages"][2:]
    assert [message.get("tool_call_id") or message["tool_calls"][0]["id"] for message in sent] == [
        "call_1",
        "call_1",
        "call_2",
        "call_2",
    ]
    assert (sent[0]["thinking"], sent[1]["content"]) == ("Hm.", "content of a")
    bodies = [asked.raw for asked in loopback.asked]
    assert all(later.startswith(earlier.removesuffix(b"]}")) for earlier, later in itertools.pairwise(bodies))


BROKEN = jsonl({"model": "m", "message": {"role": "assistant", "content": ""}, "done": False})
CALLED = jsonl({"model": "m", "message": {"role": "assistant", "tool_calls": [call(path="a")]}, "done": False})
FAILED = jsonl({"error": "an error was encountered while running the model"})


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Answer(BROKEN, headers=NDJSON), id="A18-no-done"),
        pytest.param(Answer(CALLED, headers=NDJSON), id="A18-after-a-call"),
        pytest.param(Answer(CALLED[:-9], headers=NDJSON), id="A18-half-a-line"),
        pytest.param(Answer("", headers=NDJSON), id="nothing"),
        pytest.param(Answer({"error": "loading model"}, 503), id="503"),
        pytest.param(Answer(drop=True), id="dropped"),
    ],
)
async def test_a_broken_stream_is_tried_again(loopback: Loopback, first: Answer) -> None:
    """A stream that fails before any text was shown is tried again, and nothing of it is left in the answer."""
    loopback.script(first, answer("whole", stream=True))
    turn = await answered(OllamaProvider("m", loopback.url, transport=impatient()), ask(stream=True))
    assert (turn.content, turn.tool_requests, turn.meta) == ("whole", [], {"attempts": 2})


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    ("rest", "words"),
    [
        pytest.param(FAILED, "an error was encountered while running the model", id="error"),
        pytest.param("", "the answer ended before it was complete", id="A18-no-done"),
        pytest.param('{"message": {"con', "not a JSON object", id="half-a-line"),
    ],
)
async def test_is_not_tried_again_after_text(loopback: Loopback, rest: str, words: str) -> None:
    """Once text was handed on, a failing stream ends in an error: nobody can take back what was read."""
    begun = jsonl({"model": "m", "message": {"role": "assistant", "content": "half"}, "done": False})
    loopback.script(Answer(begun + rest, headers=NDJSON))
    heard: list[str] = []
    with pytest.raises(ProviderError, match=words) as caught:
        await answered(OllamaProvider("m", loopback.url, transport=impatient()), ask(on_text=heard.append))
    assert (caught.value.attempts, len(loopback.asked), heard) == (1, 1, ["half"])


@pytest.mark.behaviour("F07")
@both_ways
async def test_a_call_that_was_cut_off_says_so(loopback: Loopback, stream: bool) -> None:
    """An answer at the limit says `length`, which keeps its calls from being run (case A07)."""
    loopback.script(answer("", call(path="a"), stream=stream, done_reason="length"))
    turn = await answered(OllamaProvider("m", loopback.url), ask(stream=stream))
    assert (turn.finish_reason, len(turn.tool_requests)) == ("length", 1)


@pytest.mark.behaviour("V08")
@both_ways
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(
            Answer({"error": "model 'qwen3' not found"}, 404),
            "ollama: model 'qwen3' not found. Get it: ollama pull qwen3 (status 404)",
            id="no-such-model",
        ),
        pytest.param(
            Answer({"error": "registry.ollama.ai/library/gemma:2b does not support tools"}, 400),
            "does not support tools. Take a model that does",
            id="no-tools",
        ),
        pytest.param(
            Answer({"error": '"gemma:2b" does not support thinking'}, 400), "Leave `think` out", id="no-thinking"
        ),
        pytest.param(
            Answer("404 page not found", 404), "ollama: 404 page not found (status 404)", id="no-ollama-there"
        ),
        pytest.param(Answer({"error": "llama runner process has terminated"}), "has terminated", id="A17-in-200"),
        pytest.param(
            Answer("<title>Bad Gateway</title>", 502, {"content-type": "text/html"}), "Bad Gateway", id="html"
        ),
        pytest.param(Answer("", 500), "an empty answer, 500 Internal Server Error", id="empty"),
        pytest.param(Answer("<title>Log in</title>"), "not a JSON object: Log in", id="A17-page-in-200"),
    ],
)
async def test_errors_say_the_way_out(loopback: Loopback, reply: Answer, words: str, stream: bool) -> None:
    """The server's words are in the error, and where there is a line that helps, that, too."""
    loopback.script(reply)
    with pytest.raises(ProviderError) as caught:
        await answered(OllamaProvider("qwen3", loopback.url, retry=False), ask(stream=stream))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(Answer({"model": "m"}), "no message in the answer", id="no-message"),
        pytest.param(Answer("[1]"), "the answer is not a JSON object", id="list"),
        pytest.param(Answer("hello"), "the answer is not a JSON object: hello", id="text"),
    ],
)
async def test_an_answer_that_is_none(loopback: Loopback, reply: Answer, words: str) -> None:
    """An answer without a message is an error that quotes it."""
    loopback.script(reply)
    with pytest.raises(ProviderError, match=words):
        await answered(OllamaProvider("m", loopback.url, retry=False))


async def test_a_stream_without_a_message(loopback: Loopback) -> None:
    """A model that was only loaded has not answered."""
    loopback.script(Answer(jsonl({"model": "m", "done": True, "done_reason": "load"}), headers=NDJSON))
    with pytest.raises(ProviderError, match="an empty answer: no message in the stream"):
        await answered(OllamaProvider("m", loopback.url), ask(stream=True))


@pytest.mark.behaviour("V08")
@both_ways
async def test_nobody_listens(stream: bool) -> None:
    """Where no server runs, the error says how to start one."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ProviderError, match=r"Is Ollama running there\? Start it: ollama serve"):
            await answered(OllamaProvider("m", host, retry=False), ask(stream=stream))


@pytest.mark.behaviour("W02")
async def test_the_environment_is_read_at_the_call(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host of the environment may be set after the provider is made; the cloud's key goes to nobody else."""
    provider = OllamaProvider("m")
    monkeypatch.setenv("OLLAMA_HOST", loopback.url.removeprefix("http://").removesuffix("/v1"))
    monkeypatch.setenv("OLLAMA_API_KEY", "secret")
    loopback.script(answer("ok", stream=False))
    await answered(provider)
    await answered(OllamaProvider("m", api_key="mine"))
    assert "authorization" not in loopback.asked[0].headers
    assert loopback.asked[1].headers["authorization"] == "Bearer mine"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        pytest.param("gpu-box", "http://gpu-box:11434/api/chat", id="name"),
        pytest.param("gpu-box:8080", "http://gpu-box:8080/api/chat", id="name-and-port"),
        pytest.param(":8080", "http://127.0.0.1:8080/api/chat", id="port"),
        pytest.param("0.0.0.0", "http://127.0.0.1:11434/api/chat", id="listens-everywhere"),  # noqa: S104 - as a host to ask
        pytest.param("0.0.0.0:8080", "http://127.0.0.1:8080/api/chat", id="listens-everywhere-at-a-port"),
        pytest.param("[::1]", "http://[::1]:11434/api/chat", id="ipv6"),
        pytest.param("[::]:8080", "http://[::1]:8080/api/chat", id="ipv6-everywhere"),
        pytest.param("http://gpu-box", "http://gpu-box/api/chat", id="http"),
        pytest.param("https://gpu-box/ollama/", "https://gpu-box/ollama/api/chat", id="path"),
        pytest.param("http://gpu-box:11434/v1", "http://gpu-box:11434/api/chat", id="the-compatible-address"),
        pytest.param("http://gpu-box:11434/api/chat", "http://gpu-box:11434/api/chat", id="whole"),
        pytest.param(' "gpu-box" ', "http://gpu-box:11434/api/chat", id="quotes-and-spaces"),
        pytest.param("ollama.com", "https://ollama.com/api/chat", id="cloud"),
    ],
)
def test_hosts_are_completed(host: str, url: str) -> None:
    """A host has every form that Ollama's own programs take from `OLLAMA_HOST`."""
    assert endpoint(host) == url


@pytest.mark.parametrize("host", ["http://", "http://h:x/", "ftp://h/", "h:port"])
def test_a_wrong_host_is_refused_at_once(host: str) -> None:
    """A host that is none is refused where it is written, with the line to write instead."""
    with pytest.raises(ProviderError, match=r'host="http://localhost:11434"'):
        OllamaProvider("m", host)


def test_repr_shows_no_secret() -> None:
    """A password in the address is not shown."""
    assert repr(OllamaProvider("m", "http://me:hunter2@host")) == "OllamaProvider(model='m', host='http://host')"
    assert repr(OllamaProvider("m")) == "OllamaProvider(model='m')"


def test_settings_reach_the_transport() -> None:
    """Retry, timeout and their short forms arrive where they are used."""
    chosen = OllamaProvider("m", retry=Retry(attempts=9), timeout=5)._transport
    assert (chosen.retry.attempts, chosen.timeout) == (9, Timeout(5, 5, 5))


@both_ways
async def test_cancellation_reaches_the_caller(loopback: Loopback, stream: bool) -> None:
    """A cancelled chat ends with the cancellation and not with an error of the provider."""
    loopback.script(Answer(hold=True))
    task = asyncio.create_task(answered(OllamaProvider("m", loopback.url), ask(stream=stream)))
    assert await asyncio.to_thread(loopback.arrived.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.behaviour("S01", "V01")
async def test_text_appears_while_the_model_writes(loopback: Loopback) -> None:
    """Each piece is handed on before the next one was sent, also where lines and network pieces do not agree."""
    gate = threading.Semaphore(0)
    lines = answer("abcd", stream=True).encoded().splitlines(keepends=True)
    pieces = [lines[0] + lines[1][:9], lines[1][9:] + lines[2][:9], lines[2][9:]]
    loopback.script(Answer(headers=NDJSON, pieces=pieces, gate=gate))
    heard: list[str] = []

    def listen(piece: str) -> None:
        heard.append(piece)
        gate.release()  # without it the server sends no more

    turn = await answered(OllamaProvider("m", loopback.url, timeout=Timeout(read=10)), ask(on_text=listen))
    assert (heard, turn.content) == (["ab", "cd"], "abcd")


def reader(provider: OllamaProvider, paths: list[str]) -> type:
    """Make an agent with one tool."""

    @tool
    async def read_file(path: str) -> str:
        """Reads a file."""
        paths.append(path)
        return f"content of {path}"

    @agent(provider=provider, tools=[read_file], prompt=Prompt("Read."))
    class Reader:
        pass

    return Reader


@pytest.mark.behaviour("V08")
async def test_a_server_that_dies_ends_the_run(loopback: Loopback) -> None:
    """A connection that breaks in mid-stream ends the run with one line, and with nothing left open."""
    begun = jsonl({"model": "m", "message": {"role": "assistant", "content": "half"}, "done": False}).encode()
    loopback.script(Answer(headers=NDJSON, pieces=[begun], drop=True))
    provider = OllamaProvider("m", loopback.url)
    async with Thena(reader(provider, [])) as app, app.start("go") as handle:
        heard = [piece async for piece in handle.text()]
        with pytest.raises(ProviderError, match="broke off") as caught:
            await handle.result()
    assert (heard, str(caught.value).count("\n"), len(loopback.asked)) == (["half"], 0, 1)
    assert provider._transport.clients.opened == {}


@both_ways
@pytest.mark.behaviour("V04", "V05")
@pytest.mark.parametrize(
    "written",
    [
        pytest.param('<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>', id="tagged"),
        pytest.param('```json\n{"tool": "read_file", "parameters": {"path": "a"}}\n```', id="fenced"),
        pytest.param('<think>hm</think>\n{"name": "read_file", "arguments": {"path": "a"}}', id="after-a-thought"),
    ],
)
async def test_calls_in_the_text_are_run(loopback: Loopback, stream: bool, written: str) -> None:
    """A call that a small model wrote as its whole answer is run, and nobody sees its text."""
    loopback.script(answer(written, stream=stream), answer("<think>hm</think>done", stream=stream))
    paths: list[str] = []
    async with Thena(reader(OllamaProvider("m", loopback.url), paths)) as app:
        if stream:
            async with app.start("go") as handle:
                assert "".join([piece async for piece in handle.text()]) == "done"
                result = await handle.result()
        else:
            result = await app.run("go")
    assert (result.output, paths) == ("done", ["a"])
    calls = loopback.asked[1].body["messages"][2]
    assert calls["tool_calls"] == [{"id": "call_1", **call(path="a")}]
    assert calls["content"] == ""


async def test_rescue_can_be_switched_off(loopback: Loopback) -> None:
    """`rescue=False` leaves a call in the text, and the turn says that it looks like one."""
    written = '{"name": "ping", "arguments": {}}'
    loopback.script(answer(written, stream=False))
    request = ask(tools=[ToolDefinition("ping", "Pings.")])
    turn = await answered(OllamaProvider("m", loopback.url, rescue=False), request)
    assert (turn.content, turn.tool_requests) == (written, [])
    assert turn.meta is not None
    assert "looks like a call" in turn.meta["unread_tool_call"]


@both_ways
@pytest.mark.behaviour("V09")
async def test_a_message_is_encoded_once(loopback: Loopback, monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    """However long the history grows, a turn encodes only the messages that are new in it."""
    counts: list[int] = []

    def counted(*given: Any) -> str:
        counts[-1] += 1
        return ollama_wire.encode_message(*given)

    async def counting(chat: ChatCall, call_next: ChatNext) -> ChatTurn:
        counts.append(0)
        return await call_next(chat)

    monkeypatch.setattr("thena_core.providers.ollama.encode_message", counted)
    loopback.script(answer("", call(path="a"), stream=stream))
    app = Thena(reader(OllamaProvider("m", loopback.url), []))
    app.use(chat=counting)
    async with app:
        if stream:
            async with app.start("go") as handle:
                await handle.result()
        else:
            await app.run("go")
    assert counts == [1] + [2] * 9
