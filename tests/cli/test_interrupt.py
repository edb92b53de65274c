"""Ctrl-C, with a real process and a real signal: the run ends cleanly, its report is written, the exit code is 130."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''\
import asyncio
import threading

from thena_core import Prompt, Thena, ToolRequest, agent, tool
from thena_core.testing import FakeProvider


@tool
async def wait() -> str:
    """Waits until somebody stops it, and says that it was."""
    print("waiting", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        open("cleaned", "w").close()


@tool
def block() -> str:
    """Blocks its thread for ever."""
    print("waiting", flush=True)
    threading.Event().wait()


@tool
async def stubborn() -> str:
    """Swallows its cancellation once, and answers."""
    print("waiting", flush=True)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "never mind"


def app_of(name, tool):
    @agent(provider=FakeProvider([ToolRequest(id="1", name=name, arguments={})]), tools=[tool], prompt=Prompt("x"))
    class Agent: ...

    return Thena(Agent)


waiting = app_of("wait", wait)
blocked = app_of("block", block)
refusing = app_of("stubborn", stubborn)


async def building():
    print("waiting", flush=True)
    await asyncio.Event().wait()
'''

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT as a POSIX terminal does")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the command line in a process of its own, and end whatever a failed test left."""
    (tmp_path / "slow.py").write_text(SOURCE, encoding="utf-8")
    started: list[subprocess.Popen[str]] = []
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("THENA_") and "proxy" not in name.lower()
    }
    script = "import sys\nfrom thena_core.cli import main\nsys.exit(main())"

    def begin(*words: str, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", script, *words],
            cwd=tmp_path,
            env={**kept, "PYTHONPATH": str(ROOT), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from nodes(child)


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Interrupt a process once its tool says that it waits."""
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n", process.communicate()
    process.send_signal(signal.SIGINT)
    return ended(process)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=20)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("target", "outcome"), [("slow:waiting", "cancelled"), ("slow:blocked", "cancelled"), ("slow:refusing", "ok")]
)
def test_run(start: Start, tmp_path: Path, target: str, outcome: str) -> None:
    """Whatever its tool does, an interrupted run leaves a whole report, and its last words say where."""
    code, out, err = interrupted(start("run", target, "go"))
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted"
    assert err.splitlines()[-2].startswith("report: report/")
    assert "Traceback" not in err
    [file] = tmp_path.glob("report/*/report.json")
    assert (file.parent / "index.html").is_file()
    text = file.read_text(encoding="utf-8")
    assert [node["outcome"] for node in nodes(json.loads(text)["root"]) if node["kind"] == "tool"] == [outcome]
    assert (tmp_path / "cleaned").exists() == (target == "slow:waiting")


def test_call(start: Start, tmp_path: Path) -> None:
    """A call is interrupted in the same way, and its tool cleans up."""
    assert interrupted(start("call", "slow:waiting", "wait")) == (130, "", "interrupted\n")
    assert (tmp_path / "cleaned").exists()


def test_while_building(start: Start, tmp_path: Path) -> None:
    """Before there is a run there is nothing to report."""
    assert interrupted(start("run", "slow:building", "go")) == (130, "", "interrupted\n")
    assert not (tmp_path / "report").exists()


def test_demo(start: Start, tmp_path: Path) -> None:
    """The demo, while its model does not answer, is interrupted like any run."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        process = start("demo", ".", "?", "--model", "openai:m", OPENAI_API_KEY="k", OPENAI_BASE_URL=address)
        server.settimeout(20)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1)
            process.send_signal(signal.SIGINT)
            code, out, err = ended(process)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted"
    [file] = tmp_path.glob("report/*/report.json")
    assert [node["status"] for node in nodes(json.loads(file.read_text(encoding="utf-8"))["root"])] == ["error"] * 4
