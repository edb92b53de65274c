"""Tests of thena_core.record.redact."""

from __future__ import annotations

import random
import re
import string
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.record.ordinary import ORDINARY
from tests.record.vendor_keys import VENDOR_KEYS
from tests.record.writings import KEY, PASSWORD, WRITINGS
from thena_core.record.redact import mask

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

ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "b": string.ascii_letters + string.digits + "+/",
    "w": string.ascii_letters + string.digits + "_-",
    "d": string.digits,
    "A": string.ascii_letters,
}


def made_up(shape: str, seed: int) -> tuple[str, list[str]]:
    """Fill a shape of `vendor_keys` with random signs; return the key, and those parts that nobody may see."""
    chance = random.Random(seed)  # noqa: S311 - the same keys in every run
    secret: list[str] = []

    def fill(match: re.Match[str]) -> str:
        part = "".join(chance.choice(ALPHABETS[match[1]]) for _ in range(int(match[2])))
        if len(part) >= 16:
            secret.append(part[4:])
        return part

    return re.sub(r"\{([a-zA-Z])(\d+)\}", fill, shape), secret


@pytest.mark.behaviour("O05", "Q01")
@pytest.mark.parametrize(
    "frame", ["{}", "before {}, after", '{{"x": "{}"}}', "x={}\\ny=1"], ids=["alone", "text", "json", "escaped"]
)
@pytest.mark.parametrize("shape", VENDOR_KEYS.values(), ids=VENDOR_KEYS)
def test_masks_the_keys_of_services(shape: str, frame: str) -> None:
    """Of keys in their vendors' forms nothing random is left, whatever they are made of and wherever they stand."""
    for seed in range(3):
        key, secret = made_up(shape, seed)
        shown = mask(frame.format(key))
        assert "…masked" in shown
        assert not [part for part in secret if part in shown]
        assert mask(shown) == shown


@pytest.mark.behaviour("O05", "Q01")
@pytest.mark.parametrize("text", WRITINGS.values(), ids=WRITINGS)
def test_masks_a_secret_in_every_writing(text: str) -> None:
    """Headers, configuration, command lines, code, addresses, escapes, base64 and sentences give nothing away."""
    shown = mask(text)
    assert "…masked" in shown
    assert PASSWORD not in shown
    assert KEY not in shown
    assert mask(shown) == shown


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


_PIECES = [text for text, _ in SHAPES.values()] + list(ORDINARY.values()) + list(WRITINGS.values())
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
    '"value":"a', '="x" value=', "pass: |\n  ", "mysql -", "docker login ", "ENV password ", "://a/b/hooks/", "net use ", "htpasswd -b a b",
    "redis-cli ", "jdbc:oracle:thin:a/", "$2b$", "A" * 20, "\\u0070", "&quot;", "password for a", "password ....", "<password a",
    "password" + "\\" * 8 + ':"', "0a1b", "aGVsbG8gd29ybGQg", '"kty""d":"', '"passwords": ["a", ', "PASSWORD '", "token |", "code=a1",
    "1/1234567890123456", "glpat-a.", "token provided ", "\x1b[32mpassword\x1b[0m", "пароль", "tokens=“", 'pass="', "password 1",
    "password\n", "password,a\n", "a,password\n1,2\n", "|password|\n", "passwords:\n - ", "passwords:\n", "token,", "\tpassword\t\n\n",
    "kind: Secret\ndata:\n", "\ndata:\n a", "echo a", "echo a |", "mongo a ", "sqlplus a/", "smbclient a", "net user a ", "enable secret ",
    "username a secret ", "\nAUTH ", "USER a\n", "\na LOGIN a ", "form-data; name=password", "password\n  input_value=", 'setPassword("',
    "Client('", "security code ", "credentials: a", ":5432:", "\na:5432:b:c:", "password" + " " * 40, '"password","a":"b",', "/key/", "://a.infura.io/",
]  # fmt: skip


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()  # of the processor: machines are busy with other things
    work()
    return time.process_time() - start


@pytest.mark.parametrize("piece", _WORST, ids=repr)
def test_takes_time_linear_in_the_text(piece: str) -> None:
    """Eight times the text takes no more than about eight times as long; backtracking would take 64 times."""
    small, large = (piece * (size // len(piece)) for size in (12_500, 100_000))
    mask(small)
    best_small = min(_seconds(lambda: mask(small)) for _ in range(3))
    best_large = min(_seconds(lambda: mask(large)) for _ in range(2))
    assert best_large < 24 * best_small + 0.05


def test_masks_ten_megabytes_of_the_worst_kind() -> None:
    """A text that is all beginnings of secrets is masked at more than a ninth of a megabyte a second."""
    text = "".join(_WORST)
    text *= 10_000_000 // len(text)
    assert _seconds(lambda: mask(text)) < 90
