"""A run whose model is a loopback service with a scripted answer, and what reached its tools: for the field cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from tests.providers.loopback import Answer, Loopback, completion, streamed
from thena_core import Prompt, Thena, agent, tool
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
