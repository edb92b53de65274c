"""Masking what exceptions say before they leave the app, they themselves and those that they came from."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, cast

from thena_core._render import said_by
from thena_core.errors import ThenaError

if TYPE_CHECKING:
    from thena_core.record.redact import Redactor

MAX_TEXT = 20_000
"""Characters of an exception's text that are kept: masking takes time, and nobody reads more of a traceback."""

_SLACK = 200
_FILE_NAMES = ("strerror", "filename", "filename2")


class MaskedError(Exception):
    """Stand in a chain for an exception whose text holds a secret and cannot be changed; it names its class."""


def mask_error(error: BaseException, redact: Redactor) -> None:
    """Mask secret shapes in what an exception says, in its notes, and in the whole chain behind it.

    The texts that it was made of are replaced, so that `str`, `repr` and a printed traceback show none; an exception
    without secrets is left as it is. One of the chain that composes its text by other means is replaced by a
    `MaskedError`. The exception itself is never replaced, nor is a member of a group.

    Args:
        error: The exception that leaves the app.
        redact: Masks a text.
    """
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        _mask_own(one, redact)
        _mask_links(one, redact)
        waiting += [inner for inner in (one.__cause__, one.__context__) if inner is not None]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions  # pyright: ignore[reportUnknownMemberType]


def _mask_own(error: BaseException, redact: Redactor) -> None:
    args = tuple(_masked(value, redact) for value in error.args)
    if args != error.args:
        error.args = args
    notes: object = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        kept = cast("list[object]", notes)
        kept[:] = [_masked(note, redact) for note in kept]
    names = tuple(vars(error)) if isinstance(error, ThenaError) else _FILE_NAMES if isinstance(error, OSError) else ()
    for name in names:
        value = getattr(error, name, None)
        if isinstance(value, str) and (masked := _masked(value, redact)) != value:
            setattr(error, name, masked)


def _mask_links(error: BaseException, redact: Redactor) -> None:
    """Put stand-ins where the exceptions behind this one cannot be masked."""
    cause, context = error.__cause__, error.__context__
    for inner in {id(link): link for link in (cause, context) if link is not None}.values():
        _mask_own(inner, redact)
        text = said_by(inner)
        if isinstance(inner, MaskedError) or _masked(text, redact) == text:
            continue
        stand_in = MaskedError(_masked(text, redact)).with_traceback(inner.__traceback__)
        hidden = inner.__suppress_context__
        stand_in.__context__, stand_in.__cause__ = inner.__context__, inner.__cause__
        stand_in.__suppress_context__ = hidden
        if context is inner:
            error.__context__ = stand_in
        if cause is inner:
            error.__cause__ = stand_in


def _masked(value: object, redact: Redactor) -> object:
    if not isinstance(value, str):
        return value
    # the sum at the end is not summed up again where it has been masked before
    short = len(value) <= MAX_TEXT + _SLACK
    text = value if short else f"{value[:MAX_TEXT]}… ({len(value) - MAX_TEXT:,} more characters)"
    with contextlib.suppress(Exception):  # a masking of the app's own that fails must not hide what it was to mask
        return redact(text)
    return "(masking failed)"
