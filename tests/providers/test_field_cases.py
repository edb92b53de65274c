"""Field cases of the wire (category A): what services answered in public bug reports, through a whole run.

Each test names its case and the reports. Where the answer may come whole or streamed, both are tried.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from tests.providers.loopback import DONE, Answer, Loopback, chunk, completion, streamed, tool_call
from thena_core import Prompt, Thena, agent, tool
from thena_core.errors import ProviderError
from thena_core.messages import Message
from thena_core.providers import OpenAIProvider
from thena_core.run import RunResult

BOTH = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


class Item(BaseModel):
    name: str
    n: int


class Bench:
    """The cases' tools, and what reached them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def note(self, name: str, **arguments: Any) -> str:
        self.calls.append((name, arguments))
        return "ok"

    def tools(self, *names: str) -> list[Any]:
        note = self.note

        @tool
        def ping() -> str:
            """Pings."""
            return note("ping")

        @tool
        def echo(text: str) -> str:
            """Says it again."""
            note("echo", text=text)
            return text

        @tool
        def total(values: list[int], note_: str = "") -> str:
            """Adds."""
            return note("total", values=values, note_=note_)

        @tool
        def put(item: Item, times: int = 1) -> str:
            """Puts."""
            return note("put", item=item)

        @tool
        def save(facts: list[str]) -> str:
            """Saves."""
            return note("save", facts=facts)

        @tool
        def write(path: str, content: str = "") -> str:
            """Writes."""
            return note("write", path=path, content=content)

        @tool
        def read_file(path: str) -> str:
            """Reads."""
            note("read_file", path=path)
            return f"content of {path}"

        @tool
        def edit_existing_file(path: str) -> str:
            """Edits."""
            return note("edit_existing_file", path=path)

        @tool
        def square(n: int) -> str:
            """Squares."""
            return note("square", n=n)

        @tool
        def delete(message_id: int) -> str:
            """Deletes."""
            return note("delete", message_id=message_id)

        @tool
        def scale(x: float) -> str:
            """Scales."""
            return note("scale", x=x)

        @tool(name="Bash", description="Runs.")
        def bash_upper(cmd: str) -> str:
            return note("Bash", cmd=cmd)

        @tool(name="bash", description="Runs.")
        def bash_lower(cmd: str) -> str:
            return note("bash", cmd=cmd)

        found: dict[str, Any] = {
            "ping": ping,
            "echo": echo,
            "total": total,
            "put": put,
            "save": save,
            "write": write,
            "read_file": read_file,
            "edit_existing_file": edit_existing_file,
            "square": square,
            "delete": delete,
            "scale": scale,
            "Bash": bash_upper,
            "bash": bash_lower,
        }
        return [found[name] for name in names]


@dataclass
class Ran:
    """What came of a run."""

    result: RunResult
    calls: list[tuple[str, dict[str, Any]]]
    requests: list[Any]
    heard: str

    @property
    def observations(self) -> list[Message]:
        return [message for message in self.result.history if message.role == "tool"]


async def ran(
    loopback: Loopback, tools: Sequence[str], first: Answer, *, streams: bool = False, **settings: Any
) -> Ran:
    """Run an agent whose service gives one answer, and then the text `done`."""
    bench = Bench()

    @agent(
        provider=OpenAIProvider("m", "k", loopback.url, retry=False, **settings),
        tools=bench.tools(*tools),
        prompt=Prompt("Go."),
        tool_calls="all",
    )
    class Worker:
        pass

    loopback.script(first, streamed("done") if streams else Answer(completion("done")))
    heard = ""
    async with Thena(Worker) as app:
        if streams:
            async with app.start("go") as handle:
                result = await handle.result()
                heard = "".join([text async for text in handle.text()])
        else:
            result = await app.run("go")
    return Ran(result, bench.calls, [asked.body for asked in loopback.asked], heard)


