"""The commands `thena run` and `thena call`: an app's run, or one of its tools, as the app itself would do it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thena_core._render import did_you_mean, listed
from thena_core.cli.problems import ANSWERED, EARLY, FAILED, STOPPED_EARLY, UsageProblem
from thena_core.cli.show import answer_text, complain, facts_of, printable, report_line, say
from thena_core.cli.target import Target, built_of, load_target, observers_of, split_words
from thena_core.errors import RunAborted, ThenaError
from thena_core.record.report import Report

if TYPE_CHECKING:
    from thena_core.app import Thena
    from thena_core.build import Built
    from thena_core.cli.settings import Settings
    from thena_core.definition import ToolDefinition
    from thena_core.handle import RunHandle
    from thena_core.observers import LogOption
    from thena_core.run import RunResult

RUN_USAGE = 'thena run TARGET "message"'
CALL_USAGE = "thena call TARGET TOOL '{\"json\": …}'"


def run_app(words: Sequence[str], settings: Settings, run_id: str | None = None) -> int:
    """Run an app once: the answer on stdout; the tree, the usage and the report's place on stderr.

    Args:
        words: `[TARGET] MESSAGE`; a message `-` is read from stdin.
        settings: Target, log, report and limits.
        run_id: The run's id; made up unless given.

    Returns:
        0 answered, 3 stopped early.

    Raises:
        KeyboardInterrupt: Where the run was interrupted; it has ended, and its report is written.
        UsageProblem: For words that cannot be used.
        ThenaError: Where the app cannot be built, or the run ended with it.
    """
    text, rest = split_words(words, settings, RUN_USAGE)
    message = _only(rest, "the message is missing", RUN_USAGE)
    message = sys.stdin.read() if message == "-" else message
    if run_id is not None:
        _check_id(run_id)
    return asyncio.run(_run(load_target(text, settings), message, settings, run_id))


def call_tool(words: Sequence[str], settings: Settings, agent: str | None = None) -> int:
    """Call one tool through all layers of the app, without a model; its observation on stdout.

    Args:
        words: `[TARGET] TOOL [JSON]`; a JSON `-` is read from stdin.
        settings: Target and limits.
        agent: Whose tool, where several agents have one of that name.

    Returns:
        0 for an observation, 1 for one that is an error, which goes to stderr.

    Raises:
        UsageProblem: For words that cannot be used.
        ThenaError: Where the app cannot be built, or a layer ended the call.
    """
    text, rest = split_words(words, settings, CALL_USAGE)
    if not rest:
        raise UsageProblem(f"the TOOL is missing. Write: {CALL_USAGE}")
    tool, arguments = rest[0], _only(rest[1:] or ["{}"], "", CALL_USAGE)
    arguments = sys.stdin.read() if arguments == "-" else arguments
    return asyncio.run(_call(load_target(text, settings), tool, arguments, settings, agent))


async def _run(target: Target, message: str, settings: Settings, run_id: str | None) -> int:
    async with await target.app() as app:
        if built_of(app).target is None:
            raise UsageProblem(
                f"{target.text} has only tools and nothing to run. Write: thena call {target.text} TOOL, "
                f"or give it a target: Thena(MyAgent)"
            )
        options: dict[str, Any] = {"log": _log(app, settings), "report": _report(app, settings)}
        result = await run_to_end(app.start(message, budget=settings.budget(), run_id=run_id, **options))
    if result.output is not None:
        print(answer_text(result.output))
    _tell(result)
    if result.output is None:
        say("(no answer)")
    if result.stopped_by not in EARLY:
        return ANSWERED
    say(f"stopped early: {WHY[result.stopped_by]}")
    return STOPPED_EARLY


BY_HAND = "interrupted with Ctrl-C"

WHY: Mapping[str, str] = {
    "budget": "the budget is used up; --max-tool-calls, --max-chat-calls and the like raise it",
    "exhausted": "the loop reached its max_iterations without an answer",
    "fails": "too many turns in a row in which every tool call failed (max_fails of the loop)",
}
"""What ended a run early, by `stopped_by`, and what changes it."""


async def run_to_end(handle: RunHandle) -> RunResult:
    """Wait for a run that was started; Ctrl-C aborts it, and waits until it has ended and its report is written.

    Raises:
        KeyboardInterrupt: Where it was aborted so; what it used and where its report lies is on stderr.
        ThenaError: What the run ended with; the same is on stderr.
    """
    try:
        try:
            return await handle.result()
        except asyncio.CancelledError:  # what asyncio makes of Ctrl-C in the task that it runs
            handle.abort(BY_HAND)
            return await handle.result()
    except ThenaError as error:
        _tell(error.run)
        if isinstance(error, RunAborted) and error.reason == BY_HAND:
            raise KeyboardInterrupt from error
        raise


async def _call(target: Target, tool: str, arguments: str, settings: Settings, agent: str | None) -> int:
    async with await target.app() as app:
        built = built_of(app)
        definition = owned(built, tool, agent)
        _check_arguments(arguments, f"thena call {target.text} {tool}", definition)
        output = await app.call(tool, arguments, budget=settings.budget(), agent=agent)
    if output.is_error:
        complain(output.content)
        return FAILED
    print(printable(output.content))
    return ANSWERED


def owned(built: Built, tool: str, agent: str | None) -> ToolDefinition:
    """Find whose tool is meant, and say the nearest name where there is none.

    Raises:
        UsageProblem: For an agent or a tool that there is not, and for a tool that several agents have.
    """
    if agent is not None and agent not in built.agents:
        raise UsageProblem(f'the app has no agent "{agent}".{did_you_mean(agent, built.agents)} {_has(built.agents)}')
    toolsets = {name: built_agent.toolset for name, built_agent in built.agents.items()}
    chosen = [built.toolset, *toolsets.values()] if agent is None else [toolsets[agent]]
    owners = [name for name, toolset in toolsets.items() if toolset.definition(tool)]
    if agent is None and built.toolset.definition(tool) is None and len(owners) > 1:
        raise UsageProblem(f'several agents have a tool "{tool}": {listed(owners)}. Write: --agent {owners[0]}')
    for toolset in chosen:
        definition = toolset.definition(tool)
        if definition is not None:
            return definition
    names = sorted({definition.name for toolset in chosen for definition in toolset.definitions})
    raise UsageProblem(f'there is no tool "{tool}".{did_you_mean(tool, names)} {_has(names)}')


def _has(names: Sequence[str] | Mapping[str, Any]) -> str:
    return f"There are: {listed(names)}." if names else "There are none."


def _check_arguments(text: str, command: str, definition: ToolDefinition) -> None:
    """Refuse what no shell quoting left whole; what the tool makes of an object is the tool's answer."""
    try:
        parsed = json.loads(text)
    except ValueError as error:
        problem = f"the arguments are no JSON ({error})"
    except RecursionError:
        problem = "the arguments are nested too deep"
    else:
        if isinstance(parsed, dict):
            return
        problem = f"the arguments are a JSON {type(parsed).__name__} and no object"
    raise UsageProblem(f"{problem}. Write: {command} '{example_arguments(definition)}'")


