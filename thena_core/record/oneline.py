"""What tools and models said, for one line of a terminal or a log: masked, short, and unable to steer either."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from thena_core._render import shortened

if TYPE_CHECKING:
    from thena_core.record.redact import Redactor

# Far more than is shown, so that a secret is seen whole before the text is cut.
_LOOKED_AT = 4_000
_MAX_ITEMS = 20
_MAX_DEPTH = 4
_BLANKS = re.compile(r"\s+")


def one_line(text: str, limit: int, redact: Redactor | None) -> str:
    r"""Return the beginning of a text on one line, masked, with nothing in it that does not print.

    Whatever Python calls unprintable is shown as its code (`\x1b`, `\u202e`): control characters and the ANSI codes
    that begin with them, what reorders or hides text, unpaired surrogates, characters that Unicode has not assigned.

    Args:
        text: Any text, of any length.
        limit: The most characters.
        redact: Masks the text; `None` masks nothing.
    """
    seen = text[:_LOOKED_AT]
    if len(text) > _LOOKED_AT:
        words = seen.rsplit(None, 1)  # the last word was cut, and masking may not know a half of a secret
        seen = words[0] if len(words) > 1 else seen
    masked = seen if redact is None else redact(seen)
    return shortened(harmless(shortened(_BLANKS.sub(" ", masked).strip(), limit)), limit)


def harmless(text: str) -> str:
    """Show what does not print as its code; the text is returned as it is where all of it prints."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def in_short(value: Any, limit: int, redact: Redactor | None) -> str:
    """Return the beginning of any value on one line: a text as it is, anything else as JSON.

    Args:
        value: Any value; it is only read, and no more of it than a line may need.
        limit: The most characters.
        redact: Masks its texts, and what stands under a secret's name; `None` masks nothing.
    """
    if isinstance(value, str):
        return one_line(value, limit, redact)
    from thena_core.record.snapshot import mask_value  # noqa: PLC0415 - its patterns cost time to compile

    shown = mask_value(_abridged(value, _MAX_DEPTH), redact)
    return one_line(json.dumps(shown, ensure_ascii=False), limit, None)


def how_far(meta: Mapping[str, Any], limit: int, redact: Redactor | None) -> str:
    """Say how far a step has come, from its `meta`: `3/8 pages read`; empty where it has not said."""
    told = meta.get("progress")
    if not isinstance(told, Mapping):
        return ""
    facts = cast("Mapping[str, Any]", told)
    done, total = _number(facts.get("done")), facts.get("total")
    count = done if total is None else f"{done}/{_number(total)}"
    return one_line(f"{count} {facts.get('message') or ''}", limit, redact)


def duration(ms: float) -> str:
    """Write milliseconds for people: `4ms`, `1.2s`, `3m05s`."""
    if ms < 999.5:  # noqa: PLR2004
        return f"{ms:.0f}ms"
    seconds = ms / 1000
    if seconds < 119.95:  # noqa: PLR2004
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s"


def _number(value: Any) -> str:
    try:
        return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    except ValueError:  # an integer of more than 4,300 digits, which Python does not print
        return "…"


def _abridged(value: Any, depth: int) -> Any:
    """Copy as much of a value as a line may show, so that a huge one is neither walked nor masked."""
    if isinstance(value, str):
        return value[:_LOOKED_AT]
    if depth == 0:
        return "…" if isinstance(value, Mapping | list | tuple) else value
    if isinstance(value, Mapping):
        items = islice(cast("Mapping[Any, Any]", value).items(), _MAX_ITEMS)
        return {key: _abridged(inner, depth - 1) for key, inner in items}
    if isinstance(value, list | tuple):
        return [_abridged(inner, depth - 1) for inner in cast("Sequence[Any]", value)[:_MAX_ITEMS]]
    return value