def said(calls: Sequence[Any], *, streams: bool, content: Any = None, finish_reason: Any = "tool_calls") -> Answer:
    """Make an answer that asks for calls; streamed, the arguments come in two pieces."""
    if not streams:
        return Answer(completion(content, list(calls), finish_reason))
    deltas: list[Any] = [content] if content else []
    for index, call in enumerate(calls):
        function = call["function"]
        text = function.get("arguments")
        head = {**call, "index": index}
        if isinstance(text, str) and len(text) > 2:
            head["function"] = {**function, "arguments": text[:2]}
            rest = {"index": index, "function": {"arguments": text[2:]}}
            deltas += [{"tool_calls": [head]}, {"tool_calls": [rest]}]
        else:
            deltas.append({"tool_calls": [head]})
    return streamed(*deltas, finish_reason=finish_reason)


def replayed(outcome: Ran) -> list[Any]:
    """Return the calls of the assistant's message in the second request."""
    asked = next(entry for entry in outcome.requests[1]["messages"] if entry["role"] == "assistant")
    return [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in asked["tool_calls"]
    ]


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    "arguments", ["", "   ", "\n", "null", None], ids=["empty", "blank", "line", "null", "nothing"]
)
async def test_a01_a02_no_arguments(loopback: Loopback, arguments: Any, streams: bool) -> None:
    """A call without arguments runs, and goes back with `{}` (A01 vllm-project/vllm#19419; A02 langchain-ai/langchain#33896)."""
    outcome = await ran(
        loopback, ["ping"], said([tool_call("ping", arguments, id="call_1")], streams=streams), streams=streams
    )
    assert outcome.calls == [("ping", {})]
    assert not outcome.observations[0].is_error
    assert replayed(outcome) == [("call_1", "ping", {})]


@pytest.mark.behaviour("V06")
@BOTH
async def test_a02_missing_arguments(loopback: Loopback, streams: bool) -> None:
    """An absent key means no arguments, and `null` for a tool that wants some names the field (A02 ogx-ai/ogx#3560)."""
    call = {"id": "call_1", "type": "function", "function": {"name": "ping"}}
    assert (await ran(loopback, ["ping"], said([call], streams=streams), streams=streams)).calls == [("ping", {})]
    loopback.asked.clear()
    refused = await ran(loopback, ["echo"], said([tool_call("echo", "null", id="c")], streams=streams), streams=streams)
    assert refused.calls == []
    assert refused.observations[0].is_error
    assert "text" in refused.observations[0].content
    assert "NoneType" not in refused.observations[0].content


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    ("name", "arguments", "calls"),
    [
        pytest.param(
            "total",
            '{"values": "[1, 2, 3]", "note_": "[4, 5]"}',
            [("total", {"values": [1, 2, 3], "note_": "[4, 5]"})],
            id="list",
        ),
        pytest.param(
            "put",
            '{"item": "{\\"name\\": \\"a\\", \\"n\\": 1}"}',
            [("put", {"item": Item(name="a", n=1)})],
            id="object",
        ),
        pytest.param(
            "total", '"{\\"values\\": [1, 2, 3]}"', [("total", {"values": [1, 2, 3], "note_": ""})], id="all-of-it"
        ),
        pytest.param("total", '{"values": "1,2,3"}', [], id="no-json"),
    ],
)
async def test_a03_arguments_encoded_twice(
    loopback: Loopback, name: str, arguments: str, calls: Any, streams: bool
) -> None:
    """A list or object in a text is decoded one level where the schema wants it (A03 pydantic/pydantic-ai#5259)."""
    outcome = await ran(loopback, [name], said([tool_call(name, arguments, id="c")], streams=streams), streams=streams)
    assert outcome.calls == calls
    assert outcome.observations[0].is_error is (not calls)
    assert all(isinstance(arguments, dict) for _, _, arguments in replayed(outcome))
    if not calls:
        assert "values" in outcome.observations[0].content


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize(
    ("before", "calls"),
    [("", [("save", {"facts": ["uses ```json fences", "b"]})]), ("Sure:\n", [])],
    ids=["fenced", "text-before"],
)
async def test_a05_fenced_arguments(loopback: Loopback, before: str, calls: Any) -> None:
    """A fence around the arguments is taken off, one with text before it is not (A05 vectorize-io/hindsight#2542)."""
    arguments = before + '```json\n{"facts": ["uses ```json fences", "b"]}\n```'
    outcome = await ran(loopback, ["save"], said([tool_call("save", arguments, id="c")], streams=False))
    assert outcome.calls == calls
    assert outcome.observations[0].is_error is (not calls)


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    "arguments",
    ['{"path": "a.txt", "content": "x', '["a.txt", "x"]', '{"path": "' + "x" * 5000],
    ids=["unclosed", "list", "long"],
)
async def test_a06_malformed_arguments(loopback: Loopback, arguments: str, streams: bool) -> None:
    """What is no object is not run, told briefly, and goes back as a legal one (A06 pydantic/pydantic-ai#7092)."""
    outcome = await ran(
        loopback, ["write"], said([tool_call("write", arguments, id="call_1")], streams=streams), streams=streams
    )
    assert outcome.calls == []
    assert replayed(outcome) == [("call_1", "write", {})]
    answer = outcome.observations[0]
    assert (answer.tool_call_id, answer.is_error, len(answer.content) < 600) == ("call_1", True, True)
    asked = next(message for message in outcome.result.history if message.tool_requests)
    assert asked.tool_requests[0].arguments == arguments


