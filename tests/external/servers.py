"""Start what others wrote on the loopback interface, stop it again, and keep what was sent to it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from thena_core.providers.transport import Read, Transport

HERE = Path(__file__).parent

STARTING = 60.0
"""Seconds that a server may take until it answers."""


@contextlib.contextmanager
def started(*command: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process while the block lasts."""
    words = [str(word) for word in command]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def free_port() -> int:
    """Return a port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def first_line(process: subprocess.Popen[str]) -> str:
    """Return the first line that a server prints: its address."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line.startswith("http"), f"the server said {line!r} in place of its address"
    return line


def get(url: str, body: Any = None) -> Any:
    """Ask a server for JSON, with a body to post or without."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 - http, our own
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
        return json.loads(answer.read() or b"null")


def wait_for(url: str) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + STARTING
    while True:
        try:
            get(url)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert time.monotonic() < deadline, f"nothing answers at {url}"
            time.sleep(0.05)
        else:
            return


class Recording(Transport):
    """A transport that keeps the bodies it sent, once for all attempts."""

    def __init__(self, provider: str, **settings: Any) -> None:
        super().__init__(provider, **settings)
        self.bodies: list[Any] = []

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], **more: Any) -> Any:
        self.bodies.append(json.loads(body))
        return await super().post(url, body, headers, **more)

    async def stream(self, url: str, body: bytes, headers: Mapping[str, str], read: Read[Any], **more: Any) -> Any:
        self.bodies.append(json.loads(body))
        return await super().stream(url, body, headers, read, **more)
