"""From a drawn app to a real one, around a model that plays scripts."""

from __future__ import annotations

import asyncio
from typing import Any

from dependency_injector import containers

from tests.proof.layers import agent_hooks, middleware, plugin
from tests.proof.model import AppSpec
from tests.proof.tools import leaf_tool, outer_tool, packed_tool
from tests.proof.world import World
from thena_core import Prompt, RunScoped, Thena, ToolRequest, agent
from thena_core.providers import ChatRequest, ChatTurn, Provider


def build(world: World, spec: AppSpec, log: Any) -> tuple[Thena, type, type]:
    """Make the app, its agent and the agent that nested runs start."""
    leaves = [leaf_tool(world, f"t{number}", leaf) for number, leaf in enumerate(spec.leaves)]
    inner = type("InnerAgent", (), {"__module__": __name__})
    tools = [*leaves, packed_tool(world), outer_tool(world, inner)]
    provider = Script(world)
    agent(provider=provider, tools=tools, prompt=Prompt("You act."), tool_calls="all")(inner)
    main = type("MainAgent", (), {"__module__": __name__, **agent_hooks(world, spec)})
    calls: Any = "all" if spec.every_call else "one"
    agent(provider=provider, tools=tools, prompt=Prompt("You act."), tool_calls=calls)(main)

    class Services(containers.DeclarativeContainer):
        session = RunScoped(world.session)

    plugins = [plugin(world, f"plugin{number}", part) for number, part in enumerate(spec.plugins)]
    app = Thena(main, workflows=[inner], container=Services(), plugins=plugins, log=log)
    for number, layer in enumerate(spec.around):
        app.use(tool=middleware(world, layer, f"app{number}"))
    return app, main, inner


class Script(Provider):
    """A model that asks for what the run's message names, turn by turn, and then says that it is done."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Play the next turn of the newest message's script."""
        said = list(request.messages)
        newest = max(n for n, message in enumerate(said) if message.role == "user")
        script = said[newest].content
        number = sum(message.role == "assistant" for message in said[newest:])
        self._world.chats[script] += 1
        self._world.note(script, "chat")
        await asyncio.sleep(0)
        turns = self._world.scripts[script]
        if number >= len(turns):
            return ChatTurn("done")
        return ChatTurn("", [ToolRequest(f"c{call.key}", call.asked_name, call.raw) for call in turns[number]])
