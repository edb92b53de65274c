"""What a run may use, and what it has used: counted before a call runs, and in every run above it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from thena_core.errors import BudgetExceededError
from thena_core.messages import Usage


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one run, and of everything that it starts.

    Attributes:
        max_chat_calls: Model calls.
        max_tool_calls: Tool calls; a failed one counts, one that a middleware answered does not.
        max_tokens: Tokens read and written, as the provider reports them; checked before the next model call.
        tools: A quota per tool name; beyond it that tool answers `over_budget` and the run goes on.
        mode: `stop` ends the run with what there is (`stopped_by="budget"`), `throw` raises `BudgetExceededError`.
    """

    max_chat_calls: int | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    tools: Mapping[str, int] = field(default_factory=dict[str, int])
    mode: Literal["stop", "throw"] = "stop"


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What a run used.

    Attributes:
        chat_calls: Model calls.
        tool_calls: Tool calls that ran.
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        cached_tokens: Those read from the service's cache.
        cost_usd: US dollars, or `None` where no price is known.
        elapsed: Seconds from the start of the run.
    """

    chat_calls: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    elapsed: float = 0.0


class Tracker:
    """Count for one run, chained to the run above it.

    Everything happens between two awaits of one event loop, so a check and its count cannot be torn apart.
    """

    __slots__ = (
        "cached_tokens",
        "chat_calls",
        "completion_tokens",
        "cost_usd",
        "exceeded",
        "max_chat_calls",
        "max_tokens",
        "max_tool_calls",
        "mode",
        "parent",
        "prompt_tokens",
        "quotas",
        "tool_calls",
        "used_quotas",
    )

    def __init__(self, budget: Budget | None = None, parent: Tracker | None = None) -> None:
        self.parent = parent
        self.chat_calls = 0
        self.tool_calls = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cached_tokens = 0
        self.cost_usd: float | None = None
        self.exceeded: BudgetExceededError | None = None
        self.used_quotas: dict[str, int] = {}
        if budget is None:
            self.max_chat_calls = self.max_tool_calls = self.max_tokens = math.inf
            self.mode = "stop"
            self.quotas: Mapping[str, int] = {}
        else:
            self.max_chat_calls = _limit(budget.max_chat_calls)
            self.max_tool_calls = _limit(budget.max_tool_calls)
            self.max_tokens = _limit(budget.max_tokens)
            self.mode = budget.mode
            self.quotas = budget.tools

    def take_tool(self, name: str) -> str | None:
        """Count one tool call in this run and in those above, or say which limit forbids it and count nothing.

        Raises:
            BudgetExceededError: Where the budget that forbids it says `mode="throw"`.
        """
        tracker: Tracker | None = self
        while tracker is not None:
            if tracker.tool_calls >= tracker.max_tool_calls:
                over = tracker.exceed("max_tool_calls", tracker.max_tool_calls, tracker.tool_calls)
                if over.stops:
                    return over.limit
                raise over
            quotas = tracker.quotas
            if quotas and name in quotas and tracker.used_quotas.get(name, 0) >= quotas[name]:
                return f'tools["{name}"]'
            tracker = tracker.parent
        tracker = self
        while tracker is not None:
            tracker.tool_calls += 1
            if tracker.quotas:
                tracker.used_quotas[name] = tracker.used_quotas.get(name, 0) + 1
            tracker = tracker.parent
        return None

    def take_chat(self) -> None:
        """Count one model call in this run and in those above.

        Raises:
            BudgetExceededError: Where a limit forbids it; whether it stops the run or is thrown is in `stops`.
        """
        tracker: Tracker | None = self
        while tracker is not None:
            if tracker.exceeded is not None:
                raise tracker.exceeded
            if tracker.chat_calls >= tracker.max_chat_calls:
                raise tracker.exceed("max_chat_calls", tracker.max_chat_calls, tracker.chat_calls)
            tokens = tracker.prompt_tokens + tracker.completion_tokens
            if tokens >= tracker.max_tokens:
                raise tracker.exceed("max_tokens", tracker.max_tokens, tokens)
            tracker = tracker.parent
        tracker = self
        while tracker is not None:
            tracker.chat_calls += 1
            tracker = tracker.parent

    def settle(self, usage: Usage) -> None:
        """Add what one model call used."""
        tracker: Tracker | None = self
        while tracker is not None:
            tracker.prompt_tokens += usage.prompt_tokens
            tracker.completion_tokens += usage.completion_tokens
            tracker.cached_tokens += usage.cached_tokens
            if usage.cost_usd is not None:
                tracker.cost_usd = (tracker.cost_usd or 0.0) + usage.cost_usd
            tracker = tracker.parent

    def usage(self, elapsed: float) -> RunUsage:
        """Return the counts so far; `elapsed` in seconds."""
        return RunUsage(
            self.chat_calls,
            self.tool_calls,
            self.prompt_tokens,
            self.completion_tokens,
            self.cached_tokens,
            self.cost_usd,
            elapsed,
        )

    def exceed(self, limit: str, allowed: float, used: float) -> BudgetExceededError:
        """Note that a limit was reached, for everybody below, and return the error that says so."""
        self.exceeded = BudgetExceededError(limit, allowed, used, stops=self.mode == "stop")
        return self.exceeded


def _limit(value: int | None) -> float:
    return math.inf if value is None else value
