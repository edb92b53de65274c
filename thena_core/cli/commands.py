"""The table of commands, and the one place that turns what goes wrong into a line on stderr and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from thena_core.cli.problems import INTERRUPTED, UsageProblem, exit_code, one_line


def run(words: Sequence[str]) -> int:
    """Run one command.

    Args:
        words: The command and its arguments.

    Returns:
        The exit code; what went wrong is on stderr in one line, or with its traceback after `--debug`.
    """
    try:
        code = typer_app()(args=list(words), prog_name="thena", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place where an error can become a line
        if "--debug" in words:
            traceback.print_exc()
        else:
            say(one_line(error))
        return exit_code(error)
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def say(problem: str) -> None:
    """Print a problem; it is empty where typer has printed the help instead."""
    if problem:
        print(f"error: {problem}", file=sys.stderr)


def typer_app() -> typer.Typer:
    """Make the table of commands; each imports what it needs when it is called."""
    app = typer.Typer(
        help="Thena: a framework for the tools of LLM agents.",
        add_completion=False,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
    )
    app.callback()(top)
    app.command()(demo)
    return app


def top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Work with the tools of LLM agents."""


def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="What to explore; Thena's own source, or the current folder.")
    ] = None,
    question: Annotated[str | None, typer.Argument(help="What to ask about it.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="openai:NAME, anthropic:NAME or ollama:NAME; without it a stand-in that follows fixed rules, no "
            "language model."
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Print tracebacks.")] = False,  # noqa: ARG001 - `run` reads it
) -> int:
    """Let an agent explore a folder: the calls on stderr, the answer on stdout, a report under ./report."""
    if model is not None and ":" not in model:
        raise UsageProblem(f'--model {model}: write it as SERVICE:NAME, e.g. "openai:gpt-5-mini".')
    from thena_core.cli.demo import run_demo  # noqa: PLC0415 - loads the framework

    return run_demo(folder, question, model)
