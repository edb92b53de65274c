"""What a provider is: one method that answers a chat request. It never runs a tool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from thena_core.context import Context
from thena_core.definition import ToolDefinition
from thena_core.messages import ChatTurn, Message
from thena_core.record.tree import Node
from thena_core.run import Run

ToolCalls = Literal["one", "all"]


@dataclass(slots=True, frozen=True)
class Sampling:
    """How the model chooses its words; what is `None` is not sent.

    Attributes:
        temperature: Randomness, as the service defines it.
        top_p: Nucleus sampling.
        max_tokens: The most tokens that one answer may have.
        stop: Texts that end the answer.
        seed: For services that can repeat themselves.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: Sequence[str] | None = None
    seed: int | None = None


_empty = cast("Callable[[], dict[object, Any]]", dict)  # `dict[object, Any]` itself takes three times as long to call


@dataclass(slots=True)
class ChatRequest:
    """What a provider is asked.

    Attributes:
        messages: The history, the live list: copy what you keep.
        system: The agent's prompt.
        tools: The definitions that the model may call; `.json_schema` of each is what it sees.
        sampling: Neutral sampling settings.
        tool_calls: `one` asks the service for one call a turn where it can, `all` takes what comes.
        on_text: Called with each piece of text as it arrives; `None` means that nobody listens, so do not stream.
        kept: Where a provider keeps, under itself as the key, what it made of the messages already sent. A request
            belongs to one agent in one run, so nothing of a run stays behind in a provider that runs share.
    """

    messages: list[Message]
    system: str = ""
    tools: Sequence[ToolDefinition] = ()
    sampling: Sampling | None = None
    tool_calls: ToolCalls = "one"
    on_text: Callable[[str], None] | None = None
    kept: dict[object, Any] = field(default_factory=_empty, repr=False, compare=False)


class Provider(ABC):
    """Derive from it to connect a model service."""

    @abstractmethod
    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Answer a request; raise `ProviderError` where the service does not answer as it should."""

    @property
    def knows_cost(self) -> bool:
        """Whether `usage.cost_usd` is filled: by a `price`, or by the service itself."""
        return getattr(self, "price", None) is not None

    async def aclose(self) -> None:  # noqa: B027 - most providers hold nothing
        """Free what the provider holds (HTTP clients, say); called once, when the app closes."""


class ChatCall:
    """A model call, as a chat middleware sees it: read-only."""

    __slots__ = ("_request", "_step")

    def __init__(self, step: ChatStep) -> None:
        self._step = step
        self._request = step.request

    @property
    def messages(self) -> Sequence[Message]:
        """The history that is sent."""
        return tuple(self._request.messages)

    @property
    def system(self) -> str:
        """The agent's prompt."""
        return self._request.system

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """The tools that the model may ask for."""
        return self._request.tools

    @property
    def sampling(self) -> Sampling | None:
        """How the model chooses its words."""
        return self._request.sampling

    @property
    def ctx(self) -> Context[Any]:
        """The run."""
        return self._step.run.living_context()

    def meta(self, **data: Any) -> None:
        """Write to the node of this model call; nothing happens where nobody looks."""
        if self._step.node is not None:
            self._step.node.meta.update(data)


class ChatStep:
    """One agent's model calls in one run: made at its first turn, private to the framework."""

    __slots__ = ("node", "parent", "provider", "request", "run")

    def __init__(self, run: Run, provider: Provider, request: ChatRequest) -> None:
        self.run = run
        self.provider = provider
        self.request = request
        self.parent: Node | None = None
        self.node: Node | None = None


ChatNext = Callable[[ChatCall], Awaitable[ChatTurn]]
ChatMiddleware = Callable[[ChatCall, ChatNext], Awaitable[ChatTurn]]
ChatHandler = Callable[[ChatStep], Awaitable[ChatTurn]]
