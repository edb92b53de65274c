"""What somebody writes without a framework: a loop with `json.loads`, a pydantic model and `await`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic import BaseModel, ValidationError

from tests.benchmarks.workload import ANSWER, QUESTION, SYSTEM, TOOL, Shape, make_body, script

Entry = dict[str, Any]


class ReadFile(BaseModel):
    """The tool's arguments."""

    path: str
    max_lines: int = 100


class HandWritten:
    """An agent in forty lines; with hooks, two more awaited functions."""

    def __init__(self, shape: Shape) -> None:
        self.counts = shape.counts
        self._tools = {TOOL: (make_body(shape.counts, yields=shape.yields, waits=shape.waits), ReadFile)}
        self._hooks = shape.hooks

    async def run(self) -> str:
        """Ask the model until it answers."""
        history: list[Entry] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
        while True:
            reply = await self._ask(history)
            history.append(reply)
            calls = reply.get("tool_calls")
            if not calls:
                return str(reply["content"])
            if len(calls) == 1:
                history.append(await self._call(calls[0]))
            else:
                history.extend(await asyncio.gather(*(self._call(call) for call in calls)))

    async def _ask(self, _history: list[Entry]) -> Entry:
        calls = script.get().advance()
        if not calls:
            return {"role": "assistant", "content": ANSWER}
        asked = [
            {"id": call_id, "type": "function", "function": {"name": TOOL, "arguments": arguments}}
            for call_id, arguments in calls
        ]
        return {"role": "assistant", "content": None, "tool_calls": asked}

    async def _call(self, call: Entry) -> Entry:
        name = call["function"]["name"]
        function, model = self._tools[name]
        try:
            arguments = model.model_validate(json.loads(call["function"]["arguments"]))
        except ValidationError as error:
            return {"role": "tool", "tool_call_id": call["id"], "content": str(error)}
        if self._hooks:
            await self._before(name, arguments)
        content = await function(path=arguments.path, max_lines=arguments.max_lines)
        if self._hooks:
            await self._after(name, content)
        return {"role": "tool", "tool_call_id": call["id"], "content": content}

    async def _before(self, _name: str, _arguments: ReadFile) -> None:
        self.counts.before += 1

    async def _after(self, _name: str, _content: str) -> None:
        self.counts.after += 1
