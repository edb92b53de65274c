"""`thena doctor`: what it looks at, what it says of it, and that it ends with what to do next."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from thena_core.cli import health, main

Install = Callable[..., None]
Capture = pytest.CaptureFixture[str]
SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"


def steps(out: str) -> list[str]:
    return [line.strip() for line in out.partition("\nnext:\n")[2].splitlines()]


def row(out: str, *words: str) -> str:
    [found] = [line for line in out.splitlines() if all(word in line for word in words)]
    return " ".join(found.split())


def test_all_is_well(here: Path, install: Install, capsys: Capture) -> None:
    """Without an app it looks at what is installed, and says how to begin one."""
    assert main(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert row(out, "Python").startswith("ok python Python 3.")
    assert row(out, "versions", "thena-core 0").startswith("ok versions thena-core 0.")
    assert steps(out) == [
        "begin an app: thena new app NAME (or see one at work: thena demo)",
        "ask whether the model services can be reached: thena doctor --online",
    ]
    assert err == ""


def test_an_app(shop: Path, capsys: Capture) -> None:
    """With an app its tools are looked at, and the last step is to run it."""
    assert main(["doctor", "shop:app"]) == 0
    out = capsys.readouterr().out
    assert row(out, "can be built") == "ok app shop:app can be built: 1 agents, 1 tools"
    assert row(out, "without a description").endswith(
        '"price" of agent Clerk has parameters without a description: item, count'
    )
    assert steps(out)[-2] == 'run it: thena run shop:app "…"'
    assert "description: describe the parameters of price: Field(description=…)" in steps(out)


def test_the_app_of_the_settings(shop: Path, capsys: Capture) -> None:
    """The app that the settings name is looked at; a flag's wins."""
    (shop / "pyproject.toml").write_text("[tool.thena]\ntarget = 'shop:ap'\n", encoding="utf-8")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert 'the module shop has no ap. Did you mean "app"?' in row(out, "PROBLEM")
    assert steps(out)[0] == "app: correct it"
    assert main(["doctor", "shop:app"]) == 0


def test_an_app_that_cannot_be_built(here: Path, capsys: Capture) -> None:
    """Each problem of the build is one."""
    (here / "wrong.py").write_text(
        "from thena_core import Thena, tool\n@tool\ndef a(): ...\nclass B: ...\napp = Thena(tools=[a, B])\n",
        encoding="utf-8",
    )
    assert main(["doctor", "wrong:app"]) == 1
    assert capsys.readouterr().out.count("PROBLEM  app") == 2


def test_an_app_whose_start_fails(shop: Path, capsys: Capture) -> None:
    """Whatever a plugin's start raises is a problem, and the rest is looked at all the same."""
    with (shop / "shop.py").open("a", encoding="utf-8") as file:
        file.write(
            "from thena_core import hookimpl\nclass Late:\n    @hookimpl\n    def startup(self):\n"
            "        raise OSError('no disk')\nlate = Thena(Clerk, plugins=[Late()])\n"
        )
    assert main(["doctor", "shop:late"]) == 1
    out = capsys.readouterr().out
    assert "no disk" in row(out, "PROBLEM")
    assert steps(out)[0] == "app: correct it"


def test_a_wrong_setting(here: Path, capsys: Capture) -> None:
    """A wrong key is a problem among the others, and not the end of the look."""
    (here / "pyproject.toml").write_text("[tool.thena]\nreprot = true\n", encoding="utf-8")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert 'Did you mean "report"?' in row(out, "PROBLEM")
    assert "Python" in out


