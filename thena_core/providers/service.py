"""What the providers over HTTP have in common: settings, key, address, the writing of a body and the asking."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast
from urllib.parse import SplitResult, urlsplit

from thena_core.errors import ProviderError
from thena_core.messages import ChatTurn
from thena_core.providers.answer import Answer, turn_of
from thena_core.providers.base import ChatRequest, Provider
from thena_core.providers.client import Limits, Timeout
from thena_core.providers.price import Price
from thena_core.providers.reply import Reply
from thena_core.providers.rescue import Rescue
from thena_core.providers.retry import Retry
from thena_core.providers.sent import sent
from thena_core.providers.transport import Read, Transport


class ServiceProvider(Provider):
    """Derive from it to connect a service over HTTP; it keeps the settings and the transport.

    Args:
        model: The service's name of the model.
        api_key: The key; `None` takes the environment's, read with each request and never earlier; an empty text sends
            none.
        retry: How often to try; `False` for once.
        timeout: How long to wait, as a `Timeout` or as seconds for everything; `None` for what `Timeout()` says.
        limits: How many connections to open, and how long an answer may be.
        raw: Fields for the request's body, laid over those that Thena writes.
        price: What the tokens cost; without it the cost is what the service reports, if it does.
        transport: Sends the requests; made from `retry`, `timeout` and `limits` unless given.
        rescue: Whether calls that the model wrote as text are read: `True` where the answer is nothing but calls,
            `"lenient"` also inside other text, `False` never.
    """

    name: ClassVar[str] = "service"
    key_variable: ClassVar[str] = ""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None,
        retry: Retry | bool,
        timeout: Timeout | float | None,
        limits: Limits | None,
        raw: Mapping[str, Any] | None,
        price: Price | None,
        transport: Transport | None,
        rescue: Rescue,
    ) -> None:
        if not isinstance(cast("object", retry), (Retry, bool)):
            raise TypeError(f"retry={retry!r}: give True, False, or Retry(attempts=…)")
        if rescue not in (True, False, "lenient"):
            raise ValueError(f'rescue={rescue!r}: give True, False or "lenient"')
        self.model = model
        self.raw = dict(raw or {})
        self.price = price
        self.rescue: Rescue = rescue
        self._api_key = api_key
        self._transport = transport or Transport(
            self.name,
            retry if isinstance(retry, Retry) else Retry() if retry else Retry(attempts=1),
            Timeout() if timeout is None else Timeout.of(timeout),
            limits or Limits(),
        )

    async def aclose(self) -> None:
        """Close the HTTP client of the running event loop."""
        await self._transport.aclose()

    def _key(self, *, required: bool, from_environment: bool = True) -> str:
        """Return the key, or an empty text for none.

        Raises:
            ProviderError: Where it is required and missing, or cannot be a header.
        """
        found = os.environ.get(self.key_variable, "") if from_environment else ""
        key = (found if self._api_key is None else self._api_key).strip()
        if not key and required:
            raise ProviderError(
                f"no API key. Set the environment variable {self.key_variable}, or write "
                f'{type(self).__name__}("{self.model}", api_key=…).',
                provider=self.name,
            )
        if not (key.isascii() and key.isprintable()):
            raise ProviderError(
                f"the API key holds characters that no HTTP header may have. Look at {self.key_variable} or `api_key`.",
                provider=self.name,
            )
        return key

    async def _asked(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        read: Callable[[Reply], ChatTurn],
        read_stream: Read[ChatTurn] | None,
        status_of: Callable[[Reply], int] | None = None,
        accept: str = "text/event-stream",
    ) -> ChatTurn:
        """Post a body and read the answer: as it comes where there is a reader for that, else as a whole.

        Args:
            url: The whole address.
            body: Encoded JSON.
            headers: Those of the service.
            read: Reads a whole answer, whatever its status; so also the error in place of a stream.
            read_stream: Reads a stream, or `None` where nobody listens.
            status_of: As for `Transport.post`.
            accept: The media type of a stream.

        Raises:
            ProviderError: As the transport and the readers do.
        """
        if read_stream is None:
            return read(await self._transport.post(url, body, headers, status_of=status_of))
        outcome = await self._transport.stream(url, body, headers, read_stream, accept=accept)
        return outcome if isinstance(outcome, ChatTurn) else read(outcome)

    def _turn(self, answer: Answer, request: ChatRequest, attempts: int) -> ChatTurn:
        """Make the turn of what was read."""
        taken = sent(request, self).call_ids
        return turn_of(answer, request, provider=self.name, rescue=self.rescue, attempts=attempts, taken=taken)

    def _written(self, write: Callable[[], str]) -> bytes:
        """Write a body.

        Raises:
            ProviderError: For what JSON cannot hold.
        """
        try:
            return write().encode()
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"the request (a schema, `raw`, or the arguments of a call) cannot be written as JSON: {error}"
        raise ProviderError(problem, provider=self.name)


def address(text: str, provider: str, hint: str) -> SplitResult:
    """Take an address apart.

    Args:
        text: The address.
        provider: The provider's name, for the error.
        hint: What a usable one looks like, as a user writes it (`base_url="http://localhost:8000"`).

    Raises:
        ProviderError: For an address that is none.
    """
    try:
        parts = urlsplit(text.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        usable = False
    if not usable:
        name = hint.partition("=")[0]
        raise ProviderError(f"{name} is not an address. Write it with its scheme, e.g. {hint}.", provider=provider)
    return urlsplit(text.strip())
