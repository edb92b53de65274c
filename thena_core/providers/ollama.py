"""Ollama's own chat, for models that run on one's own machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from thena_core.errors import ProviderError
from thena_core.messages import ChatTurn
from thena_core.providers.base import ChatRequest
from thena_core.providers.body import compact
from thena_core.providers.client import BrokenOff, Limits, Timeout
from thena_core.providers.ndjson import JsonLines
from thena_core.providers.ollama_wire import (
    ChatLines,
    OllamaError,
    encode_message,
    encode_options,
    encode_tool,
)
from thena_core.providers.openai_wire import mapping
from thena_core.providers.price import Price
from thena_core.providers.reply import MAX_MESSAGE, Reply, brief, excerpt, failure, message_in, server_message, shown
from thena_core.providers.rescue import Rescue
from thena_core.providers.retry import Retry
from thena_core.providers.sent import sent
from thena_core.providers.service import ServiceProvider, address
from thena_core.providers.spoken import Spoken
from thena_core.providers.transport import StreamedReply, Transport

DEFAULT_HOST = "http://127.0.0.1:11434"
DEFAULT_PORT = 11434
CLOUD_HOST = "ollama.com"
HOST_VARIABLE = "OLLAMA_HOST"

NOT_FOUND = 404
"""The status of an answer that knows no such model."""

UNREACHED = "All connection attempts failed"
"""What the HTTP client says where nobody listens."""

Think = bool | Literal["low", "medium", "high"]


class OllamaProvider(ServiceProvider):
    """Ask a model that Ollama runs.

    Ollama cuts a conversation that is longer than its context without a word, and its default is a few thousand tokens:
    `raw={"options": {"num_ctx": 32768}}` gives an agent room.

    Args:
        model: The model's name, as `ollama list` shows it.
        host: Where the server is, in any form that `OLLAMA_HOST` may have (`"gpu-box"`, `"gpu-box:11434"`,
            `"https://gpu-box/ollama"`); `None` takes the environment's `OLLAMA_HOST`, or else this machine.
        api_key: The key of a server that wants one; `None` takes the environment's `OLLAMA_API_KEY` for ollama.com,
            read with each request and never earlier, and sends none to others.
        think: Whether the model thinks before it answers, or how much; `None` leaves it to the model.
        retry: How often to try; `False` for once.
        timeout: How long to wait, as a `Timeout` or as seconds for everything; `None` for what `Timeout()` says.
        limits: How many connections to open, and how long an answer may be.
        raw: Fields for the request's body, laid over those that Thena writes; its `options` are laid over the options.
        price: What the tokens cost, where they do.
        transport: Sends the requests; made from `retry`, `timeout` and `limits` unless given.
        rescue: Whether calls that the model wrote as text are read: `True` where the answer is nothing but calls,
            `"lenient"` also inside other text, `False` never.

    Raises:
        ProviderError: For a `host` that is not one.
    """

    name = "ollama"
    key_variable = "OLLAMA_API_KEY"

    def __init__(
        self,
        model: str,
        host: str | None = None,
        *,
        api_key: str | None = None,
        think: Think | None = None,
        retry: Retry | bool = True,
        timeout: Timeout | float | None = None,
        limits: Limits | None = None,
        raw: Mapping[str, Any] | None = None,
        price: Price | None = None,
        transport: Transport | None = None,
        rescue: Rescue = True,
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
        self.host = host
        self.think = think
        if host is not None:
            endpoint(host)

    def __repr__(self) -> str:
        where = f", host={shown(endpoint(self.host)).removesuffix('/api/chat')!r}" if self.host is not None else ""
        return f"{type(self).__name__}(model={self.model!r}{where})"

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Answer a request.

        Raises:
            ProviderError: Where the server cannot be reached, has no such model, or its answer cannot be used.
        """
        url = endpoint(self.host or os.environ.get(HOST_VARIABLE) or DEFAULT_HOST)
        key = self._key(required=False, from_environment=urlsplit(url).hostname == CLOUD_HOST)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        body = self._written(lambda: self._body(request))
        try:
            return await self._asked(
                url,
                body,
                headers,
                read=lambda reply: self._read(reply, request, key),
                read_stream=None if request.on_text is None else lambda answer: self._read_stream(answer, request, key),
                accept="application/x-ndjson",
            )
        except ProviderError as error:
            if error.status is None and UNREACHED in error.message:
                error.message += ". Is Ollama running there? Start it: ollama serve"
            raise

    def _body(self, request: ChatRequest) -> str:
        # said in both cases: Ollama streams where nothing is said
        fields: dict[str, Any] = {"model": self.model, "stream": request.on_text is not None}
        if request.tools:
            fields["tools"] = [encode_tool(definition) for definition in request.tools]
        if self.think is not None:
            fields["think"] = self.think
        options = encode_options(request.sampling) | dict(mapping(self.raw.get("options")))
        fields |= self.raw
        if options:
            fields["options"] = options
        if "messages" in fields:
            return compact(fields)
        messages = request.messages
        history = sent(request, self)
        history.update(messages, lambda message: encode_message(message, messages, len(history.parts)))
        system = [compact({"role": "system", "content": request.system})] if request.system else []
        # last, so that the body of the next turn begins with the same bytes
        return f'{compact(fields)[:-1]},"messages":[{",".join((*system, *history.parts))}]}}'

    def _read(self, reply: Reply, request: ChatRequest, key: str) -> ChatTurn:
        if not reply.is_success:
            raise failure(reply, self.name, self._explained(server_message(reply, key), reply.status), key)
        answer = reply.json()
        lines = ChatLines()
        try:
            lines.take_object(mapping(answer))
        except OllamaError as error:
            problem = self._explained(brief(message_in(error.error), MAX_MESSAGE, key))
        else:
            if lines.began:
                return self._turn(lines.answer(self.price), request, reply.attempts)
            kind = "no message in the answer" if isinstance(answer, dict) else "the answer is not a JSON object"
            problem = f"{kind}: {excerpt(reply, key)}"
        raise failure(reply, self.name, problem, key)

    async def _read_stream(self, answer: StreamedReply, request: ChatRequest, key: str) -> ChatTurn:
        lines = ChatLines()
        spoken = Spoken(request, answer, self.rescue)
        if (await answer.peek()).lstrip()[:1] == b"<":  # the page of a proxy
            return self._read(await answer.rest(), request, key)
        try:
            async for line in JsonLines(answer):
                spoken.add(lines.take(line))
                if lines.done:
                    break
        except OllamaError as error:
            said = self._explained(brief(message_in(error.error), MAX_MESSAGE, key))
            problem = failure(answer.head, self.name, said, key)
        else:
            if not lines.done:
                raise BrokenOff("the answer ended before it was complete")
            if not lines.began:
                raise failure(answer.head, self.name, "an empty answer: no message in the stream", key)
            turn = self._turn(lines.answer(self.price), request, answer.head.attempts)
            spoken.end(turn.content)
            return turn
        raise problem

    def _explained(self, said: str, status: int = 0) -> str:
        """Add the way out to what the server said, where there is one."""
        said = said or "an error without words"
        if status == NOT_FOUND and "model" in said and "not found" in said:
            return f"{said}. Get it: ollama pull {self.model}"
        if "does not support tools" in said:
            return f"{said}. Take a model that does, e.g. one of ollama.com/search?c=tools, or an agent without tools."
        if "does not support thinking" in said:
            return f"{said}. Leave `think` out."
        return said