@pytest.mark.behaviour("V06", "F06")
async def test_a06_a_repaired_call_stays_as_it_was_sent(loopback: Loopback) -> None:
    """After a repair the history keeps what the model sent, and the service gets JSON (A06 su-kaka/gcli2api#406)."""
    arguments = '{"path": "a.txt", "content": "x",}'
    outcome = await ran(loopback, ["write"], said([tool_call("write", arguments, id="c")], streams=False))
    assert outcome.calls == [("write", {"path": "a.txt", "content": "x"})]
    asked = next(message for message in outcome.result.history if message.tool_requests)
    assert asked.tool_requests[0].arguments == arguments
    assert isinstance(replayed(outcome)[0][2], dict)


@pytest.mark.behaviour("V06", "F07")
@BOTH
@pytest.mark.parametrize("reason", ["length", "max_tokens", "max_output_tokens", "content_filter"])
async def test_a07_a_call_that_was_cut_off(loopback: Loopback, reason: str, streams: bool) -> None:
    """No call of an answer that hit its limit is run, though its JSON is valid (A07 NousResearch/hermes-agent#7693)."""
    calls = [tool_call("write", '{"path": "x.txt"}', id="a"), tool_call("ping", "{}", id="b")]
    outcome = await ran(
        loopback, ["write", "ping"], said(calls, streams=streams, finish_reason=reason), streams=streams
    )
    assert outcome.calls == []
    assert [message.tool_call_id for message in outcome.observations] == ["a", "b"]
    for message in outcome.observations:
        assert message.is_error
        assert "output limit" in message.content
        assert "smaller" in message.content
    loopback.asked.clear()
    alone = await ran(loopback, ["write"], said(calls[:1], streams=streams, finish_reason=reason), streams=streams)
    assert (alone.calls, alone.observations[0].is_error) == ([], True)


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([(0, "call_a", "a"), (0, "call_b", "b")], ["call_a", "call_b"], id="A09-one-index"),
        pytest.param([(1, "call_a", "a"), (3, "call_b", "b")], ["call_a", "call_b"], id="A10-gaps"),
    ],
)
async def test_a09_a10_indices(loopback: Loopback, entries: Any, expected: list[str]) -> None:
    """An index is a key and no position, and a new id begins a call (A09 huggingface/smolagents#1958; A10 pipecat-ai/pipecat#5342)."""
    deltas = [
        {"tool_calls": [{"index": index, **tool_call("read_file", json.dumps({"path": path}), id=call_id)}]}
        for index, call_id, path in entries
    ]
    first = streamed("Let me look.", *deltas, finish_reason="tool_calls")
    outcome = await ran(loopback, ["read_file"], first, streams=True)
    assert outcome.calls == [("read_file", {"path": "a"}), ("read_file", {"path": "b"})]
    assert [message.tool_call_id for message in outcome.observations] == expected
    assert outcome.result.history[1].content == "Let me look."
    assert outcome.heard == "Let me look.done"


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize(
    ("fragments", "name"),
    [
        pytest.param(
            [("call_a", "read_file", '{"pa'), ("call_a", "read_file", 'th": "a'), ("call_a", "read_file", '"}')],
            "read_file",
            id="repeated",
        ),
        pytest.param(
            [("call_a", "edit_ex", ""), (None, "isting_file", '{"path": "a"}')], "edit_existing_file", id="split"
        ),
        pytest.param([("call_a", "read_file", '{"path": "a"}'), ("", "", "")], "read_file", id="empty"),
    ],
)
async def test_a11_names_in_fragments(loopback: Loopback, fragments: Any, name: str) -> None:
    """A repeated name is one name, a split one is joined where that is a tool (A11 continuedev/continue#5849)."""
    deltas = [
        {"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": {"name": part, "arguments": text}}]}
        for call_id, part, text in fragments
    ]
    outcome = await ran(
        loopback, ["read_file", "edit_existing_file"], streamed(*deltas, finish_reason="tool_calls"), streams=True
    )
    assert outcome.calls == [(name, {"path": "a"})]
    assert [call_id for call_id, _, _ in replayed(outcome)] == ["call_a"]


