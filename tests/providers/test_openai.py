"""The OpenAI provider against a server on the loopback interface: bodies, keys, errors, retries, event loops."""

from __future__ import annotations

import asyncio
import json
import traceback
from typing import Any

import pytest

from tests.providers.loopback import Answer, Loopback, completion, tool_call
from thena_core.definition import ToolDefinition
from thena_core.errors import ProviderError
from thena_core.messages import ChatTurn, Message, ToolRequest, Usage
from thena_core.providers import ChatRequest, OpenAIProvider, Price, Retry, Sampling, Timeout
from thena_core.providers.openai import endpoint
from thena_core.providers.transport import Transport

KEY = "sk-test-Zm93c2VjcmV0"
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


def ask(text: str = "hi", **more: Any) -> ChatRequest:
    return ChatRequest([Message("user", text)], **more)


def impatient() -> Transport:
    """Retries without waiting."""

    async def sleep(seconds: float) -> None:
        return None

    return Transport("openai", Retry(attempts=3), sleep=sleep)


async def answered(provider: OpenAIProvider, request: ChatRequest | None = None) -> ChatTurn:
    try:
        return await provider.chat(request or ask())
    finally:
        await provider.aclose()


async def test_answers_with_text(loopback: Loopback) -> None:
    """A plain answer becomes a turn with text, usage, finish reason and attempts."""
    loopback.script(Answer(completion("It is main.py.")))
    turn = await answered(OpenAIProvider("m", KEY, loopback.url))
    assert turn == ChatTurn("It is main.py.", [], Usage(12, 3, 8), "stop", meta={"attempts": 1})
    asked = loopback.asked[0]
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert asked.headers["content-type"] == "application/json"


async def test_asks_for_tools(loopback: Loopback) -> None:
    """Calls come as the model wrote them."""
    calls = [tool_call(id="a"), tool_call("list_dir", "{}", id="b")]
    loopback.script(Answer(completion(None, calls, "tool_calls")))
    turn = await answered(OpenAIProvider("m", KEY, loopback.url))
    assert turn.tool_requests == [ToolRequest("a", "read_file", '{"path": "a"}'), ToolRequest("b", "list_dir", "{}")]
    assert turn.finish_reason == "tool_calls"


