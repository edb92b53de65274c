"""Words for error messages: names of types, the nearest right name, lists cut to a readable length."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable
from typing import Any, cast, get_args, get_origin


def type_name(tp: Any) -> str:
    """Name a type as an author wrote it (`list[Item]`), never as `<class '__main__.Item'>`."""
    if isinstance(tp, str):
        return tp
    if tp is type(None):
        return "None"
    origin = get_origin(tp)
    if origin is not None:
        inner = ", ".join(type_name(arg) for arg in get_args(tp))
        name = getattr(origin, "__name__", None) or str(origin).removeprefix("typing.")
        return f"{name}[{inner}]" if inner else name
    return getattr(tp, "__name__", None) or str(tp)


def qualified_name(obj: Any) -> str:
    """Name a class or function with its module, so that a reader finds the file."""
    if isinstance(obj, functools.partial):
        return qualified_name(cast("functools.partial[Any]", obj).func)
    named: Any = obj if hasattr(obj, "__qualname__") else obj.__class__
    name, module = named.__qualname__, getattr(named, "__module__", None)
    return f"{module}.{name}" if module else name


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return ` Did you mean "x"?`, or an empty string where no known name is near."""
    import difflib  # noqa: PLC0415 - only messages need it

    nearest = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f' Did you mean "{nearest[0]}"?' if nearest else ""


def said_by(error: BaseException) -> str:
    """Name an exception and what it says; one that cannot print itself must not take anything down."""
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - whatever __str__ raises
        return f"{name}: (its message cannot be shown)"
    if isinstance(error, asyncio.CancelledError) and not message:
        message = "it was cancelled, and nobody cancelled the run"
    return f"{name}: {message}" if message else name


def listed(names: Iterable[str], limit: int = 20) -> str:
    """Join names with commas; what is beyond `limit` is counted, not printed."""
    all_names = list(names)
    shown = ", ".join(all_names[:limit])
    rest = len(all_names) - limit
    return f"{shown}, … ({rest} more)" if rest > 0 else shown


def shortened(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, the last of them an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def indented(text: str, by: str = "   ") -> str:
    """Indent every line but the first: for texts that stand in a numbered list."""
    return text.replace("\n", "\n" + by)
