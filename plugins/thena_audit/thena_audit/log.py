"""The file: whole lines or none, from any number of threads and processes, in files of a bounded size."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from thena_audit.config import AuditConfig
from thena_core import EndsRun

_OPEN = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_POLL_SECONDS = 0.002


class AuditError(EndsRun):
    """End a run whose call could not be written down.

    Attributes:
        path: The file.
        tool: The tool that was called.
    """

    def __init__(self, path: Path, tool: str, error: OSError) -> None:
        super().__init__(
            f'[thena-audit] The call of "{tool}" is not in {path}, which cannot be written: {error}. '
            f'The run ends, since on_failure="end".'
        )
        self.path = path
        self.tool = tool


class AuditLog:
    """Append lines to a file. It is opened for each: nothing is kept open, and nothing is buffered in the process."""

    def __init__(self, config: AuditConfig) -> None:
        self.path = config.path.absolute()
        self._config = config
        self._lock = threading.Lock()

    def open(self) -> None:
        """Make the folder and the file.

        Raises:
            OSError: Where it cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, _OPEN, 0o600))

    def append(self, lines: bytes) -> None:
        """Append lines: all of them are in the file when this returns, and none if it raises.

        Raises:
            OSError: Where they cannot be written.
        """
        with self._locked(len(lines)) as file:
            found = os.fstat(file)
            size = found.st_size
            if size and os.pread(file, 1, size - 1) not in {b"\n", b""}:
                lines = b"\n" + lines  # the machine stopped in the middle of a line
            try:
                while lines:
                    lines = lines[os.write(file, lines) :]
            except OSError:
                if stat.S_ISREG(found.st_mode):  # a part of it may be there
                    os.ftruncate(file, size)
                raise
            if self._config.fsync == "always":
                os.fsync(file)

    def sync(self) -> None:
        """Have the disk keep what was written, unless `fsync` is `never`."""
        if self._config.fsync != "never":
            with self._locked() as file:
                os.fsync(file)

    def full_files(self) -> dict[int, Path]:
        """Map the numbers of the full files to their paths."""
        shape = re.compile(rf"{re.escape(self.path.stem)}-(\d{{6,}}){re.escape(self.path.suffix)}")
        found = ((shape.fullmatch(path.name), path) for path in self.path.parent.iterdir())
        return {int(match[1]): path for match, path in found if match is not None}

    @contextmanager
    def _locked(self, room: int | None = None) -> Generator[int, None, None]:
        """Open the file with nobody else writing to it; one that has no room for so many bytes is put aside first."""
        deadline = time.monotonic() + self._config.lock_seconds
        if not self._lock.acquire(timeout=self._config.lock_seconds):
            raise TimeoutError(f"other threads held it for {self._config.lock_seconds:g} s")
        try:
            while True:
                file = os.open(self.path, _OPEN, 0o600)
                try:
                    self._lock_file(file, deadline)
                    if not self._is_current(file):
                        continue  # another process has put it aside meanwhile
                    if room is None or not self._put_aside(file, room):
                        yield file
                        return
                finally:
                    os.close(file)  # which gives up the lock, too
        finally:
            self._lock.release()

    def _lock_file(self, file: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"other processes held it for {self._config.lock_seconds:g} s") from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self.path.stat())
        except FileNotFoundError:
            return False

    def _put_aside(self, file: int, room: int) -> bool:
        """Rename a full file; an empty one, and what is no file, is not full."""
        found = os.fstat(file)
        if not 0 < found.st_size > self._config.max_bytes - room or not stat.S_ISREG(found.st_mode):
            return False
        if self._config.fsync != "never":
            os.fsync(file)
        full = self.full_files()
        number = max(full, default=0) + 1
        self.path.rename(self.path.with_stem(f"{self.path.stem}-{number:06}"))
        for old in sorted(full)[: len(full) + 1 - self._config.keep] if self._config.keep is not None else ():
            full[old].unlink()
        return True
