"""Fixtures for tests of tools, agents and plugins; pytest finds them by the entry point `thena`.

It stands beside `thena_core` and not in it, and imports nothing of it before a test asks for a fixture: pytest loads it
wherever thena-core is installed, and importing `thena_core` takes a fifth of a second. `-p no:thena` leaves it out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from thena_core.testing import Record


@pytest.fixture
def thena_record() -> Record:
    """A record of what happens: `Thena(…, log=thena_record)`, then `assert_calls(thena_record, …)`.

    Where the test fails, pytest shows the tree.
    """
    from thena_core.testing import Record  # noqa: PLC0415 - see the module's docstring

    return Record()


@pytest.fixture
def thena_overridden() -> Generator[Any, None, None]:
    """Other services until the test ends: `thena_overridden(services, clock=FakeClock())`, as for `overridden`."""
    from thena_core.testing import overridden  # noqa: PLC0415 - the same

    with contextlib.ExitStack() as stack:

        def override(container: Any, /, **services: Any) -> None:
            stack.enter_context(overridden(container, **services))

        yield override


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the tree of what was recorded in a test that failed."""
    report = yield
    record = getattr(item, "funcargs", {}).get("thena_record")
    if record is not None and report.when == "call" and report.failed:
        report.sections.append(("Thena: what was recorded", str(record) or "nothing"))
    return report