def endpoint(host: str) -> str:
    """Return the address of the chat, by Ollama's own rules for `OLLAMA_HOST`.

    Without a scheme it is `http` and port 11434; `0.0.0.0` and `::`, at which a server listens, mean this machine.

    Raises:
        ProviderError: For a host that is none.
    """
    text = host.strip().strip("\"'").strip()
    bare = "://" not in text
    if bare:
        text = f"{'https' if text.partition('/')[0] == CLOUD_HOST else 'http'}://{text or '127.0.0.1'}"
    if text.partition("://")[2].startswith(":"):
        text = text.replace("://", "://127.0.0.1", 1)
    parts = address(text, OllamaProvider.name, 'host="http://localhost:11434"')
    netloc = parts.netloc
    if bare and parts.port is None and parts.scheme == "http":
        netloc = f"{netloc.rstrip(':')}:{DEFAULT_PORT}"
    if parts.hostname in ("0.0.0.0", "::"):  # noqa: S104 - asked, not listened at
        netloc = netloc.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")  # noqa: S104 - as above
    path = parts.path.rstrip("/")
    for ending in ("/chat", "/api", "/v1"):
        path = path.removesuffix(ending)
    return urlunsplit((parts.scheme, netloc, f"{path}/api/chat", parts.query, ""))