@pytest.mark.behaviour("V02")
async def test_writes_the_whole_body(loopback: Loopback) -> None:
    """System, history, tools, sampling and raw fields stand where the service expects them, and nothing else does."""
    loopback.script(Answer(completion()))
    request = ChatRequest(
        [
            Message("user", "Look."),
            Message("assistant", "", [ToolRequest("c1", "read_file", '{"path": "é"}')]),
            Message("tool", "content", tool_call_id="c1"),
        ],
        system="You explore.",
        tools=[
            ToolDefinition("read_file", "Reads.", json_schema=SCHEMA, strict=True),
            ToolDefinition("ping", "Pings."),
        ],
        sampling=Sampling(temperature=0.0, top_p=0.9, max_tokens=50, stop=("END",), seed=7),
    )
    await answered(OpenAIProvider("m", KEY, loopback.url, raw={"reasoning_effort": "low", "top_p": 1}), request)
    assert loopback.asked[0].body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You explore."},
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "é"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "content"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "read_file", "description": "Reads.", "parameters": SCHEMA, "strict": True},
            },
            {
                "type": "function",
                "function": {
                    "name": "ping",
                    "description": "Pings.",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
        "parallel_tool_calls": False,
        "temperature": 0.0,
        "top_p": 1,
        "max_tokens": 50,
        "stop": ["END"],
        "seed": 7,
        "reasoning_effort": "low",
    }


@pytest.mark.behaviour("V02")
@pytest.mark.parametrize(
    ("more", "fields"),
    [
        pytest.param({}, set(), id="nothing"),
        pytest.param({"sampling": Sampling()}, set(), id="empty-sampling"),
        pytest.param({"sampling": Sampling(temperature=0)}, {"temperature"}, id="zero-is-sent"),
        pytest.param({"tools": [ToolDefinition("a", "A.")], "tool_calls": "all"}, {"tools"}, id="all-calls"),
        pytest.param({"tools": [ToolDefinition("a", "A.")]}, {"tools", "parallel_tool_calls"}, id="one-call"),
    ],
)
async def test_what_is_not_given_is_not_sent(loopback: Loopback, more: dict[str, Any], fields: set[str]) -> None:
    """A body holds the model, the messages, and only what was given beside them."""
    loopback.script(Answer(completion()))
    await answered(OpenAIProvider("m", KEY, loopback.url), ask(**more))
    assert set(loopback.asked[0].body) == {"model", "messages"} | fields
    assert loopback.asked[0].body["messages"] == [{"role": "user", "content": "hi"}]


@pytest.mark.behaviour("V02")
def test_the_limit_of_tokens_has_the_name_that_openai_wants() -> None:
    """OpenAI itself gets `max_completion_tokens`, everybody else `max_tokens`."""
    request = ask(sampling=Sampling(max_tokens=5, stop="END"))
    provider = OpenAIProvider("m", KEY)
    official = json.loads(provider._body(request, official=True))
    other = json.loads(provider._body(request, official=False))
    assert (official["max_completion_tokens"], "max_tokens" in official) == (5, False)
    assert (other["max_tokens"], other["stop"]) == (5, "END")


async def test_the_same_history_is_the_same_bytes(loopback: Loopback) -> None:
    """Two requests of one history have the same body to the byte, for the services' caches."""
    loopback.script(Answer(completion()))
    provider = OpenAIProvider("m", KEY, loopback.url)
    request = ask(tools=[ToolDefinition("a", "A.", json_schema=SCHEMA)])
    await provider.chat(request)
    await answered(provider, request)
    assert loopback.asked[0].raw == loopback.asked[1].raw


async def test_odd_text_reaches_the_service(loopback: Loopback) -> None:
    """Half a surrogate pair, NUL and line separators do not break the body (case A26)."""
    loopback.script(Answer(completion()))
    await answered(OpenAIProvider("m", KEY, loopback.url), ask("a\ud83d\x00\u2028b"))
    assert loopback.asked[0].body["messages"][0]["content"] == "a\ufffd\x00\u2028b"


async def test_a_service_that_does_not_stream_is_read_all_the_same(loopback: Loopback) -> None:
    """Where the service answers as a whole though it was asked to stream, a listener gets the whole text once."""
    loopback.script(Answer(completion("abc")), Answer(completion(None, [tool_call(id="c")])))
    heard: list[str] = []
    provider = OpenAIProvider("m", KEY, loopback.url)
    await provider.chat(ask(on_text=heard.append))
    await answered(provider, ask(on_text=heard.append))
    assert heard == ["abc"]


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Answer({"error": {"message": "slow down"}}, 429, {"retry-after": "0"}), id="429"),
        pytest.param(Answer("loading", 503), id="503"),
        pytest.param(Answer(drop=True), id="dropped"),
        pytest.param(Answer({"error": {"message": "upstream", "code": 502}}), id="A17-502-in-200"),
    ],
)
async def test_tries_again(loopback: Loopback, first: Answer) -> None:
    """A failure that may pass is tried again with the same body, and the turn says how often."""
    loopback.script(first, Answer(completion("at last")))
    turn = await answered(OpenAIProvider("m", KEY, loopback.url, transport=impatient()))
    assert (turn.content, turn.meta) == ("at last", {"attempts": 2})
    assert loopback.asked[0].raw == loopback.asked[1].raw