def test_installed_packages(here: Path, install: Install, capsys: Capture) -> None:
    """What is installed is loaded as an app would: what works is told, what does not is a problem with its package."""
    good = "from thena_core import hookimpl\n@hookimpl\ndef before_tool(call): ...\n"
    tool = "from thena_core import tool\n@tool\nasync def now() -> str:\n    '''Tells what time it is now.'''\n"
    install(
        "acme-good",
        plugins={"good": "acme_good"},
        tools={"now": "acme_tool:now"},
        files={"acme_good.py": good, "acme_tool.py": tool},
    )
    install(
        "acme-bad",
        plugins={"bad": "acme_bad"},
        tools={"gone": "acme_gone:x"},
        files={"acme_bad.py": "import acme_no\n"},
    )
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert row(out, "ok", "good of") == "ok plugin good of acme-good 1.0: before_tool"
    assert row(out, "ok", "now of") == "ok tool now of acme-good 1.0: acme_tool.now"
    assert row(out, "PROBLEM", '"bad"').endswith("cannot be loaded: ModuleNotFoundError: No module named 'acme_no'")
    assert "PROBLEM tool" in row(out, "PROBLEM", '"gone"')
    assert "plugin: correct or remove acme-bad 1.0" in steps(out)


def test_versions_that_do_not_fit(here: Path, install: Install, capsys: Capture) -> None:
    """A package that asks for another thena-core is a problem with the line to paste, whether it brings plugins or not."""
    install("acme-ahead", "2.0", requires=["thena-core==99.0"])
    install("acme-extra", "2.0", requires=["thena-core==99.0; extra == 'x'", "what is this"], extras=["x"])
    install("acme-fits", "2.0", requires=["thena_core>=0.1"])
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "PROBLEM versions acme-ahead 2.0 asks for thena-core==99.0, and this is" in row(out, "PROBLEM")
    assert row(out, "acme-fits") == "ok versions acme-fits 2.0, made for thena-core>=0.1"
    assert "acme-extra" not in out
    assert steps(out)[0] == "versions: pip install --upgrade thena-core acme-ahead"


def test_another_copy_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that is not what is imported is a problem."""
    monkeypatch.setattr("thena_core.__version__", "0.0.1")
    assert health.versions()[0].level == "problem"


def test_entry_points_that_are_not_registered(here: Path, install: Install, capsys: Capture) -> None:
    """A project's new entry point needs an install, and the doctor says so."""
    install("mine", plugins={"old": "mine.plugin"})
    (here / "pyproject.toml").write_text(
        '[project.entry-points."thena.plugins"]\nold = "mine.plugin"\nnew = "mine.other"\n'
        '[project.entry-points."thena.tools"]\nclock = "mine:Clock"\n',
        encoding="utf-8",
    )
    found = health.project()
    assert [(one.level, one.todo) for one in found] == [("problem", "pip install -e .")] * 2
    assert found[0].text == '"new" of [project.entry-points."thena.plugins"] is not registered'
    assert '"clock" of' in found[1].text


@pytest.mark.parametrize("text", ["[project", "project = 3\n", '[project]\nentry-points = "x"\n', ""])
def test_odd_projects(here: Path, text: str) -> None:
    """A file that says nothing of entry points is no trouble; one that cannot be read is a problem."""
    (here / "pyproject.toml").write_text(text, encoding="utf-8")
    assert [one.level for one in health.project()] == (["problem"] if text == "[project" else [])


@pytest.mark.parametrize(
    ("value", "level", "text"),
    [
        (SECRET, "ok", "OPENAI_API_KEY is set"),
        ("", "note", "OPENAI_API_KEY is not set"),
        (" ", "note", "OPENAI_API_KEY is not set"),
        (f"{SECRET}\n", "problem", "OPENAI_API_KEY is set, with a space, a line break or a character that no key has"),
        (f"{SECRET}é", "problem", "OPENAI_API_KEY is set, with a space, a line break or a character that no key has"),
    ],
    ids=["set", "unset", "blank", "line-break", "accent"],
)
def test_keys(value: str, level: str, text: str) -> None:
    """A key is told to be there, or wrong; it is never shown."""
    found = health.keys({"OPENAI_API_KEY": value})[0]
    assert (found.level, found.text) == (level, text)
    assert SECRET not in found.todo


