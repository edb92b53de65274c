"""The table of commands for typer: what each is given; the work is done in the module that each names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from thena_core.cli.problems import INTERRUPTED, UsageProblem, guarded
from thena_core.cli.settings import Settings, settings

Words = list[str]
Debug = Annotated[bool, typer.Option("--debug", help="Print tracebacks.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Whose tool, where several agents have one of the name.")]
Quiet = Annotated[bool | None, typer.Option("--log/--quiet", help="Print the tree on stderr, or not.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print it with what goes in and comes out.")]
Seconds = Annotated[float | None, typer.Option("--max-duration", metavar="SECONDS", help="Stop after so long.")]
ChatCalls = Annotated[int | None, typer.Option("--max-chat-calls", help="Stop after so many model calls.")]
ToolCalls = Annotated[int | None, typer.Option("--max-tool-calls", help="Stop after so many tool calls.")]
Tokens = Annotated[int | None, typer.Option("--max-tokens", help="Stop after so many tokens.")]
Cost = Annotated[float | None, typer.Option("--max-cost-usd", metavar="USD", help="Stop at this cost.")]

HELP = """Thena: a framework for the tools of LLM agents.

TARGET is module:object, a Thena or a function that returns one. Where none is given, `target` of the table tool.thena
in pyproject.toml is meant, or THENA_TARGET."""


def run(words: Sequence[str]) -> int:
    """Run one command.

    Args:
        words: The command and its arguments.

    Returns:
        The exit code; what went wrong is on stderr in one line, or with its traceback after `--debug`.
    """
    return guarded(lambda: _dispatch(words), words)


def _dispatch(words: Sequence[str]) -> int:
    try:
        code = typer_app()(args=list(words), prog_name="thena", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except typer.TyperException as error:
        text = error.format_message()
        if not text:  # typer has printed the help instead
            return error.exit_code
        raise UsageProblem(text) from error
    return code if isinstance(code, int) else 0


def typer_app() -> typer.Typer:
    """Make the table of commands; each imports what it needs when it is called."""
    app = typer.Typer(help=HELP, pretty_exceptions_enable=False, no_args_is_help=True)
    app.callback()(top)
    for command in (demo, run_command, call, tools, plugins, explain, doctor, new, report):
        app.command(command.__name__.removesuffix("_command"))(command)
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
    debug: Debug = False,  # noqa: ARG001 - `guarded` reads it
) -> int:
    """Let an agent explore a folder: the calls on stderr, the answer on stdout, a report under ./report."""
    model = settings().having(model=model).model
    if model is not None and ":" not in model:
        raise UsageProblem(f'--model {model}: write it as SERVICE:NAME, e.g. "openai:gpt-5-mini".')
    from thena_core.cli.demo import run_demo  # noqa: PLC0415 - loads the framework

    return run_demo(folder, question, model)


def run_command(
    words: Annotated[Words, typer.Argument(metavar="[TARGET] MESSAGE", help="`-` reads the message from stdin.")],
    log: Quiet = None,
    verbose: Verbose = False,
    report: Annotated[str | None, typer.Option("--report", metavar="FOLDER", help="Write the report there.")] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    run_id: Annotated[str | None, typer.Option("--run-id", help="The run's id; made up unless given.")] = None,
    max_duration: Seconds = None,
    max_chat_calls: ChatCalls = None,
    max_tool_calls: ToolCalls = None,
    max_tokens: Tokens = None,
    max_cost_usd: Cost = None,
    debug: Debug = False,  # noqa: ARG001 - `guarded` reads it
) -> int:
    """Run an app once: the answer on stdout, the tree on stderr, a report under ./report."""
    given = settings().having(
        log="verbose" if verbose else log,
        report=False if no_report else report,
        max_duration=max_duration,
        max_chat_calls=max_chat_calls,
        max_tool_calls=max_tool_calls,
        max_tokens=max_tokens,
        max_cost_usd=max_cost_usd,
    )
    from thena_core.cli.running import run_app  # noqa: PLC0415 - loads the framework

    return run_app(words, given, run_id)


def call(
    words: Annotated[
        Words, typer.Argument(metavar="[TARGET] TOOL [JSON]", help="`-` reads the JSON of the arguments from stdin.")
    ],
    agent: Agent = None,
    max_duration: Seconds = None,
    max_tool_calls: ToolCalls = None,
    debug: Debug = False,  # noqa: ARG001 - `guarded` reads it
) -> int:
    """Call one tool through all layers of the app, without a model."""
    given = settings().having(max_duration=max_duration, max_tool_calls=max_tool_calls)
    from thena_core.cli.running import call_tool  # noqa: PLC0415 - loads the framework

    return call_tool(words, given, agent)


def tools(debug: Debug = False) -> int:  # noqa: ARG001 - `guarded` reads it
    """List the installed tools; none is imported."""
    from thena_core.cli.listing import list_tools  # noqa: PLC0415 - loads the framework

    return list_tools()


def plugins(
    target: Annotated[str | None, typer.Argument(metavar="[TARGET]", help="Show its plugins and layers.")] = None,
    debug: Debug = False,  # noqa: ARG001 - `guarded` reads it
) -> int:
    """List the installed plugins with their hooks, or an app's with the final order of its layers."""
    from thena_core.cli.listing import list_plugins  # noqa: PLC0415 - loads the framework

    return list_plugins(target)


def explain(
    words: Annotated[Words | None, typer.Argument(metavar="[TARGET] [TOOL]")] = None,
    agent: Agent = None,
    debug: Debug = False,  # noqa: ARG001 - `guarded` reads it
) -> int:
    """Show an app's tools, or one tool's schema, what fills its parameters, and its layers."""
    from thena_core.cli.explaining import explain as work  # noqa: PLC0415 - loads the framework

    return work(words or [], settings(), agent)


def doctor(
    target: Annotated[str | None, typer.Argument(metavar="[TARGET]", help="An app to look at, too.")] = None,
    online: Annotated[bool, typer.Option("--online", help="Ask whether the model services can be reached.")] = False,
    debug: Debug = False,  # noqa: ARG001 - `guarded` reads it
) -> int:
    """Look at Python, versions, entry points, keys and an app's tools, and say what to do next."""
    from thena_core.cli.doctor import examine  # noqa: PLC0415 - loads the framework

    return examine(target, online=online)


def new(
    kind: Annotated[Literal["app", "tool", "agent", "plugin"], typer.Argument(help="What to begin.")],
    name: Annotated[str, typer.Argument(help="Its name, e.g. word_count.")],
    into: Annotated[Path, typer.Option("--into", metavar="FOLDER", help="Where its folder is made.")] = Path(),
    debug: Debug = False,  # noqa: ARG001 - `guarded` reads it
) -> int:
    """Begin a project: a package with its tests, that passes them, mypy and ruff at once. Nothing is overwritten."""
    from thena_core.cli.new import make_project  # noqa: PLC0415 - only this command needs it

    return make_project(kind, name, into)


def report(
    run_id: Annotated[str | None, typer.Argument(metavar="[RUN_ID]", help="The newest unless given.")] = None,
    folder: Annotated[Path | None, typer.Option("--folder", help="Where the reports are; ./report.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the newest runs.")] = False,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    debug: Debug = False,  # noqa: ARG001 - `guarded` reads it
) -> int:
    """Show the report of a run: its tree, what it used, and where its page is."""
    given: Settings = settings()
    from thena_core.cli.reports import show_report  # noqa: PLC0415 - only this command needs it

    return show_report(run_id, given, folder, listing=listing, browse=browse)
