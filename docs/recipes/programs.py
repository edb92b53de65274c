"""Run programs from an allow-list, without a shell.

Holds against: `;`, `|`, `$()`, backticks, newlines and wildcards (there is no shell: they are characters of an
argument); programs and options that are not listed, relative and absolute program names; arguments that are absolute
paths or climb with `..`; the environment (the program gets a fixed one, without your keys) and standard input; programs
that run too long, print too much or start others (the whole process group is killed, when the run is cancelled too).

Does not hold against: what a listed program can do with its listed options: `git` runs hooks, `find` has `-exec`, and
links are followed, so list the options that only read; a process that makes a group of its own; memory and disk (use
a container for those). POSIX only.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field

from thena_core import Inject, ToolOutput, tool

SECONDS, MAX_BYTES, CHUNK = 10.0, 40_000, 65_536


class Refused(Exception):
    """Say to the model what is not run, and why."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that may be run.

    Attributes:
        path: Where it is; absolute, so that no search path decides.
        options: The arguments that begin with `-` and may be given, whole: `-n`, `--format=%h`.
        first: What the first argument may be, like `log` and `status` for git; anything unless given.
    """

    path: Path
    options: frozenset[str] = frozenset()
    first: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if not self.path.is_absolute():
            raise ValueError(f"Program({str(self.path)!r}): give the absolute path, e.g. /usr/bin/git")

    def refusal(self, arguments: Sequence[str]) -> str | None:
        """Say what is wrong with the arguments, if something is."""
        if self.first is not None and (not arguments or arguments[0] not in self.first):
            return f"the first argument must be one of {', '.join(sorted(self.first))}"
        for argument in arguments:
            if argument.startswith("-") and argument not in self.options:
                return f"{argument[:100]!r} is not allowed; allowed are {', '.join(sorted(self.options)) or 'none'}"
            if argument.startswith(("/", "~")) or ".." in argument.split("/") or "\0" in argument:
                return f"{argument[:100]!r} leads out of the folder"
        return None


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs, by the names that the model gives, the folder they run in, and their whole environment."""

    allowed: Mapping[str, Program]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"})

    async def run(self, name: str, arguments: Sequence[str]) -> ToolOutput:
        """Run one program to its end, and return what it printed.

        Raises:
            Refused: Where it is not allowed, cannot be started, or does not end in time.
        """
        program = self.allowed.get(name)
        refusal = program.refusal(arguments) if program else f"{name[:100]!r} is none of {', '.join(self.allowed)}"
        if program is None or refusal is not None:
            raise Refused(refusal)
        reading, writing = os.pipe()  # ours, to be closed also where a process that escaped holds its end
        with os.fdopen(reading, "rb", 0) as pipe:
            try:
                process = await asyncio.create_subprocess_exec(
                    program.path,
                    *arguments,
                    cwd=self.folder,
                    env=dict(self.environment),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=writing,
                    stderr=writing,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:  # ValueError: a lone surrogate
                raise Refused(f"{name} cannot be started: {getattr(error, 'strerror', None) or error}") from error
            finally:
                os.close(writing)
            try:
                async with asyncio.timeout(SECONDS):
                    printed = await _read(pipe)
                    if len(printed) <= MAX_BYTES:
                        await process.wait()
            except TimeoutError as error:
                raise Refused(f"{name} did not end within {SECONDS:g} seconds and was killed") from error
            finally:
                with suppress(ProcessLookupError):  # it has ended, and left nobody behind
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        text = printed[:MAX_BYTES].decode("utf-8", "replace")
        if len(printed) > MAX_BYTES:
            return ToolOutput(f"{text}\n[stopped after {MAX_BYTES:,} bytes]")
        ending = f"[exit code {process.returncode}]"
        return ToolOutput(f"{text.rstrip()}\n{ending}".lstrip(), is_error=process.returncode != 0)


async def _read(pipe: IO[bytes]) -> bytearray:
    """Read until everybody has closed the other end, or printed too much."""
    printed, reader = bytearray(), asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        while len(printed) <= MAX_BYTES and (chunk := await reader.read(CHUNK)):
            printed += chunk
    finally:
        transport.close()
    return printed


@tool(effect="write")
async def run_program(
    program: str,
    programs: Annotated[Programs, Inject],
    arguments: Annotated[list[str], Field(max_length=100, description="one item an argument; there is no shell")],
) -> ToolOutput:
    """Runs a program of the allow-list in the project's folder, and shows what it printed."""
    return await programs.run(program, arguments)
