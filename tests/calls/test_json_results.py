"""Results that are no text become JSON, and what has none is an error that names its type."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime as dt
import enum
import json
import uuid
from collections import OrderedDict, deque, namedtuple
from decimal import Decimal
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from tests.calls.returning import read_by_the_model, returning
from tests.schema.trial import answer


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
