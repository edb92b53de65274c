"""Model services: what a provider is, the neutral words, and the providers that Thena brings."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thena_core.messages import ChatTurn, Message, ToolRequest, Usage
from thena_core.providers.base import ChatRequest, Provider, Sampling

if TYPE_CHECKING:
    from thena_core.providers.anthropic import AnthropicProvider
    from thena_core.providers.client import Limits, Timeout
    from thena_core.providers.ollama import OllamaProvider
    from thena_core.providers.openai import OpenAIProvider
    from thena_core.providers.price import Price
    from thena_core.providers.retry import Retry

__all__ = [
    "AnthropicProvider",
    "ChatRequest",
    "ChatTurn",
    "Limits",
    "Message",
    "OllamaProvider",
    "OpenAIProvider",
    "Price",
    "Provider",
    "Retry",
    "Sampling",
    "Timeout",
    "ToolRequest",
    "Usage",
]


def __getattr__(name: str) -> Any:
    homes = {
        "AnthropicProvider": "anthropic",
        "Limits": "client",
        "OllamaProvider": "ollama",
        "OpenAIProvider": "openai",
        "Price": "price",
        "Retry": "retry",
        "Timeout": "client",
    }
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{homes[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
