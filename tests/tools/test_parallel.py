"""`ParallelTool`, and the tool of docs/batches.md that anybody can write: both keep the same promises."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.scripted import ask, assert_legal, packed, scripted
from thena_core import (
    Budget,
    CallNext,
    FatalToolError,
    ToolCall,
    ToolDefinition,
    ToolOutput,
    ToolResult,
    hookimpl,
    tool,
)
from thena_tools import ParallelTool

PAGE = Path(__file__).parent.parent.parent / "docs" / "batches.md"


def copied() -> type:
    """Run the page's own batch tool and return its class."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    [source] = [block for block in blocks if "class TogetherTool" in block]
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, str(PAGE), "exec", dont_inherit=True), names)  # noqa: S102 - the page's own code
    made: type = names["TogetherTool"]
    return made


COPIED = copied()
BOTH = pytest.mark.parametrize("packer", [ParallelTool, COPIED], ids=["ParallelTool", "the page's copy"])


@tool
async def echo(text: str) -> str:
    """Echoes."""
    return text


@tool
async def fails(text: str = "no") -> str:
    """Fails."""
    raise ValueError(text)


A, B = ("echo", {"text": "a"}), ("echo", {"text": "b"})


@BOTH
@pytest.mark.behaviour("L01")
async def test_listing_it_is_the_whole_configuration(packer: type) -> None:
    """It is one more tool of the agent; an agent without it is asked, and answers, as before."""
    with_it, without = scripted([echo, packer], packed(A, B)), scripted([echo], packed(A, B))
    ended, left_out = await with_it.run(), await without.run()
    assert [definition.name for definition in with_it.provider.requests[0].tools] == ["echo", "parallel"]
    assert [definition.name for definition in without.provider.requests[0].tools] == ["echo"]
    assert ended.observation == "[1] echo → ok\na\n\n[2] echo → ok\nb"
    assert left_out.observation == 'unknown tool "parallel" — the tools are: echo'


@BOTH
@pytest.mark.behaviour("L02", "M02", "M07")
async def test_an_inner_call_takes_the_whole_road(packer: type) -> None:
    """Each inner call has its node under the batch, its hooks, every middleware with its real name, and its count."""
    seen: list[str] = []

    class Plugin:
        @hookimpl
        def before_tool(self, call: ToolCall) -> None:
            seen.append(f"plugin before {call.name}")

        @hookimpl
        def after_tool(self, result: ToolResult) -> None:
            seen.append(f"plugin after {result.call.name} {result.outcome}")

    class Hooks:
        def before_tool(self, call: ToolCall) -> ToolCall | None:
            seen.append(f"agent before {call.name}")
            return call.replace(arguments={"text": f"{call.arguments['text']}!"}) if call.name == "echo" else None

    async def middleware(call: ToolCall, call_next: CallNext) -> ToolOutput:
        seen.append(f"middleware {call.name}" + (f" {call.arguments['text']}" if call.name == "echo" else ""))
        return await call_next(call)

    model = scripted([echo, fails, packer], packed(A, B), hooks=Hooks, plugins=[Plugin()], around=[middleware])
    ended = await model.run(budget=Budget(max_tool_calls=9))
    assert ended.observation == "[1] echo → ok\na!\n\n[2] echo → ok\nb!"
    assert ended.result is not None
    assert ended.result.usage.tool_calls == 3
    calls = [f"{what} echo" for what in ("agent before", "plugin before")] * 2
    assert sorted(seen) == sorted(
        ["agent before parallel", "plugin before parallel", "middleware parallel", "plugin after parallel ok"]
        + [*calls, "middleware echo a!", "middleware echo b!", "plugin after echo ok", "plugin after echo ok"]
    )
    batch = ended.node("parallel")
    assert [(node.parent_id, node.status) for node in ended.nodes("echo")] == [(batch.id, "ok")] * 2


