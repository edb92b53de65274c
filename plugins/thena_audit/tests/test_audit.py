"""The audit: one line for each call, whatever becomes of it; nothing lost, and nothing in it that should not be."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from thena_audit import Audit, AuditConfig, AuditError, Rule, plugin
from thena_core import Context, FatalToolError, HookError, RunAborted, Thena, ToolDefinition, ToolOutput, hookimpl, tool
from thena_core.testing import assert_plugin_conforms

APP = f"""
import asyncio, sys
sys.path[:0] = {sys.path!r}
from thena_audit import Audit, AuditConfig
from thena_core import Thena, tool

@tool
async def look(number: int) -> str:
    "Looks."
    return str(number)

async def main(path, calls, **settings):
    async with Thena(tools=[look], plugins=[Audit(AuditConfig(path=path, **settings))]) as app:
        for number in range(calls):
            await app.call("look", {{"number": number}})
            print(number, flush=True)
"""


@tool(effect="read")
async def look(path: str) -> str:
    """Looks."""
    return path


@tool(effect="destructive")
async def drop_table(name: str) -> str:
    """Drops a table."""
    raise FatalToolError(f"cannot drop {name}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "audit.jsonl"


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def app(path: Path, tools: list[Any] | None = None, plugins: tuple[Any, ...] = (), **settings: Any) -> Thena:
    audit = Audit(AuditConfig(path=path, **settings))
    return Thena(tools=[look, drop_table] if tools is None else tools, plugins=[*plugins, audit])


def test_it_conforms(path: Path) -> None:
    """The plugin keeps the contract, with the disk told of every line."""
    assert_plugin_conforms(
        Audit(AuditConfig(path=path, fsync="always", who=lambda data: data["user"])), data={"user": "ann"}
    )
    assert {line["who"] for line in written(path)} == {"ann"}
    outcomes = {"ok", "error", "invalid", "unknown", "denied", "over_budget", "timeout", "cancelled", "fatal"}
    assert {line["outcome"] for line in written(path)} == outcomes


async def test_a_line(path: Path) -> None:
    """A line says who called what, when, in which run, with which arguments as a digest, and what came of it."""
    async with app(path, who=lambda data: data) as made:
        await made.call("look", {"path": "secret-4711"}, data="ann")
    [line] = written(path)
    digest = hashlib.sha256(b'{"path":"secret-4711"}').hexdigest()
    assert line.pop("run") in line.pop("call")
    assert line.pop("at").endswith("+00:00")
    assert 0 <= line.pop("duration_ms") < 10_000
    assert line == {"who": "ann", "tool": "look", "effect": "read", "arguments": f"sha256:{digest}", "outcome": "ok"}
    assert "4711" not in path.read_text(encoding="ascii")
    assert path.stat().st_mode & 0o777 == 0o600


async def test_the_digest_is_of_what_ran(path: Path) -> None:
    """Where another plugin changes the arguments, the digest is of those that reached the tool; a key makes it an HMAC."""

    class Changes:
        @hookimpl
        def before_tool(self, call: Any) -> Any:
            return call.replace(arguments={"path": "b"})

    async with app(path, plugins=(Changes(),)) as made:
        await made.call("look", {"path": "a"})
    async with app(path, key=SecretStr("k")) as made:
        await made.call("look", {"path": "b"})
    first, second = (line["arguments"] for line in written(path))
    assert first == "sha256:" + hashlib.sha256(b'{"path":"b"}').hexdigest()
    assert second.startswith("hmac-sha256:")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("evil\n{}\u2028", {}),
        ("x" * 100_000, {}),
        ("look", '{"path": "\\ud800"}'),
        ("look", {"path": {1, 2}}),
        ("look", {1: 2, "path": "a"}),
    ],
    ids=["line-break", "huge", "surrogate", "no-json", "mixed-keys"],
)
async def test_hostile_calls(path: Path, name: str, arguments: Any) -> None:
    """Whatever a model sends, it is one line of a bounded length."""
    async with app(path) as made:
        await made.call(name, arguments)
    [line] = written(path)
    assert line["outcome"] in {"unknown", "invalid", "ok"}
    assert len(path.read_bytes()) < 1000


async def test_a_fatal_call(path: Path) -> None:
    """A call that ends the run is one line, as it ended."""
    async with app(path) as made:
        with pytest.raises(FatalToolError):
            await made.call("drop_table", {"name": "users"})
    assert [(line["tool"], line["outcome"]) for line in written(path)] == [("drop_table", "fatal")]


async def test_cut_off_in_another_plugin(path: Path) -> None:
    """A call that another plugin's hook ends before it comes to its tool is written down all the same."""

    class Fails:
        @hookimpl
        def before_tool(self) -> None:
            raise ValueError("bad")

    async with app(path, plugins=(Fails(),)) as made:
        with pytest.raises(HookError):
            await made.call("look", {"path": "a"})
    assert [(line["tool"], line["outcome"]) for line in written(path)] == [("look", "cancelled")]


