"""Anthropic's messages, as Anthropic and everybody compatible with it speaks them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from thena_core.messages import ChatTurn
from thena_core.providers.anthropic_stream import MessageStream, StreamedError
from thena_core.providers.anthropic_wire import (
    encode_message,
    encode_settings,
    join_messages,
    read_answer,
    split_system,
)
from thena_core.providers.base import ChatRequest
from thena_core.providers.body import compact
from thena_core.providers.client import BrokenOff, Limits, Timeout
from thena_core.providers.openai_wire import items, mapping
from thena_core.providers.price import Price
from thena_core.providers.reply import MAX_MESSAGE, Reply, brief, excerpt, failure, message_in, server_message, shown
from thena_core.providers.rescue import Rescue
from thena_core.providers.retry import Retry
from thena_core.providers.sent import sent
from thena_core.providers.service import ServiceProvider, address
from thena_core.providers.spoken import Spoken
from thena_core.providers.sse import ServerEvents
from thena_core.providers.transport import StreamedReply, Transport

OFFICIAL_URL = "https://api.anthropic.com"
OFFICIAL_HOST = "api.anthropic.com"
URL_VARIABLE = "ANTHROPIC_BASE_URL"

VERSION = "2023-06-01"
"""The version of the service's interface, which it wants to be told."""

MAX_TOKENS = 16_384
"""What one answer may have where nobody says: the service has no default. All models that it serves today allow it."""

STATUS_OF_ERROR = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status that each of the service's kinds of error has, for those that come inside an answer."""


