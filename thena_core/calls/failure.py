"""From an exception in a tool to what the model reads: its class, its message without secrets, nothing of its chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from thena_core._render import shortened
from thena_core.definition import Disclosure
from thena_core.errors import EndsRun

MAX_TEXT = 2_000
MAX_LEAVES = 10


def failure_text(error: Exception, tables: tuple[Disclosure, ...], redact: Callable[[str], str]) -> str:
    """Word an exception for the model.

    Args:
        error: What the tool raised; of a group, each leaf is named.
        tables: What may be said of which class, the tool's own table before the app's; the nearest class of the
            exception's ancestry decides.
        redact: Masks secrets in a message that no table words.

    Returns:
        `ValueError: the message`, at most 2,000 characters.
    """
    if isinstance(error, ExceptionGroup):
        leaves = list(_leaves(cast("ExceptionGroup[Exception]", error)))
        texts = [failure_text(leaf, tables, redact) for leaf in leaves[:MAX_LEAVES]]
        if len(leaves) > MAX_LEAVES:
            texts.append(f"and {len(leaves) - MAX_LEAVES} more")
        return shortened("; ".join(texts), MAX_TEXT)
    disclosed = _disclosed(error, tables)
    if disclosed is not None:
        return shortened(disclosed, MAX_TEXT)
    name, message = type(error).__name__, _message(error)
    return shortened(f"{name}: {redact(message)}" if message else name, MAX_TEXT)


def run_ender(error: BaseException) -> EndsRun | None:
    """Return the error that ends the run, also where a task group of the tool wrapped it."""
    if isinstance(error, EndsRun):
        return error
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            found = run_ender(inner)
            if found is not None:
                return found
    return None


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for inner in group.exceptions:
        if isinstance(inner, ExceptionGroup):
            yield from _leaves(cast("ExceptionGroup[Exception]", inner))
        else:
            yield inner


def _disclosed(error: Exception, tables: tuple[Disclosure, ...]) -> str | None:
    for table in tables:
        for cls in type(error).__mro__:
            said: Any = table.get(cls)
            if said is not None:
                return said if isinstance(said, str) else str(said(error))
    return None


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot print itself must not take the run down
        return "(its message cannot be shown)"
