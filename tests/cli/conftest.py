"""A folder with an app in it, as somebody has it who types commands there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.plugins.conftest import install
from thena_core.cli import main

__all__ = ["install"]

SHOP = '''\
import asyncio

from thena_core import FatalToolError, Prompt, Thena, ToolOutput, ToolRequest, agent, tool
from thena_core.testing import FakeProvider


@tool(effect="read")
async def price(item: str, count: int = 1) -> str:
    """Says what an item costs. Use it before naming a price."""
    if item == "gold":
        return ToolOutput("no gold here\\nask elsewhere", is_error=True)
    if item == "fire":
        raise FatalToolError("the till burns: password=hunter2hunter2")
    return f"{item}: {count * 3} euros"


def asking(*arguments):
    return [ToolRequest(id=str(number), name="price", arguments=given) for number, given in enumerate(arguments)]


@agent(provider=FakeProvider([*asking({"item": "tea"}), "Tea costs 3 euros."]), tools=[price], prompt=Prompt("Sell."))
class Clerk: ...


@agent(provider=FakeProvider(asking({"item": "tea"})), tools=[price], prompt=Prompt("Sell."))
class Restless: ...


@agent(provider=FakeProvider(asking({"item": "fire"})), tools=[price], prompt=Prompt("Sell."))
class Unlucky: ...


async def closed(call, call_next):
    if call.arguments.get("item") == "secret":
        return ToolOutput("Not for sale.", is_error=True)
    return await call_next(call)


app = Thena(Clerk)
app.use(tool=closed)
restless = Thena(Restless)
unlucky = Thena(Unlucky)
counter = Thena(tools=[price])


def make():
    return Thena(Clerk)


async def make_async():
    await asyncio.sleep(0)
    return Thena(Clerk)


def make_of(name):
    return Thena(Clerk)


def make_nothing():
    return 3


def make_trouble():
    raise OSError("no disk")


def make_exit():
    raise SystemExit(3)


async def make_trouble_async():
    raise OSError("no net")


class Holder:
    inner = Thena(Clerk)
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder; what is imported from it is forgotten, and no variable of Thena's is set."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in os.environ:
        if name.startswith(("THENA_", "OPENAI_", "ANTHROPIC_", "OLLAMA_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def shop(here: Path) -> Path:
    """The current folder, with the module `shop` in it."""
    (here / "shop.py").write_text(SHOP, encoding="utf-8")
    return here


@pytest.fixture
def thena(shop: Path) -> Callable[..., int]:
    """Type a command: each is a process of its own for the person, so the shop is imported anew each time."""

    def typed(*words: str) -> int:
        sys.modules.pop("shop", None)
        return main(words)

    return typed
