"""Loads a recipe as the file that it is: nothing of `docs` is a package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"


def recipe(name: str) -> Any:
    """Return the module of `docs/recipes/<name>.py`."""
    loaded = f"docs_recipes_{name}"
    if loaded not in sys.modules:
        spec = importlib.util.spec_from_file_location(loaded, RECIPES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module: ModuleType = importlib.util.module_from_spec(spec)
        sys.modules[loaded] = module
        spec.loader.exec_module(module)
    return sys.modules[loaded]
