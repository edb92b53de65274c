"""What every test shares: the line about promises, the environment's wishes, and a guard against tasks and threads left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.promises import summary


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which promises no test pins yet."""
    terminalreporter.write_line(summary())


@pytest.fixture(autouse=True)
def no_wish_for_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test depend on what the person who runs them likes."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest_asyncio.fixture(autouse=True)
async def no_task_left(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Fail a test that leaves a task of its own running."""
    before = asyncio.all_tasks()
    yield
    for _ in range(20):  # what is being closed may take a few turns of the loop
        if asyncio.all_tasks() <= before:
            break
        await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() - before if not task.done() and task is not asyncio.current_task()]
    assert not left, f"{request.node.name} left tasks running: {left}"
