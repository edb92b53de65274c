"""When a request is tried again: which failures may pass by themselves, and how long to wait in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus

RETRYABLE = frozenset({408, 425, 429})
"""The client errors that may pass by themselves; of the others, only 500 and above (529 is "overloaded")."""

LONGEST_RETRY_AFTER = 365 * 24 * 3600.0
"""Seconds. A server that asks for more than a year is not asking for anything."""

_SECONDS = re.compile(r"\d{1,400}(\.\d{1,400})?")


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a request is tried, and how long to wait in between.

    Before the n-th new attempt it waits a random time between 0 and `base * 2**(n-1)` seconds ("full jitter"), at most
    `cap`. Where the service says how long (`Retry-After`), its word counts; where that is longer than `cap`, the
    request fails at once instead.

    Attributes:
        attempts: How many times in all, the first one included; at least 1.
        base: Seconds.
        cap: Seconds; the longest wait.

    Raises:
        ValueError: For a number that cannot be meant.
    """

    attempts: int = 4
    base: float = 0.5
    cap: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(
                f"Retry(attempts={self.attempts}): 1 is the least, the first try counts (none: retry=False)"
            )
        if self.base < 0 or self.cap < 0:
            raise ValueError(f"Retry(base={self.base:g}, cap={self.cap:g}): seconds cannot be negative")

    def jittered(self, attempt: int, random: Callable[[], float]) -> float:
        """Return the seconds to wait after the given attempt (counted from 1) failed."""
        # 2.0 ** 1024 overflows; 32 doublings of anything are beyond every cap
        return random() * min(self.cap, self.base * 2.0 ** min(attempt - 1, 32))

    def wait(self, attempt: int, asked: float | None, random: Callable[[], float]) -> float | None:
        """Return the seconds to wait after the given attempt failed, or `None` where there shall be no other.

        Args:
            attempt: Which one failed, counted from 1.
            asked: The seconds that the service asked for, or `None`.
            random: Gives a number from 0 to 1.
        """
        if attempt >= self.attempts:
            return None
        if asked is None:
            return self.jittered(attempt, random)
        return asked if asked <= self.cap else None


def may_pass(status: int) -> bool:
    """Say whether an error of this HTTP status may be gone when the request is sent again."""
    return status in RETRYABLE or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Read how many seconds a service asks to wait: seconds, decimals or a date (RFC 9110, 10.2.3).

    Args:
        headers: By lower-case name.
        now: Unix time in seconds.

    Returns:
        Seconds, 0 for a date in the past; `None` where it does not say, or says nonsense.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        seconds = float(milliseconds) / 1000
    else:
        text = headers.get("retry-after", "").strip()
        if _SECONDS.fullmatch(text):
            seconds = float(text)
        else:
            try:
                seconds = max(0.0, parsedate_to_datetime(text).timestamp() - now)
            except (ValueError, TypeError, IndexError, OverflowError, OSError):
                return None
    return seconds if seconds <= LONGEST_RETRY_AFTER else None