@pytest.mark.behaviour("V06", "V07")
@pytest.mark.parametrize("choices", [[], None], ids=["empty", "null"])
async def test_a13_chunks_without_choices(loopback: Loopback, choices: Any) -> None:
    """A chunk without choices is no answer and may hold the usage (A13 BerriAI/litellm#32519)."""
    pieces = [
        chunk() + chunk({"tool_calls": [{"index": 0, **tool_call("ping", "{}", id="call_1")}]}),
        chunk({}, "tool_calls", usage=None),
        chunk(choices=choices, usage={"prompt_tokens": 5, "completion_tokens": 7}),
        DONE,
    ]
    outcome = await ran(loopback, ["ping"], Answer(pieces=pieces), streams=True)
    assert outcome.calls == [("ping", {})]
    assert outcome.result.usage.prompt_tokens == 5 + 12


@pytest.mark.behaviour("V06")
async def test_a13_nothing_but_the_terminator(loopback: Loopback) -> None:
    """A stream with nothing in it is an error in words (A13 deepset-ai/haystack#12721)."""
    with pytest.raises(ProviderError, match="empty answer"):
        await ran(loopback, ["ping"], Answer(pieces=[DONE]), streams=True)


@pytest.mark.behaviour("V06")
async def test_a14_comments_and_keep_alives(loopback: Loopback) -> None:
    """Comments, blank data, pings and a missing space are no trouble (A14 anomalyco/opencode#50871)."""
    call = chunk({"tool_calls": [{"index": 0, **tool_call("ping", "{}", id="call_1")}]}).removeprefix(b"data: ")
    pieces = [
        b': PROCESSING\n\n: x-cost=0.1\nevent: ping\ndata: {"type": "ping"}\n\ndata: : keepalive\n\ndata:\n\n',
        b"data:" + call,
        b"id: 7\nretry: 100\n" + chunk({}, "tool_calls"),
        b": bye\n\ndata:[DONE]\n\n",
    ]
    assert (await ran(loopback, ["ping"], Answer(pieces=pieces), streams=True)).calls == [("ping", {})]


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize("size", [1, 2, 3, 50])
async def test_a15_characters_and_lines_in_pieces(loopback: Loopback, size: int) -> None:
    """Separators inside texts end no line, and no character is lost in between (A15 florimondmanca/httpx-sse#34)."""
    text = "a\u2028b\u0085c ✅ 😀"
    whole = chunk(
        {"tool_calls": [{"index": 0, **tool_call("echo", json.dumps({"text": text}, ensure_ascii=False), id="c")}]}
    )
    body = whole.replace(b"\n\n", b"\r\n\r\n") + chunk({}, "tool_calls").replace(b"\n\n", b"\r\r") + DONE
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    outcome = await ran(loopback, ["echo"], Answer(pieces=pieces), streams=True)
    assert outcome.calls == [("echo", {"text": text})]


