"""No secret leaves a run by any way out: console, log, events, observations, report, page, ledger or errors."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from thena_core import Context, Event, FatalToolError, Report, ToolDefinition, ToolOutput, tool

KEY = "ghp_" + "aB3dE5fG7hJ9" * 3
PASSWORD = "hunter2x9"
SECRETS = (KEY, PASSWORD, "tenant-key-4711")


@dataclass
class Tenant:
    """A run's data."""

    key: str = "tenant-key-4711"


@tool
async def raising(ctx: Context[Tenant]) -> str:
    """Fails, with a chain of errors that hold secrets."""
    try:
        raise ConnectionError(f"postgres://app:{PASSWORD}@db/x refused")
    except ConnectionError as error:
        raise ValueError(f"Authorization: Bearer {KEY}") from error


@tool
async def telling(ctx: Context[Tenant]) -> ToolOutput:
    """Returns secrets."""
    return ToolOutput(
        f"api_key={PASSWORD}", data={"headers": [["Authorization", f"Bearer {KEY}"]], "password": PASSWORD}
    )


@tool
async def ending(ctx: Context[Tenant]) -> str:
    """Ends the run."""
    raise FatalToolError(f"cannot log in with password={PASSWORD}") from ValueError(KEY)


class Hooks:
    """An agent whose hook changes what holds secrets."""

    async def after_tool(self, result: Any, ctx: Context[Tenant]) -> str:
        """Add one more."""
        return f"{result.output.content} token={KEY}"


@pytest.mark.behaviour("O05", "Q01")
@pytest.mark.parametrize("name", ["raising", "telling", "ending"])
async def test_nothing_that_is_seen_of_a_run_holds_a_secret(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """C19 (BerriAI/litellm#39964, openai/openai-agents-python#4182, #3910): neither keys nor the run's data get out."""
    caplog.set_level(logging.DEBUG, "thena")
    given = {"password": PASSWORD, "note": f"curl -H 'X-Api-Key: {PASSWORD}' https://u:{PASSWORD}@h/"}
    wanted = ToolDefinition("look", "d", {"type": "object"}, lambda args: f"Cookie: sid={KEY}")
    turns = [ask("look", given), ask(name)]
    for log in ("verbose", False):
        made = scripted([raising, telling, ending, wanted], *turns, hooks=Hooks, observed=False, log=log, report=Report(folder=tmp_path))  # fmt: skip
        ended = await made.run(data=Tenant(), run_id=f"run-{log}")
        assert (ended.error is None) is (name != "ending")
    events: list[Event] = []
    seen = scripted([raising, telling, ending, wanted], *turns, hooks=Hooks, observed=False, log=events.append)
    await seen.run(data=Tenant())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 6
    ways_out = {
        "console": "".join(capsys.readouterr()),
        "log": "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records),
        "events": "\n".join(
            f"{event.name} {event.error} {event.input} {event.output} {event.meta}" for event in events
        ),
        **{str(path): path.read_text("utf-8") for path in files},
    }
    assert "…masked" in ways_out["events"]
    for way, text in ways_out.items():
        assert text, way
        assert not [secret for secret in SECRETS if secret in text], way