async def test_a_caller_that_cannot_be_named(path: Path) -> None:
    """Where `who` raises, the run ends before the tool is executed."""
    ran: list[str] = []

    async def execute() -> str:
        ran.append("ran")
        return "done"

    async with app(path, [ToolDefinition("act", "Acts.", None, execute)], who=lambda data: data.user) as made:
        with pytest.raises(HookError, match=r"^before_tool of Audit failed for the tool \"act\": AttributeError"):
            await made.call("act")
    assert ran == []


RULES = (
    Rule(allow=True, who="admin-*"),
    Rule(allow=False, effect="destructive"),
    Rule(allow=False, tools="secret_*"),
    Rule(allow=False, effect="undeclared", who=""),
)


@pytest.mark.parametrize(
    ("name", "effect", "who", "allowed"),
    [
        ("drop", "destructive", "ann", False),
        ("drop", "destructive", "admin-bob", True),
        ("look", "read", "ann", True),
        ("secret_look", "read", "ann", False),
        ("act", None, None, False),
        ("act", None, "ann", True),
    ],
)
async def test_rules(path: Path, name: str, effect: Any, who: str | None, allowed: bool) -> None:
    """The first rule that fits decides, by effect, name and caller; what is refused is not executed, and is written down."""
    ran: list[str] = []

    async def execute() -> str:
        ran.append(name)
        return "done"

    async with app(
        path, [ToolDefinition(name, "Acts.", None, execute, effect=effect)], rules=RULES, who=lambda data: data
    ) as made:
        output = await made.call(name, data=who)
    assert output == (ToolOutput("done") if allowed else ToolOutput(f"Not allowed: {name}.", is_error=True))
    assert ran == ([name] if allowed else [])
    assert [line["outcome"] for line in written(path)] == ["ok" if allowed else "denied"]


async def test_nothing_answers_for_what_is_refused(path: Path) -> None:
    """Also a plugin named before it, which would answer from a cache, is not asked."""

    class Cache:
        @hookimpl
        def tool_middleware(self) -> Any:
            async def cached(_call: Any, _call_next: Any) -> ToolOutput:
                return ToolOutput("from the cache")

            return cached

    async with app(path, plugins=(Cache(),), rules=(Rule(allow=False),)) as made:
        assert (await made.call("look", {"path": "a"})).content == "Not allowed: look."


@pytest.mark.parametrize("after", [1, 7, 40])
def test_killed(path: Path, after: int) -> None:
    """Where the process is killed, every call that had ended is in the file, each in a whole line."""
    program = APP + f"asyncio.run(main({str(path)!r}, 100_000))"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.read().splitlines()
    ended = sum(bool(line.strip()) for line in seen)
    assert process.returncode == -signal.SIGKILL
    assert after <= ended <= len(written(path)) <= ended + 1


def test_processes_beside_each_other(path: Path) -> None:
    """Four processes write to one file, which is put aside many times meanwhile; no line is lost, mixed or doubled."""
    program = APP + f"asyncio.run(main({str(path)!r}, 100, max_bytes=5000))"
    processes = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    files = sorted(path.parent.iterdir())
    assert len(files) > 20
    assert all(file.stat().st_size <= 5000 for file in files)
    lines = [line for file in files for line in written(file)]
    assert len(lines) == len({line["call"] for line in lines}) == 400


async def test_keep(path: Path) -> None:
    """Of the full files the newest are kept; what only looks like one of them is left alone."""
    path.parent.mkdir()
    other = path.with_name("audit-notes.jsonl")
    other.write_text("mine", encoding="utf-8")
    async with app(path, max_bytes=1, keep=2, fsync="close") as made:
        for _ in range(5):
            await made.call("look", {"path": "a"})
    names = ["audit-000003.jsonl", "audit-000004.jsonl", "audit-notes.jsonl", "audit.jsonl"]
    assert sorted(file.name for file in path.parent.iterdir()) == names


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


@needs_full
async def test_a_full_disk_ends_the_run() -> None:
    """With `on_failure="end"` the run ends, and says why."""
    async with app(Path("/dev/full")) as made:
        with pytest.raises(AuditError) as caught:
            await made.call("look", {"path": "a"})
    assert str(caught.value) == (
        '[thena-audit] The call of "look" is not in /dev/full, which cannot be written: [Errno 28] No space left on '
        'device. The run ends, since on_failure="end".'
    )
    assert (caught.value.path, caught.value.tool) == (Path("/dev/full"), "look")


@needs_full
async def test_a_full_disk_is_no_excuse_for_another_end() -> None:
    """What ends the run is not hidden by a line that cannot be written."""
    async with app(Path("/dev/full")) as made:
        with pytest.raises(FatalToolError, match="cannot drop users"):
            await made.call("drop_table", {"name": "users"})