@pytest.mark.behaviour("V06", "V08")
@pytest.mark.parametrize("streams", [False, True], ids=["asked-whole", "asked-streamed"])
@pytest.mark.parametrize(
    ("answer", "words", "status"),
    [
        pytest.param(
            Answer(
                {"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "upstream timeout"}}}
            ),
            "upstream timeout",
            502,
            id="error",
        ),
        pytest.param(Answer({"id": None, "choices": None}), "no choices in the answer", 200, id="null-choices"),
        pytest.param(Answer({"id": "c1", "choices": []}), "no choices in the answer", 200, id="no-choices"),
    ],
)
async def test_a17_an_error_under_status_200(
    loopback: Loopback, answer: Answer, words: str, status: int, streams: bool
) -> None:
    """An error in a good answer is one, with its own status (A17 pydantic/pydantic-ai#6885; langchain-ai/langchain#35236)."""
    with pytest.raises(ProviderError, match=words) as caught:
        await ran(loopback, ["ping"], answer, streams=streams)
    assert caught.value.status == status


@pytest.mark.behaviour("V06", "V08")
@BOTH
async def test_a17_a_page_under_status_200(loopback: Loopback, streams: bool) -> None:
    """An HTML page is no answer, asked for whole or streamed (A17 BerriAI/litellm#2395)."""
    page = Answer("<html><body>502 Bad Gateway</body></html>", 200, {"content-type": "text/html"})
    with pytest.raises(ProviderError, match="502 Bad Gateway"):
        await ran(loopback, ["ping"], page, streams=streams)


@pytest.mark.behaviour("V06")
@pytest.mark.parametrize("drop", [False, True], ids=["closed", "dropped"])
@pytest.mark.parametrize("arguments", ['{"path": "a"}', '{"path": '], ids=["valid", "cut"])
async def test_a18_a_stream_without_an_end(loopback: Loopback, drop: bool, arguments: str) -> None:
    """A stream that ends before it says so is an error, and no call of it runs (A18 pydantic/pydantic-ai#6610)."""
    first = Answer(pieces=[chunk({"tool_calls": [{"index": 0, **tool_call("write", arguments, id="c")}]})], drop=drop)
    with pytest.raises(ProviderError, match=r"ended before the answer was complete|broke off"):
        await ran(loopback, ["write"], first, streams=True)
    assert len(loopback.asked) == 1


@pytest.mark.behaviour("V06")
async def test_a18_a_terminator_without_a_reason(loopback: Loopback) -> None:
    """The terminator alone is an end (A18 anthropics/anthropic-sdk-python#1470)."""
    call = chunk({"tool_calls": [{"index": 0, **tool_call("write", '{"path": "a"}', id="c")}]})
    outcome = await ran(loopback, ["write"], Answer(pieces=[call, chunk({}, None), DONE]), streams=True)
    assert outcome.calls == [("write", {"path": "a", "content": ""})]


@pytest.mark.behaviour("V06", "V03")
async def test_a19_the_caller_learns_how_long_to_wait(loopback: Loopback) -> None:
    """A wait beyond the cap is the caller's to decide on, and the error says how long (A19 IBM/mcp-context-forge#5674)."""
    with pytest.raises(ProviderError, match="asks to wait 3600 s") as caught:
        await ran(loopback, [], Answer({"error": {"message": "slow down"}}, 429, {"retry-after": "3600"}))
    assert (caught.value.retry_after, caught.value.status) == (3600, 429)


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize("reason", ["stop", None, ""], ids=["stop", "null", "empty"])
async def test_a21_calls_count_and_not_the_reason(loopback: Loopback, reason: Any, streams: bool) -> None:
    """Calls run whatever the finish reason says, with their text beside them (A21 Mirascope/mirascope#257)."""
    first = said([tool_call("ping", "{}", id="call_1")], streams=streams, content="Checking.", finish_reason=reason)
    outcome = await ran(loopback, ["ping"], first, streams=streams)
    assert outcome.calls == [("ping", {})]
    assert [entry["content"] for entry in outcome.requests[1]["messages"] if entry["role"] == "assistant"] == [
        "Checking."
    ]


@pytest.mark.behaviour("V06")
@BOTH
async def test_a21_a_reason_without_calls(loopback: Loopback, streams: bool) -> None:
    """The reason `tool_calls` without any is an answer (A21 ENTERPILOT/GoModel#124)."""
    first = said([], streams=streams, content="All done.", finish_reason="tool_calls")
    outcome = await ran(loopback, ["ping"], first, streams=streams)
    assert (outcome.result.output, len(outcome.requests)) == ("All done.", 1)


@pytest.mark.behaviour("V06")
@BOTH
async def test_a22_ids(loopback: Loopback, streams: bool) -> None:
    """Each call runs once under an id of its own, the same in every run (A22 NousResearch/hermes-agent#67777)."""
    ids: list[Any] = ["call_1", "call_1", "", None]
    calls = [
        tool_call("read_file", json.dumps({"path": path}), id=call_id)
        for path, call_id in zip("abcd", ids, strict=True)
    ]
    outcome = await ran(loopback, ["read_file"], said(calls, streams=streams), streams=streams)
    assert outcome.calls == [("read_file", {"path": path}) for path in "abcd"]
    assert [call_id for call_id, _, _ in replayed(outcome)] == ["call_1", "call_2", "call_3", "call_4"]
    answers = [(message.tool_call_id, message.content) for message in outcome.observations]
    assert answers == [(f"call_{number}", f"content of {path}") for number, path in enumerate("abcd", 1)]


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    "name", ["functions.read_file", "Read_File", " read_file\n"], ids=["namespace", "case", "space"]
)
async def test_a23_names_that_can_be_meant_one_way(loopback: Loopback, name: str, streams: bool) -> None:
    """A name in other clothes is the tool's, also in the history (A23 tontinton/maki#518)."""
    first = said([tool_call(name, '{"path": "a"}', id="c")], streams=streams)
    outcome = await ran(loopback, ["read_file", "Bash", "bash"], first, streams=streams)
    assert outcome.calls == [("read_file", {"path": "a"})]
    assert replayed(outcome)[0][1] == "read_file"