@BOTH
@pytest.mark.behaviour("L03", "L04", "L05", "L07")
async def test_every_call_has_its_place(packer: type) -> None:
    """Good, failing, invalid and unknown calls stand in the order asked; the batch is good where one of them is."""
    calls = packed(A, ("fails", {"text": "lost"}), ("echo", {"text": 3}), ("ecko", {}), ("parallel", {"calls": []}))
    ended = await scripted([echo, fails, packer], calls).run()
    assert ended.observation.split("\n\n") == [
        "[1] echo → ok\na",
        "[2] fails → error\nValueError: lost",
        "[3] echo → error\ninvalid arguments — text: expected string, received number 3",
        '[4] ecko → error\nunknown tool "ecko" — the tools are: echo, fails',
        '[5] parallel → error\nunknown tool "parallel" — the tools are: echo, fails',
    ]
    assert [node.outcome for node in ended.nodes("parallel")] == ["unknown", "ok"]  # the one inside ends first


@BOTH
@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.behaviour("L04", "W04")
async def test_a_partly_good_batch_is_no_failed_turn(packer: type, good: int) -> None:
    """Only a batch whose calls all failed is an error, and counts for `max_fails`."""
    bad = ("fails", {})
    calls = packed(*[A] * good, bad, bad)
    ended = await scripted([echo, fails, packer], *[calls] * 5).run()
    assert {node.status for node in ended.nodes("parallel")} == ({"ok"} if good else {"error"})
    assert ended.result is not None
    assert ended.result.stopped_by == ("answered" if good else "fails")


@BOTH
@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.behaviour("L06")
async def test_at_least_two_calls(packer: type, count: int) -> None:
    """The schema says that there are at least two, and fewer are refused before anything runs."""
    model = scripted([echo, packer], packed(*[A] * count))
    ended = await model.run()
    assert model.provider.requests[0].tools[1].json_schema["properties"]["calls"]["minItems"] == 2
    assert re.fullmatch(r"invalid arguments — calls: .* at least 2 items .*", ended.observation)
    assert ended.nodes("echo") == []


@BOTH
@pytest.mark.behaviour("L08")
async def test_what_ends_the_run_leaves_as_itself(packer: type) -> None:
    """The others are cancelled and awaited first; what had finished is in the report, the history legal."""
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def waits() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()
        return "never"

    async def fatal() -> str:
        await begun.wait()
        raise FatalToolError("database unavailable")

    tools = [echo, packer, ToolDefinition("waits", "d", None, waits), ToolDefinition("fatal", "d", None, fatal)]
    ended = await scripted(tools, packed(A, ("waits", {}), ("fatal", {}))).run()
    assert isinstance(ended.error, FatalToolError)
    assert cleaned.is_set()
    outcomes = {name: ended.node(name).outcome for name in ("echo", "waits", "fatal", "parallel")}
    assert outcomes == {"echo": "ok", "waits": "cancelled", "fatal": "fatal", "parallel": "fatal"}
    assert_legal(ended.history)
    assert len(asyncio.all_tasks()) == 1


@BOTH
@pytest.mark.behaviour("L10")
async def test_a_cap_and_a_time_limit(packer: Any) -> None:
    """No more than `concurrency` calls run at once, and each has its own `timeout`."""
    running: set[int] = set()
    most = 0

    async def works(number: int) -> str:
        nonlocal most
        running.add(number)
        most = max(most, len(running))
        for _ in range(3):
            await asyncio.sleep(0)
        running.discard(number)
        if number == 3:
            await asyncio.Event().wait()
        return str(number)

    tools = [ToolDefinition("works", "d", None, works), packer(concurrency=2, timeout=0.05)]
    ended = await scripted(tools, packed(*[("works", {"number": number}) for number in range(5)])).run()
    assert most == 2
    outcomes = [node.outcome for node in sorted(ended.nodes("works"), key=lambda node: node.input["number"])]
    assert outcomes == ["ok", "ok", "ok", "timeout", "ok"]


@BOTH
@pytest.mark.behaviour("L10")
@pytest.mark.parametrize("effect", ["write", "destructive"])
async def test_what_writes_runs_in_the_order_asked(packer: type, effect: Any) -> None:
    """Calls that change something never overlap each other, and keep their order."""
    said: list[str] = []

    async def writes(text: str) -> str:
        said.append(f"{text} begins")
        await asyncio.sleep(0)
        said.append(f"{text} ends")
        return text

    tools = [ToolDefinition("writes", "d", None, writes, effect=effect), echo, packer]
    calls = [("writes", {"text": "1"}), A, ("writes", {"text": "2"}), ("writes", {"text": "3"})]
    ended = await scripted(tools, packed(*calls)).run()
    assert said == [f"{n} {what}" for n in "123" for what in ("begins", "ends")]
    assert [line[:3] for line in ended.observation.split("\n\n")] == ["[1]", "[2]", "[3]", "[4]"]


