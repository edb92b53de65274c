"""`workflow_tool`: a tool that runs a workflow, without a class."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from thena_core import Budget, RunResult, ToolDefinition, WorkflowRuntime

TASK = "what is to be done, with everything that is needed to do it: nothing else of this conversation is seen"


def workflow_tool(
    workflow: type, *, name: str, description: str, budget: Budget | None = None, **options: Any
) -> ToolDefinition:
    """Make a tool of a workflow: the model writes a message, the workflow's output is what it reads.

    Args:
        workflow: A workflow class, or an agent class; it is checked when the app is built.
        name: What the model writes to call it.
        description: How the model decides whether to call it.
        budget: What each run of it may use; the limits of the run around it hold as well.
        **options: The further fields of `ToolDefinition` (`effect`, `timeout`, …).
    """

    async def execute(message: Annotated[str, Field(description=TASK)], runtime: WorkflowRuntime) -> RunResult:
        return await runtime.run(workflow, message=message, budget=budget)

    return ToolDefinition(name, description, None, execute, workflows=(workflow,), **options)
