"""From what `execute` returned to what the model reads: never a crash, never an empty or invalid text."""

from __future__ import annotations

import base64
import functools
import inspect
import itertools
import json
from collections.abc import AsyncGenerator, Collection, Generator, Mapping
from pathlib import PurePath
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from thena_core._render import said_by, type_name
from thena_core.call import Invocation
from thena_core.output import ToolOutput
from thena_core.run import RunResult

NOTHING = "(the tool returned nothing)"
"""Stands for an empty text, which some services refuse as a tool's result."""


async def observe(inv: Invocation, result: Any, limit: int) -> ToolOutput:
    """Turn anything that is not a plain short text into a `ToolOutput`.

    Args:
        inv: The call, which notes what was cut.
        result: What `execute` returned; an awaitable is awaited, a generator consumed and joined.
        limit: The most characters of the observation.
    """
    if inspect.isawaitable(result):
        result = await result
    if inspect.isasyncgen(result):
        result = await _join_async(cast("AsyncGenerator[Any, None]", result), limit)
    elif inspect.isgenerator(result):
        result = join(cast("Generator[Any, None, None]", result), limit)
    return to_output(inv, result, limit)


def to_output(inv: Invocation, result: Any, limit: int) -> ToolOutput:
    """Word a result as an observation: text as it is, `ToolOutput` as it is, the rest as JSON."""
    if isinstance(result, ToolOutput):
        content: Any = result.content
        if type(content) is not str:
            inner = to_output(inv, content, limit)
            return ToolOutput(inner.content, result.is_error or inner.is_error, result.data)
        if 0 < len(content) <= limit:
            return result
        return ToolOutput(_fitted(inv, content, limit), result.is_error, result.data)
    if isinstance(result, RunResult):
        result = result.output
    if isinstance(result, str):
        return ToolOutput(_fitted(inv, _plain(result), limit))
    if isinstance(result, bytes | bytearray):
        return ToolOutput(_fitted(inv, _bytes_text(bytes(result)), limit))
    try:
        text = _json(result, limit)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        inv.outcome = "error"
        return ToolOutput(
            f"{inv.name} returned a {type_name(type(result))}, which cannot be written as JSON ({_why(error)}).",
            is_error=True,
        )
    return ToolOutput(_fitted(inv, text, limit))


def clean(text: str) -> str:
    """Replace what makes a request invalid: lone surrogates, and NUL, which some services refuse."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text or NOTHING


def join(parts: Generator[Any, None, None], limit: int) -> Any:
    """Consume a generator: texts are joined, other values become a list. It is stopped once `limit` is passed."""
    found: list[Any] = []
    size = 0
    try:
        for part in parts:
            found.append(part)
            size += len(part) if isinstance(part, str) else 1
            if size > limit:
                break
    finally:
        parts.close()
    return _joined(found)


async def _join_async(parts: AsyncGenerator[Any, None], limit: int) -> Any:
    found: list[Any] = []
    size = 0
    try:
        async for part in parts:
            found.append(part)
            size += len(part) if isinstance(part, str) else 1
            if size > limit:
                break
    finally:
        await parts.aclose()
    return _joined(found)


def _joined(parts: list[Any]) -> Any:
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts


def _fitted(inv: Invocation, text: str, limit: int) -> str:
    if len(text) <= limit:
        return text or NOTHING
    inv.note(truncated=len(text))
    return f"{text[:limit]}\n… [truncated: the first {limit:,} of {len(text):,} characters]"


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def _plain(text: str) -> str:
    """Return the text of a `str` subclass (an enum's value, say), whatever its own `__str__` says."""
    return "".join((text,))  # noqa: FLY002 - an f-string would ask its __format__


def _json(value: Any, limit: int) -> str:
    fallback = functools.partial(_fallback, limit=limit)
    try:
        return to_json(value, inf_nan_mode="null", bytes_mode="utf8", fallback=fallback).decode("utf-8", "replace")
    except (PydanticSerializationError, ValueError) as error:
        if "utf-8" not in str(error):
            raise
    # bytes that are no text, or a lone surrogate (file names have them): slower, and always possible
    plain = to_jsonable_python(_scrubbed(value), inf_nan_mode="null", bytes_mode="base64", fallback=fallback)
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")


def _scrubbed(value: Any) -> Any:
    """Replace lone surrogates in texts and in names, at any depth of plain containers."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(inner) for key, inner in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(inner) for inner in cast("list[Any]", value)]
    return value


def _fallback(value: Any, limit: int) -> Any:
    """Give what pydantic does not know a natural form; a collection is cut where the observation would be."""
    if isinstance(value, Exception):
        return said_by(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, Collection):
        return list(itertools.islice(cast("Collection[Any]", value), limit + 1))
    raise PydanticSerializationError(f"no JSON form for {type_name(type(value))}")


def _why(error: Exception) -> str:
    text = str(error)
    if "ircular" in text or isinstance(error, RecursionError):
        return "it refers to itself"
    return text.removeprefix("Error calling function `_fallback`: ").removeprefix("PydanticSerializationError: ")
