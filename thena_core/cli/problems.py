"""What can go wrong on the command line: its exit codes, its words in one line, and the one place that catches it."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from thena_core._render import said_by
from thena_core.cli.show import complain, shown
from thena_core.errors import BuildError, ThenaError

ANSWERED, FAILED, WRONG_USAGE, STOPPED_EARLY, INTERRUPTED = 0, 1, 2, 3, 130

EARLY = frozenset({"budget", "exhausted", "fails"})
"""The values of `stopped_by` that mean that a run was not finished."""

CUT_OFF = 141
"""What a shell reports for a program whose reader went away (128 + SIGPIPE)."""


class UsageProblem(ThenaError):
    """Report a command that cannot be run as it was written; its text says how to write it."""


class CommandFailed(ThenaError):
    """Report a command that was written rightly and could not be carried out; its text says why."""


def guarded(work: Callable[[], int], words: Sequence[str]) -> int:
    """Do the work of a command, and turn what goes wrong into lines on stderr and an exit code.

    Args:
        work: Returns the exit code.
        words: The command's words; with `--debug` before any `--` the traceback is printed, too.
    """
    try:
        code = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # nobody reads any more (`thena tools | head -1`); what Python flushes at its end must go somewhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CUT_OFF
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the last place where an error can become a line
        report(error, debug="--debug" in words[: words.index("--") if "--" in words else None])
        return exit_code(error)
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return code


def report(error: BaseException, *, debug: bool) -> None:
    """Print an error: a line for each problem, or its traceback; known secret shapes are masked in both."""
    if debug:
        print(shown("".join(traceback.format_exception(error))), file=sys.stderr, end="")
        return
    for problem in error.exceptions if isinstance(error, BuildError) else [error]:
        complain(one_line(problem))


def exit_code(error: BaseException) -> int:
    """Return the exit code that an error means."""
    return WRONG_USAGE if isinstance(error, UsageProblem) else FAILED


def one_line(error: BaseException) -> str:
    """Word an error in one line, without Thena's mark for log files; a foreign error says its class too."""
    text = str(error).removeprefix("[thena] ") if isinstance(error, ThenaError) else said_by(error)
    return " ".join(text.split())
