"""From what `execute` returns to what the model reads."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime as dt
import enum
import json
import math
import uuid
from collections import OrderedDict, deque, namedtuple
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.schema.trial import answer, node_of
from thena_core import (
    Context,
    Event,
    Message,
    Prompt,
    Thena,
    ToolDefinition,
    ToolOutput,
    ToolRequest,
    ToolResult,
    agent,
    loop,
    tool,
    workflow,
)
from thena_core.calls.observe import clean
from thena_core.testing import FakeProvider


def returning(result: Any, **options: Any) -> ToolDefinition:
    """Make a tool that returns a value."""

    async def execute() -> Any:
        return result

    return ToolDefinition("t", "d", None, execute, **options)


async def read_by_the_model(made: ToolDefinition) -> Message:
    """Run an agent whose model calls the tool once, and return the result in its next request."""
    provider = FakeProvider([ToolRequest("c1", "t", "{}"), "done"])

    @agent(provider=provider, tools=[made], prompt=Prompt(""))
    class Caller: ...

    async with Thena(Caller) as app:
        await app.run("go")
    return provider.requests[1].messages[-1]


@pytest.mark.behaviour("R01")
@pytest.mark.parametrize("text", ["a", "null", '"quoted"', "{}", " spaces \n", "日本 😀", "<b>&amp;</b>", "\x1b[31m"])
async def test_a_string_is_the_observation(text: str) -> None:
    """The model reads exactly the string, never a JSON form of it."""
    said = await read_by_the_model(returning(text))
    assert (said.role, said.content, said.tool_call_id, said.is_error) == ("tool", text, "c1", False)


class Shouting(str):
    """A string with a face of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return "not this"


class Level(str, enum.Enum):  # noqa: UP042 - what authors of older code have
    HIGH = "high"


@pytest.mark.behaviour("R01", "R03")
@pytest.mark.parametrize("value", [Level.HIGH, ToolOutput(Level.HIGH)], ids=["alone", "in an output"])
async def test_an_enum_of_texts_is_its_value(value: Any) -> None:
    """A member of `class Level(str, Enum)` is read as its value, not as `Level.HIGH`."""
    said = await read_by_the_model(returning(value))
    assert str.__str__(said.content) == "high"
    assert f"{said.content}" == "high"


@pytest.mark.behaviour("R01")
async def test_a_subclass_of_str_is_its_own_text() -> None:
    """What a string holds is read, whatever its class does; the observation is a plain `str`."""
    said = await answer(returning(Shouting("this")))
    assert said.content == "this"


SECRET = "data-4f7e"


@pytest.mark.behaviour("R02")
async def test_data_is_seen_by_all_but_the_model() -> None:
    """Hooks, middleware and events get `data`; no message to the model holds it."""
    seen: dict[str, Any] = {}
    events: list[Event] = []
    provider = FakeProvider([ToolRequest("c1", "t", "{}"), "done"])
    data = {"rows": [SECRET]}

    async def watch(call: Any, call_next: Any) -> ToolOutput:
        output: ToolOutput = await call_next(call)
        seen["middleware"] = output.data
        return output

    @agent(provider=provider, tools=[returning(ToolOutput("two rows", data=data))], prompt=Prompt(""))
    class Caller:
        def after_tool(self, result: ToolResult, ctx: Context[Any]) -> None:
            seen["hook"] = result.output.data

    app = Thena(Caller, log=events.append)
    app.use(tool=watch)
    async with app:
        result = await app.run("go")
    assert seen == {"middleware": data, "hook": data}
    [node] = [event for event in events if event.kind == "tool" and event.phase == "end"]
    assert node.meta["data"] == data
    assert result.history[2].content == "two rows"
    assert SECRET not in repr(provider.requests[1].messages)
    assert SECRET not in repr(result.history)


@pytest.mark.behaviour("R02")
async def test_an_output_is_taken_as_it_is() -> None:
    """`app.call` returns the tool's own output: content, error mark and data."""
    said = await answer(returning(ToolOutput("no", is_error=True, data=3)))
    assert said == ToolOutput("no", is_error=True, data=3)


