"""The command `thena`: what works without the extra `cli` is here and in `plain`, the rest loads typer and rich."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: The words after `thena`; those of the process unless given.

    Returns:
        0 answered, 1 failed, 2 wrong usage, 3 stopped early (budget, iterations, fails), 130 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign must not cost the answer
    if words == ["--version"]:
        print(f"thena {version('thena-core')}")
        return 0
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        from thena_core.cli.plain import run_plain  # noqa: PLC0415 - only where the extra is not there

        return run_plain(words, missing)
    from thena_core.cli.commands import run  # noqa: PLC0415 - loads typer

    return run(words)
