"""Pasting a page: what goes wrong in it is told, with the page and the line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.page import ROOT
from tests.docs.pasting import pasted, unfit


def wrong(tmp_path: Path, text: str) -> list[str]:
    """Write a page, paste it, and return what is wrong with it."""
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    folder = tmp_path / "paste"
    folder.mkdir()
    return unfit(path) + pasted(path, folder, PYTHONPATH=str(ROOT))


def test_a_page_that_is_right(tmp_path: Path) -> None:
    """Files are saved, names stay, commands run in the same folder, and both streams count in their order."""
    text = """
```python title="shop/shelf.py"
ROWS = 3
```

```python
import sys

from shop.shelf import ROWS

print("out")
print("err", file=sys.stderr)
```

```text
out
err
```

```bash
python -c "from shop.shelf import ROWS; print(ROWS)"
```

```text
3
```

```python
print(ROWS)
```

```text
3
```
"""
    assert wrong(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```python\nprint(2)\n```\n\n```text\n3\n```\n", "page.md:2: it prints\n2\n\nand the page shows\n3"),
        ("```python\nprint(2)\n```\n", "page.md:2: it prints\n2\n\nand the page shows\nnothing"),
        ("```python\nx = 1\n```\n\n```text\n1\n```\n", "page.md:2: it prints\n\nand the page shows\n1"),
        ("```python\n\n1 / 0\n```\n", "page.md:2: it failed:"),
        ("```bash\nfalse\necho on\n```\n", "page.md:2: it failed:"),
        ("```python\nx =\n```\n", "SyntaxError"),
        ("```python\nraise SystemExit(0)\n```\n\n```python\nx = 1\n```\n", "only 0 of 2 blocks ran"),
        ("```text\na drawing?\n```\n", "nothing runs a `text` block"),
        ("```\nx = 1\n```\n", "nothing runs a `` block"),
        ("```toml\na =\n```\n", "page.md:2: "),
        ("```bash\nscripts/tset\n```\n", "there is no scripts/tset"),
    ],
    ids=[
        "other output",
        "more than shown",
        "less than shown",
        "raises",
        "a failing command",
        "no Python",
        "leaves",
        "an output of nothing",
        "no language",
        "no TOML",
        "no script",
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, said: str) -> None:
    """Each way in which a page can be wrong has its line."""
    assert said in "\n".join(wrong(tmp_path, text))


def test_the_reader_s_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page sees nothing of whoever runs the tests: no key, no home, no setting."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-pages")
    text = """
```python
import os

print("OPENAI_API_KEY" in os.environ, os.listdir())
```

```text
False []
```
"""
    assert wrong(tmp_path, text) == []
    assert "OPENAI_API_KEY" in os.environ
