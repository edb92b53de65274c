"""The pages that show runs: templates of this package, with data put into them where no parser takes it for markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources

_SLOT = "__THENA_DOCUMENT__"
_FOR_HTML = (
    ("&", "\\u0026"),
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("\u2028", "\\u2028"),
    ("\u2029", "\\u2029"),
)


def template(name: str) -> str:
    """Read a template of this package."""
    return resources.files("thena_core.record").joinpath(name).read_text("utf-8")


def for_html(text: str) -> str:
    """Write JSON so that it can stand in a `<script>`: what markup is made of becomes an escape of JSON."""
    for sign, escape in _FOR_HTML:
        if sign in text:
            text = text.replace(sign, escape)
    return text


def run_page(pieces: Iterable[str]) -> Iterator[str]:
    """Put a report, which comes in pieces, into the page that shows it."""
    head, _, tail = template("template.html").partition(_SLOT)
    yield head
    yield from map(for_html, pieces)
    yield tail
