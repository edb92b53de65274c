"""Pastes a page into a fresh process, and says where what it prints is not what the page shows."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path

from tests.docs.page import PICTURES, READ, ROOT, RUN, Block, blocks, matches

DRIVER = Path(__file__).with_name("paste.py")

TESTED_ELSEWHERE = {
    "errors.md": "tests/test_errors_page.py makes each mistake and compares the text",
    "checks.md": "tests/test_checks_page.py makes each mistake and compares the text",
}
"""Pages whose `text` blocks show what other tests compare."""


def page_name(page: Path) -> str:
    """Return a page's path in the project."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def unfit(page: Path) -> list[str]:
    """Name the blocks that are neither pasted, read, drawn nor excused, and those that are read and wrong."""
    wrong: list[str] = []
    for block in blocks(page):
        where = f"{page_name(page)}:{block.line}"
        if block.excuse is not None or block.file is not None or block.language in PICTURES:
            continue
        if block.language == "text" and page.name.replace(".pt-BR", "") in TESTED_ELSEWHERE:
            continue
        if is_of_the_project(block):
            commands = [line.split()[0] for line in block.code.splitlines()]
            wrong += [
                f"{where}: there is no {command}" for command in commands if not os.access(ROOT / command, os.X_OK)
            ]
            continue
        if block.language in RUN:
            continue
        if block.language not in READ:
            wrong.append(f"{where}: nothing runs a `{block.language}` block; say above it *Not run here: …*")
            continue
        try:
            (tomllib if block.language == "toml" else json).loads(block.code)
        except ValueError as error:
            wrong.append(f"{where}: {error}")
    return wrong


def is_of_the_project(block: Block) -> bool:
    """Whether a block is of this project's own scripts, which are not to run in an empty folder: that they exist is enough."""
    return block.language == "bash" and all(line.startswith("scripts/") for line in block.code.splitlines())


def is_there(name: str) -> bool:
    """Whether a dotted name can be imported."""
    module, _, attribute = name.rpartition(".")
    try:
        if not module:
            importlib.import_module(name)
            return True
        found = importlib.import_module(module)
        if hasattr(found, attribute):
            return True
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def to_paste(page: Path) -> list[Block]:
    """Return the blocks of a page that a reader saves or runs, without those that wait for what is not there yet."""
    return [
        block
        for block in blocks(page)
        if block.excuse is None
        and not is_of_the_project(block)
        and (block.file is not None or block.language in RUN)
        and (block.needs is None or is_there(block.needs))
    ]


def pasted(page: Path, folder: Path, *, python: str = sys.executable, path: str = "", **variables: str) -> list[str]:
    """Paste a page in an empty folder and return what is not as the page says.

    Args:
        page: The page.
        folder: The empty folder.
        python: The Python that runs it.
        path: Folders to look for commands in, before the system's.
        **variables: More environment variables.
    """
    chosen = to_paste(page)
    work, told = folder / "page", folder / "printed.json"
    work.mkdir()
    told.write_text("[]", encoding="utf-8")
    listed = [asdict(block) | {"page": page_name(page)} for block in chosen]
    (folder / "blocks.json").write_text(json.dumps(listed), encoding="utf-8")
    environment = {
        "PATH": os.pathsep.join(filter(None, [path, str(Path(python).parent), os.environ["PATH"]])),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "120",
        "PYTHONUNBUFFERED": "1",  # so that both streams come in the order in which a terminal shows them
        **variables,
    }
    command = [python, str(DRIVER), str(folder / "blocks.json"), str(told)]
    ran = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=300, check=False)
    printed = json.loads(told.read_text(encoding="utf-8"))
    wrong = [ran.stdout + ran.stderr] if ran.returncode or ran.stdout or ran.stderr else []
    for block, result in zip(chosen, printed, strict=False):
        where = f"{page_name(page)}:{block.line}"
        if not result["done"]:
            wrong.append(f"{where}: it failed:\n{result['text']}")
        elif not matches(block.shown or "", result["text"]):
            wrong.append(f"{where}: it prints\n{result['text']}\nand the page shows\n{block.shown or 'nothing'}")
    if len(printed) < len(chosen) and not wrong:
        wrong.append(f"{page_name(page)}: only {len(printed)} of {len(chosen)} blocks ran")
    return wrong
