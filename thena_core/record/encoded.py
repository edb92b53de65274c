"""Secrets that stand in a text in another writing: JSON's and HTML's escapes, base64, hexadecimal digits."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

from thena_core.record import shapes
from thena_core.record.assigned import MASKED

_MAX_DEPTH = 2
_SAMPLE = 24
_JSON_ESCAPE = re.compile(r"\\{1,15}u00(?P<code>[2-7][0-9a-fA-F])|\\{1,15}/")
_HTML_ESCAPE = re.compile(r"&(?:quot|apos|colon|equals|#(?:34|39|58|61)|#[xX](?:22|27|3[aA]|3[dD]));")
_HTML = {
    "quot": '"', "apos": "'", "colon": ":", "equals": "=", "34": '"', "39": "'", "58": ":", "61": "=",
    "22": '"', "27": "'", "3a": ":", "3d": "=",
}  # fmt: skip
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})++")


def unescaped(text: str) -> str | None:
    """Write letters, digits and signs plainly that JSON or HTML escapes hide; `None` where there are none.

    Quotes and backslashes of JSON stay as they are, so that what was a string still is one.
    """
    plain = text
    if "\\u00" in plain or "\\/" in plain:
        plain = _JSON_ESCAPE.sub(_json_sign, plain)
    if "&" in plain:
        plain = _HTML_ESCAPE.sub(_html_sign, plain)
    return None if plain == text else plain


def _json_sign(match: re.Match[str]) -> str:
    if match["code"] is None:
        return "/"
    sign = chr(int(match["code"], 16))
    return match[0] if sign in "\"'\\\x7f" else sign


def _html_sign(match: re.Match[str]) -> str:
    return _HTML[match[0].strip("&#xX;").lower()]


def mask_encoded(text: str, mask: Callable[[str, int], str], depth: int) -> str:
    """Mask runs of base64 or hexadecimal digits that hold a secret, and keys with a vendor's mark inside.

    Args:
        text: The text.
        mask: Masks what a run decodes to, one level deeper.
        depth: How many runs this text was taken out of.
    """

    def verdict(match: re.Match[str]) -> str:
        run = match[0]
        if len(run) >= 40 and any(mark in run for mark in shapes.MARKS) and any(map(str.isdigit, run)):  # noqa: PLR2004
            return MASKED
        if depth >= _MAX_DEPTH:
            return run
        inner = _decoded(run)
        return MASKED if inner is not None and mask(inner, depth + 1) != inner else run

    return shapes.RUN.sub(verdict, text)


def _decoded(run: str) -> str | None:
    """Return the text that a run stands for; `None` where it stands for none."""
    digits = run.rstrip("=")
    if _HEX.fullmatch(digits):
        return _printable(bytes.fromhex(digits))
    plain = digits.replace("-", "+").replace("_", "/")
    if _printable(_from_base64(plain[:_SAMPLE])) is None:
        return None
    return _printable(_from_base64(plain))


def _from_base64(digits: str) -> bytes:
    try:
        return base64.b64decode(digits[: len(digits) - (len(digits) % 4 == 1)] + "=" * (-len(digits) % 4 % 3))
    except (binascii.Error, ValueError):
        return b"\xff"


def _printable(data: bytes) -> str | None:
    if not data.isascii():
        return None
    text = data.decode("ascii")
    return text if text.translate(_BLANKS).isprintable() else None


_BLANKS = str.maketrans("\n\r\t", "   ")
