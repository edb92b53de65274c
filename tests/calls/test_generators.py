"""Generators are consumed and joined, endless ones stopped; what is cut is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.calls.returning import returning
from tests.schema.trial import answer, node_of
from thena_core import (
    ToolDefinition,
    ToolOutput,
)


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
