"""The ways in which a hook may be written, and a tool for it to act on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from thena_core import tool


@tool
async def echo(text: str = "a") -> str:
    """Repeats."""
    return text


def sync_and_async(function: Callable[..., Any]) -> list[Any]:
    """Return the hook as it is, and as a coroutine function."""

    @functools.wraps(function)
    async def awaited(*args: Any) -> Any:
        return function(*args)

    def returns_awaitable(*args: Any) -> Any:
        return awaited(*args)

    functools.update_wrapper(returns_awaitable, function)
    return [
        pytest.param(function, id="sync"),
        pytest.param(awaited, id="async"),
        pytest.param(returns_awaitable, id="returns-awaitable"),
    ]
