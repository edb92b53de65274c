"""For tests of tools, agents and plugins: a scripted provider, one tool run alone, the record of a run, conformance."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thena_core.testing.provider import FakeProvider

if TYPE_CHECKING:
    from thena_core.testing.assertions import assert_calls, assert_outcome
    from thena_core.testing.conformance import assert_plugin_conforms
    from thena_core.testing.override import overridden
    from thena_core.testing.recorded import Record, Step
    from thena_core.testing.running import run_tool

__all__ = [
    "FakeProvider",
    "Record",
    "Step",
    "assert_calls",
    "assert_outcome",
    "assert_plugin_conforms",
    "overridden",
    "run_tool",
]

_LAZY = {
    "Record": "thena_core.testing.recorded",
    "Step": "thena_core.testing.recorded",
    "assert_calls": "thena_core.testing.assertions",
    "assert_outcome": "thena_core.testing.assertions",
    "assert_plugin_conforms": "thena_core.testing.conformance",
    "overridden": "thena_core.testing.override",
    "run_tool": "thena_core.testing.running",
}


def __getattr__(name: str) -> Any:
    """Load what a test may do without only when it is asked for."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