@pytest.mark.behaviour("V03")
async def test_retry_can_be_switched_off(loopback: Loopback) -> None:
    """`retry=False` asks once."""
    loopback.script(Answer("busy", 503))
    with pytest.raises(ProviderError) as caught:
        await answered(OpenAIProvider("m", KEY, loopback.url, retry=False))
    assert (caught.value.attempts, len(loopback.asked)) == (1, 1)


def test_settings_reach_the_transport() -> None:
    """Retry, timeout and their short forms arrive where they are used."""
    plain = OpenAIProvider("m")._transport
    chosen = OpenAIProvider("m", retry=Retry(attempts=9), timeout=5)._transport
    assert (plain.retry, plain.timeout) == (Retry(), Timeout())
    assert (chosen.retry.attempts, chosen.timeout) == (9, Timeout(5, 5, 5))
    assert OpenAIProvider("m", timeout=Timeout(read=1))._transport.timeout.read == 1


@pytest.mark.behaviour("V08")
async def test_an_error_carries_what_the_service_said(loopback: Loopback) -> None:
    """Status, request id, attempts and the server's words are in the error, the key is nowhere in it."""
    said = f"Bad key {KEY} in header Authorization: Bearer {KEY}"
    loopback.script(Answer({"error": {"message": said, "code": "bad"}}, 401, {"x-request-id": "req_1"}))
    with pytest.raises(ProviderError) as caught:
        await answered(OpenAIProvider("m", KEY, loopback.url))
    error = caught.value
    assert str(error) == "openai: Bad key *** in header Authorization: Bearer *** (status 401, request req_1)"
    assert (error.status, error.provider, error.request_id, error.attempts) == (401, "openai", "req_1", 1)
    assert KEY not in "".join(traceback.format_exception(error)) + repr(vars(error))


@pytest.mark.behaviour("V08")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(
            Answer("<html><title>Bad Gateway</title></html>", 502, {"content-type": "text/html"}),
            "Bad Gateway",
            id="html",
        ),
        pytest.param(Answer("nope", 400), "nope", id="text"),
        pytest.param(Answer("", 500), "an empty answer, 500 Internal Server Error", id="empty"),
        pytest.param(Answer([{"error": {"message": "API key not valid"}}], 400), "API key not valid", id="list"),
        pytest.param(Answer({"error": {"message": "over"}}, 200), "over", id="error-in-200"),
        pytest.param(Answer({"choices": []}), "no choices in the answer", id="no-choices"),
        pytest.param(Answer("", 307, {"location": "http://x/"}), "307 Temporary Redirect", id="redirect"),
        pytest.param(Answer(b"\x00" * 5, 200, {"content-encoding": "gzip"}), "broke off", id="broken-compression"),
    ],
)
async def test_error_bodies_of_every_kind(loopback: Loopback, answer: Answer, words: str) -> None:
    """Whatever the body is, the error is a `ProviderError` with words in it."""
    loopback.script(answer)
    with pytest.raises(ProviderError) as caught:
        await answered(OpenAIProvider("m", KEY, loopback.url, retry=False))
    assert words in str(caught.value)


@pytest.mark.parametrize("url", [None, "https://api.openai.com/v1/"], ids=["default", "official"])
async def test_a_missing_key_names_the_variable(url: str | None) -> None:
    """OpenAI itself without a key fails before anything is sent, and says what to set."""
    provider = OpenAIProvider("gpt-x", base_url=url)
    with pytest.raises(ProviderError, match=r"no API key. Set the environment variable OPENAI_API_KEY") as caught:
        await provider.chat(ask())
    assert 'OpenAIProvider("gpt-x", api_key=…)' in str(caught.value)


async def test_other_services_need_no_key(loopback: Loopback) -> None:
    """Without a key no `Authorization` is sent to another address."""
    loopback.script(Answer(completion()))
    await answered(OpenAIProvider("m", base_url=loopback.url))
    assert "authorization" not in loopback.asked[0].headers


