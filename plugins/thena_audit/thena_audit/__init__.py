"""An append-only audit of every tool call, and rules for who may call what: `plugins=["audit"]` or `Audit(config)`."""

from __future__ import annotations

from thena_audit.config import AuditConfig, Rule
from thena_audit.log import AuditError
from thena_audit.plugin import Audit

__all__ = ["Audit", "AuditConfig", "AuditError", "Rule", "plugin"]

plugin = Audit()
"""What the name `audit` stands for: the audit as it is without any configuration, in `audit.jsonl`."""
