"""An HTTP answer, and the `ProviderError` that it becomes: the service's words, short, and without secrets."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

from thena_core._render import shortened
from thena_core.errors import ProviderError

MAX_MESSAGE = 500
"""Characters of a message that a service wrote for a reader."""

MAX_EXCERPT = 200
"""Characters of a body that was not meant for a reader (HTML, plain text)."""

MAX_DEPTH = 4
"""Levels of an error's JSON in which a message is looked for."""

REAL_KEY = 8
"""Characters from which on a key is taken for a real one."""

_KEY_LIKE = re.compile(r"\b(sk|gsk|xai|hf)([-_])[\w*-]{6,}")
_BEARER = re.compile(r"(?i)\bbearer\s+[^\s'\",]+")
_USERINFO = re.compile(r"//[^/@\s]+@")
_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")
_UNSEEN = re.compile(r"(?is)<(script|style)\b.*?</\1>|<!--.*?-->")
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service answered, whatever its status.

    Attributes:
        status: The HTTP status.
        headers: By lower-case name.
        body: As it came, decompressed.
        attempts: How many requests it took.
        retry_after: Seconds that the service asked to wait, or `None`.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    attempts: int = 1
    retry_after: float | None = None

    @property
    def is_success(self) -> bool:
        """Whether the status is 200 to 299."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def text(self) -> str:
        """The body as text: UTF-8, which JSON is by its standard, whatever the header says."""
        return self.body.decode("utf-8-sig", "replace")

    def json(self) -> Any:
        """Parse the body; `None` where it is not JSON."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None


def failure(reply: Reply, provider: str, problem: str, secret: str = "") -> ProviderError:
    """Make the error for an answer that cannot be used.

    Args:
        reply: The answer.
        provider: The provider's name.
        problem: What is wrong, in the service's words where it has some.
        secret: The key that was sent, which a service may repeat in its message.
    """
    if reply.retry_after:
        problem = f"{problem} (it asks to wait {reply.retry_after:g} s)"
    request_id = reply.headers.get("x-request-id") or reply.headers.get("request-id")
    return ProviderError(
        masked(problem, secret),
        provider=provider,
        status=reply.status,
        request_id=brief(request_id, MAX_EXCERPT, secret) if request_id else None,
        attempts=reply.attempts,
        retry_after=reply.retry_after,
    )


def server_message(reply: Reply, secret: str = "") -> str:
    """Find what a service says in the body of an error: JSON of many shapes, HTML, text or nothing."""
    return brief(message_in(reply.json()), MAX_MESSAGE, secret) or excerpt(reply, secret)


def excerpt(reply: Reply, secret: str = "") -> str:
    """Quote the beginning of a body that is not JSON of a known shape; of an HTML page what a browser would show."""
    text = reply.text
    if "html" in reply.headers.get("content-type", "") or text.lstrip().startswith("<"):
        title = _TITLE.search(text)
        text = html.unescape(_TAG.sub(" ", _UNSEEN.sub(" ", title.group(1) if title else text)))
    words = brief(text, MAX_EXCERPT, secret)
    if words:
        return words
    known = reply.status in {status.value for status in HTTPStatus}
    return f"an empty answer, {reply.status} {HTTPStatus(reply.status).phrase if known else ''}".rstrip()


def message_in(data: Any, depth: int = 0) -> str:
    """Find the message in the JSON of an error; empty where there is none.

    Known: `{"error": {"message": …}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": … or [{"msg": …}]}`,
    `{"errors": […]}`, and a list of any of them.
    """
    if isinstance(data, str):
        return data.strip()
    if depth > MAX_DEPTH:
        return ""
    if isinstance(data, list):
        found = (message_in(entry, depth + 1) for entry in cast("Sequence[Any]", data)[:5])
        return "; ".join(message for message in found if message)
    if not isinstance(data, Mapping):
        return ""
    entries = cast("Mapping[str, Any]", data)
    for key in ("error", "message", "msg", "detail", "errors"):
        message = message_in(entries.get(key), depth + 1)
        if message:
            upstream = upstream_message(entries)
            return f"{message}: {upstream}" if upstream and upstream not in message else message
    return ""


def upstream_message(error: Mapping[str, Any]) -> str:
    """Find what the service behind a router said (OpenRouter's `metadata.raw`)."""
    metadata = error.get("metadata")
    raw = cast("Mapping[str, Any]", metadata).get("raw") if isinstance(metadata, Mapping) else None
    return raw.strip() if isinstance(raw, str) else ""


def brief(text: str, limit: int, secret: str) -> str:
    """Put a text on one short line; masked before it is cut, or half a key would stay."""
    return shortened(" ".join(masked(text, secret).split()), limit)


def masked(text: str, secret: str = "") -> str:
    """Take secrets out of a text: the given one, what looks like a key, and passwords in addresses."""
    if secret:
        # a placeholder such as "x" or "none" for a local server is masked as a word only, or it would eat the message
        pattern = re.escape(secret) if len(secret) >= REAL_KEY else rf"(?<!\w){re.escape(secret)}(?!\w)"
        text = re.sub(pattern, "***", text)
    text = _BEARER.sub("Bearer ***", text)
    text = _KEY_LIKE.sub(r"\1\2***", text)
    return _USERINFO.sub("//***@", text)


def shown(url: str) -> str:
    """Write an address for a reader: without user, password and query, which may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
