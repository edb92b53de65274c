"""Thena: dependency injection and plugins for the tools of LLM agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thena_core.agents import Prompt, agent
from thena_core.app import Thena
from thena_core.budget import Budget, RunUsage
from thena_core.call import CallNext, ToolCall, ToolMiddleware, ToolResult
from thena_core.calls.toolset import Toolbox
from thena_core.context import Context, current_context
from thena_core.definition import ToolDefinition, tool
from thena_core.errors import (
    AgentDefinitionError,
    AgentOutputError,
    AmbiguousDependencyError,
    BudgetExceededError,
    BuildError,
    CircularDependencyError,
    DependencyError,
    EndsRun,
    FatalToolError,
    HookError,
    MiddlewareError,
    MissingDependencyError,
    NestingError,
    PluginLoadError,
    ProviderError,
    ResourceCloseError,
    RunAborted,
    ScopeError,
    SignatureError,
    ThenaError,
    ToolDefinitionError,
    WorkflowDefinitionError,
)
from thena_core.execution import WorkflowRuntime
from thena_core.handle import RunHandle
from thena_core.hooks.chain import AgentHooks
from thena_core.markers import Inject, Input, State, Tools
from thena_core.messages import History, Message, ToolRequest
from thena_core.output import Outcome, ToolOutput
from thena_core.providers.base import ChatCall, ChatMiddleware, ChatNext
from thena_core.record.event import Event
from thena_core.run import RunResult
from thena_core.workflows import loop, parallel, until_answered, workflow

if TYPE_CHECKING:
    from thena_core.di.scopes import RunScoped
    from thena_core.hooks.specs import hookimpl
    from thena_core.record.report import Report

__version__ = "0.1.0"

_LAZY = {
    "Report": "thena_core.record.report",
    "RunScoped": "thena_core.di.scopes",
    "hookimpl": "thena_core.hooks.specs",
}

__all__ = [
    "AgentDefinitionError",
    "AgentHooks",
    "AgentOutputError",
    "AmbiguousDependencyError",
    "Budget",
    "BudgetExceededError",
    "BuildError",
    "CallNext",
    "ChatCall",
    "ChatMiddleware",
    "ChatNext",
    "CircularDependencyError",
    "Context",
    "DependencyError",
    "EndsRun",
    "Event",
    "FatalToolError",
    "History",
    "HookError",
    "Inject",
    "Input",
    "Message",
    "MiddlewareError",
    "MissingDependencyError",
    "NestingError",
    "Outcome",
    "PluginLoadError",
    "Prompt",
    "ProviderError",
    "Report",
    "ResourceCloseError",
    "RunAborted",
    "RunHandle",
    "RunResult",
    "RunScoped",
    "RunUsage",
    "ScopeError",
    "SignatureError",
    "State",
    "Thena",
    "ThenaError",
    "ToolCall",
    "ToolDefinition",
    "ToolDefinitionError",
    "ToolMiddleware",
    "ToolOutput",
    "ToolRequest",
    "ToolResult",
    "Toolbox",
    "Tools",
    "WorkflowDefinitionError",
    "WorkflowRuntime",
    "agent",
    "current_context",
    "hookimpl",
    "loop",
    "parallel",
    "tool",
    "until_answered",
    "workflow",
]


def __getattr__(name: str) -> Any:
    """Load what needs another library only when it is asked for."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
