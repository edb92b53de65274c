"""What code may leave behind in a process: tasks, threads, open files, changed globals; looked at before and after."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import gc
import inspect
import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

PATIENCE = 1.0
"""Seconds that a thread which is ending may take, before it counts as left behind."""

_TURNS = 20
"""Turns of the loop that a task which is ending may take."""

_FOLDERS = ("/proc/self/fd", "/dev/fd")
"""Where the system lists a process's open files; on Windows it does not, and they are not compared."""


@dataclass(frozen=True, slots=True)
class Traces:
    """The state of the process at one time.

    Attributes:
        threads: Those that run.
        files: The open files: number, and what it refers to where the system says so.
        world: The globals that a library must leave alone: a name for messages to the value.
    """

    threads: frozenset[threading.Thread]
    files: frozenset[tuple[int, str]]
    world: Mapping[str, Any]


@contextlib.contextmanager
def only_new_garbage() -> Generator[None, None, None]:
    """Have the garbage collector look at what is made from now on only: the heap of a big test suite takes it long."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def taken() -> Traces:
    """Look at the process."""
    return Traces(frozenset(threading.enumerate()), frozenset(_open_files()), dict(_world()))


def left_since(before: Traces) -> tuple[Traces, list[str]]:
    """Look again, and say what was left behind since then, one line each; threads that are ending are waited for."""
    deadline = time.monotonic() + PATIENCE
    for thread in threading.enumerate():
        if thread not in before.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
    after = taken()
    found = [
        f'it left behind the thread "{thread.name}"{_place_of(thread)}' for thread in after.threads - before.threads
    ]
    found += [f"it left behind the open file {number} ({name})" for number, name in after.files - before.files]
    for name, value in before.world.items():
        if name not in after.world:
            found.append(f"it removed {name}")
        elif after.world[name] is not value and not _equal(after.world[name], value):
            found.append(f"it changed {name}")
    found += [f"it set {name}" for name in after.world if name not in before.world and name.startswith("os.environ")]
    return after, sorted(found)


async def tasks_left() -> list[str]:
    """Say which tasks of the running loop are left, but for the one that asks; one line each."""
    own = asyncio.current_task()
    for _ in range(_TURNS):
        if not asyncio.all_tasks() - {own}:
            break
        await asyncio.sleep(0)
    return sorted({_described(task) for task in asyncio.all_tasks() - {own}})


def _described(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    name = getattr(task.get_coro(), "__qualname__", "")
    where = f" at {_short(frames[0].f_code.co_filename)}:{frames[0].f_lineno}" if frames else ""
    return f"it left behind a task in {name}{where}"


def _place_of(thread: threading.Thread) -> str:
    # documented, for debuggers, in spite of its name
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if frame is None:  # it has ended meanwhile
        return ""
    stack = traceback.extract_stack(frame)
    own = [entry for entry in stack if Path(entry.filename).stem != "threading"]
    return f", in {own[0].name} at {_short(own[0].filename)}:{own[0].lineno}" if own else ""


def _short(path: str) -> str:
    return "/".join(Path(path).parts[-2:])


def _open_files() -> Iterator[tuple[int, str]]:
    folder = next((folder for folder in _FOLDERS if Path(folder).is_dir()), None)
    for name in os.listdir(folder) if folder is not None else ():  # noqa: PTH208 - the folder's own file is open meanwhile
        with contextlib.suppress(OSError):  # that of the folder itself is closed by now
            os.fstat(int(name))
            yield int(name), _target(f"{folder}/{name}")


def _target(link: str) -> str:
    try:
        return str(Path(link).readlink())
    except OSError:  # in /dev/fd of macOS they are no links
        return "unknown"


def _world() -> Iterator[tuple[str, Any]]:
    yield from ((f'os.environ["{name}"]', value) for name, value in os.environ.items())
    yield "the working directory", str(Path.cwd())
    yield "sys.path", list(sys.path)
    yield "the recursion limit", sys.getrecursionlimit()
    yield "warnings.filters", list(warnings.filters)
    yield "the default timeout of sockets", socket.getdefaulttimeout()
    yield from ((f"sys.{name}", getattr(sys, name)) for name in ("stdout", "stderr", "excepthook", "unraisablehook"))
    yield "threading.excepthook", threading.excepthook
    for number in signal.valid_signals():
        yield f"the handler of signal {number}", signal.getsignal(number)
    for name in ("", "thena"):
        logger = logging.getLogger(name)
        yield f'the level of the logger "{name or "root"}"', logger.level
        yield f'the handlers of the logger "{name or "root"}"', list(logger.handlers)
    yield "the class of loggers", logging.getLoggerClass()
    yield from _members(builtins)
    yield from _members(asyncio)
    for name, module in tuple(sys.modules.items()):
        if name.partition(".")[0] == "thena_core":
            yield from _members(module)


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Go through a module's functions, classes and values, and its classes' own: what a patch would replace."""
    for name, value in tuple(vars(module).items()):
        if name == "_" or inspect.ismodule(value):
            continue
        yield f"{module.__name__}.{name}", value
        if inspect.isclass(value) and value.__module__ == module.__name__:
            own: Sequence[tuple[str, Any]] = tuple(vars(value).items())
            yield from ((f"{module.__name__}.{name}.{member}", function) for member, function in own)


def _equal(one: Any, other: Any) -> bool:
    """Whether two plain values are equal; of anything else only identity counts."""
    return type(one) in (str, int, float, list) and type(one) is type(other) and bool(one == other)