@pytest.mark.behaviour("W02")
async def test_the_environment_is_read_at_the_call(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key and address of the environment may be set after the provider is made; an empty key sends none."""
    provider, keyless = OpenAIProvider("m"), OpenAIProvider("m", api_key="")
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{loopback.url}/")
    loopback.script(Answer(completion()))
    await answered(provider)
    await answered(keyless)
    assert loopback.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in loopback.asked[1].headers


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-é"], ids=["line-break", "not-ascii"])
async def test_a_key_that_no_header_takes_is_not_shown(loopback: Loopback, key: str) -> None:
    """A key with impossible characters is refused in words, without being repeated."""
    with pytest.raises(ProviderError, match="characters that no HTTP header may have") as caught:
        await answered(OpenAIProvider("m", key, loopback.url))
    assert key not in str(caught.value)


def test_repr_shows_no_secret() -> None:
    """Neither the key nor a password in the address is shown."""
    provider = OpenAIProvider("m", KEY, "https://me:hunter2@host/v1?token=hunter2")
    assert repr(provider) == "OpenAIProvider(model='m', base_url='https://host/v1')"
    assert repr(OpenAIProvider("m", KEY)) == "OpenAIProvider(model='m')"


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        pytest.param("http://h/v1", "http://h/v1/chat/completions", id="plain"),
        pytest.param(" http://h:8/v1/ ", "http://h:8/v1/chat/completions", id="slash-and-space"),
        pytest.param("http://h/v1/chat/completions", "http://h/v1/chat/completions", id="whole"),
        pytest.param("https://h/d?api-version=1", "https://h/d/chat/completions?api-version=1", id="query"),
        pytest.param("http://[::1]:8/v1", "http://[::1]:8/v1/chat/completions", id="ipv6"),
    ],
)
def test_addresses_are_completed(base_url: str, url: str) -> None:
    """The path of the chat completions is added once, before a query."""
    assert endpoint(base_url) == url


@pytest.mark.parametrize("base_url", ["", "localhost:8000/v1", "http://", "http://h:x/", "ftp://h/"])
def test_a_wrong_address_is_refused_at_once(base_url: str) -> None:
    """An address that is none is refused where it is written, with the line to write instead."""
    with pytest.raises(ProviderError, match=r'base_url="http://localhost:8000/v1"'):
        OpenAIProvider("m", base_url=base_url)


@pytest.mark.parametrize("value", [float("nan"), object()], ids=["nan", "object"])
async def test_a_body_that_is_not_json_is_refused(loopback: Loopback, value: object) -> None:
    """A value that JSON does not have is reported before anything is sent."""
    with pytest.raises(ProviderError, match="cannot be written as JSON"):
        await answered(OpenAIProvider("m", KEY, loopback.url, raw={"x": value}))
    assert loopback.asked == []


async def test_cancellation_reaches_the_caller(loopback: Loopback) -> None:
    """A cancelled chat ends with the cancellation and not with an error of the provider."""
    loopback.script(Answer(hold=True))
    task = asyncio.create_task(answered(OpenAIProvider("m", KEY, loopback.url)))
    assert await asyncio.to_thread(loopback.arrived.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_one_provider_in_two_event_loops(loopback: Loopback) -> None:
    """`asyncio.run` again and again works with one provider, also when nobody closes it (case D06)."""
    loopback.script(Answer(completion("one")), Answer(completion("two")))
    provider = OpenAIProvider("m", KEY, loopback.url)
    assert [asyncio.run(provider.chat(ask())).content for _ in range(2)] == ["one", "two"]


@pytest.mark.behaviour("V07")
async def test_a_price_gives_a_cost(loopback: Loopback) -> None:
    """With a price, the usage has a cost."""
    loopback.script(Answer(completion()))
    turn = await answered(OpenAIProvider("m", KEY, loopback.url, price=Price(1.0, 2.0)))
    assert turn.usage is not None
    assert turn.usage.cost_usd == pytest.approx(18e-6)