@pytest.mark.behaviour("V06")
async def test_a23_ambiguous_and_similar_names(loopback: Loopback) -> None:
    """Between two tools nothing is guessed, nor from what is only similar (A23 lijunzh/koda#49)."""
    calls = [tool_call("BASH", '{"cmd": "ls"}', id="a"), tool_call("read_fil", '{"path": "a"}', id="b")]
    outcome = await ran(loopback, ["read_file", "Bash", "bash"], said(calls, streams=False))
    assert outcome.calls == []
    ambiguous, similar = (message.content for message in outcome.observations)
    assert "ambiguous: Bash, bash" in ambiguous
    assert similar.startswith('unknown tool "read_fil"')


@pytest.mark.behaviour("V06", "V04", "V05")
@BOTH
@pytest.mark.parametrize(
    ("text", "n"),
    [
        pytest.param(
            "<tool_call>\n<function=square>\n<parameter=n>\n1024\n</parameter>\n</function>\n</tool_call>",
            1024,
            id="xml",
        ),
        pytest.param(
            '<think>hm</think>\n<tool_call>\n{"name": "square", "arguments": {"n": 3}}\n</tool_call>', 3, id="json"
        ),
    ],
)
async def test_a25_a_call_that_is_the_whole_answer(loopback: Loopback, text: str, n: int, streams: bool) -> None:
    """It runs like any call, and nobody sees its text (A25 vllm-project/vllm#21571, as amended by V04)."""
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    first = streamed(*pieces) if streams else Answer(completion(text))
    outcome = await ran(loopback, ["square"], first, streams=streams)
    assert outcome.calls == [("square", {"n": n})]
    assert outcome.heard == ("done" if streams else "")
    assert replayed(outcome) == [("call_1", "square", {"n": n})]


@pytest.mark.behaviour("V06", "V04")
@BOTH
async def test_a25_a_call_inside_text(loopback: Loopback, streams: bool) -> None:
    """Inside text it is text, unless the user is lenient (A25 zavora-ai/adk-rust#290)."""
    text = 'The log contains <tool_call>{"name": "square", "arguments": {"n": 3}}</tool_call> as an example.'
    first = streamed(text) if streams else Answer(completion(text))
    outcome = await ran(loopback, ["square"], first, streams=streams)
    assert (outcome.calls, outcome.result.output) == ([], text)
    assert outcome.heard == (text if streams else "")
    loopback.asked.clear()
    lenient = await ran(loopback, ["square"], first, streams=streams, rescue="lenient")
    assert lenient.calls == [("square", {"n": 3})]
    assert "tool_call" not in lenient.heard
    loopback.asked.clear()
    never = await ran(loopback, ["square"], first, streams=streams, rescue=False)
    assert (never.calls, never.result.output) == ([], text)