@pytest.mark.behaviour("R02", "R03")
async def test_an_output_whose_content_is_no_text() -> None:
    """A `ToolOutput` around an object is serialised like the object, and keeps its data and its error mark."""
    said = await answer(returning(ToolOutput({"a": 1}, is_error=True, data=3)))  # type: ignore[arg-type]
    assert said == ToolOutput('{"a":1}', is_error=True, data=3)


class Colour(enum.Enum):
    RED = "red"


class Row(BaseModel):
    when: dt.datetime
    price: Decimal


@dataclasses.dataclass
class Pair:
    left: int
    path: Path


class Slotted:
    __slots__ = ("a",)


Named = namedtuple("Named", "x y")  # noqa: PYI024 - the old form is what some libraries return
WHEN = dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC)

SERIALISED: dict[str, tuple[Any, Any]] = {
    "int": (3, 3),
    "float": (0.5, 0.5),
    "bool": (True, True),
    "dict": ({"a": [1, None]}, {"a": [1, None]}),
    "numbers as names": ({1: "x"}, {"1": "x"}),
    "tuple": ((1, "a"), [1, "a"]),
    "model": (Row(when=WHEN, price=Decimal("1.10")), {"when": "2030-01-02T03:04:05Z", "price": "1.10"}),
    "dataclass": (Pair(1, Path("/a")), {"left": 1, "path": "/a"}),
    "datetime": (WHEN, "2030-01-02T03:04:05Z"),
    "date": (dt.date(2030, 1, 2), "2030-01-02"),
    "time": (dt.time(3, 4), "03:04:00"),
    "timedelta": (dt.timedelta(minutes=2), "PT2M"),
    "UUID": (uuid.UUID(int=1), str(uuid.UUID(int=1))),
    "Decimal": (Decimal("0.10"), "0.10"),
    "Path": (Path("/a/b"), "/a/b"),
    "pure path": (PurePosixPath("a"), "a"),
    "enum": (Colour.RED, "red"),
    "set": ({1}, [1]),
    "frozenset": (frozenset({"a"}), ["a"]),
    "deque": (deque([1]), [1]),
    "named tuple": (Named(1, 2), [1, 2]),
    "ordered": (OrderedDict(a=1), {"a": 1}),
    "mapping": (MappingProxyType({"a": 1}), {"a": 1}),
    "keys": ({"a": 1}.keys(), ["a"]),
    "range": (range(3), [0, 1, 2]),
    "nested": (
        [Row(when=WHEN, price=Decimal(2)), {"k": Colour.RED}],
        [{"when": "2030-01-02T03:04:05Z", "price": "2"}, {"k": "red"}],
    ),
    "bytes inside": ({"a": b"abc"}, {"a": "abc"}),
    "no text inside": ({"a": b"\xff\xfe"}, {"a": base64.urlsafe_b64encode(b"\xff\xfe").decode()}),
    "big number": (2**80, 2**80),
    "text outside ASCII": (["é😀"], ["é😀"]),
    "exception inside": ([ValueError("x")], ["ValueError: x"]),
}


@pytest.mark.behaviour("R03")
@pytest.mark.parametrize(("value", "parsed"), SERIALISED.values(), ids=SERIALISED)
async def test_anything_else_is_json(value: Any, parsed: Any) -> None:
    """The observation is the JSON of the value."""
    said = await answer(returning(value))
    assert not said.is_error, said.content
    assert json.loads(said.content) == parsed


@pytest.mark.behaviour("R03")
@pytest.mark.parametrize(
    ("value", "text"),
    [(b"plain", "plain"), (bytearray("é".encode()), "é"), (b"\xff\x00", "/wA="), (b"", "(the tool returned nothing)")],
    ids=["text", "utf-8", "binary", "empty"],
)
async def test_bytes(value: Any, text: str) -> None:
    """Bytes are read as text where they are text, else as base64."""
    assert (await answer(returning(value))).content == text


def circular() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def deep() -> list[Any]:
    made: list[Any] = []
    for _ in range(50_000):
        made = [made]
    return made


