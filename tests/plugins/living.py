"""Plugins that say when they are started and shut down."""

from __future__ import annotations

import asyncio
from typing import Any

from thena_core import hookimpl, tool

order: list[str] = []
apps: list[Any] = []


@tool
async def look() -> str:
    """Looks."""
    order.append("look")
    return "seen"


def living(
    name: str,
    *,
    fails: BaseException | None = None,
    fails_to_close: BaseException | None = None,
    **options: bool,
) -> Any:
    """Make a plugin that says when it is started and shut down; every second one does so in a coroutine."""

    def start(_self: Any, app: Any) -> None:
        apps.append(app)
        order.append(f"{name} up")
        if fails is not None:
            raise fails

    async def close(_self: Any, app: Any) -> None:
        apps.append(app)
        await asyncio.sleep(0)
        order.append(f"{name} down")
        if fails_to_close is not None:
            raise fails_to_close

    members = {"startup": hookimpl(**options)(start), "shutdown": hookimpl(**options)(close)}
    return type(name, (), members)()
