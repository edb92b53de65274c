"""The hooks: one line for each call, whatever became of it, and a refusal where a rule says so."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import json
import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_jsonable_python

from thena_audit.config import AuditConfig
from thena_audit.log import AuditError, AuditLog
from thena_core import (
    BudgetExceededError,
    CallNext,
    Context,
    RunAborted,
    ToolCall,
    ToolMiddleware,
    ToolOutput,
    ToolResult,
    hookimpl,
)

_LONGEST = 200
"""The most characters of a name in a line: an unknown tool's is whatever the model wrote."""


@dataclass(slots=True, eq=False)
class Line:
    """A call that is to be written down."""

    call: ToolCall
    who: str | None
    digest: str | None
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    begun: float = field(default_factory=time.perf_counter)

    def ended(self, outcome: str) -> bytes:
        """Write it, as JSON in ASCII: no name can break the line."""
        call, definition = self.call, self.call.definition
        facts = {
            "at": self.at,
            "who": self.who,
            "run": call.ctx.run_id,
            "call": call.key,
            "tool": call.name[:_LONGEST],
            "effect": definition.effect if definition is not None else None,
            "arguments": self.digest,
            "outcome": outcome,
            "duration_ms": round((time.perf_counter() - self.begun) * 1000, 3),
        }
        return json.dumps(facts).encode() + b"\n"


class Audit:
    """Write every call of a tool to a file, and refuse those that the rules refuse.

    Args:
        config: The settings; without any, `audit.jsonl` in the working directory, and nothing refused.
    """

    def __init__(self, config: AuditConfig | None = None) -> None:
        self.config = config if config is not None else AuditConfig()
        self._log = AuditLog(self.config)
        self._open: dict[Context[Any], list[Line]] = {}
        self._lost = 0

    @hookimpl
    async def startup(self) -> None:
        """Open the file once, so that one that cannot be written is found before the first run."""
        await asyncio.to_thread(self._log.open)

    @hookimpl
    async def shutdown(self) -> None:
        """Have the disk keep what was written."""
        await asyncio.to_thread(self._log.sync)

    @hookimpl(tryfirst=True)
    def before_tool(self, call: ToolCall, ctx: Context[Any]) -> None:
        """Note the call; whatever becomes of it, it is written down, at the latest when the run ends."""
        if ctx not in self._open:
            self._open[ctx] = []
            ctx.on_dispose(functools.partial(self._cut_off, ctx))
        self._open[ctx].append(self._line(call))

    @hookimpl(tryfirst=True)
    def tool_middleware(self) -> ToolMiddleware:
        """Stand around every tool, outside of all other middleware: none of it answers for a call that is refused."""
        return self._authorize

    @hookimpl(trylast=True)
    async def after_tool(self, result: ToolResult, ctx: Context[Any]) -> None:
        """Write the call down before any other plugin sees what came of it."""
        line = self._line_of(result.call, ctx)
        self._close(line, ctx)
        await self._write(line, result.outcome)

    async def _authorize(self, call: ToolCall, call_next: CallNext) -> ToolOutput:
        line = self._line_of(call, call.ctx)
        line.digest = self._digest(call)  # of what runs: other plugins may have changed it
        if call.definition is not None and not self.config.allows(call.definition, line.who):
            return ToolOutput(f"Not allowed: {call.name}.", is_error=True)
        try:
            return await call_next(call)
        except BaseException as error:  # it ends the run, so there is no result that after_tool could see
            self._close(line, call.ctx)
            await self._write(line, _outcome_of(error), is_ending=True)
            raise

    async def _cut_off(self, ctx: Context[Any]) -> None:
        """Write down what the end of the run cut off before it came to its tool, in another plugin for example."""
        for line in self._open.pop(ctx):
            await self._write(line, "cancelled", is_ending=True)

    def _line_of(self, call: ToolCall, ctx: Context[Any]) -> Line:
        """Find the call among the open ones; invalid and unknown ones have not come to `before_tool`."""
        found = (line for line in self._open.get(ctx, ()) if (line.call.key, line.call.id) == (call.key, call.id))
        return next(found, None) or self._line(call)

    def _close(self, line: Line, ctx: Context[Any]) -> None:
        lines = self._open.get(ctx, [])
        if line in lines:
            lines.remove(line)

    def _line(self, call: ToolCall) -> Line:
        who = self.config.who(call.ctx.data) if self.config.who is not None else None
        return Line(call, who if who is None else str(who)[:_LONGEST], self._digest(call))

    def _digest(self, call: ToolCall) -> str | None:
        value = dict(call.arguments) if call.args is not None else call.raw
        try:
            text = json.dumps(value, default=_plain, sort_keys=True, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError):
            return None  # no JSON, as only an app.call can give it
        if self.config.key is None:
            return f"sha256:{hashlib.sha256(text).hexdigest()}"
        return f"hmac-sha256:{hmac.digest(self.config.key.get_secret_value().encode(), text, 'sha256').hex()}"

    async def _write(self, line: Line, outcome: str, *, is_ending: bool = False) -> None:
        """Write a line in a thread, to its end, also where the run is cancelled meanwhile.

        Raises:
            AuditError: Where it cannot be written and that is to end the run, unless the run is ending anyway.
        """
        lost, self._lost = self._lost, 0
        gap = json.dumps({"at": line.at, "lost": lost}).encode() + b"\n" if lost else b""
        writing = asyncio.ensure_future(asyncio.to_thread(self._log.append, gap + line.ended(outcome)))
        cancelled = False
        while not writing.done():
            try:
                await asyncio.wait([writing])
            except asyncio.CancelledError:
                cancelled = True
        try:
            writing.result()
        except OSError as error:
            self._lost += lost + 1
            if self.config.on_failure == "end" and not is_ending:
                raise AuditError(self._log.path, line.call.name, error) from error
            logger = logging.getLogger("thena_audit")
            logger.warning("%s cannot be written, %d lost: %s", self._log.path, self._lost, error)
        if cancelled:
            raise asyncio.CancelledError


def _plain(value: Any) -> Any:
    return to_jsonable_python(value, fallback=repr)


def _outcome_of(error: BaseException) -> str:
    """Name what ended a call, as the report does."""
    if isinstance(error, BudgetExceededError):
        return "over_budget"
    return "cancelled" if isinstance(error, asyncio.CancelledError | RunAborted) else "fatal"
