"""One tool, run alone in a test: built, injected and called through every layer, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thena_core.app import Thena
from thena_core.call import ToolResult
from thena_core.calls.declared import read_tool
from thena_core.hooks.specs import hookimpl


async def run_tool(
    tool: Any,
    arguments: Mapping[str, Any] | str | None = None,
    *,
    state: Any = None,
    data: Any = None,
    container: Any = None,
) -> ToolResult:
    """Build an app around one tool, call the tool once, and close the app.

    Args:
        tool: What `tools=[…]` takes: a class, a decorated function, a definition, a configured instance, a name.
        arguments: A mapping, or JSON text as a model sends it; they are validated as a model's are.
        state: What the tool sees as the workflow's state.
        data: What the tool sees as `ctx.data`.
        container: The container with its services.

    Returns:
        The call with its validated arguments, what the model would read, and the outcome. A failure of the tool is
        an observation in it, as it is in a run.

    Raises:
        BuildError: Where the tool cannot be built, with everything that is wrong with it.
        EndsRun: Where the tool ends the run, with `FatalToolError` for example.
    """
    witness = _Witness()
    async with Thena(tools=[tool], container=container, plugins=[witness]) as app:
        name = read_tool(tool).definition.name
        await app.call(name, arguments, state=state, data=data)
    return witness.seen[-1]  # the calls that it made itself ended before it


class _Witness:
    """A plugin that sees what came of the call, after everything else has."""

    def __init__(self) -> None:
        self.seen: list[ToolResult] = []

    @hookimpl
    def after_tool(self, result: ToolResult) -> None:
        self.seen.append(result)
