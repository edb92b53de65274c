"""Tests of thena_core.record.snapshot."""

from __future__ import annotations

import dataclasses
import enum
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thena_core.record.snapshot import mask_value

R = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"


class _Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class _Login:
    user: str
    password: str


class _Opaque:
    def __repr__(self) -> str:
        raise RuntimeError


class _Hostile(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError


VALUES = {
    "nan": (float("nan"), None),
    "infinity": ([float("inf"), 1.5], [None, 1.5]),
    "keys": ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
    "surrogate and nul": ("a\ud800b\0", "a\ufffdb\ufffd"),
    "enum": (_Colour.RED, "red"),
    "bytes": (b"abc", "<bytes: 3 bytes>"),
    "set": ({2, 1}, [1, 2]),
    "path": (Path("a"), "a"),
    "dataclass": (_Login("u", "hunter2"), {"user": "u", "password": "…masked"}),
    "exception": (ValueError("bad"), "ValueError: bad"),
    "mapping that raises": (_Hostile(), f"<{__name__}._Hostile: unreadable>"),
    "object": (_Opaque(), f"<{__name__}._Opaque>"),
    "type": (int, "<type>"),
    "huge number": (1 << 20_000, "<int: 20001 bits>"),
    "secret names": (
        {"api_key": 1, "Authorization": ["x"], "clientSecret": {"a": 1}, "token": None, "tokens": 3, "keyboard": "k"},
        {
            "api_key": "…masked",
            "Authorization": "…masked",
            "clientSecret": "…masked",
            "token": None,
            "tokens": 3,
            "keyboard": "k",
        },
    ),
    "secret text": ([f"sk-{R}"], ["sk-…masked"]),
    "secret as a key": ({f"sk-{R}": 1}, {"sk-…masked": 1}),
}


@pytest.mark.parametrize(("value", "safe"), VALUES.values(), ids=VALUES)
def test_mask_value_makes_anything_strict_json(value: object, safe: object) -> None:
    """What JSON has no word for gets one, and secrets go."""
    assert mask_value(value) == safe
    json.dumps(mask_value(value), allow_nan=False).encode()


PAIRS = {
    "header": (["Authorization", "Bearer abc123def"], ["Authorization", "…masked"]),
    "flag": (["cli", "--password", "hunter2", "-v"], ["cli", "--password", "…masked", "-v"]),
    "flags side by side": (["--token", "--quiet"], ["--token", "--quiet"]),
    "name and value": ({"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "DB_PASSWORD", "value": "…masked"}),
    "other name": ({"name": "host", "value": "a1"}, {"name": "host", "value": "a1"}),
    "two words": (["password", "confirm"], ["password", "confirm"]),
}


@pytest.mark.behaviour("O05")
@pytest.mark.parametrize(("value", "safe"), PAIRS.values(), ids=PAIRS)
def test_mask_value_sees_names_beside_values(value: object, safe: object) -> None:
    """A header, a flag and a named setting tell of the value that stands beside them."""
    assert mask_value(value) == safe


def test_mask_value_survives_cycles_and_depth() -> None:
    """A value that holds itself, or is very deep or wide, ends in words."""
    cycle: list[object] = []
    cycle.append(cycle)
    assert mask_value(cycle) == ["<list: contains itself>"]
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    assert "too deep" in json.dumps(mask_value(deep))
    wide = mask_value(list(range(50_000)))
    assert wide[-1] == "… (30,000 more)"


def test_mask_value_bounds_a_text() -> None:
    """A text is cut, and says by how much; a secret that the cut would halve is masked first."""
    text = "a " * 99_990 + f" sk-{R}" + "b" * 1_000
    safe = mask_value(text)
    assert safe.endswith(f"… ({len(text) - 200_000:,} more characters)")
    assert R[:8] not in safe


def test_mask_value_without_a_redactor_masks_nothing() -> None:
    """`redact=False` of an app keeps texts and secret names' values."""
    assert mask_value({"password": f"sk-{R}"}, None) == {"password": f"sk-{R}"}


_JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4),
    max_leaves=15,
)


@given(_JSON_LIKE)
def test_mask_value_is_always_strict_json(value: object) -> None:
    """Any value ends as strict JSON in UTF-8."""
    safe = mask_value(value)
    assert json.loads(json.dumps(safe, allow_nan=False, ensure_ascii=False).encode()) == safe
