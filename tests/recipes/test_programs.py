"""The recipe for programs: no shell, no other program, no other option, no time and no output without end."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from dependency_injector import containers, providers

from tests.recipes.recipe import recipe
from thena_core import Thena, ToolOutput

programs = recipe("programs")

ECHO = """import json, os, sys
print(json.dumps([sys.argv[1:], sys.stdin.read(), sorted(os.environ)]))
"""
PYTHON = Path(sys.executable)


class Asked:
    """The tool with scripts of the test's own as programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder.parent / "bin"
        self.bin.mkdir()
        self.allowed: dict[str, object] = {}
        self.add("echo", ECHO, options=frozenset({"-n", "--long=1"}))

    def add(self, name: str, code: str, **settings: object) -> Path:
        """Allow a program, written in Python."""
        script = self.bin / f"{name}.py"
        script.write_text(code)
        starter = self.bin / name
        starter.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {shlex.quote(str(script))} "$@"\n')
        starter.chmod(0o755)
        self.allowed[name] = programs.Program(starter, **settings)
        return starter

    async def __call__(self, program: str, *arguments: str) -> ToolOutput:
        allowed, folder = self.allowed, self.folder

        class Services(containers.DeclarativeContainer):
            programs_ = providers.Object(programs.Programs(allowed, folder))

        async with Thena(tools=[programs.run_program], container=Services()) as app:
            return await app.call("run_program", {"program": program, "arguments": list(arguments)})


@pytest_asyncio.fixture
async def ask(tmp_path: Path) -> AsyncIterator[Asked]:
    """Make a folder to run in."""
    (tmp_path / "work").mkdir()
    yield Asked(tmp_path / "work")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def gone(pids: Sequence[int]) -> None:
    """Wait until processes have ended; killed ones take a moment."""
    async with asyncio.timeout(10):
        while any(is_alive(pid) for pid in pids):
            await asyncio.sleep(0.01)


async def test_good_use(ask: Asked) -> None:
    """A program gets its arguments as they are, and an environment that is not the app's."""
    output = await ask("echo", "-n", "--long=1", "a b", "*", "$HOME")
    printed, ending = output.content.splitlines()
    arguments, _, environment = json.loads(printed)
    assert arguments == ["-n", "--long=1", "a b", "*", "$HOME"]
    assert set(environment) - {"LC_CTYPE", "OLDPWD", "PWD", "SHLVL", "_"} == {"LANG", "PATH"}  # a shell adds some
    assert (ending, output.is_error) == ("[exit code 0]", False)


async def test_there_is_nothing_to_read(ask: Asked) -> None:
    """What is typed to the app, or piped into it, does not reach the program."""
    reading, writing = os.pipe()
    os.write(writing, b"the key is 1234")
    os.close(writing)
    saved = os.dup(0)
    os.dup2(reading, 0)
    try:
        output = await ask("echo")
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(reading)
    assert json.loads(output.content.splitlines()[0])[1] == ""


@pytest.mark.parametrize(
    "argument",
    [
        "; touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "| touch pwned",
        "&& touch pwned",
        "& touch pwned",
        "x\ntouch pwned",
        "x\rtouch pwned",
        "> pwned",
        "<(touch pwned)",
        "'; touch pwned; '",
        '"; touch pwned; "',
        "${IFS}touch${IFS}pwned",
        "%0atouch pwned",
        "*",
        "",
        "ä€😀",
    ],
)
async def test_there_is_no_shell(ask: Asked, argument: str) -> None:
    """What a shell would read as a command arrives as an argument, unchanged."""
    output = await ask("echo", argument)
    arguments, _, _ = json.loads(output.content.splitlines()[0])
    assert arguments == [argument]
    assert list(ask.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        pytest.param("sh", [], id="not listed"),
        pytest.param("/bin/sh", [], id="absolute"),
        pytest.param("./echo", [], id="relative"),
        pytest.param("../bin/echo", [], id="climbing"),
        pytest.param("echo;sh", [], id="with a semicolon"),
        pytest.param("echo sh", [], id="with a space"),
        pytest.param("ECHO", [], id="another case"),
        pytest.param("", [], id="nothing"),
        pytest.param("echo\0", [], id="NUL in the name"),
        pytest.param("x" * 10_000, [], id="10,000 characters"),
        pytest.param("echo", ["-x"], id="an option that is not listed"),
        pytest.param("echo", ["-nx"], id="more behind a listed option"),
        pytest.param("echo", ["--long=2"], id="another value"),
        pytest.param("echo", ["--"], id="two dashes"),
        pytest.param("echo", ["-"], id="a dash"),
        pytest.param("echo", ["/etc/hostname"], id="an absolute path"),
        pytest.param("echo", [".."], id="the folder above"),
        pytest.param("echo", ["a/../../b"], id="up"),
        pytest.param("echo", ["~/x"], id="a home"),
        pytest.param("echo", ["a\0b"], id="NUL"),
        pytest.param("echo", ["\ud800"], id="a lone surrogate"),
        pytest.param("echo", ["x" * 200_000], id="longer than the system takes"),
        pytest.param("git", ["push"], id="another subcommand"),
        pytest.param("git", [], id="no subcommand"),
        pytest.param("git", ["-c", "log"], id="an option before the subcommand"),
    ],
)
async def test_refused(ask: Asked, program: str, arguments: list[str]) -> None:
    """What is not listed, or leads out of the folder, is not started."""
    ask.add("git", "open('started', 'w')", options=frozenset({"-c"}), first=frozenset({"log"}))
    ask.add("echo", "open('started', 'w')", options=frozenset({"-n", "--long=1"}))
    output = await ask(program, *arguments)
    assert output.is_error
    assert output.content.startswith("Refused: ")
    assert len(output.content) < 400
    assert list(ask.folder.iterdir()) == []


