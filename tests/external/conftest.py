"""What the tests against the work of others share: the folder in which `scripts/external` installed it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.loopback import Loopback


@pytest.fixture(scope="session")
def installed() -> Path:
    """Return the folder, or skip the test where there is none."""
    folder = os.environ.get("THENA_EXTERNAL", "")
    if not folder or not (Path(folder) / "installed").is_file():
        pytest.skip("THENA_EXTERNAL names no folder with the servers: run scripts/external, which makes one")
    return Path(folder)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.close()
