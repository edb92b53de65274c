"""Tests of thena_core.record.redact."""

from __future__ import annotations

import dataclasses
import enum
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thena_core.record.redact import mask, mask_value

# No real key: put together here, so that no scanner of this repository stumbles over one.
R = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"

SHAPES = {
    "openai": (f"sk-{R}", "sk-…masked"),
    "openai project": (f"sk-proj-{R}_{R}", "sk-proj-…masked"),
    "anthropic": (f"sk-ant-api03-{R}-AA", "sk-ant-…masked"),
    "amazon id": ("AKIA" + "IOSFODNN7EXAMPLE", "AKIA…masked"),
    "amazon secret": (f"AWS_SECRET_ACCESS_KEY={R}/abcD", "AWS_SECRET_ACCESS_KEY=…masked"),
    "github": (f"ghp_{R}12", "ghp_…masked"),
    "github fine-grained": (f"github_pat_11AAAA_{R}", "github_pat_…masked"),
    "gitlab": (f"glpat-{R}", "glpat-…masked"),
    "slack": (f"xoxb-1234-5678-{R}", "xoxb-…masked"),
    "slack webhook": (f"https://hooks.slack.com/services/T0000/B0000/{R}", "https://hooks.slack.com/services/…masked"),
    "google": (f"AIza{R}x", "AIza…masked"),
    "hugging face": (f"hf_{R}", "hf_…masked"),
    "sendgrid": (f"SG.{R[:22]}.{R}", "SG.…masked"),
    "stripe": (f"sk_live_{R}", "sk_live_…masked"),
    "telegram": (f"12345678:AA{R}", "12345678:…masked"),
    "unknown vendor": (f"acme_live_{R}", "acme_live_…masked"),
    "jwt": (f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{R}", "eyJ…masked"),
    "bearer": (f"Authorization: Bearer {R}", "Authorization: Bearer …masked"),
    "basic": ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic …masked"),
    "bearer in curl": (f"curl -H 'Authorization: Bearer {R}' x", "curl -H 'Authorization: Bearer …masked' x"),
    "bearer alone": (f"sent Bearer {R}.", "sent Bearer …masked"),
    "cookie": (f"Cookie: sid={R}; b=1\nHost: x", "Cookie: …masked\nHost: x"),
    "header": (f"x-api-key: {R}", "x-api-key: …masked"),
    "query": ("https://a.b/?api_key=hunter2&b=1", "https://a.b/?api_key=…masked&b=1"),
    "query encoded": ("next=%3Fpassword%3Dhunter2", "next=%3Fpassword%3D…masked"),
    "json": ('{"password": "hunter2", "n": 1}', '{"password": "…masked", "n": 1}'),
    "json in json": (r"{\"apiKey\":\"hunter2\"}", r"{\"apiKey\":\"…masked\"}"),
    "json with an escape": (r'{"password": "hun\"ter2"}', '{"password": "…masked"}'),
    "python": ("password: str = 'hunter2'", "password: str = '…masked'"),
    "yaml": ("db_password: hunter2", "db_password: …masked"),
    "environment": ("export DB_PASS=hunter2", "export DB_PASS=…masked"),
    "connection string": ("Server=x;Password=hunter2;Database=y", "Server=x;Password=…masked;Database=y"),
    "azure storage": (f"AccountKey={R}==;Suffix=x", "AccountKey=…masked;Suffix=x"),
    "xml": ("<password>hunter2</password>", "<password>…masked</password>"),
    "name and value": ('"name": "DB_PASSWORD", "value": "hunter2"', '"name": "DB_PASSWORD", "value": "…masked"'),
    "flag": ("cli --password hunter2 run", "cli --password …masked run"),
    "curl login": ("curl -u admin:hunter2 x", "curl -u admin:…masked x"),
    "url login": ("postgres://u:hunter2@h/db", "postgres://u:…masked@h/db"),
    "url token": (f"https://{R}@o1.example.com/2", "https://…masked@o1.example.com/2"),
    "netrc": ("machine x login u password hunter2", "machine x login u password …masked"),
    "sentence": ("the password is hunter2", "the password is …masked"),
    "hex after a telling word": (f"token: {HEX}", "token: …masked"),
    "after an escaped line end": (f"\\nsk-{R}", "\\nsk-…masked"),
    "after a colour code": (f"\x1b[31msk-{R}", "\x1b[31msk-…masked"),
    "private key": (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC\n-----END RSA PRIVATE KEY-----\nx",
        "-----BEGIN RSA PRIVATE KEY-----…masked-----END RSA PRIVATE KEY-----\nx",
    ),
    "private key cut off": ("-----BEGIN PRIVATE KEY-----\\nMIIEpAIBAAKC", "-----BEGIN PRIVATE KEY-----…masked"),
}

ORDINARY = {
    "python signature": "def f(token: str, password: str | None = None):",
    "keyword arguments": "foo(token=token, password=self.password)",
    "environment lookup": "api_key = os.environ['OPENAI_API_KEY']",
    "await": "const token = await getToken()",
    "token counts": "max_tokens=4096, prompt_tokens: 12, token_count=3",
    "commit": "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "uuid": "550e8400-e29b-41d4-a716-446655440000",
    "integrity": f"sha512-{R}{R}",
    "css class": "sk-estimator-doc-link",
    "file name": "path/to/some_long_identifier_name_in_code_v2_test",
    "placeholder": "password: <your password>, token=${TOKEN}",
    "prose": "Bearer token authentication; the author: Jane; monkey=1",
    "port and at sign": "http://localhost:8080/a@b",
    "key function": "sorted(x, key=lambda x: x[1])",
    "block of yaml": "credentials:\n  user: bob\n",
    "greater than": "pass > fail",
    "comparison": "if token == 'ws':",
}


@pytest.mark.behaviour("O05")
@pytest.mark.parametrize(("text", "masked"), SHAPES.values(), ids=SHAPES)
def test_masks_what_is_known_as_a_secret(text: str, masked: str) -> None:
    """A known shape goes, what stands around it and says its kind stays."""
    assert mask(text) == masked


@pytest.mark.parametrize("text", [text for text, _ in SHAPES.values()], ids=SHAPES)
def test_masks_inside_other_text_and_only_once(text: str) -> None:
    """The shapes are found in the middle of a text, and a second masking changes nothing."""
    once = mask(f"before\n{text}\n§ after")
    assert once.startswith("before\n")
    assert once.endswith("\n§ after")
    assert "…masked" in once
    assert mask(once) == once


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
def test_leaves_ordinary_text_alone(text: str) -> None:
    """Code, ids, counts and prose stay readable."""
    assert mask(text) == text


_PIECES = [text for text, _ in SHAPES.values()] + list(ORDINARY.values())
_PIECES += [
    "password",
    "token",
    "key",
    "=",
    ":",
    '"',
    "'",
    "\\",
    "\n",
    " ",
    "@",
    "://",
    "eyJ",
    ".",
    "sk-",
    "…masked",
    "-",
    "<",
    ">",
    "&",
    R,
    "a",
]


@given(st.lists(st.sampled_from(_PIECES) | st.text(max_size=8), max_size=12).map("".join))
def test_is_idempotent_for_any_mixture(text: str) -> None:
    """Masking what is masked changes nothing."""
    once = mask(text)
    assert mask(once) == once


_WORST = [
    "sk-", "eyJ", "eyJ.", "-eyJ", "eyJaaaaaaaaaaaa.", "key=", "key=a", "password=", "password: str", "token='''", 'secret="', "password,'",
    "pass ", "authorization: ", "cookie:", "Bearer ", "://", "://a:", "://@", "-----BEGIN PRIVATE KEY-----", "a", "a.", "aB3_", "A-", "--a-",
    "\\", '\\\\"', "ghp_", "-u a:", "Q~", "login ", "auth=('", "123456789:", " " * 9 + "password" + " " * 9, "[{(", "sha-", "=<",
]  # fmt: skip


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@pytest.mark.parametrize("piece", _WORST, ids=repr)
def test_takes_time_linear_in_the_text(piece: str) -> None:
    """Eight times the text takes no more than about eight times as long; backtracking would take 64 times."""
    small, large = (piece * (size // len(piece)) for size in (25_000, 200_000))
    mask(small)
    best_small = min(_seconds(lambda: mask(small)) for _ in range(3))
    best_large = min(_seconds(lambda: mask(large)) for _ in range(2))
    assert best_large < 24 * best_small + 0.05


def test_masks_ten_megabytes_of_the_worst_kind() -> None:
    """A text that is all beginnings of secrets is masked at more than a quarter of a megabyte a second."""
    text = "".join(_WORST)
    text *= 10_000_000 // len(text)
    assert _seconds(lambda: mask(text)) < 40


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
