"""OpenAI's chat completions, as OpenAI and everybody compatible with it speaks them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from thena_core.errors import ProviderError
from thena_core.messages import ChatTurn
from thena_core.providers.base import ChatRequest, Provider
from thena_core.providers.body import encoded
from thena_core.providers.openai_wire import effective_status, encode_message, encode_sampling, encode_tool, read_turn
from thena_core.providers.price import Price
from thena_core.providers.transport import Limits, Retry, Timeout, Transport, shown

OFFICIAL_URL = "https://api.openai.com/v1"
OFFICIAL_HOST = "api.openai.com"
KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"


class OpenAIProvider(Provider):
    """Ask a model over OpenAI's chat completions.

    Args:
        model: The service's name of the model.
        api_key: The key; `None` takes the environment's `OPENAI_API_KEY`, read with each request and never earlier; an
            empty text sends none.
        base_url: Where the service is, up to and including `/v1`; `None` takes the environment's `OPENAI_BASE_URL`,
            or else OpenAI itself.
        retry: How often to try; `False` for once.
        timeout: How long to wait, as a `Timeout` or as seconds for everything; `None` for what `Timeout()` says.
        limits: How many connections to open.
        raw: Fields for the request's body, laid over those that Thena writes (`{"reasoning_effort": "low"}`).
        price: What the tokens cost; without it the cost is what the service reports, if it does.
        transport: Sends the requests; made from `retry`, `timeout` and `limits` unless given.

    Raises:
        ProviderError: For a `base_url` that is not one.
    """

    name = "openai"

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
    ) -> None:
        self.model = model
        self.base_url = base_url
        self.raw = dict(raw or {})
        self.price = price
        self._api_key = api_key
        if base_url is not None:
            endpoint(base_url)
        self._transport = transport or Transport(
            self.name,
            retry if isinstance(retry, Retry) else Retry() if retry else Retry(attempts=1),
            Timeout() if timeout is None else Timeout.of(timeout),
            limits or Limits(),
        )

    def __repr__(self) -> str:
        where = f", base_url={shown(self.base_url)!r}" if self.base_url is not None else ""
        return f"{type(self).__name__}(model={self.model!r}{where})"

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Answer a request.

        Raises:
            ProviderError: Where the key is missing, the service cannot be reached, or its answer cannot be used.
        """
        url = endpoint(self.base_url or os.environ.get(URL_VARIABLE) or OFFICIAL_URL)
        key = self._key(url)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        reply = await self._transport.post(url, self._body(request, url), headers, status_of=effective_status)
        turn = read_turn(reply, request.messages, self.price, self.name, key)
        if request.on_text is not None and turn.content:
            request.on_text(turn.content)
        return turn

    async def aclose(self) -> None:
        """Close the HTTP client of the running event loop."""
        await self._transport.aclose()

    def _key(self, url: str) -> str:
        given = os.environ.get(KEY_VARIABLE, "") if self._api_key is None else self._api_key
        key = given.strip()
        if not key and is_official(url):
            raise ProviderError(
                f"no API key. Set the environment variable {KEY_VARIABLE}, or write "
                f'{type(self).__name__}("{self.model}", api_key=…).',
                provider=self.name,
            )
        if not (key.isascii() and key.isprintable()):
            raise ProviderError(
                f"the API key holds characters that no HTTP header may have. Look at {KEY_VARIABLE} or `api_key`.",
                provider=self.name,
            )
        return key

    def _body(self, request: ChatRequest, url: str) -> bytes:
        try:
            return encoded(self._fields(request, official=is_official(url)))
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"the request (a schema, `raw`, or the arguments of a call) cannot be written as JSON: {error}"
        raise ProviderError(problem, provider=self.name)

    def _fields(self, request: ChatRequest, *, official: bool) -> dict[str, Any]:
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*system, *(encode_message(message) for message in request.messages)],
        }
        if request.tools:
            body["tools"] = [encode_tool(definition) for definition in request.tools]
            if request.tool_calls == "one":
                body["parallel_tool_calls"] = False
        if request.sampling is not None:
            body.update(encode_sampling(request.sampling, official=official))
        return body | self.raw


def endpoint(base_url: str) -> str:
    """Return the address of the chat completions; a query, as Azure wants one, stays behind it.

    Raises:
        ProviderError: For an address that is none.
    """
    try:
        parts = urlsplit(base_url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        usable = False
    if not usable:
        raise ProviderError(
            'base_url is not an address. Write it with its scheme, e.g. base_url="http://localhost:8000/v1".',
            provider=OpenAIProvider.name,
        )
    parts = urlsplit(base_url.strip())
    path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def is_official(url: str) -> bool:
    """Say whether an address is OpenAI's own."""
    return urlsplit(url).hostname == OFFICIAL_HOST