class AnthropicProvider(ServiceProvider):
    """Ask a model over Anthropic's messages.

    The service caches nothing unless asked to: `raw={"cache_control": {"type": "ephemeral"}}` has it cache the prefix
    that two requests of a run share. Likewise `raw={"thinking": {"type": "enabled", "budget_tokens": 4096}}` lets the
    model think; what it thinks is kept with its messages and sent back, and is never part of the answer. The service
    wants the first and the last word to be the user's: where a history has it otherwise, `Continue.` is put there.

    Args:
        model: The service's name of the model.
        api_key: The key; `None` takes the environment's `ANTHROPIC_API_KEY`, read with each request and never earlier;
            an empty text sends none.
        base_url: Where the service is, without `/v1`; `None` takes the environment's `ANTHROPIC_BASE_URL`, or else
            Anthropic itself.
        retry: How often to try; `False` for once.
        timeout: How long to wait, as a `Timeout` or as seconds for everything; `None` for what `Timeout()` says.
        limits: How many connections to open, and how long an answer may be.
        raw: Fields for the request's body, laid over those that Thena writes.
        price: What the tokens cost; the service does not report it.
        transport: Sends the requests; made from `retry`, `timeout` and `limits` unless given.
        rescue: Whether calls that the model wrote as text are read: `True` where the answer is nothing but calls,
            `"lenient"` also inside other text, `False` never.
        max_tokens: What one answer may have, for agents whose `sampling` does not say.

    Raises:
        ProviderError: For a `base_url` that is not one.
    """

    name = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"

    def __init__(
        self,
        model: str,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        retry: Retry | bool = True,
        timeout: Timeout | float | None = None,
        limits: Limits | None = None,
        raw: Mapping[str, Any] | None = None,
        price: Price | None = None,
        transport: Transport | None = None,
        rescue: Rescue = True,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        super().__init__(
            model,
            api_key=api_key,
            retry=retry,
            timeout=timeout,
            limits=limits,
            raw=raw,
            price=price,
            transport=transport,
            rescue=rescue,
        )
        self.base_url = base_url
        self.max_tokens = max_tokens
        if base_url is not None:
            endpoint(base_url)

    def __repr__(self) -> str:
        where = f", base_url={shown(self.base_url)!r}" if self.base_url is not None else ""
        return f"{type(self).__name__}(model={self.model!r}{where})"

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Answer a request.

        Raises:
            ProviderError: Where the key is missing, the service cannot be reached, or its answer cannot be used.
        """
        url = endpoint(self.base_url or os.environ.get(URL_VARIABLE) or OFFICIAL_URL)
        key = self._key(required=urlsplit(url).hostname == OFFICIAL_HOST)
        headers = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}
        body = self._written(lambda: self._body(request))
        return await self._asked(
            url,
            body,
            headers,
            read=lambda reply: self._read(reply, request, key),
            read_stream=None if request.on_text is None else lambda answer: self._read_stream(answer, request, key),
            status_of=effective_status,
        )

    def _body(self, request: ChatRequest) -> str:
        system, number = split_system(request.system, request.messages)
        fields: dict[str, Any] = {"model": self.model}
        if system:
            fields["system"] = system
        fields |= encode_settings(request.sampling, request.tools, request.tool_calls, self.max_tokens)
        if request.on_text is not None:
            fields["stream"] = True
        fields |= self.raw
        if "messages" in fields:
            return compact(fields)
        history = sent(request, self)
        history.update(request.messages, encode_message)
        messages = join_messages(request.messages[number:], history.parts[number:])
        # last, so that the body of the next turn begins with the same bytes
        return f'{compact(fields)[:-1]},"messages":{messages}}}'

    def _read(self, reply: Reply, request: ChatRequest, key: str) -> ChatTurn:
        answer = mapping(reply.json())
        content = answer.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not reply.is_success or answer.get("error") or not isinstance(content, list):
            raise failure(replace(reply, status=effective_status(reply)), self.name, problem_of(reply, key), key)
        blocks = [mapping(block) for block in items(content)]
        read = read_answer(blocks, answer.get("stop_reason"), mapping(answer.get("usage")), self.price)
        return self._turn(read, request, reply.attempts)

    async def _read_stream(self, answer: StreamedReply, request: ChatRequest, key: str) -> ChatTurn:
        spoken = Spoken(request, answer, self.rescue)
        if (await answer.peek()).lstrip()[:1] in (b"{", b"[", b"<"):  # no stream: an answer, an error, a page
            turn = self._read(await answer.rest(), request, key)
            spoken.end(turn.content)
            return turn
        stream = MessageStream()
        try:
            async for event in ServerEvents(answer):
                spoken.add(stream.take(event))
                if stream.ended:
                    break
        except StreamedError as streamed:
            head = replace(answer.head, status=status_of(streamed.error) or answer.head.status)
            said = brief(message_in(streamed.error), MAX_MESSAGE, key) or "an error without words in the stream"
            problem = failure(head, self.name, said, key)
        else:
            if not stream.ended:
                raise BrokenOff("the answer ended before it was complete")
            if not stream.began:
                raise failure(answer.head, self.name, "an empty answer: no message in the stream", key)
            read = read_answer(stream.blocks, stream.stop_reason, stream.usage, self.price)
            turn = self._turn(read, request, answer.head.attempts)
            spoken.end(turn.content)
            return turn
        raise problem


def endpoint(base_url: str) -> str:
    """Return the address of the messages; a query stays behind it.

    Raises:
        ProviderError: For an address that is none.
    """
    parts = address(base_url, AnthropicProvider.name, 'base_url="http://localhost:8080"')
    path = parts.path.rstrip("/").removesuffix("/messages").removesuffix("/v1") + "/v1/messages"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def status_of(error: Any) -> int | None:
    """Return the HTTP status that an error's kind has, or `None` for an unknown one."""
    return STATUS_OF_ERROR.get(str(mapping(error).get("type")))


def effective_status(reply: Reply) -> int:
    """Return the status that counts for trying again: the kind of error in the body where the answer claims success."""
    if not reply.is_success or b'"error"' not in reply.body:
        return reply.status
    return status_of(mapping(reply.json()).get("error")) or reply.status


def problem_of(reply: Reply, key: str) -> str:
    """Say why an answer has no content."""
    answer = reply.json()
    if not reply.is_success or mapping(answer).get("error"):
        return server_message(reply, key)
    kind = "no content in the answer" if isinstance(answer, dict) else "the answer is not a JSON object"
    return f"{kind}: {excerpt(reply, key)}"
