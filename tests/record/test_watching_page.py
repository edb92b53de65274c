"""The page about watching a run: its examples print what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from thena_core.record import logs

PAGE = (Path(__file__).parents[2] / "docs" / "watching.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.behaviour("O01", "C05")
@pytest.mark.parametrize(("code", "shown"), BLOCKS, ids=["console", "events"])
def test_examples(code: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example runs as it stands and prints what stands below it, whatever time its steps take."""
    exec(compile(code, "docs/watching.md", "exec"), {"__name__": "page"})  # noqa: S102 - that is what the page is for
    said = capsys.readouterr()
    assert re.sub(r"\d+ms", "0ms", said.out + said.err) == re.sub(r"\d+ms", "0ms", shown)


@pytest.mark.behaviour("O09")
def test_every_logger_is_named() -> None:
    """The table of loggers has all of them."""
    assert {f"`.{kind}`" in PAGE or f"`thena.{kind}`" in PAGE for kind in (*logs.STEPS, "run")} == {True}