def example_arguments(definition: ToolDefinition) -> str:
    """Write arguments that show the form of what a tool requires."""
    schema: Mapping[str, Any] = definition.json_schema
    samples: Mapping[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    properties: Mapping[str, Any] = schema.get("properties", {})
    required: Sequence[str] = schema.get("required", [])
    shown = {name: samples.get(properties.get(name, {}).get("type"), "…") for name in required}
    return json.dumps(shown, ensure_ascii=False)


def _only(words: Sequence[str], missing: str, usage: str) -> str:
    if not words:
        raise UsageProblem(f"{missing}. Write: {usage}")
    if len(words) > 1:
        raise UsageProblem(f"too many words: {listed(words[1:])}. Quote what has spaces: {usage}")
    return words[0]


def _check_id(run_id: str) -> None:
    from thena_core.record.run_id import checked_id  # noqa: PLC0415 - only a run that is given an id needs it

    try:
        checked_id(run_id)
    except ValueError as error:
        raise UsageProblem(str(error).removeprefix("[thena] ")) from error


def _tell(result: RunResult | None) -> None:
    """Print what a run used and where its report lies."""
    if result is None:
        return
    say(facts_of(result))
    line = report_line(result)
    if line is not None:
        say(line)


def _log(app: Thena, settings: Settings) -> LogOption | None:
    """Print the tree unless told not to; what the app's own log function is given stays its own."""
    own = observers_of(app).log
    if callable(own):
        return None
    if settings.log is True:
        return own or True
    return settings.log


def _report(app: Thena, settings: Settings) -> Report | bool | None:
    """Say where the report goes; how much it holds is the app's word."""
    own = observers_of(app).report
    if settings.report is False:
        return False
    if settings.report is True:
        return None if own else Report()
    return Report(settings.report, content=own.content if isinstance(own, Report) else True)
