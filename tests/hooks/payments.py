"""A tool that pays, one that pays through the toolbox, and middleware that says when it is passed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from thena_core import Toolbox, tool

paid: list[int] = []


@tool
async def pay(amount: int) -> str:
    """Pays."""
    paid.append(amount)
    return f"paid {amount}"


@tool
async def outer(toolbox: Toolbox) -> str:
    """Pays through the toolbox, whatever happens."""
    try:
        return (await toolbox["pay"]({"amount": 5})).content
    except Exception as error:  # noqa: BLE001 - that is the case
        return f"nothing happened ({type(error).__name__})"


def passing(name: str, order: list[str]) -> Callable[..., Awaitable[Any]]:
    """Make a middleware, for tools or chats, that says when it is entered and left."""

    async def passes(call: Any, call_next: Any) -> Any:
        order.append(f"{name} in")
        output = await call_next(call)
        order.append(f"{name} out")
        return output

    return passes
