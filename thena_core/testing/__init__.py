"""For tests of tools, agents and plugins: a provider that plays a script, one tool run alone, other services."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thena_core.testing.provider import FakeProvider

if TYPE_CHECKING:
    from thena_core.testing.override import overridden
    from thena_core.testing.running import run_tool

__all__ = ["FakeProvider", "overridden", "run_tool"]

_LAZY = {"overridden": "thena_core.testing.override", "run_tool": "thena_core.testing.running"}


def __getattr__(name: str) -> Any:
    """Load what a test may do without only when it is asked for."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
