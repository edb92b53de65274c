"""`thena tools` and `thena plugins`: what is installed, and the final order of an app's layers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from thena_core.cli import main

Capture = pytest.CaptureFixture[str]
Install = Callable[..., None]

GUARD = """\
from thena_core import hookimpl
raise_at_import = False

@hookimpl
def before_tool(call): ...

@hookimpl
def after_tool(result): ...

@hookimpl
def services():
    raise RuntimeError("a listing calls nothing")
"""

AROUND = """\
from thena_core import hookimpl

async def timed(call, call_next):
    return await call_next(call)

async def cached(call, call_next):
    return await call_next(call)

@hookimpl
def tool_middleware(tool):
    return timed if tool.effect == "read" else None

@hookimpl
def chat_middleware(agent):
    return cached

@hookimpl(tryfirst=True)
def before_tool(call): ...

@hookimpl
def after_tool(result): ...
"""


@pytest.fixture
def packages(install: Install) -> None:
    """Three packages: two plugins and a tool that work, and a plugin that does not."""
    install("acme-guard", "1.2", plugins={"guard": "acme_guard"}, files={"acme_guard.py": GUARD})
    install(
        "acme-around",
        "0.3",
        plugins={"around": "acme_around"},
        tools={"clock": "acme_never_imported:Clock"},
        files={"acme_around.py": AROUND, "acme_never_imported.py": "raise SystemError('imported')\n"},
    )
    install("acme-broken", "9", plugins={"broken": "acme_broken"}, files={"acme_broken.py": "import acme_nothing\n"})


def test_tools(here: Path, packages: None, capsys: Capture) -> None:
    """Each tool is a line with package, version and place; none is imported."""
    assert main(["tools"]) == 0
    out, err = capsys.readouterr()
    assert out == "clock  acme-around 0.3  acme_never_imported:Clock\n"
    assert err == 'use them by name: tools=["clock"]\n'


@pytest.mark.behaviour("P08")
def test_plugins(here: Path, packages: None, capsys: Capture) -> None:
    """Each plugin is a line with package, version, place and hooks; a broken one says why, and nothing is called."""
    assert main(["plugins"]) == 0
    out, err = capsys.readouterr()
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "around acme-around 0.3 acme_around before_tool, after_tool, tool_middleware, chat_middleware",
        (
            'broken acme-broken 9 acme_broken The plugin "broken" (from acme-broken 9) cannot be loaded: '
            "ModuleNotFoundError: No module named 'acme_nothing'"
        ),
        "guard acme-guard 1.2 acme_guard before_tool, after_tool, services",
    ]
    assert 'an app uses those that it names: plugins=["around"]' in err


def test_nothing_installed(here: Path, install: Install, capsys: Capture) -> None:
    """Where there is nothing, stdout is empty and stderr says where to get some."""
    assert (main(["tools"]), main(["plugins"])) == (0, 0)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "no installed package brings tools. Some are in: pip install thena-tools\n"
        "no installed package brings plugins. Write one: thena new plugin NAME\n"
    )


def test_switched_off(here: Path, packages: None, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """What the switch of the environment does is said beside what is installed."""
    monkeypatch.setenv("THENA_PLUGINS", "0")
    assert main(["plugins"]) == 0
    out, err = capsys.readouterr()
    assert "guard" in out
    assert "THENA_PLUGINS=0 switches off those that are named\n" in err


LAYERS = """\
from thena_core import Prompt, Thena, ToolOutput, agent, hookimpl, tool
from thena_core.testing import FakeProvider

@tool(effect="read")
async def look() -> str:
    '''Looks at what there is.'''

@tool(effect="write")
async def change() -> str:
    '''Changes what there is.'''

class Own:
    @hookimpl
    async def startup(self, app): ...

    @hookimpl
    def before_tool(self, call): ...

    @hookimpl
    def shutdown(self): ...

@agent(provider=FakeProvider([""]), tools=[look, change], prompt=Prompt("x"))
class Hand:
    async def before_tool(self, call): ...

async def last(call, call_next):
    return await call_next(call)

app = Thena(Hand, plugins=[Own(), "around", "guard"], blocked=["guard"])
app.use(tool=last)
"""


@pytest.mark.behaviour("P08")
def test_layers_of_an_app(here: Path, packages: None, capsys: Capture) -> None:
    """With a TARGET its plugins are there with origin and hooks, and the final order of hooks and layers."""
    (here / "layered.py").write_text(LAYERS, encoding="utf-8")
    assert main(["plugins", "layered:app"]) == 0
    assert capsys.readouterr().out == (
        "plugins of layered:app, first named outermost:\n"
        "  1.  Own     layered.Own      before_tool, startup, shutdown\n"
        "  2.  around  acme-around 0.3  before_tool, after_tool, tool_middleware, chat_middleware\n"
        "their hooks, in the order in which they run:\n"
        "  before_tool      around, Own\n"
        "  after_tool       around\n"
        "  tool_middleware  around\n"
        "  chat_middleware  around\n"
        "  startup          Own\n"
        "  shutdown         Own\n"
        "layers around a call, outermost first:\n"
        "  look (agent Hand):\n"
        "    1. record\n"
        "    2. after_tool of around\n"
        "    3. validate\n"
        "    4. before_tool of Hand\n"
        "    5. before_tool of around\n"
        "    6. before_tool of Own\n"
        "    7. middleware timed of around\n"
        "    8. middleware layered.last\n"
        "    9. budget\n"
        "    10. error policy\n"
        "    11. execute\n"
        "  change (agent Hand):\n"
        "    1. record\n"
        "    2. after_tool of around\n"
        "    3. validate\n"
        "    4. before_tool of Hand\n"
        "    5. before_tool of around\n"
        "    6. before_tool of Own\n"
        "    7. middleware layered.last\n"
        "    8. budget\n"
        "    9. error policy\n"
        "    10. execute\n"
        "layers around a model call, outermost first:\n"
        "  agent Hand:\n"
        "    1. record\n"
        "    2. middleware acme_around.cached\n"
        "    3. budget\n"
        "    4. provider\n"
    )


def test_an_app_without_plugins(shop: Path, install: Install, capsys: Capture) -> None:
    """It has layers all the same; tools that have the same are named together."""
    assert main(["plugins", "shop:counter"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("plugins of shop:counter: none\nlayers around a call, outermost first:\n  price:\n")
    assert "model call" not in out


def test_a_plugin_that_is_a_class(here: Path, install: Install, capsys: Capture) -> None:
    """An entry point that names a class says so in its row."""
    install("acme", plugins={"cls": "acme_cls:Plugin"}, files={"acme_cls.py": "class Plugin: ...\n"})
    assert main(["plugins"]) == 0
    assert "it is a class, and its entry point must name an object" in capsys.readouterr().out
