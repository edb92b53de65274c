"""From an exception in a tool to what the model reads: its class, its message without secrets, nothing of its chain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from thena_core._render import said_by, shortened
from thena_core.definition import Disclosure
from thena_core.errors import EndsRun

MAX_TEXT = 2_000
MAX_LEAVES = 10


def failure_text(error: BaseException, tables: tuple[Disclosure, ...], redact: Callable[[str], str]) -> str:
    """Word an exception for the model.

    Args:
        error: What the tool raised; of a group, each leaf is named.
        tables: What may be said of which class, the tool's own table before the app's; the nearest class of the
            exception's ancestry decides.
        redact: Masks secrets in a message that no table words.

    Returns:
        `ValueError: the message`, at most 2,000 characters.
    """
    leaves = leaves_of(error)
    texts = [_worded(leaf, tables, redact) for leaf in leaves[:MAX_LEAVES]]
    if len(leaves) > MAX_LEAVES:
        texts.append(f"and {len(leaves) - MAX_LEAVES} more")
    return shortened("; ".join(texts), MAX_TEXT)


def leaves_of(error: BaseException) -> list[BaseException]:
    """List the exceptions in a group, in order; walked without recursion, since groups may nest deep.

    What ends the run is a leaf, also where it is a group itself (`BuildError`).
    """
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        newest = waiting.pop()
        if isinstance(newest, BaseExceptionGroup) and not isinstance(newest, EndsRun):
            waiting.extend(reversed(cast("BaseExceptionGroup[BaseException]", newest).exceptions))
        else:
            found.append(newest)
    return found


def decisive(error: BaseException) -> BaseException | None:
    """Return the exception that no observation may hide, also where a task group of the tool wrapped it.

    That is what ends the run, and what ends the process (`KeyboardInterrupt`, `SystemExit`).
    """
    for leaf in leaves_of(error):
        if isinstance(leaf, EndsRun | KeyboardInterrupt | SystemExit):
            return leaf
    return None


def comes_of_cancellation(error: BaseException) -> bool:
    """Whether a cancellation stands behind an exception: raised while one was handled, or from one."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        newest = waiting.pop()
        if newest is None or id(newest) in seen:
            continue
        if isinstance(newest, asyncio.CancelledError):
            return True
        seen.add(id(newest))
        waiting += [newest.__cause__, newest.__context__]
    return False


def _worded(error: BaseException, tables: tuple[Disclosure, ...], redact: Callable[[str], str]) -> str:
    try:
        disclosed = _disclosed(error, tables)
        return redact(said_by(error)) if disclosed is None else disclosed
    except Exception:  # noqa: BLE001 - a table or a masker that fails must not disclose what it was to hide
        return type(error).__name__


def _disclosed(error: BaseException, tables: tuple[Disclosure, ...]) -> str | None:
    for table in tables:
        for cls in type(error).__mro__:
            said: Any = table.get(cls)
            if said is not None:
                return said if isinstance(said, str) else str(said(error))
    return None
