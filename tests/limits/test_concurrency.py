"""Many runs of one app and of several, at once: none sees anything of another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from dependency_injector import containers

from thena_core import (
    Budget,
    Context,
    Event,
    Inject,
    Prompt,
    RunScoped,
    State,
    Thena,
    ToolDefinition,
    ToolRequest,
    WorkflowRuntime,
    agent,
    current_context,
    loop,
    workflow,
)
from thena_core.messages import ChatTurn
from thena_core.providers import ChatRequest, Provider
from thena_core.run import current

MANY = 1_000


class Echo(Provider):
    """A model that asks for `note` three times with what it was told, then says it; it keeps nothing itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def chat(self, request: ChatRequest) -> ChatTurn:
        said = request.messages[0].content
        turn = sum(message.role == "assistant" for message in request.messages)
        for _ in range(int(said.split("-")[1]) % 5):
            await asyncio.sleep(0)
        if turn < 3:
            return ChatTurn("", [ToolRequest("c1", "note", {"text": f"{said}#{turn}"})])
        return ChatTurn(f"{self.name} says {said}")


@dataclass
class Notes:
    """The state of one run."""

    texts: list[str] = field(default_factory=list)


class Session:
    """A service of one run."""

    def __init__(self) -> None:
        self.texts: list[str] = []


def app_of(name: str, wrong: list[str]) -> Thena:
    """Make an app whose tool notes in `wrong` whatever it sees of another run."""

    async def session() -> AsyncIterator[Session]:
        yield Session()

    class Services(containers.DeclarativeContainer):
        provider = RunScoped(session)

    async def note(
        text: str,
        ctx: Context,
        state: Annotated[Notes, State],
        session: Annotated[Session, Inject],
        runtime: WorkflowRuntime,
    ) -> str:
        mine, turn = text.split("#")
        state.texts.append(text)
        session.texts.append(text)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        expected = [f"{mine}#{n}" for n in range(int(turn) + 1)]
        checks = {
            "state": state.texts == expected,
            "service": session.texts == expected,
            "data": ctx.data == (name, mine),
            "current": current_context() is ctx and current_context().run_id == ctx.run_id == f"{name}-{mine}",
            "history": ctx.history[0].content == mine,
            "budget": ctx.usage().tool_calls == int(turn) + 1,
        }
        wrong.extend(f"{name} {text}: {what}" for what, right in checks.items() if not right)
        return text

    made = agent(provider=Echo(name), tools=[ToolDefinition("note", "d", None, note)], prompt=Prompt("p"))(
        type("Agent", (), {"__module__": __name__})
    )
    flow = workflow(steps=[loop([made])], state=Notes)(type("Flow", (), {"__module__": __name__}))
    return Thena(flow, container=Services())


@pytest.mark.behaviour("C04", "B04", "I06", "D06")
@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]], ids=["one app", "three apps"])
async def test_a_thousand_runs_at_once(names: list[str]) -> None:
    """State, services, data, context, history, budget and events of 1,000 concurrent runs are each run's own."""
    wrong: list[str] = []
    events: dict[str, list[Event]] = {}
    apps = {name: app_of(name, wrong) for name in names}

    async def run(number: int) -> Any:
        name = names[number % len(names)]
        message = f"m-{number}"
        mine = events[f"{name}-{message}"] = []
        # every tenth may call the tool twice only, and must not be helped or hurt by its neighbours
        limit = 2 if number % 10 == 0 else 3
        result = await apps[name].run(
            message,
            data=(name, message),
            budget=Budget(max_tool_calls=limit),
            run_id=f"{name}-{message}",
            log=mine.append,
        )
        assert current.get(None) is None
        assert result.usage.tool_calls == limit
        assert result.stopped_by == ("budget" if limit == 2 else "answered")
        assert result.output == (None if limit == 2 else f"{name} says {message}")
        assert result.history[0].content == message
        return result

    try:
        results = await asyncio.gather(*(run(number) for number in range(MANY)))
    finally:
        for app in apps.values():
            await app.close()
    assert wrong == []
    assert len({result.run_id for result in results}) == MANY
    for run_id, seen in events.items():
        assert {event.run_id for event in seen} == {run_id}
        assert sum(event.kind == "tool" and event.phase == "start" for event in seen) == 3
        assert all(event.id == run_id or event.id.startswith(f"{run_id}/") for event in seen)


@pytest.mark.behaviour("C04", "X01")
async def test_stopping_one_of_many() -> None:
    """Runs that are aborted, cancelled or fail among others leave those alone."""
    wrong: list[str] = []
    app = app_of("a", wrong)
    async with app:
        handles = [app.start(f"m-{n}", data=("a", f"m-{n}"), run_id=f"a-m-{n}") for n in range(90)]
        for _ in range(12):
            await asyncio.sleep(0)
        for handle in handles[::3]:
            handle.abort(handle.run_id)
        for handle in handles[1::3]:
            handle._task.cancel()
        ended = await asyncio.gather(*(handle.result() for handle in handles), return_exceptions=True)
    assert wrong == []
    for number, what in enumerate(ended):
        if number % 3 == 2:
            assert getattr(what, "output", what) == f"a says m-{number}"
        elif number % 3 == 0:
            assert str(what) == f"the run was aborted: a-m-{number}"
        else:
            assert isinstance(what, asyncio.CancelledError)


@pytest.mark.behaviour("C04")
async def test_a_run_inside_another_apps_run() -> None:
    """A tool that uses another app starts a run of its own: with no data, budget, events or context of the outer one."""
    seen: list[Any] = []
    events: list[Event] = []
    inner_events: list[Event] = []

    async def look(ctx: Context) -> str:
        seen.append((ctx.run_id, ctx.data, ctx.deadline, ctx.usage().tool_calls))
        return "seen"

    other = Thena(tools=[ToolDefinition("look", "d", None, look)], log=inner_events.append)

    async def uses(ctx: Context) -> str:
        said = await other.call("look")
        assert current_context() is ctx
        return said.content

    app = Thena(tools=[ToolDefinition("uses", "d", None, uses)], log=events.append)
    async with app, other:
        budget = Budget(max_tool_calls=1, max_duration=60)
        assert (await app.call("uses", data="mine", budget=budget)).content == "seen"
    [(run_id, data, deadline, calls)] = seen
    assert run_id
    assert (data, deadline, calls) == (None, None, 1)
    assert {event.name for event in events} == {"uses"}
    assert {event.name for event in inner_events} == {"look"}
