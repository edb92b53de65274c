"""The command `thena demo`: choose folder and model, run the demo's agent, print answer, usage and report."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from thena_core._render import did_you_mean, listed
from thena_core.budget import Budget
from thena_core.cli.problems import ANSWERED, EARLY, STOPPED_EARLY, UsageProblem
from thena_core.cli.show import facts_of, printable, report_line, say

if TYPE_CHECKING:
    from thena_core.app import Thena
    from thena_core.providers.base import Provider
    from thena_core.run import RunResult

QUESTION = "How do I install this?"
"""What the demo asks unless told: it fits any folder."""

MAX_TOOL_CALLS = 60
"""What the demo spends at most, whoever the model is."""

SERVICES = {"openai": "gpt-5-mini", "anthropic": "claude-haiku-4-5", "ollama": "qwen3"}
"""The services that `--model` takes, and a model of each for messages."""


def run_demo(folder: Path | None, question: str | None, model: str | None) -> int:
    """Explore a folder and print what came of it.

    Args:
        folder: What to explore; `default_folder()` unless given.
        question: What to ask; `QUESTION` unless given.
        model: `SERVICE:NAME`, or `None` for the stand-in.

    Returns:
        0 answered, 3 stopped early.

    Raises:
        UsageProblem: For a folder or model that cannot be used.
    """
    place = checked_folder(default_folder() if folder is None else folder)
    provider = None if model is None else chosen_provider(model)
    from thena_core.demo.app import build_demo, has_batch_tool  # noqa: PLC0415 - a wrong command needs no framework

    if provider is None:
        say("model: a stand-in that follows fixed rules, no language model (--model SERVICE:NAME takes a real one)")
    if not has_batch_tool():
        say("thena-tools is not installed, so nothing is read in a batch: pip install thena-tools")
    result = asyncio.run(ask(build_demo(place, provider), question or QUESTION))
    print_result(result)
    return STOPPED_EARLY if result.stopped_by in EARLY else ANSWERED


async def ask(app: Thena, question: str) -> RunResult:
    """Run the app once and close it."""
    from thena_core.cli.running import run_to_end  # noqa: PLC0415 - a wrong command needs no framework

    async with app:
        return await run_to_end(app.start(question, budget=Budget(max_tool_calls=MAX_TOOL_CALLS)))


def default_folder() -> Path:
    """Return Thena's own project where it runs from its source, else the current folder."""
    project = Path(__file__).resolve().parents[2]
    return project if (project / "scripts" / "demo").is_file() else Path()


def checked_folder(folder: Path) -> Path:
    """Return the folder if it can be explored.

    Raises:
        UsageProblem: Where it is not there, not a folder, or not readable.
    """
    if not folder.exists():
        raise UsageProblem(f"there is no folder {folder}")
    if not folder.is_dir():
        raise UsageProblem(f"{folder} is a file, not a folder")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UsageProblem(f"the folder {folder} cannot be read: permission denied")
    return folder


def chosen_provider(model: str) -> Provider:
    """Return the provider that `SERVICE:NAME` means; a name may hold colons itself, as those of Ollama do.

    Raises:
        UsageProblem: For a service that Thena does not know, and where the name is missing.
    """
    service, _, name = model.partition(":")
    if service not in SERVICES:
        known = listed(SERVICES)
        raise UsageProblem(
            f"--model {model}: unknown service {service!r}; known are {known}.{did_you_mean(service, SERVICES)}"
        )
    if not name:
        raise UsageProblem(f'--model {model}: the model\'s name is missing, as in "{service}:{SERVICES[service]}"')
    from thena_core import providers  # noqa: PLC0415 - each loads the HTTP client when it is looked up

    if service == "openai":
        return providers.OpenAIProvider(name)
    return providers.AnthropicProvider(name) if service == "anthropic" else providers.OllamaProvider(name)


def print_result(result: RunResult) -> None:
    """Print the answer, then what it took and where the report lies."""
    print(printable(str(result.output)) if result.output is not None else "(no answer)")
    print(f"\n{facts_of(result)}")
    report = report_line(result)
    if report is not None:
        print(report)
