"""Make any Python value safe to write as JSON, with its secrets masked."""

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
from collections.abc import Iterable, Mapping
from typing import Any, cast

from thena_core._render import qualified_name
from thena_core.record.assigned import MASKED, is_secret_name, is_telling_value
from thena_core.record.redact import Redactor, mask

_UNWRITABLE = re.compile("[\\x00\\ud800-\\udfff]")
_MAX_TEXT = 200_000
_MAX_DEPTH = 24
_MAX_ITEMS = 20_000
_NAMES = frozenset(("name", "key", "header", "field", "variable"))
_VALUES = frozenset(("value", "val", "default"))
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
            before = taken[len(out) - 1] if out else None
            secret = isinstance(before, str) and isinstance(value, str) and self._follows(before, value, len(taken))
            out.append(MASKED if secret else self.of(value, depth + 1))
        return sorted(out, key=repr) if isinstance(values, (set, frozenset)) else out

    def _follows(self, before: str, value: str, count: int) -> bool:
        """Tell the value of a header (`["Authorization", "…"]`) or a flag (`["--password", "…"]`) from any item."""
        if before.startswith("-"):
            return self._is_secret(before.lstrip("-"), value) and not value.startswith("-")
        return count == 2 and self._is_secret(before, value) and is_telling_value(value)  # noqa: PLR2004

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
            out[key] = MASKED if self._is_secret(plain, value) else self.of(value, depth + 1)
        return self._without_named(out)

    def _is_secret(self, name: str, value: object) -> bool:
        tells_nothing = value is None or isinstance(value, bool) or (isinstance(value, str) and not value)
        return self._redact is not None and not tells_nothing and is_secret_name(name)

    def _without_named(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Mask the value of a pair that is written as `{"name": "DB_PASSWORD", "value": "…"}`."""
        names = [value for key, value in fields.items() if key.lower() in _NAMES and isinstance(value, str)]
        for key, value in fields.items() if names else ():
            if key.lower() in _VALUES and any(self._is_secret(name, value) for name in names):
                fields[key] = MASKED
        return fields

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