async def test_too_many_arguments(ask: Asked) -> None:
    """Arguments are counted before anything is done."""
    assert (await ask("echo", *["x"] * 101)).content.startswith("invalid arguments")


def test_a_program_is_given_by_its_absolute_path() -> None:
    """A relative path would let the folder decide what is run."""
    with pytest.raises(ValueError, match=r"Program\('git'\): give the absolute path, e.g. /usr/bin/git"):
        programs.Program(Path("git"))


async def test_the_environment_stays_here(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the app's environment does not reach the program."""
    monkeypatch.setenv("SECRET_API_KEY", "sk-1234")
    assert "SECRET_API_KEY" not in (await ask("echo")).content


async def test_failures_are_said(ask: Asked) -> None:
    """An exit code, a signal, what stands on stderr, and a program that is not there reach the model."""
    ask.add("fails", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    ask.add("dies", "import os; os.kill(os.getpid(), 9)")
    ask.allowed["missing"] = programs.Program(ask.bin / "missing")
    ask.allowed["data"] = programs.Program(ask.bin / "echo.py")
    fails = await ask("fails")
    assert sorted(fails.content.splitlines()) == ["[exit code 3]", "err", "out"]
    assert fails.is_error
    assert await ask("dies") == ToolOutput("[exit code -9]", is_error=True)
    assert (await ask("missing")).content == "Refused: missing cannot be started: No such file or directory"
    assert (await ask("data")).content == "Refused: data cannot be started: Permission denied"


@pytest.mark.parametrize("what", ["sleeps", "ignores SIGTERM", "has children", "is left by its parent", "escapes"])
async def test_too_long(ask: Asked, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time limit the program is killed with all that it started; only what made its own group is not."""
    monkeypatch.setattr(programs, "SECONDS", 1.5)
    start = "subprocess.Popen(['sleep', '100']{}).pid"
    codes = {
        "sleeps": "time.sleep(100)",
        "ignores SIGTERM": "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(100)",
        "has children": f"say({start.format('')}); time.sleep(100)",
        "is left by its parent": f"say({start.format('')})",
        "escapes": f"say({start.format(', start_new_session=True')})",
    }
    say = "import os, signal, subprocess, time\ndef say(n): print(n, file=open('pids', 'a'))\nsay(os.getpid())\n"
    ask.add("long", say + codes[what])
    output = await ask("long")
    assert output.content == "Refused: long did not end within 1.5 seconds and was killed"
    pids = [int(pid) for pid in (ask.folder / "pids").read_text().split()]
    if what == "escapes":
        assert is_alive(pids[1])
        os.kill(pids[1], signal.SIGKILL)
    await gone(pids)


async def test_what_a_program_leaves_behind(ask: Asked) -> None:
    """A child that closed its output and outlives the program is killed as well."""
    ask.add("leaves", "import subprocess as s\nn = s.DEVNULL\nprint(s.Popen(['sleep', '100'], stdout=n, stderr=n).pid)")
    output = await ask("leaves")
    assert output.content.endswith("[exit code 0]")
    await gone([int(output.content.split()[0])])


@pytest.mark.parametrize(
    "code", ["while True: print('x' * 1000)", "import sys\nwhile True: sys.stderr.write('x' * 10**6)"]
)
async def test_too_much(ask: Asked, code: str) -> None:
    """A program that prints without end is killed once there is enough."""
    ask.add("prints", f"import os; open('pids', 'w').write(str(os.getpid()))\n{code}")
    output = await ask("prints")
    assert output.content.endswith("x\n[stopped after 40,000 bytes]")
    assert len(output.content) < 41_000
    await gone([int((ask.folder / "pids").read_text())])


async def test_binary_output(ask: Asked) -> None:
    """Bytes that are no text are replaced."""
    ask.add("binary", "import sys; sys.stdout.buffer.write(b'a\\xff\\0b')")
    assert (await ask("binary")).content.startswith("a\N{REPLACEMENT CHARACTER}")


async def test_cancelled(ask: Asked) -> None:
    """A call that is cancelled kills the program and its children before it is over."""
    ask.add(
        "long",
        "import os, subprocess, time\nchild = subprocess.Popen(['sleep', '100']).pid\n"
        "open('tmp', 'w').write(f'{os.getpid()} {child}'); os.rename('tmp', 'pids'); time.sleep(100)",
    )
    task = asyncio.create_task(ask("long"))
    async with asyncio.timeout(10):
        while not (ask.folder / "pids").exists():
            await asyncio.sleep(0.01)
    pids = [int(pid) for pid in (ask.folder / "pids").read_text().split()]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(pids)
