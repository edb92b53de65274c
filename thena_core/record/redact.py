"""Mask what looks like a secret in texts, and make any Python value safe to write as JSON.

The shapes (in `shapes.py`) follow what the public rule sets of gitleaks, detect-secrets and GitHub's secret scanning
document, written anew for Python and for linear time:

- keys by their vendor's prefix: OpenAI, Anthropic, OpenRouter, Groq, xAI, Perplexity, NVIDIA, Hugging Face, Replicate,
  LangSmith, Langfuse, Tavily, Pinecone; Amazon, Google, Alibaba, DigitalOcean, Heroku, Supabase; GitHub, GitLab, npm,
  PyPI, Docker; Slack, Discord, Telegram, Twilio, SendGrid; Stripe, Shopify, Square; Vault, Doppler, 1Password, age, and
  more; a word followed by one long random part (`acme_live_…`) counts as such a key, too;
- JSON web tokens, PEM private keys, webhook addresses, logins in URLs and after `curl -u`, `Bearer` and `Basic`;
- what is assigned to a telling word (`password`, `api_key`, `token`, `secret` …) in code, JSON, YAML, query strings,
  headers, environment files, command-line flags and XML.

Not caught: a random string that nothing around it tells of; a secret split over several values, encoded (base64, hex,
gzip) or spelt out in prose; a passphrase's words after the first where nothing quotes them; customer data, which is no
secret shape. Masking is a net, not a wall: keep secrets out of arguments and observations.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from thena_core._render import qualified_name
from thena_core.record import shapes
from thena_core.record.assigned import MASKED, is_harmless, is_secret_name, looks_random, mask_values

Redactor = Callable[[str], str]
"""Takes a text, returns it with what must not be seen replaced."""

_MAX_PASSES = 4
_MAX_PEM = 20_000


def mask(text: str) -> str:
    """Replace secrets in `text`; what is left says of which kind they were (`sk-…masked`, `password=…masked`).

    It takes time linear in the text, and masking twice changes nothing more.

    Args:
        text: Any text, of any length.
    """
    # What one rule leaves can complete another's shape; a second look costs only texts that held a secret.
    for _ in range(_MAX_PASSES):
        masked = _mask_once(text)
        if masked == text:
            break
        text = masked
    return text


def _mask_once(text: str) -> str:
    text = _mask_pem(text)
    text = shapes.SURE.sub(_keep, text)
    text = shapes.LIKELY.sub(_keep_if_random, text)
    for pattern in shapes.WHOLE:
        text = pattern.sub(_keep, text)
    if "eyJ" in text:
        text = shapes.JWT.sub(_mask_jwt, text)
    if "://" in text:
        text = shapes.URL_LOGIN.sub(_keep_unless_done, text)
        text = shapes.URL_TOKEN.sub(_keep_if_random, text)
    text = shapes.CURL_LOGIN.sub(_keep_unless_done, text)
    text = shapes.SCHEME.sub(_keep_if_random, text)
    text = mask_values(text, shapes.TELLING)
    text = mask_values(text, shapes.FLAG)
    return shapes.PREFIXED.sub(_mask_prefixed, text)


def _keep(match: re.Match[str]) -> str:
    return match["kept"] + MASKED


def _keep_unless_done(match: re.Match[str]) -> str:
    secret = match[0][len(match["kept"]) :]
    return match[0] if is_harmless(secret) else match["kept"] + MASKED


def _keep_if_random(match: re.Match[str]) -> str:
    return match["kept"] + MASKED if looks_random(match["tail"]) else match[0]


def _mask_jwt(match: re.Match[str]) -> str:
    parts = match[0].split(".")
    return "eyJ" + MASKED if len(parts) > 1 and len(parts[0]) > 8 and sum(map(len, parts[1:])) > 8 else match[0]  # noqa: PLR2004


def _mask_prefixed(match: re.Match[str]) -> str:
    """Mask `word_…` where the last part is long and mixes digits, small and capital letters as no identifier does."""
    word = match["word"]
    head, tail = re.fullmatch(r"((?:[A-Za-z][A-Za-z0-9]{0,15}[_\-]){0,4})(.*)", word, re.DOTALL).groups()  # type: ignore[union-attr]
    if not head or head.lower().startswith("sha"):
        return word
    part = max(re.split(r"[_\-]", tail), key=len)
    digits, small, capital = (sum(map(test, part)) for test in (str.isdigit, str.islower, str.isupper))
    random = len(part) >= 20 and digits > 2 and small > 2 and capital > 2  # noqa: PLR2004
    return head + MASKED if random else word


def _mask_pem(text: str) -> str:
    out: list[str] = []
    done = 0
    end = -1
    for match in shapes.PEM_BEGIN.finditer(text) if "PRIVATE KEY" in text else ():
        body = match.end()
        if body < done:
            continue
        if end != len(text) and end < body:
            found = text.find("-----END", body)
            end = found if found >= 0 else len(text)
        # Without its end nearby the header is only being talked about, or the key was cut off: take what is base64.
        run = shapes.PEM_BODY.match(text, body)
        cut = body + len(run[0].rstrip()) if run else body
        stop = end if end < len(text) and end - body < _MAX_PEM else cut
        if stop - body >= 8:  # noqa: PLR2004
            out += text[done:body], MASKED
            done = stop
    return "".join([*out, text[done:]]) if out else text


_UNWRITABLE = re.compile("[\\x00\\ud800-\\udfff]")
_MAX_TEXT = 200_000
_MAX_DEPTH = 24
_MAX_ITEMS = 20_000
_BY_TEXT = (dt.date, dt.time, dt.timedelta, decimal.Decimal, pathlib.PurePath, uuid.UUID)


def mask_value(value: object, redact: Redactor | None = mask) -> Any:
    """Turn any Python value into what strict JSON can hold, with its secrets masked.

    Texts and keys go through `redact`; what stands under a secret's name (`password`, `apiKey` …) is masked whole. NaN
    and infinity become null, NUL and lone surrogates U+FFFD, an object that JSON has no word for the name of its type.
    Bounds: 24 levels, 20,000 items, 200,000 characters a text; what is left out is said in its place.

    Args:
        value: Anything; it is only read, and cycles are safe.
        redact: What masks a text; `None` masks nothing.
    """
    return _Snapshot(redact).of(value, 0)


class _Snapshot:
    """One walk over a value: what may still be taken, and what it stands in."""

    __slots__ = ("_inside", "_left", "_redact")

    def __init__(self, redact: Redactor | None) -> None:
        self._redact = redact
        self._left = _MAX_ITEMS
        self._inside: set[int] = set()

    def of(self, value: object, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth + 1) if depth < _MAX_DEPTH else self._named(value, "too deep")
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int):
            # Beyond 4,300 digits Python itself refuses to write it.
            return int(value) if value.bit_length() <= 64 else self._named(value, f"{value.bit_length()} bits")  # noqa: PLR2004
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else None
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._named(cast("Any", value), f"{len(cast('bytes', value))} bytes")
        try:
            return self._composed(value, depth)
        except Exception:  # noqa: BLE001  -- foreign code answers here; a report must not fail for it
            return self._named(value, "unreadable")

    def text(self, text: str) -> str:
        whole = str.__str__(text)
        kept = _UNWRITABLE.sub("\ufffd", whole[: _MAX_TEXT + 1_000])
        if self._redact is not None:
            kept = _UNWRITABLE.sub("\ufffd", str(self._redact(kept)))
        if len(whole) <= _MAX_TEXT:
            return kept
        return f"{kept[:_MAX_TEXT]}… ({len(whole) - _MAX_TEXT:,} more characters)"

    def _composed(self, value: object, depth: int) -> Any:
        if isinstance(value, _BY_TEXT):
            return self.text(str(value))
        if isinstance(value, BaseException):
            return self.text(f"{type(value).__name__}: {value}")
        fields = _fields(value)
        whole: object = value  # what the next line narrows stays an object under this name
        if fields is None and not isinstance(value, (list, tuple, set, frozenset, deque)):
            return self._named(whole)
        if depth >= _MAX_DEPTH:
            return self._named(whole, "too deep")
        place = id(whole)
        if place in self._inside:
            return self._named(whole, "contains itself")
        self._inside.add(place)
        try:
            if fields is not None:
                return self._mapping(fields, depth)
            return self._items(cast("Iterable[object]", value), depth)
        finally:
            self._inside.discard(place)

    def _items(self, values: Iterable[object], depth: int) -> list[Any]:
        taken = list(values)
        out: list[Any] = []
        for value in taken:
            if self._left <= 0:
                out.append(f"… ({len(taken) - len(out):,} more)")
                break
            self._left -= 1
            out.append(self.of(value, depth + 1))
        return sorted(out, key=repr) if isinstance(values, (set, frozenset)) else out

    def _mapping(self, fields: list[tuple[object, object]], depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in fields:
            if self._left <= 0:
                out["…"] = f"({len(fields) - len(out):,} more)"
                break
            self._left -= 1
            plain = name if isinstance(name, str) else str(self.of(name, depth + 1))
            key = self.text(plain)
            if key in out:
                key = f"{key} #{len(out) + 1}"
            tells_nothing = value is None or isinstance(value, bool) or (isinstance(value, str) and not value)
            secret = self._redact is not None and not tells_nothing and is_secret_name(plain)
            out[key] = MASKED if secret else self.of(value, depth + 1)
        return out

    @staticmethod
    def _named(value: object, why: str = "") -> str:
        name = qualified_name(type(value)).removeprefix("builtins.")
        return f"<{name}: {why}>" if why else f"<{name}>"


def _fields(value: object) -> list[tuple[object, object]] | None:
    """List what a mapping, dataclass or pydantic model holds, by name; `None` for everything else."""
    if isinstance(value, Mapping):
        return list(cast("Mapping[object, object]", value).items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr]
    names = getattr(type(value), "model_fields", None)
    if isinstance(names, Mapping) and not isinstance(value, type):
        return [(name, getattr(value, name)) for name in cast("Mapping[str, object]", names)]
    return None