@BOTH
@pytest.mark.behaviour("L12")
async def test_three_reads_take_two_model_calls(packer: type) -> None:
    """Three reads take two model calls instead of four, and overlap in time: none ends before all have begun."""
    begun = asyncio.Barrier(3)

    async def read(path: str) -> str:
        await begun.wait()
        return path

    reading = ToolDefinition("read", "d", None, read)
    together = scripted([reading, packer], packed(*[("read", {"path": path}) for path in "abc"]))
    ended = await together.run()
    alone = scripted([echo], *[ask("echo", {"text": path}) for path in "abc"])
    await alone.run()
    assert (len(together.provider.requests), len(alone.provider.requests)) == (2, 4)
    assert ended.observation.count("→ ok") == 3


@pytest.mark.behaviour("L11")
@pytest.mark.parametrize("prefix", ["functions.", ""])
async def test_the_tool_that_models_invent(prefix: str) -> None:
    """`multi_tool_use.parallel`, in its own words, is a batch; hooks, history and record know the real name."""
    uses = [{"recipient_name": f"{prefix}echo", "parameters": {"text": text}} for text in "ab"]
    seen: list[str] = []

    class Hooks:
        def before_tool(self, call: ToolCall) -> None:
            seen.append(call.name)

    ended = await scripted([echo, ParallelTool], ask("multi_tool_use.parallel", {"tool_uses": uses}), hooks=Hooks).run()
    assert ended.observation == "[1] echo → ok\na\n\n[2] echo → ok\nb"
    assert seen == ["parallel", "echo", "echo"]
    assert [request.name for message in ended.history for request in message.tool_requests] == ["parallel"]
    assert len(ended.nodes("parallel")) == 1


@pytest.mark.behaviour("L11")
@pytest.mark.parametrize(
    "arguments",
    [
        {"calls": [{"name": "echo", "arguments": {"text": "a"}, "parameters": {}}, {"name": "echo"}]},
        {"calls": [], "tool_uses": []},
        {"tool_uses": "all"},
        {"tool_uses": [{"recipient_name": "echo", "name": "fails", "parameters": {}}] * 2},
        {"tool_uses": [1, 2]},
    ],
    ids=["both words", "both lists", "no list", "both names", "no calls"],
)
async def test_half_of_the_invented_form_is_refused(arguments: dict[str, Any]) -> None:
    """What can be read two ways, or not at all, is refused in words, and nothing runs."""
    ended = await scripted([echo, ParallelTool], ask("parallel", arguments)).run()
    assert ended.observation.startswith("invalid arguments — ")
    assert ended.nodes("echo") == []


@pytest.mark.behaviour("T14", "L09")
async def test_a_configured_instance_is_used_as_it_is() -> None:
    """The very object is asked, with its settings; a class beside it has its own."""
    made = ParallelTool(schemas="full", concurrency=3, timeout=2.5)
    assert (made.schemas, made.concurrency, made.timeout) == ("full", 3, 2.5)
    asked: list[int] = []

    class Counted(ParallelTool):
        def schema_for(self, tools: Any) -> Any:
            asked.append(id(self))
            return super().schema_for(tools)

    instance = Counted("full")
    ended = await scripted([echo, instance], packed(A, B)).run()
    assert asked == [id(instance)]
    assert ended.observation.startswith("[1] echo → ok")


@pytest.mark.parametrize(
    "wrong", [{"schemas": "all"}, {"concurrency": 0}, {"timeout": 0}, {"timeout": float("nan")}], ids=str
)
def test_settings_that_cannot_be_meant(wrong: dict[str, Any]) -> None:
    """A wrong setting is refused where it is written."""
    with pytest.raises(ValueError, match=rf"ParallelTool\({next(iter(wrong))}="):
        ParallelTool(**wrong)
