"""What a run may use, and what it has used: counted before a call runs, and in every run above it."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from thena_core._render import said_by
from thena_core.errors import BudgetExceededError
from thena_core.messages import Usage
from thena_core.record.logs import warn


@dataclass(frozen=True, init=False)
class Budget:
    """Limits of one run, and of everything that it starts.

    Attributes:
        max_duration: Seconds; a deadline that cancels what is in flight, not only the next step (`ctx.deadline`).
        max_chat_calls: Model calls.
        max_tool_calls: Tool calls; a failed one counts, one that a middleware answered does not.
        max_tokens: Tokens read and written, as the provider reports them; checked before the next model call.
        max_cost_usd: US dollars, as the provider prices them; checked before the next model call.
        tools: A quota per tool name; beyond it that tool answers `over_budget` and the run goes on.
        mode: `stop` ends the run with what there is (`stopped_by="budget"`), `throw` raises `BudgetExceededError`.
        on_exceeded: Called once, with what a limit would raise, when the first limit is reached.
    """

    max_duration: float | None
    max_chat_calls: int | None
    max_tool_calls: int | None
    max_tokens: int | None
    max_cost_usd: float | None
    tools: Mapping[str, int]
    mode: Literal["stop", "throw"]
    on_exceeded: Callable[[BudgetExceededError], object] | None

    def __init__(
        self,
        max_duration: float | None = None,
        max_chat_calls: int | None = None,
        max_tool_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        tools: Mapping[str, int] | None = None,
        mode: Literal["stop", "throw"] = "stop",
        on_exceeded: Callable[[BudgetExceededError], object] | None = None,
    ) -> None:
        # one is made per run: the frozen class's own __init__ takes three times as long
        fields = self.__dict__
        fields["max_duration"] = max_duration
        fields["max_chat_calls"] = max_chat_calls
        fields["max_tool_calls"] = max_tool_calls
        fields["max_tokens"] = max_tokens
        fields["max_cost_usd"] = max_cost_usd
        fields["tools"] = {} if tools is None else tools
        fields["mode"] = mode
        fields["on_exceeded"] = on_exceeded
        if (  # not in a loop: one is made per run
            (max_duration is not None and not max_duration >= 0)
            or (max_chat_calls is not None and not max_chat_calls >= 0)
            or (max_tool_calls is not None and not max_tool_calls >= 0)
            or (max_tokens is not None and not max_tokens >= 0)
            or (max_cost_usd is not None and not max_cost_usd >= 0)
            or (tools and not all(quota >= 0 for quota in tools.values()))
        ):
            raise ValueError(f"[thena] {self!r}: a limit is a number from 0 up, or None for none.")
        if on_exceeded is not None and inspect.iscoroutinefunction(on_exceeded):
            raise ValueError("[thena] Budget(on_exceeded=…) is `async def`, and nobody awaits it; write `def`.")
        if mode not in ("stop", "throw"):
            raise ValueError(f'[thena] Budget(mode={mode!r}): write mode="stop" or mode="throw".')


class RunUsage(NamedTuple):
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

    # defaults of the class for what few budgets limit; what each call looks at is set below, as in `Run`
    exceeded: BudgetExceededError | None = None
    deadline: float | None = None
    ends_at: float | None = None
    used_quotas: dict[str, int] | None = None
    quotas: Mapping[str, int] | None = None
    settled: Budget | None = None  # the budget, where it limits what is known only after a model call

    def __init__(self, budget: Budget | None = None, parent: Tracker | None = None) -> None:
        self.budget = budget
        self.parent = parent
        self.chat_calls = self.tool_calls = 0
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = 0
        self.cost_usd: float | None = None
        self.max_chat_calls: float = math.inf
        self.max_tool_calls: float = math.inf
        # nothing to look at but two counts: no run above, no quota, deadline, tokens or money, and nothing exceeded
        self.is_plain = True
        self.is_timed = False  # by a limit of its own
        if parent is not None:
            self.deadline = parent.deadline
            self.is_plain = False
        if budget is None:
            return
        if budget.max_duration is not None:
            self.is_timed = True
        if budget.max_chat_calls is not None:
            self.max_chat_calls = budget.max_chat_calls
        if budget.max_tool_calls is not None:
            self.max_tool_calls = budget.max_tool_calls
        if budget.max_tokens is not None or budget.max_cost_usd is not None:
            self.settled = budget
            self.is_plain = False
        if budget.tools:
            self.quotas, self.used_quotas = budget.tools, {}
            self.is_plain = False

    @property
    def limits_cost(self) -> bool:
        """Whether this run, or one above it, may cost only so much."""
        own = self.settled is not None and self.settled.max_cost_usd is not None
        return own or (self.parent is not None and self.parent.limits_cost)

    def start(self, now: float) -> None:
        """Set the deadline; `now` is the event loop's clock, in seconds."""
        if self.budget is not None and self.budget.max_duration is not None:
            own = now + self.budget.max_duration
            self.is_plain = False
            # beside the deadline, for what the loop cannot cancel: it is read in threads, and no loop may cache it
            self.ends_at = time.monotonic() + self.budget.max_duration
            self.deadline = own if self.deadline is None else min(own, self.deadline)

    def take_tool(self, name: str) -> str | None:
        """Count one tool call in this run and in those above, or say which limit forbids it and count nothing.

        Raises:
            BudgetExceededError: Where the budget that forbids it says `mode="throw"`.
        """
        tracker: Tracker | None = self
        while tracker is not None:
            over = None
            if tracker.ends_at is not None and time.monotonic() >= tracker.ends_at:
                over = tracker.out_of_time()
            elif tracker.tool_calls >= tracker.max_tool_calls:
                over = tracker.exceed("max_tool_calls", tracker.max_tool_calls, tracker.tool_calls)
            if over is not None:
                if over.stops:
                    return over.limit
                raise over
            quotas, used = tracker.quotas, tracker.used_quotas
            if quotas is not None and used is not None and name in quotas and used.get(name, 0) >= quotas[name]:
                return f'tools["{name}"]'
            tracker = tracker.parent
        tracker = self
        while tracker is not None:
            tracker.tool_calls += 1
            if tracker.used_quotas is not None:
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
            if tracker.ends_at is not None and time.monotonic() >= tracker.ends_at:
                raise tracker.out_of_time()
            if tracker.chat_calls >= tracker.max_chat_calls:
                raise tracker.exceed("max_chat_calls", tracker.max_chat_calls, tracker.chat_calls)
            if tracker.settled is not None:
                tracker.check_settled(tracker.settled)
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

    def exceed(self, limit: str, allowed: float, used: float) -> BudgetExceededError:
        """Note that a limit was reached, for everybody below, and return the error that says so."""
        stops = self.budget is None or self.budget.mode == "stop"
        over = BudgetExceededError(limit, allowed, used, stops=stops)
        self.is_plain = False
        if self.exceeded is None:
            self.exceeded = over
            if self.budget is not None and self.budget.on_exceeded is not None:
                self._announce(self.budget.on_exceeded, over)
        return over

    def _announce(self, function: Callable[[BudgetExceededError], object], error: BudgetExceededError) -> None:
        try:
            function(error)
        except Exception as failure:  # noqa: BLE001 - whoever is told must not change how the run ends
            warn(f"[thena] Budget(on_exceeded=…) failed: {said_by(failure)}", stacklevel=2)

    def out_of_time(self) -> BudgetExceededError:
        """Return what says that `max_duration` is used up: for what was not cancelled, as nothing was awaited."""
        allowed = 0.0 if self.budget is None or self.budget.max_duration is None else self.budget.max_duration
        return self.exceed("max_duration", allowed, allowed)

    def check_settled(self, budget: Budget) -> None:
        """Check what is known only after a model call.

        Raises:
            BudgetExceededError: Where the tokens or the cost are used up.
        """
        tokens = self.prompt_tokens + self.completion_tokens
        if budget.max_tokens is not None and tokens >= budget.max_tokens:
            raise self.exceed("max_tokens", budget.max_tokens, tokens)
        cost = self.cost_usd or 0.0
        if budget.max_cost_usd is not None and cost >= budget.max_cost_usd:
            raise self.exceed("max_cost_usd", budget.max_cost_usd, cost)
