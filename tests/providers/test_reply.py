"""What a service says about its failure, found in bodies of every shape and freed of secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thena_core.providers.reply import Reply, failure, masked, server_message

KEY = "q8-Zm93c2VjcmV0a2V5"


def reply(body: Any, status: int = 400, **headers: str) -> Reply:
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return Reply(status, headers, text if isinstance(text, bytes) else text.encode())


@pytest.mark.behaviour("V08")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({"error": {"message": "no such model", "code": None}}, "no such model", id="openai"),
        pytest.param({"error": "out of memory"}, "out of memory", id="text-error"),
        pytest.param({"message": "Unauthorized"}, "Unauthorized", id="message"),
        pytest.param({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required", id="fastapi-list"),
        pytest.param([{"error": {"message": "bad key", "status": "X"}}], "bad key", id="gemini-list"),
        pytest.param({"errors": ["one", {"message": "two"}]}, "one; two", id="errors"),
        pytest.param(
            {"error": {"message": "Provider returned error", "metadata": {"raw": "upstream timeout"}}},
            "Provider returned error: upstream timeout",
            id="openrouter",
        ),
        pytest.param("just text\nof two lines", "just text of two lines", id="text"),
        pytest.param("<html><head><title>502 Bad &amp; Gateway</title></head></html>", "502 Bad & Gateway", id="title"),
        pytest.param("<html><script>x()</script><h1>Down</h1>for now</html>", "Down for now", id="html"),
        pytest.param("", "an empty answer, 400 Bad Request", id="empty"),
        pytest.param({"odd": 1}, '{"odd": 1}', id="unknown-shape"),
        pytest.param(b"\xff\xfe broken", "\ufffd\ufffd broken", id="not-utf8"),
        pytest.param("[" * 100_000, "[" * 199 + "…", id="too-deep"),
    ],
)
def test_finds_the_message(body: Any, words: str) -> None:
    """The words meant for a reader are found, whatever they are wrapped in."""
    assert server_message(reply(body)) == words


def test_an_unknown_status_has_no_phrase() -> None:
    """An empty answer with a status that no standard knows is still described."""
    assert server_message(reply("", 529)) == "an empty answer, 529"


def test_messages_are_cut() -> None:
    """A message of any length becomes one of at most 500 characters."""
    assert len(server_message(reply({"error": {"message": "x" * 9000}}))) == 500


@pytest.mark.behaviour("V08")
def test_failure_keeps_the_facts() -> None:
    """Status, provider, request id and attempts are attributes and stand in the text."""
    error = failure(Reply(429, {"x-request-id": "req_7"}, b"", 3, 3600.0), "openai", "slow down")
    assert (error.status, error.provider, error.request_id, error.attempts) == (429, "openai", "req_7", 3)
    assert str(error) == "openai: slow down (it asks to wait 3600 s) (status 429, request req_7, 3 attempts)"


@pytest.mark.behaviour("V08")
@pytest.mark.parametrize(
    ("text", "secret", "expected"),
    [
        pytest.param(f"bad key {KEY}!", KEY, "bad key ***!", id="the-key"),
        pytest.param("header Authorization: Bearer abc.def-ghi", "", "header Authorization: Bearer ***", id="bearer"),
        pytest.param("Incorrect API key: sk-proj-abcd****wxyz.", "", "Incorrect API key: sk-***.", id="key-like"),
        pytest.param("see http://me:pw@host/x", "", "see http://***@host/x", id="address"),
        pytest.param("x marks the next box", "x", "*** marks the next box", id="placeholder-key"),
    ],
)
def test_masks_secrets(text: str, secret: str, expected: str) -> None:
    """Secrets are replaced, and a one-letter placeholder does not eat the message."""
    assert masked(text, secret) == expected


def test_masks_before_it_cuts() -> None:
    """A key at the place where a message is cut does not stay behind by half."""
    text = server_message(reply({"error": {"message": "y" * 492 + " " + KEY}}), KEY)
    assert KEY[:4] not in text
