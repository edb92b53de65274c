"""An app around a model that plays a script, and all that its run leaves behind: for tests of calls, hooks and runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thena_core import Event, Message, Prompt, RunResult, Thena, ThenaError, ToolRequest, agent
from thena_core.testing import FakeProvider
from thena_core.testing.provider import ScriptedTurn

DEADLINE = 10.0
"""Seconds after which a run is taken to hang: the test fails, and does not wait for ever."""


class NoHooks:
    """An agent without hooks."""


@dataclass
class Ended:
    """What a run left: its result, or the error that ended it with what there was."""

    result: RunResult | None
    error: BaseException | None
    events: Sequence[Event]

    @property
    def history(self) -> Sequence[Message]:
        """What was said, also where the run was ended by an error of ours."""
        if self.result is not None:
            return self.result.history
        assert isinstance(self.error, ThenaError), self.error
        return self.error.run.history

    @property
    def observations(self) -> list[str]:
        """What the model reads of each call, in order."""
        return [message.content for message in self.history if message.role == "tool"]

    @property
    def observation(self) -> str:
        """What the model reads of the only call."""
        [text] = self.observations
        return text

    def node(self, name: str) -> Event:
        """Return how the only node of that name ended."""
        [event] = self.nodes(name)
        return event

    def nodes(self, name: str) -> list[Event]:
        """Return how the nodes of that name ended."""
        return [event for event in self.events if event.phase == "end" and event.name == name]


@dataclass
class Scripted:
    """An app and its scripted model."""

    app: Thena
    provider: FakeProvider
    events: list[Event] = field(default_factory=list)

    async def run(self, **options: Any) -> Ended:
        """Run once, and close the app; an error of any kind is kept, not raised."""
        try:
            async with asyncio.timeout(DEADLINE), self.app:
                return Ended(await self.app.run("go", **options), None, self.events)
        except Exception as error:  # noqa: BLE001 - the tests look at it
            return Ended(None, error, self.events)


def scripted(
    tools: Sequence[Any],
    *turns: ScriptedTurn,
    hooks: type = NoHooks,
    tool_calls: Any = "one",
    around: Sequence[Any] = (),
    observed: bool = True,
    **options: Any,
) -> Scripted:
    """Make an app whose model plays `turns` and then says `done`; `around` are its tool middlewares."""
    provider, events = FakeProvider([*turns, "done"]), []
    made = type(hooks.__name__, (hooks,), {"__module__": hooks.__module__})
    agent(provider=provider, tools=tools, prompt=Prompt("You act."), tool_calls=tool_calls)(made)
    app = Thena(made, **({"log": events.append, **options} if observed else options))
    for function in around:
        app.use(tool=function)
    return Scripted(app, provider, events)


def ask(name: str, arguments: Mapping[str, Any] | str | None = None, call_id: str = "c1") -> ToolRequest:
    """Ask for one call, as a model does."""
    return ToolRequest(call_id, name, {} if arguments is None else arguments)


def packed(*calls: tuple[str, Any], call_id: str = "c1") -> ToolRequest:
    """Ask for several calls in one, through `ParallelTool`."""
    return ask("parallel", {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}, call_id)


def assert_legal(history: Sequence[Message]) -> None:
    """Check what every service demands: each call that was asked for is answered once, in order, right after it."""
    rest = list(history)
    while rest:
        message = rest.pop(0)
        assert message.role != "tool", f"an answer without its call: {message}"
        for request in message.tool_requests:
            answer = rest.pop(0) if rest else None
            assert answer is not None, f"no answer to {request}"
            assert (answer.role, answer.tool_call_id) == ("tool", request.id)
            assert answer.content