class Hostile:
    """An object whose every face raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


IMPOSSIBLE: dict[str, tuple[Any, str]] = {
    "object": (object(), "object"),
    "slotted": (Slotted(), "Slotted"),
    "inside": ({"rows": [Slotted()]}, "Slotted"),
    "function": (len, "builtin_function_or_method"),
    "class": (Slotted, "type"),
    "lock": (asyncio.Lock(), "Lock"),
    "hostile": (Hostile(), "Hostile"),
    "circular": (circular(), "list"),
    "deep": (deep(), "list"),
    "exception without words": ([Slotted(), ValueError()], "Slotted"),
}


@pytest.mark.behaviour("R03")
@pytest.mark.parametrize(("value", "name"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
async def test_what_has_no_json_names_its_type(value: Any, name: str) -> None:
    """It is an observation that says which type, marked as an error; the run goes on."""
    said = await read_by_the_model(returning(value))
    assert said.is_error
    assert name in said.content
    assert " at 0x" not in said.content
    assert len(said.content) < 1_000


@pytest.mark.behaviour("R04")
async def test_is_error_marks_the_node() -> None:
    """The node of a failed call has `status="error"`, of a good one `ok`."""
    failed = await node_of(returning(ToolOutput("no", is_error=True)))
    assert (failed.status, failed.outcome, failed.error) == ("error", "error", "no")
    good = await node_of(returning(ToolOutput("yes")))
    assert (good.status, good.outcome, good.error) == ("ok", "ok", None)


@pytest.mark.behaviour("R04")
@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (["bad"], True),
        (["good"], False),
        (["bad", "bad"], True),
        (["bad", "good"], False),
        (["good", "bad"], False),
        (["gone", "raising"], True),
        ([], False),
    ],
    ids=["one bad", "one good", "all bad", "bad first", "bad last", "unknown and raised", "none"],
)
async def test_tool_error_means_that_every_call_failed(turn: list[str], expected: bool) -> None:
    """`ctx.turn.tool_error` is true when every top-level call of the turn failed, and only then."""
    seen: list[tuple[bool, bool, list[str]]] = []

    def until(ctx: Context[Any]) -> bool:
        seen.append((ctx.turn.tool_error, ctx.turn.called_tool, list(ctx.turn.tool_names)))
        return True

    async def good() -> str:
        return "ok"

    async def bad() -> ToolOutput:
        return ToolOutput("no", is_error=True)

    async def raising() -> str:
        raise ValueError("x")

    requests = [ToolRequest(f"c{number}", name, "{}") for number, name in enumerate(turn)]
    tools = [tool(name=made.__name__, description="d")(made) for made in (good, bad, raising)]

    @agent(provider=FakeProvider([requests or "done"]), tools=tools, prompt=Prompt(""), tool_calls="all")
    class Caller: ...

    @workflow(steps=[loop([Caller], until=until)])
    class Flow: ...

    async with Thena(Flow) as app:
        await app.run("go")
    assert seen == [(expected, bool(turn), turn)]


@pytest.mark.behaviour("R05")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("", "(the tool returned nothing)"),
        ([], "[]"),
        ({}, "{}"),
        (False, "false"),
        (0, "0"),
        (ToolOutput(""), "(the tool returned nothing)"),
        (ToolOutput(None), "null"),  # type: ignore[arg-type]
        (" ", " "),
    ],
    ids=["None", "empty text", "list", "dict", "False", "0", "empty output", "output of None", "space"],
)
async def test_little_is_never_nothing(value: Any, text: str) -> None:
    """No result is an empty message, which some services refuse."""
    said = await read_by_the_model(returning(value))
    assert (said.content, said.is_error) == (text, False)
    assert (await answer(returning(value))).content == text


@pytest.mark.behaviour("R05")
async def test_an_empty_error_is_not_empty_either() -> None:
    """An error without words gets words, and stays an error."""
    said = await read_by_the_model(returning(ToolOutput("", is_error=True)))
    assert said.content
    assert said.is_error


INVALID: dict[str, Any] = {
    "NaN": math.nan,
    "Infinity": [math.inf, -math.inf],
    "Decimal NaN": {"a": Decimal("NaN")},
    "lone surrogate": "a\ud800b",
    "lone surrogate inside": {"a": "\udfff"},
    "lone surrogate as a name": {"\ud800": 1},
    "NUL": "a\0b",
    "NUL inside": {"a": "\0"},
    "in an output": ToolOutput("\ud800\0"),
    "in an error": ToolOutput("\ud800\0", is_error=True),
    "reversed pair": "\udc00\ud800",
    "in bytes": b"\x00\xed\xa0\x80",
}


@pytest.mark.behaviour("R06")
@pytest.mark.parametrize("value", INVALID.values(), ids=INVALID)
async def test_the_next_request_is_valid(value: Any) -> None:
    """Whatever was returned, the message to the model encodes as UTF-8 and strict JSON, without NUL."""
    said = await read_by_the_model(returning(value))
    assert "\0" not in said.content
    assert json.loads(json.dumps({"content": said.content}, allow_nan=False, ensure_ascii=False).encode()) == {
        "content": said.content
    }
    if not isinstance(value, str | bytes | ToolOutput):
        json.loads(said.content, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.behaviour("R06")
@pytest.mark.parametrize("message", ["bad \ud800\0 value", "\ud800"], ids=["mixed", "alone"])
async def test_exceptions_are_cleaned_too(message: str) -> None:
    """The text of an exception is a result like any other."""

    async def execute() -> str:
        raise ValueError(message)

    said = await read_by_the_model(ToolDefinition("t", "d", None, execute))
    assert "\0" not in said.content
    said.content.encode()


@pytest.mark.behaviour("R06")
async def test_names_that_the_model_invents_are_cleaned_too() -> None:
    """An unknown name with a lone surrogate does not come back as one."""
    provider = FakeProvider([ToolRequest("c1", "no\ud800\0", "{}"), "done"])

    @agent(provider=provider, tools=[returning("x")], prompt=Prompt(""))
    class Caller: ...

    async with Thena(Caller) as app:
        await app.run("go")
    content = provider.requests[1].messages[-1].content
    content.encode()
    assert "\0" not in content


@settings(max_examples=300, deadline=None)
@given(text=st.text())
@pytest.mark.behaviour("R06")
def test_cleaned_text_can_always_be_encoded(text: str) -> None:
    """Cleaning makes any text encodable, keeps what was valid, and is done once and for all."""
    cleaned = clean(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert cleaned
    assert clean(cleaned) == cleaned
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert "\0" in text or not text or cleaned == text


class Untyped:
    """Something that no serialiser knows."""


results = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.uuids()
    | st.decimals()
    | st.builds(Untyped),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.tuples(inner)
        | st.builds(ToolOutput, inner)
    ),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(result=results)
@pytest.mark.behaviour("R03", "R06")
async def test_no_result_ever_breaks_the_conversation(result: Any) -> None:
    """Anything that Python can return gives a text that can be sent, and is never empty."""
    said = clean((await answer(returning(result))).content)
    assert said
    said.encode()
    assert "object at 0x" not in said


async def async_parts() -> AsyncIterator[Any]:
    for part in ("a", "b"):
        await asyncio.sleep(0)
        yield part


def sync_parts() -> Iterator[str]:
    yield "a"
    yield "b"


async def async_objects() -> AsyncIterator[int]:
    yield 1
    yield 2


def sync_objects() -> Iterator[int]:
    yield 1
    yield 2


async def awaited_generator() -> Any:
    return sync_parts()


async def awaited_async_generator() -> Any:
    return async_parts()


GENERATORS: dict[str, tuple[Any, str]] = {
    "generator": (sync_parts, "ab"),
    "async generator": (async_parts, "ab"),
    "of objects": (sync_objects, "[1,2]"),
    "async, of objects": (async_objects, "[1,2]"),
    "returned by async": (awaited_generator, "ab"),
    "async, returned by async": (awaited_async_generator, "ab"),
    "expression": (lambda: (letter for letter in "ab"), "ab"),
    "map": (lambda: map(str, (1, 2)), '["1","2"]'),
    "iterator": (lambda: iter([1, 2]), "[1,2]"),
    "empty": (lambda: (letter for letter in ""), "(the tool returned nothing)"),
    "in an output": (lambda: ToolOutput(sync_parts()), '["a","b"]'),  # type: ignore[arg-type]
}


@pytest.mark.behaviour("R08")
@pytest.mark.parametrize("blocking", [True, False], ids=["thread", "inline"])
@pytest.mark.parametrize(("function", "text"), GENERATORS.values(), ids=GENERATORS)
async def test_generators_are_consumed_and_joined(function: Any, text: str, blocking: bool) -> None:
    """Texts are joined, other values become a list; no prompt ever reads `<generator object …>`."""
    said = await answer(ToolDefinition("t", "d", None, function, blocking=blocking))
    assert (said.content, said.is_error) == (text, False)


@pytest.mark.behaviour("R08")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_generator_that_raises(kind: str) -> None:
    """A failure half way is a failure of the tool, and the generator is closed."""
    closed: list[bool] = []

    def parts() -> Iterator[str]:
        try:
            yield "a"
            raise ValueError("half way")
        finally:
            closed.append(True)

    async def more() -> AsyncIterator[str]:
        try:
            yield "a"
            raise ValueError("half way")
        finally:
            closed.append(True)

    said = await answer(ToolDefinition("t", "d", None, parts if kind == "sync" else more))
    assert said == ToolOutput("ValueError: half way", is_error=True)
    assert closed == [True]


@pytest.mark.behaviour("R08", "T11")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_an_endless_generator_is_stopped_and_closed(kind: str) -> None:
    """Once more than `max_output_chars` has come, the generator is closed, and the cut is said."""
    closed: list[bool] = []

    def parts() -> Iterator[str]:
        try:
            while True:
                yield "abc"
        finally:
            closed.append(True)

    async def more() -> AsyncIterator[str]:
        try:
            while True:
                yield "abc"
        finally:
            closed.append(True)

    said = await answer(ToolDefinition("t", "d", None, parts if kind == "sync" else more, max_output_chars=7))
    assert said.content.startswith("abcabca\n")
    assert "truncated" in said.content
    assert closed == [True]


@pytest.mark.behaviour("T11")
@pytest.mark.parametrize(
    "wrap", [str, ToolOutput, lambda text: [text], str.encode], ids=["text", "output", "json", "bytes"]
)
async def test_what_is_cut_is_said(wrap: Any) -> None:
    """The observation says that it was cut and of how much; the node says it, too; nothing else is lost."""
    made = returning(wrap("x" * 1_234), max_output_chars=100)
    whole = len(wrap("x" * 1_234)) if wrap is not ToolOutput and not isinstance(wrap("x"), list) else 1_234
    if isinstance(wrap("x"), list):
        whole += 4
    node = await node_of(made)
    head, _, note = node.output.partition("\n")
    assert len(head) == 100
    assert f"the first 100 of {whole:,} characters" in note
    assert node.meta["truncated"] == whole
    assert node.status == "ok"


@pytest.mark.behaviour("T11")
async def test_what_fits_exactly_is_not_cut() -> None:
    """The limit itself is still allowed."""
    assert (await answer(returning("x" * 100, max_output_chars=100))).content == "x" * 100
    assert "truncated" not in (await node_of(returning("x" * 100, max_output_chars=100))).meta


@pytest.mark.behaviour("T11")
@pytest.mark.parametrize(("length", "cut"), [(50_000, False), (50_001, True)], ids=["at", "over"])
async def test_the_limit_unless_set(length: int, cut: bool) -> None:
    """50,000 characters, for every tool that does not say otherwise."""
    said = await answer(returning("x" * length))
    assert ("truncated" in said.content) is cut


@pytest.mark.behaviour("T11")
async def test_a_cut_output_keeps_its_error_mark_and_data() -> None:
    """Cutting changes the text alone."""
    said = await answer(returning(ToolOutput("x" * 100, is_error=True, data=3), max_output_chars=10))
    assert (said.is_error, said.data) == (True, 3)
    assert said.content.startswith("xxxxxxxxxx\n")
