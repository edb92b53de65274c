"""Everything that can be set, in one object; what is wrong with it is said when it is made."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, SecretStr

from thena_core import ToolDefinition

_SETTINGS = ConfigDict(extra="forbid", frozen=True)


class Rule(BaseModel):
    """Allow or refuse calls; everything that is given must fit, and the first rule that fits decides.

    Attributes:
        allow: Whether the call goes on.
        tools: A pattern for the tool's name, e.g. `drop_*`.
        effect: What the tool says that it does; `undeclared` fits a tool that does not say.
        who: A pattern for the caller, as `AuditConfig.who` names it; an unknown one is the empty text.
    """

    model_config = _SETTINGS
    allow: bool
    tools: str = "*"
    effect: Literal["read", "write", "destructive", "undeclared"] | None = None
    who: str = "*"

    def fits(self, tool: ToolDefinition, who: str | None) -> bool:
        """Whether the rule speaks of this call."""
        effect = self.effect is None or self.effect == (tool.effect or "undeclared")
        return effect and fnmatchcase(tool.name, self.tools) and fnmatchcase(who or "", self.who)


class AuditConfig(BaseModel):
    """The plugin's settings.

    Attributes:
        path: The file; its folder is made when the app starts.
        who: Takes the run's `data` and names the caller; if it raises, the run ends before the tool is executed.
        rules: Who may call what, the first that fits decides; a call that none fits is allowed.
        on_failure: What a line that cannot be written does: `end` the run, or `warn` (logger `thena_audit`) and go on.
        fsync: When the disk is told to keep what was written: after `always` each line, on `close` of the app and of a
            full file, `never`. Without it a line survives the end of the process, but not a power failure.
        max_bytes: When a file is full; it is renamed to `audit-000001.jsonl` and so on.
        keep: How many full files are kept; all unless given.
        key: Makes the digests of arguments HMACs, so that short ones (a PIN) cannot be found by trying.
        lock_seconds: How long a line waits for other processes that write to the file, before it counts as failed.
    """

    model_config = _SETTINGS
    path: Path = Path("audit.jsonl")
    who: Callable[[Any], str | None] | None = None
    rules: tuple[Rule, ...] = ()
    on_failure: Literal["end", "warn"] = "end"
    fsync: Literal["always", "close", "never"] = "never"
    max_bytes: PositiveInt = 10_000_000
    keep: PositiveInt | None = None
    key: SecretStr | None = None
    lock_seconds: PositiveFloat = 5.0

    def allows(self, tool: ToolDefinition, who: str | None) -> bool:
        """Whether the caller may call the tool."""
        return next((rule.allow for rule in self.rules if rule.fits(tool, who)), True)
