"""The distributions, built once for all tests of the release."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.release.environments import PROJECTS, ROOT, Distribution, Environment, build, make_environment

EXTRA = ("typer", "rich", "shellingham", "annotated_doc")
"""What the extra `cli` brings that nothing else of thena-core needs."""


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Distribution]:
    """Every distribution by name; `scripts/release-check` says by THENA_DIST where they are to stay."""
    kept = os.environ.get("THENA_DIST")
    folder = ROOT / kept if kept else tmp_path_factory.mktemp("dist")
    folder.mkdir(exist_ok=True)
    return build(PROJECTS, folder)


@pytest.fixture(scope="session")
def wheels(distributions: dict[str, Distribution]) -> dict[str, Path]:
    """Every distribution's wheel by name."""
    return {name: distribution.wheel for name, distribution in distributions.items()}


@pytest.fixture(scope="session")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment that has the wheels."""
    return make_environment(tmp_path_factory.mktemp("installed"), wheels.values())


@pytest.fixture
def bare(wheels: dict[str, Path], tmp_path: Path) -> Environment:
    """An environment that has the wheels, without the extra `cli`."""
    return make_environment(tmp_path / "bare", wheels.values(), without=EXTRA)