def test_a_disk_that_fills_up(path: Path) -> None:
    """With `on_failure="warn"` the run goes on and says so; the file keeps whole lines, and tells of the gap later."""
    limited = (
        APP
        + f"""
import json, resource
path = {str(path)!r}
async def fill():
    async with Thena(tools=[look], plugins=[Audit(AuditConfig(path=path, on_failure="warn"))]) as app:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, hard))
        for number in range(6):
            await app.call("look", {{"number": number}})
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await app.call("look", {{"number": 6}})
asyncio.run(fill())
"""
    )
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=True)
    lines = written(path)
    assert [line.get("lost", line.get("outcome")) for line in lines] == ["ok", "ok", 4, "ok"]
    assert done.stderr.splitlines()[0] == f"{path} cannot be written, 1 lost: [Errno 27] File too large"
    assert len(done.stderr.splitlines()) == 4


async def test_a_torn_line(path: Path) -> None:
    """After a machine stopped in the middle of a line, the next one begins on a line of its own."""
    path.parent.mkdir()
    path.write_bytes(b'{"at": "2026')
    async with app(path) as made:
        await made.call("look", {"path": "a"})
    torn, whole = path.read_text(encoding="ascii").splitlines()
    assert (torn, json.loads(whole)["outcome"]) == ('{"at": "2026', "ok")


async def test_a_file_that_somebody_holds(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A line waits for other processes no longer than it may, and the loop goes on meanwhile."""
    async with app(path, lock_seconds=0.05, on_failure="warn") as made:
        file = os.open(path, os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX)
        with caplog.at_level(logging.WARNING, "thena_audit"):
            turns, calling = 0, asyncio.ensure_future(made.call("look", {"path": "a"}))
            while not calling.done():
                turns += 1
                await asyncio.sleep(0)
        os.close(file)
    assert turns > 100
    assert caplog.messages == [f"{path} cannot be written, 1 lost: other processes held it for 0.05 s"]


async def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    """It is found when the app starts, before any tool is called."""
    (tmp_path / "file").touch()
    with pytest.raises(HookError, match=r"startup of Audit failed: (FileExistsError|NotADirectoryError)"):
        await app(tmp_path / "file" / "audit.jsonl").call("look", {"path": "a"})


async def test_aborted_while_writing(path: Path) -> None:
    """A run that is aborted while its line waits for a thread ends when the line is in the file."""
    aborted, release = asyncio.Event(), threading.Event()

    async def execute(ctx: Context) -> str:
        ctx.abort()  # is delivered where something is awaited next: the writing
        aborted.set()
        return "done"

    loop = asyncio.get_running_loop()
    async with app(path, [ToolDefinition("stop", "Stops.", None, execute)]) as made:
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, release.wait, 10)
        calling = asyncio.ensure_future(made.call("stop"))
        await aborted.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not calling.done()
        release.set()
        with pytest.raises(RunAborted):
            await calling
        await busy
    assert [line["tool"] for line in written(path)] == ["stop"]


async def test_put_aside_while_waiting(path: Path) -> None:
    """Where another process puts the file aside while a line waits for it, the line goes into the new one."""
    async with app(path) as made:
        file = os.open(path, os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX)
        calling = asyncio.ensure_future(made.call("look", {"path": "a"}))
        await asyncio.wait([calling], timeout=0.1)
        assert not calling.done()
        path.rename(path.with_name("audit-000001.jsonl"))
        os.close(file)
        await calling
    assert [line["tool"] for line in written(path)] == ["look"]
    assert written(path.with_name("audit-000001.jsonl")) == []


@pytest.mark.parametrize("settings", [{"pth": "a"}, {"max_bytes": 0}, {"rules": [{"tools": "x"}]}, {"fsync": "often"}])
def test_wrong_settings(settings: dict[str, Any]) -> None:
    """A setting that does not exist, or cannot be, is refused when the configuration is made."""
    with pytest.raises(ValidationError):
        AuditConfig(**settings)


def test_the_name() -> None:
    """The package declares `audit`, which is the audit without configuration."""
    try:
        entries = metadata.distribution("thena-audit").entry_points
    except metadata.PackageNotFoundError:
        pytest.skip("thena-audit is on the path and not installed")
    [entry] = [entry for entry in entries if entry.group == "thena.plugins"]
    assert (entry.name, entry.load()) == ("audit", plugin)


def test_the_readme(tmp_path: Path) -> None:
    """The README's example prints what it says, and its line has the names that a real one has."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code, shown, line = (
        re.search(rf"```{kind}\n(.*?)```", readme, re.DOTALL)[1] for kind in ("python", "text", "json")
    )
    program = f"import sys\nsys.path[:0] = {sys.path!r}\n{code}"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == shown
    first, second = written(tmp_path / "audit.jsonl")
    assert list(first) == list(second) == list(json.loads(line))
    assert (first["who"], first["outcome"], second["outcome"]) == ("ann", "denied", "ok")