def test_the_key_that_an_app_needs(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """An app whose provider needs a key that is not set is told which."""
    (here / "real.py").write_text(
        "from thena_core import Prompt, Thena, agent\nfrom thena_core.providers import OpenAIProvider\n"
        "@agent(provider=OpenAIProvider('m'), prompt=Prompt('x'))\nclass A: ...\napp = Thena(A)\n",
        encoding="utf-8",
    )
    assert main(["doctor", "real:app"]) == 0
    assert "keys: set OPENAI_API_KEY, unless the app gives the key" in steps(capsys.readouterr().out)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    del sys.modules["real"]
    assert main(["doctor", "real:app"]) == 0
    out = capsys.readouterr().out
    assert "OPENAI_API_KEY is set" in out
    assert "unless" not in out
    assert SECRET not in out


TOOLS = """\
from typing import Annotated
from pydantic import Field
from thena_core import Thena, tool

@tool
async def look(path: Annotated[str, Field(description="a path")]) -> str:
    '''Look.'''

@tool
async def read_it() -> str:
    '''Reads the one file that there is.'''

@tool
async def open_it() -> str:
    '''Reads the one  file that there is.'''

@tool
async def good(text: Annotated[str, Field(description="any text")]) -> str:
    '''Counts words. Use it before saying how long a text is.'''

app = Thena(tools=[look, read_it, open_it, good])
"""


def test_vague_descriptions(here: Path, capsys: Capture) -> None:
    """A description that tells nothing, and two that tell the same, are notes; good ones are none."""
    (here / "vague.py").write_text(TOOLS, encoding="utf-8")
    assert main(["doctor", "vague:app"]) == 0
    out = capsys.readouterr().out
    assert row(out, '"look"') == 'note description "look" of the app is described in 1 words: Look.'
    assert row(out, '"open_it"') == 'note description "open_it" of the app is described like "read_it"'
    assert '"good"' not in out
    assert "description: say how read_it and open_it differ" in steps(out)


async def answering(port: list[int], asked: list[bytes], ready: asyncio.Event, done: asyncio.Event) -> None:
    """Answer anything with 404, as a service does that has nothing there."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        await done.wait()


async def test_online(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that answers anything is there; one that does not is a problem with what to look at. No key is sent."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    port: list[int] = []
    asked: list[bytes] = []
    ready, done = asyncio.Event(), asyncio.Event()
    server = asyncio.create_task(answering(port, asked, ready, done))
    await ready.wait()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:pass@127.0.0.1:{port[0]}/v1")
    services = health.services_with_keys()
    [found] = await health.reachable(services)
    done.set()
    await server
    assert found.level == "ok"
    assert found.text.endswith("answers (status 404)")
    assert "pass@" not in found.text
    assert SECRET.encode() not in asked[0]
    [found] = await health.reachable(services)
    assert found.level == "problem"
    assert "cannot be reached: ConnectError" in found.text
    assert found.todo == "look at the network, a proxy, and OPENAI_BASE_URL"


async def test_online_with_a_wrong_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that is none is a problem, and no traceback."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://[::1")
    [found] = await health.reachable(health.services_with_keys())
    assert found.level == "problem"


def test_online_without_services(here: Path, capsys: Capture) -> None:
    """Where no key is set and no app asks a service there is nothing to ask."""
    assert main(["doctor", "--online"]) == 0
    assert "no model service to ask" in row(capsys.readouterr().out, "online")


def test_addresses_of_an_apps_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app's own address wins over the environment's; a variable without a scheme is one all the same."""

    class Provider:
        name = "ollama"
        host: str | None = None

    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    [(service, address)] = health.services_of([Provider(), object()])  # type: ignore[list-item]
    assert (service.name, address) == ("ollama", "http://127.0.0.1:9")
    Provider.host = "http://elsewhere:1"
    assert health.services_of([Provider()])[0][1] == "http://elsewhere:1"  # type: ignore[list-item]
