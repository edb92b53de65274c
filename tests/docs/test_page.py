"""Reading a page: its blocks, their files, what they print, and why some are not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page import ROOT, Block, blocks, matches

PAGE = """# A page

Save it:

```python title="shelf.py"
rows = 3
```

```python
print(rows)
```

```text
3
```

Something in between.

```text
a drawing
```

*Not run here: it needs
a key.*

```bash
ask --key
```

<!-- needs: thena_core.tool -->
```python
x = 1
```

- in a list:

    ```python
    y = 2
    ```
"""


def page(tmp_path: Path, text: str) -> Path:
    """Write a page."""
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_blocks(tmp_path: Path) -> None:
    """Each block is there in order; an output belongs to the block right above it, and to no other."""
    assert blocks(page(tmp_path, PAGE)) == [
        Block("python", "shelf.py", "rows = 3\n", 6),
        Block("python", None, "print(rows)\n", 10, "3\n"),
        Block("text", None, "a drawing\n", 20),
        Block("bash", None, "ask --key\n", 27, excuse="it needs a key."),
        Block("python", None, "x = 1\n", 32, needs="thena_core.tool"),
        Block("python", None, "y = 2\n", 38),
    ]


def test_a_block_that_is_never_closed(tmp_path: Path) -> None:
    """It is an error, and not the rest of the page left out."""
    with pytest.raises(ValueError, match="never closed"):
        blocks(page(tmp_path, "```python\nx = 1\n"))


def test_an_included_file(tmp_path: Path) -> None:
    """A line that includes a file of the project stands for its text."""
    [block] = blocks(page(tmp_path, '```{.text title="LICENSE"}\n--8<-- "LICENSE"\n```\n'))
    assert (block.language, block.file) == ("text", "LICENSE")
    assert block.code == (ROOT / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("one\ntwo\n", "one\ntwo", True),
        ("one", "one\ntwo", False),
        ("one\ntwo", "one", False),
        ("run …: ended", "run r1: ended", True),
        ("run …: ended", "run\nr1: ended", False),
        ("◂ tool a  4ms ✓", "◂ tool a  12.5ms ✓", True),
        ("◂ tool a  4ms ✓", "◂ tool a  4ms ✗", False),
        ("a4ms", "a5ms", False),
        ("a.b", "axb", False),
        ("", "anything", False),
    ],
    ids=["end", "more", "less", "gap", "gap in a line", "time", "other sign", "no time", "dot", "nothing shown"],
)
def test_matches(shown: str, printed: str, same: bool) -> None:
    """An output is compared word for word, but for gaps and times."""
    assert matches(shown, printed) is same
