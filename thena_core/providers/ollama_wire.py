"""The words of Ollama's chat: neutral messages to JSON, and its answer, in one line or many, to an `Answer`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from thena_core.definition import ToolDefinition
from thena_core.messages import Message, ToolRequest, Usage
from thena_core.providers.answer import Answer
from thena_core.providers.base import Sampling
from thena_core.providers.body import argument_text, compact, whole
from thena_core.providers.client import BrokenOff
from thena_core.providers.openai_wire import asked_calls, count, items, legal_name, mapping
from thena_core.providers.price import Price

EXTRA = "ollama"
"""The key of `Message.extra` under which the model's thinking is kept."""


class OllamaError(Exception):
    """Hold the message that the server put in place of an answer, or of its rest."""

    def __init__(self, error: Any) -> None:
        super().__init__("an error in the answer")
        self.error = error


def encode_message(message: Message, history: Sequence[Message], index: int) -> str:
    """Write one entry of the history.

    Args:
        message: The entry.
        history: Where it stands: the result of a call names the tool that was called before.
        index: Its place there.
    """
    entry: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        name = called_name(message.tool_call_id, history, index)
        if name:
            entry["tool_name"] = legal_name(name)
        if message.tool_call_id:
            entry["tool_call_id"] = message.tool_call_id
    elif message.role == "assistant":
        thinking = mapping((message.extra or {}).get(EXTRA)).get("thinking")
        if isinstance(thinking, str):
            entry["thinking"] = thinking
        if message.tool_requests:
            calls = ",".join(call(wanted) for wanted in message.tool_requests)
            return f'{compact(entry)[:-1]},"tool_calls":[{calls}]}}'
    return compact(entry)


def called_name(call_id: str | None, history: Sequence[Message], index: int) -> str:
    """Return the name of the tool whose call before this place had the id; the newest counts."""
    for place in range(index - 1, -1, -1):
        for wanted in history[place].tool_requests:
            if wanted.id == call_id:
                return wanted.name
    return ""


def call(wanted: ToolRequest) -> str:
    """Write a past call; its arguments go out as the text that came in, where that is a JSON object."""
    name = compact(legal_name(wanted.name))
    arguments = whole(argument_text(wanted.arguments))
    return f'{{"id":{compact(wanted.id)},"function":{{"name":{name},"arguments":{arguments}}}}}'


def encode_tool(definition: ToolDefinition) -> dict[str, Any]:
    """Write what the model sees of a tool."""
    parameters = definition.json_schema or {"type": "object", "properties": {}}
    function = {"name": definition.name, "description": definition.description, "parameters": parameters}
    return {"type": "function", "function": function}


def encode_options(sampling: Sampling | None) -> dict[str, Any]:
    """Write the sampling settings that are given, under the names of Ollama's model files."""
    given = sampling or Sampling()
    options = {
        "temperature": given.temperature,
        "top_p": given.top_p,
        "num_predict": given.max_tokens,
        "stop": [given.stop] if isinstance(given.stop, str) else None if given.stop is None else list(given.stop),
        "seed": given.seed,
    }
    return {name: value for name, value in options.items() if value is not None}


class ChatLines:
    """Take the lines of one answer, of which one that is not streamed has a single one; afterwards it can be read.

    Attributes:
        calls: The calls as they came.
        usage: The counts.
        reason: Why it ended, or `None`.
        began: Whether there was a message at all.
        done: Whether the last line came.
    """

    __slots__ = ("_content", "_thinking", "began", "calls", "done", "reason", "usage")

    def __init__(self) -> None:
        self._content: list[str] = []
        self._thinking: list[str] = []
        self.calls: list[Any] = []
        self.usage: dict[str, Any] = {}
        self.reason: str | None = None
        self.began = False
        self.done = False

    def answer(self, price: Price | None) -> Answer:
        """Return what was said; what the model thought is kept, since its template may want it back."""
        answer = Answer("".join(self._content), asked_calls(self.calls), read_usage(self.usage, price), self.reason)
        if self._thinking:
            answer.extra["thinking"] = whole("".join(self._thinking))
        return answer

    def take(self, line: str) -> str:
        """Take one line and return the text that it adds for the reader.

        Raises:
            OllamaError: For an error in place of a message.
            BrokenOff: For a line that is no JSON object: it was cut off.
        """
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise BrokenOff("a line of the answer is not a JSON object")
        return self.take_object(mapping(data))

    def take_object(self, data: Mapping[str, Any]) -> str:
        """Take one object, as `take` does."""
        if data.get("error"):
            raise OllamaError(data["error"])
        self.began = self.began or isinstance(data.get("message"), dict)
        message = mapping(data.get("message"))
        self.calls.extend(items(message.get("tool_calls")))
        thinking, content = message.get("thinking"), message.get("content")
        if isinstance(thinking, str) and thinking:
            self._thinking.append(thinking)
        for name in ("prompt_eval_count", "eval_count"):
            if data.get(name) is not None:
                self.usage[name] = data[name]
        if data.get("done") is True:
            self.done = True
            reason = data.get("done_reason")
            self.reason = reason if isinstance(reason, str) else None
        if not isinstance(content, str):
            return ""
        self._content.append(content)
        return content


def read_usage(usage: Mapping[str, Any], price: Price | None) -> Usage | None:
    """Read what the call used; a prompt that came from the server's cache whole is not counted by older servers."""
    if not usage:
        return None
    prompt, completion = count(usage.get("prompt_eval_count")), count(usage.get("eval_count"))
    return Usage(prompt, completion, 0, None if price is None else price.of(prompt, completion))
