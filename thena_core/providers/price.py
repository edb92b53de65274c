"""What a model's tokens cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, the unit of the services' own price lists.

    Attributes:
        prompt: For tokens read.
        completion: For tokens written.
        cached: For tokens read from the service's cache; `None` means the same as `prompt`.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def of(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost in US dollars; `cached_tokens` are among `prompt_tokens`."""
        cached = min(cached_tokens, prompt_tokens)
        cached_price = self.prompt if self.cached is None else self.cached
        fresh = prompt_tokens - cached
        return (fresh * self.prompt + cached * cached_price + completion_tokens * self.completion) / 1_000_000
