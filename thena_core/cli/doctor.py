"""The command `thena doctor`: look at everything that a run depends on, and end with what to do next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from thena_core.cli import health
from thena_core.cli.health import Finding, Level
from thena_core.cli.problems import ANSWERED, FAILED, CommandFailed, UsageProblem, one_line
from thena_core.cli.settings import Settings, settings
from thena_core.cli.show import shown, table
from thena_core.cli.target import Target, built_of, load_target
from thena_core.errors import BuildError

SIGNS: dict[Level, str] = {"ok": "ok", "note": "note", "problem": "PROBLEM"}


def examine(target: str | None, *, online: bool) -> int:
    """Print what is there and what is wrong, then what to do next.

    Args:
        target: An app to look at, too; that of the settings unless given.
        online: Ask whether the model services can be reached.

    Returns:
        0, or 1 where something is a problem; a note is none.
    """
    findings = [*health.python(), *health.versions(), *health.entry_points(), *health.project()]
    given = Settings()
    try:
        given = settings()
    except UsageProblem as problem:
        findings.append(Finding("problem", "settings", one_line(problem), "correct it"))
    findings += health.keys()
    meant = target or given.target
    services = health.services_with_keys()
    if meant is not None:
        found, services_of_app = _app(meant, given)
        findings += found
        services = services_of_app or services
    if online:
        findings += asyncio.run(health.reachable(services))
    print(shown(table([(SIGNS[one.level], one.what, one.text) for one in findings])))
    print(shown("\n".join(["", "next:", *(f"  {step}" for step in _next(findings, meant, online=online))])))
    return FAILED if any(one.level == "problem" for one in findings) else ANSWERED


def _app(text: str, given: Settings) -> tuple[list[Finding], list[health.Asked]]:
    """Build the app and look at its tools; what keeps it from being built is a problem each."""
    try:
        return asyncio.run(_built(load_target(text, given)))
    except BuildError as error:
        return [Finding("problem", "app", one_line(problem), "correct it") for problem in error.exceptions], []
    except (UsageProblem, CommandFailed) as problem:  # they name the target themselves
        return [Finding("problem", "app", one_line(problem), "correct it")], []
    except Exception as problem:  # noqa: BLE001 - a startup or a resource may raise anything, and the look goes on
        return [Finding("problem", "app", f"{text}: {one_line(problem)}", "correct it")], []


async def _built(target: Target) -> tuple[list[Finding], list[health.Asked]]:
    async with await target.app() as app:
        built = built_of(app)
        toolsets = {"the app": built.toolset}
        toolsets |= {f"agent {name}": agent.toolset for name, agent in built.agents.items()}
        count = sum(len(toolset.definitions) for toolset in toolsets.values())
        findings = [Finding("ok", "app", f"{target.text} can be built: {len(built.agents)} agents, {count} tools")]
        for owner, toolset in toolsets.items():
            findings += health.descriptions(toolset.definitions, owner)
        services = health.services_of(built.providers)
        return [*findings, *health.missing_keys(services)], services


def _next(findings: Sequence[Finding], target: str | None, *, online: bool) -> list[str]:
    """Say what to do: first what is wrong, then what could be better, or else what comes after."""
    ordered = [one for level in ("problem", "note") for one in findings if one.level == level and one.todo]
    steps = list(dict.fromkeys(f"{one.what}: {one.todo}" for one in ordered))
    if not any(one.level == "problem" for one in findings):
        if target is None:
            steps.append("begin an app: thena new app NAME (or see one at work: thena demo)")
        else:
            steps.append(f'run it: thena run {target} "…"')
        if not online:
            steps.append("ask whether the model services can be reached: thena doctor --online")
    return steps
