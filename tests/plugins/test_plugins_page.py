"""The page for plugin authors: its plugin works as it stands, installed by its own pyproject."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.conftest import Install
from thena_core.hooks.checks import hooks

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.behaviour("P01", "P02")
def test_the_plugin_works(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's plugin, installed as its pyproject says, gives what the page shows."""
    [plugin, app, test], [toml], [shown] = blocks("python"), blocks("toml"), blocks("text")
    project = tomllib.loads(toml)["project"]
    plugins = project["entry-points"]["thena.plugins"]
    files = {"acme_audit/__init__.py": "", "acme_audit/plugin.py": plugin}
    install(project["name"], project["version"], plugins=plugins, requires=project["dependencies"], files=files)
    exec(compile(app, "docs/plugins.md", "exec"), {"__name__": "app"})  # noqa: S102 - that is what the page is for
    assert capsys.readouterr().out == shown
    names: dict[str, Any] = {"__name__": "test"}
    exec(compile(test, "docs/plugins.md", "exec"), names)  # noqa: S102 - the same
    names["test_it_conforms"]()


def test_every_hook_is_listed() -> None:
    """The table has every hook with its parameters, in the order of the specifications."""
    assert re.findall(r"^\| `(\w+\(.*?\))` \|", PAGE, re.MULTILINE) == [
        f"{name}({', '.join(parameters)})" for name, parameters in hooks().items()
    ]
