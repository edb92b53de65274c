"""The page for plugin authors: its plugin works as it stands, installed by its own pyproject."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.page import DOCS, blocks
from tests.plugins.conftest import Install
from thena_core.hooks.checks import hooks

PAGE = DOCS / "plugins.md"


@pytest.mark.behaviour("P01", "P02")
def test_the_plugin_works(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's plugin, installed as its pyproject says, gives what the page shows."""
    files = {block.file: block.code for block in blocks(PAGE) if block.file}
    app, project = files.pop("app.py"), tomllib.loads(files.pop("pyproject.toml"))["project"]
    [shown] = [block.shown for block in blocks(PAGE) if block.code == "python app.py\n"]
    plugins = project["entry-points"]["thena.plugins"]
    install(project["name"], project["version"], plugins=plugins, requires=project["dependencies"], files=files)
    exec(compile(app, "docs/plugins.md", "exec"), {"__name__": "app"})  # noqa: S102 - that is what the page is for
    assert capsys.readouterr().out == shown
    [test] = [block.code for block in blocks(PAGE) if "assert_plugin_conforms" in block.code]
    exec(compile(test, "docs/plugins.md", "exec"), {"__name__": "test"})  # noqa: S102 - the same


def test_every_hook_is_listed() -> None:
    """The table has every hook with its parameters, in the order of the specifications."""
    assert re.findall(r"^\| `(\w+\(.*?\))` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == [
        f"{name}({', '.join(parameters)})" for name, parameters in hooks().items()
    ]
