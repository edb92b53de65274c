"""OpenAI's chat completions, as OpenAI and everybody compatible with it speaks them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from thena_core.definition import ToolDefinition
from thena_core.messages import ChatTurn, Message
from thena_core.providers.base import ChatRequest
from thena_core.providers.body import compact
from thena_core.providers.client import BrokenOff, Limits, Timeout
from thena_core.providers.openai_stream import CompletionStream
from thena_core.providers.openai_wire import (
    effective_status,
    encode_message,
    encode_sampling,
    encode_tool,
    read_answer,
    status_in,
)
from thena_core.providers.price import Price
from thena_core.providers.reply import MAX_MESSAGE, Reply, brief, failure, message_in, shown
from thena_core.providers.rescue import Rescue
from thena_core.providers.retry import Retry
from thena_core.providers.sent import sent
from thena_core.providers.service import ServiceProvider, address
from thena_core.providers.spoken import Spoken
from thena_core.providers.sse import ServerEvents
from thena_core.providers.transport import StreamedReply, Transport

OFFICIAL_URL = "https://api.openai.com/v1"
OFFICIAL_HOST = "api.openai.com"
KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"

LAST_WORDS = 5.0
"""Seconds for what may follow the finish reason (the usage, the terminator): some servers just hold the line."""

REFUSED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class OpenAIProvider(ServiceProvider):
    """Ask a model over OpenAI's chat completions.

    Args:
        model: The service's name of the model.
        api_key: The key; `None` takes the environment's `OPENAI_API_KEY`, read with each request and never earlier; an
            empty text sends none.
        base_url: Where the service is, up to and including `/v1`; `None` takes the environment's `OPENAI_BASE_URL`,
            or else OpenAI itself.
        retry: How often to try; `False` for once.
        timeout: How long to wait, as a `Timeout` or as seconds for everything; `None` for what `Timeout()` says.
        limits: How many connections to open, and how long an answer may be.
        raw: Fields for the request's body, laid over those that Thena writes (`{"reasoning_effort": "low"}`).
        price: What the tokens cost; without it the cost is what the service reports, if it does.
        transport: Sends the requests; made from `retry`, `timeout` and `limits` unless given.
        rescue: Whether calls are read that the model wrote as text: `True` where the answer is nothing else,
            `"lenient"` also inside other text, `False` never. Only calls of the agent's tools are.
        reasoning: Whether the model's reasoning is sent back with its messages. `None` sends it with messages that
            call tools, in the fields in which it came, as DeepSeek, Kimi, OpenRouter and Gemini want it; `True` always
            and all of it; `False` never, for a service that refuses it.
        empty_content: What stands for the content of a message that only calls tools: `None`, as with OpenAI, or `""`.

    Raises:
        ProviderError: For a `base_url` that is not one.
    """

    name = "openai"
    key_variable = KEY_VARIABLE

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
        reasoning: bool | None = None,
        empty_content: str | None = None,
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
        self.reasoning = reasoning
        self.empty_content = empty_content
        self._asks_for_usage = True
        if base_url is not None:
            endpoint(base_url)

    def __repr__(self) -> str:
        where = f", base_url={shown(self.base_url)!r}" if self.base_url is not None else ""
        return f"{type(self).__name__}(model={self.model!r}{where})"

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Answer a request; streamed where `request.on_text` is given.

        Raises:
            ProviderError: Where the key is missing, the service cannot be reached, or its answer cannot be used.
        """
        url = endpoint(self.base_url or os.environ.get(URL_VARIABLE) or OFFICIAL_URL)
        key = self._key(required=is_official(url))
        headers = {"authorization": f"Bearer {key}"} if key else {}
        body = self._written(lambda: self._body(request, official=is_official(url)))
        if request.on_text is None:
            reply = await self._transport.post(url, body, headers, status_of=effective_status)
            return self._turn(read_answer(reply, self.price, self.name, key), request, reply.attempts)

        async def read(streamed: StreamedReply) -> ChatTurn:
            return await self._read_stream(streamed, request, key)

        asked_for_usage = self._asks_for_usage
        outcome = await self._transport.stream(url, body, headers, read)
        if asked_for_usage and usage_is_refused(outcome):
            self._asks_for_usage = False
            body = self._written(lambda: self._body(request, official=is_official(url)))
            outcome = await self._transport.stream(url, body, headers, read)
        if isinstance(outcome, ChatTurn):
            return outcome
        return self._turn(read_answer(outcome, self.price, self.name, key), request, outcome.attempts)

    async def _read_stream(self, streamed: StreamedReply, request: ChatRequest, key: str) -> ChatTurn:
        spoken = Spoken(request, streamed, self.rescue)
        if (await streamed.peek()).lstrip()[:1] in (b"{", b"[", b"<"):  # no stream: an answer, an error, a page
            reply = await streamed.rest()
            answer = read_answer(reply, self.price, self.name, key)
        else:
            stream = CompletionStream(spoken.add)
            await read_events(ServerEvents(streamed), stream)
            if stream.error is not None:
                head = replace(streamed.head, status=status_in(stream.error, streamed.head.status))
                said = brief(message_in(stream.error), MAX_MESSAGE, key) or brief(str(stream.error), MAX_MESSAGE, key)
                raise failure(head, self.name, said, key)
            if not stream.is_complete:
                raise BrokenOff("the stream ended before the answer was complete")
            if not stream.began:
                raise failure(streamed.head, self.name, "an empty answer: no choices in the stream", key)
            answer = stream.answer([tool.name for tool in request.tools], self.price)
        turn = self._turn(answer, request, streamed.head.attempts)
        spoken.end(turn.content)
        return turn

    def _body(self, request: ChatRequest, *, official: bool) -> str:
        fields: dict[str, Any] = {"model": self.model}
        if request.tools and request.tool_calls == "one":
            fields["parallel_tool_calls"] = False
        if request.sampling is not None:
            fields.update(encode_sampling(request.sampling, official=official))
        if request.on_text is not None:
            fields["stream"] = True
            if self._asks_for_usage:
                fields["stream_options"] = {"include_usage": True}
        fields |= self.raw
        known = sent(request, self)
        known.update(request.messages, self._message)
        parts = [compact(fields)[1:-1]]
        if request.tools and "tools" not in fields:
            parts.append(f'"tools":{known.tools_of(request.tools, encode_tools)}')
        if "messages" not in fields:
            system = [compact({"role": "system", "content": request.system})] if request.system else []
            # last, so that the body of the next turn begins with the same bytes
            parts.append(f'"messages":[{",".join((*system, *known.parts))}]')
        return f"{{{','.join(parts)}}}"

    def _message(self, message: Message) -> str:
        return compact(encode_message(message, reasoning=self.reasoning, empty=self.empty_content))