@pytest.mark.behaviour("V06")
@BOTH
async def test_a26_lone_surrogates_and_nul(loopback: Loopback, streams: bool) -> None:
    """Whole pairs survive, halves become U+FFFD, and every request is strict UTF-8 (A26 HKUDS/nanobot#4952)."""
    arguments = '{"text": "ok \\ud83d\\ude00 bad \\ud83d end\\u0000"}'
    outcome = await ran(
        loopback, ["echo"], said([tool_call("echo", arguments, id="c")], streams=streams), streams=streams
    )
    good = [("echo", {"text": "ok \U0001f600 bad \ufffd end\x00"})]
    assert outcome.calls == good or (outcome.calls == [] and outcome.observations[0].is_error)
    assert outcome.result.output == "done"
    assert loopback.asked[1].raw.decode("utf-8", "strict")


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    ("settings", "content", "reasoning"),
    [
        pytest.param({}, None, "I should ping.", id="goes-back"),
        pytest.param({"reasoning": False, "empty_content": ""}, "", None, id="refused-by-the-service"),
    ],
)
async def test_a29_reasoning_beside_calls(
    loopback: Loopback, settings: Any, content: Any, reasoning: Any, streams: bool
) -> None:
    """The key `content` is always there; its empty form and the reasoning are settings (A29 openclaw/openclaw#71050)."""
    call = tool_call("ping", "{}", id="call_1")
    if streams:
        delta = {"tool_calls": [{"index": 0, **call}]}
        first = streamed(
            {"reasoning_content": "I should "}, {"reasoning_content": "ping."}, delta, finish_reason="tool_calls"
        )
    else:
        body = completion(None, [call], "tool_calls")
        body["choices"][0]["message"]["reasoning_content"] = "I should ping."
        first = Answer(body)
    outcome = await ran(loopback, ["ping"], first, streams=streams, **settings)
    asked = outcome.requests[1]["messages"][2]
    assert outcome.calls == [("ping", {})]
    assert (asked["content"], asked.get("reasoning_content")) == (content, reasoning)
    assert outcome.heard == ("done" if streams else "")


@pytest.mark.behaviour("V06")
async def test_a29_no_content_key(loopback: Loopback) -> None:
    """A message without the key gets it when it goes back (A29 abetlen/llama-cpp-python#1805)."""
    body = {"choices": [{"message": {"tool_calls": [tool_call("ping", "{}", id="c")]}, "finish_reason": "tool_calls"}]}
    outcome = await ran(loopback, ["ping"], Answer(body))
    assert "content" in outcome.requests[1]["messages"][2]


@pytest.mark.behaviour("V06")
@BOTH
@pytest.mark.parametrize(
    ("name", "arguments", "calls"),
    [
        pytest.param(
            "delete", '{"message_id": 9007199254740993}', [("delete", {"message_id": 9007199254740993})], id="big"
        ),
        pytest.param(
            "delete",
            '{"message_id": "1234567890123456789"}',
            [("delete", {"message_id": 1234567890123456789})],
            id="text",
        ),
        pytest.param("delete", '{"message_id": 12.5}', [], id="fraction"),
        pytest.param("scale", '{"x": NaN}', [], id="nan"),
        pytest.param("delete", '{"message_id": ' + "9" * 5000 + "}", [], id="absurd"),
    ],
)
async def test_a30_numbers(loopback: Loopback, name: str, arguments: str, calls: Any, streams: bool) -> None:
    """Integers stay exact, and what is no number of the kind is told (A30 langchain4j/langchain4j#5754)."""
    started = time.perf_counter()
    outcome = await ran(loopback, [name], said([tool_call(name, arguments, id="c")], streams=streams), streams=streams)
    assert outcome.calls == calls
    assert outcome.observations[0].is_error is (not calls)
    assert "4300" not in outcome.observations[0].content
    assert time.perf_counter() - started < 5
    assert json.loads(loopback.asked[1].raw)
