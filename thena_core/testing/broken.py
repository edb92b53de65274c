"""Three plugins as nobody should write them: what `assert_plugin_conforms` must reject, and what it says of each."""

from __future__ import annotations

import asyncio

from thena_core.call import CallNext, ToolCall, ToolMiddleware
from thena_core.hooks.specs import hookimpl
from thena_core.output import ToolOutput


class CallsTwice:
    """Tries again where a call failed: the tool may have done its work the first time."""

    @hookimpl
    def tool_middleware(self) -> ToolMiddleware:
        """Stand around every tool."""
        return self.retry

    async def retry(self, call: ToolCall, call_next: CallNext) -> ToolOutput:
        """Call the tool, and once more where that failed."""
        output = await call_next(call)
        return await call_next(call) if output.is_error else output


class Swallows:
    """Makes an observation of whatever comes up: also of a fatal error, and of the cancellation of the run."""

    @hookimpl
    def tool_middleware(self) -> ToolMiddleware:
        """Stand around every tool."""
        return self.shield

    async def shield(self, call: ToolCall, call_next: CallNext) -> ToolOutput:
        """Call the tool, and let nothing out."""
        try:
            return await call_next(call)
        except BaseException as error:  # noqa: BLE001 - that is what is wrong with it
            return ToolOutput(f"failed: {type(error).__name__}", is_error=True)


class LeaksTask:
    """Starts something for each call, and never ends it."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    @hookimpl
    async def before_tool(self, call: ToolCall) -> None:
        """Send a sign of life from now on."""
        self.tasks.append(asyncio.create_task(self.beat(), name=f"beat-{call.name}"))

    async def beat(self) -> None:
        """Never end."""
        await asyncio.Event().wait()