async def read_events(events: ServerEvents, stream: CompletionStream) -> None:
    """Read a stream to its end; what follows the finish reason is waited for a short while only."""
    try:
        while not stream.done and stream.error is None:
            patience = LAST_WORDS if stream.finish_reason else None
            async with asyncio.timeout(patience):
                event = await anext(events)
            stream.take(event)
    except StopAsyncIteration:
        return
    except (TimeoutError, BrokenOff):
        if not stream.finish_reason:
            raise


def encode_tools(tools: Sequence[ToolDefinition]) -> str:
    """Write what the model sees of the tools."""
    return compact([encode_tool(definition) for definition in tools])


def usage_is_refused(outcome: ChatTurn | Reply) -> bool:
    """Say whether a strict server takes offence at the one field that only streams have."""
    return isinstance(outcome, Reply) and outcome.status in REFUSED and b"stream_options" in outcome.body


def endpoint(base_url: str) -> str:
    """Return the address of the chat completions; a query, as Azure wants one, stays behind it.

    Raises:
        ProviderError: For an address that is none.
    """
    parts = address(base_url, OpenAIProvider.name, 'base_url="http://localhost:8000/v1"')
    path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def is_official(url: str) -> bool:
    """Say whether an address is OpenAI's own."""
    return urlsplit(url).hostname == OFFICIAL_HOST
