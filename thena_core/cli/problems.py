"""What can go wrong on the command line: its exit codes, and its words in one line."""

from __future__ import annotations

import typer

from thena_core.errors import ThenaError

ANSWERED, FAILED, WRONG_USAGE, STOPPED_EARLY, INTERRUPTED = 0, 1, 2, 3, 130


class UsageProblem(ThenaError):
    """Report a command that cannot be run as it was written; its text says how to write it."""


def exit_code(error: Exception) -> int:
    """Return the exit code that an error means."""
    if isinstance(error, UsageProblem):
        return WRONG_USAGE
    if isinstance(error, typer.TyperException):
        return error.exit_code
    return FAILED


def one_line(error: Exception) -> str:
    """Word an error in one line, without Thena's mark for log files; a foreign error says its class too."""
    if isinstance(error, typer.TyperException):
        text = error.format_message()
    elif isinstance(error, ThenaError):
        text = str(error).removeprefix("[thena] ")
    else:
        text = f"{type(error).__name__}: {error}"
    return " ".join(text.split())
