"""Read calls that a model wrote as text, as small local models do: tagged, fenced, or as bare JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from thena_core.definition import ToolDefinition
from thena_core.providers.names import known_name

Rescue = bool | Literal["lenient"]
"""`True`: an answer that is nothing but calls; `"lenient"`: also calls inside other text; `False`: never."""

MAX_TEXT = 200_000
"""Characters of an answer in which calls are looked for."""

MAX_TRIES = 2_000
"""Places of an answer where a call may begin that are looked at."""

MAX_DEPTH = 6
"""Wrappers around each other: a fence around a tag around an envelope around a list."""

NAMES = ("name", "tool", "tool_name", "toolName", "function", "function_name", "recipient_name", "action")
ARGUMENTS = ("arguments", "args", "parameters", "params", "input", "tool_input", "tool_args", "action_input", "kwargs")
WRAPPERS = ("tool_calls", "tool_call", "toolCalls", "function_call", "function_calls", "tool_uses", "calls")
BESIDE = frozenset({"id", "call_id", "tool_call_id", "index", "type", "role", "content", "thought", "thoughts"})
"""What else an envelope may hold; with any other key a JSON object is an answer and no call."""

_JSON = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[\s,;]*")
_CANDIDATE = re.compile(r"[{\[<]|```|functools\[")
_TAG = r"(?:tool[_▁]?calls?|function_calls?|tool_use|tools?)"
_WRAPPER = re.compile(rf"<\|?{_TAG}\|?>|\[TOOL_CALLS\]|<\|python_tag\|>|functools(?=\[)", re.IGNORECASE)
_CLOSING = re.compile(rf"</?\|?/?{_TAG}(?:_end)?\|?>|\[/TOOL_CALLS\]", re.IGNORECASE)
_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\n?")
_ELEMENT = re.compile(r"<(function|invoke)(?:=|\s+name\s*=\s*)[\"']?([^\"'>\s]{1,200})[\"']?\s*>", re.IGNORECASE)
_PARAMETER = re.compile(r"\s*<parameter(?:=|\s+name\s*=\s*)[\"']?([^\"'>\s]{1,200})[\"']?[^<>]{0,200}>", re.IGNORECASE)
_PAIR = re.compile(r"\s*<arg_key>([^<>]{1,200})</arg_key>\s*<arg_value>", re.IGNORECASE)
_BARE_NAME = re.compile(r"[ \t]*([\w.-]{1,100})[ \t]*(?=\[ARGS\]|\n|<arg_key>|\{)")


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call found in a text; `name` is a registered tool's."""

    name: str
    arguments: str | Mapping[str, Any]


def rescued(text: str, tools: Sequence[ToolDefinition], *, lenient: bool) -> tuple[list[WrittenCall], str] | None:
    """Find the calls in an answer.

    Args:
        text: The answer, without thoughts.
        tools: Those that may be called; a call of any other name is text.
        lenient: Whether to look inside other text.

    Returns:
        The calls and the text around them, or `None` where there is no call.
    """
    if not tools or len(text) > MAX_TEXT:
        return None
    reader = _Reader(text, {tool.name: tool for tool in tools})
    start = _after_space(text, 0)
    found = reader.items(start, 0)
    if found is not None and _after_space(text, found[1]) == len(text):
        return found[0], ""
    return _inside(reader) if lenient else None


def _inside(reader: _Reader) -> tuple[list[WrittenCall], str] | None:
    calls: list[WrittenCall] = []
    around: list[str] = []
    text, at, kept = reader.text, 0, 0
    for _ in range(MAX_TRIES):
        candidate = _CANDIDATE.search(text, at)
        if candidate is None:
            break
        at = candidate.start()
        found = reader.item(at, 0)
        if found is None:
            at = reader.passed(at)
            continue
        calls += found[0]
        around.append(text[kept:at].strip())
        at = kept = found[1]
    around.append(text[kept:].strip())
    return (calls, "\n".join(part for part in around if part)) if calls else None


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


Items = tuple[list[WrittenCall], int]
"""Calls, and the position behind them."""


class _Reader:
    """A recursive descent over the forms in which calls are written."""

    def __init__(self, text: str, tools: Mapping[str, ToolDefinition]) -> None:
        self.text = text
        self.tools = tools

    def items(self, at: int, depth: int) -> Items | None:
        """Read one call or several in a row."""
        calls: list[WrittenCall] = []
        end = at
        while end < len(self.text):
            found = self.item(_after_space(self.text, end), depth)
            if found is None:
                break
            calls += found[0]
            end = found[1]
        return (calls, end) if calls else None

    def item(self, at: int, depth: int) -> Items | None:
        """Read what stands here, if it is a call."""
        if depth > MAX_DEPTH:
            return None
        text = self.text
        if (found := _FENCE.match(text, at)) is not None:
            return self._closed(self.items(found.end(), depth + 1), re.compile("```"))
        if (found := _ELEMENT.match(text, at)) is not None:
            return self._element(found)
        if (found := _WRAPPER.match(text, at)) is not None:
            inner = self.items(found.end(), depth + 1) or self._named(found.end())
            return self._closed(inner, _CLOSING, optional=found.group().endswith(("]", "python_tag|>", "functools")))
        if text.startswith(("{", "["), at):
            return self._json(at)
        return None

    def passed(self, at: int) -> int:
        """Return the position behind what is no call: JSON as a whole, or else one character."""
        if self.text.startswith(("{", "["), at):
            value = self._decoded(at)
            if value is not None:
                return value[1]
        return at + 1

    def _closed(self, inner: Items | None, closing: re.Pattern[str], *, optional: bool = False) -> Items | None:
        """Step over the closing mark; at the end of the text it may be missing, as a stop word."""
        if inner is None:
            return None
        calls, end = inner
        at = _after_space(self.text, end)
        found = closing.match(self.text, at)
        if found is not None:
            return calls, found.end()
        return inner if optional or at == len(self.text) else None

    def _decoded(self, at: int) -> tuple[Any, int] | None:
        try:
            return _JSON.raw_decode(self.text, at)
        except (ValueError, RecursionError):
            return None

    def _json(self, at: int) -> Items | None:
        decoded = self._decoded(at)
        calls = None if decoded is None else self._calls_of(decoded[0], 0)
        return None if decoded is None or not calls else (calls, decoded[1])

    def _element(self, opening: re.Match[str]) -> Items | None:
        """Read `<function=NAME>…</function>` and `<invoke name="NAME">…</invoke>`."""
        tool = self._tool(opening.group(2))
        if tool is None:
            return None
        at = opening.end()
        decoded = self._decoded(_after_space(self.text, at))
        if decoded is not None and isinstance(decoded[0], dict):
            arguments, at = cast("dict[str, Any]", decoded[0]), decoded[1]
        else:
            arguments, at = self._pairs(_PARAMETER, "</parameter>", at, tool)
        call = WrittenCall(tool.name, arguments)
        return self._closed(([call], at), re.compile(rf"</{opening.group(1)}>", re.IGNORECASE))

    def _named(self, at: int) -> Items | None:
        """Read a bare name with its arguments behind it: `NAME[ARGS]{…}`, `NAME<arg_key>…`."""
        found = _BARE_NAME.match(self.text, _after_space(self.text, at))
        tool = self._tool(found.group(1)) if found is not None else None
        if found is None or tool is None:
            return None
        at = _after_space(self.text, found.end())
        if self.text.startswith("[ARGS]", at):
            at += len("[ARGS]")
        decoded = self._decoded(_after_space(self.text, at))
        if decoded is not None and isinstance(decoded[0], dict):
            return [WrittenCall(tool.name, cast("dict[str, Any]", decoded[0]))], decoded[1]
        arguments, at = self._pairs(_PAIR, "</arg_value>", at, tool)
        return [WrittenCall(tool.name, arguments)], at

    def _pairs(
        self, opening: re.Pattern[str], closing: str, at: int, tool: ToolDefinition
    ) -> tuple[dict[str, Any], int]:
        """Read values between tags; where one is not closed, its place stays where it is, and nothing follows it."""
        arguments: dict[str, Any] = {}
        while (found := opening.match(self.text, at)) is not None:
            end = self.text.find(closing, found.end())
            if end < 0:
                break
            name = found.group(1).strip()
            arguments[name] = _typed(self.text[found.end() : end], name, tool)
            at = end + len(closing)
        return arguments, at

    def _calls_of(self, value: Any, depth: int) -> list[WrittenCall] | None:
        """Read a JSON value; `None` unless all of it is calls of registered tools."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(value, list):
            calls: list[WrittenCall] = []
            for entry in cast("list[Any]", value):
                inner = self._calls_of(entry, depth + 1) if isinstance(entry, dict) else None
                if inner is None:
                    return None
                calls += inner
            return calls or None
        if not isinstance(value, dict):
            return None
        envelope = cast("dict[str, Any]", value)
        keys = [key for key in envelope if key not in BESIDE]
        if len(keys) == 1 and (
            keys[0] in WRAPPERS or (keys[0] == "function" and isinstance(envelope["function"], dict))
        ):
            return self._calls_of(envelope[keys[0]], depth + 1)
        return self._envelope(envelope, keys)

    def _envelope(self, envelope: Mapping[str, Any], keys: Sequence[str]) -> list[WrittenCall] | None:
        named = [key for key in keys if key in NAMES]
        given = [key for key in keys if key in ARGUMENTS]
        if len(named) != 1 or len(given) > 1 or len(named) + len(given) != len(keys) or envelope.get("content"):
            return None
        name = envelope[named[0]]
        tool = self._tool(name) if isinstance(name, str) else None
        if tool is None:
            return None
        arguments = envelope[given[0]] if given else None
        if arguments is None or arguments == "":
            return [WrittenCall(tool.name, "{}")]
        if isinstance(arguments, dict):
            return [WrittenCall(tool.name, cast("dict[str, Any]", arguments))]
        if isinstance(arguments, str) and arguments.lstrip().startswith("{"):
            return [WrittenCall(tool.name, arguments)]
        return None

    def _tool(self, name: str) -> ToolDefinition | None:
        known = known_name(name, self.tools)
        return None if known is None else self.tools[known]


def _typed(text: str, name: str, tool: ToolDefinition) -> Any:
    """Read a value that was written between tags: as the schema wants it, since the tags do not say."""
    value = text.removeprefix("\n").removesuffix("\n")
    if "string" in _types(tool.json_schema or {}, name):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _types(schema: Mapping[str, Any], name: str) -> Sequence[str]:
    """List the types that a schema names for a property, in its branches, too."""
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    field = properties.get(name)
    if not isinstance(field, Mapping):
        return ()
    known = cast("Mapping[str, Any]", field)
    branches: list[Any] = [known, *(known.get("anyOf") or ()), *(known.get("oneOf") or ())]
    found: list[str] = []
    for branch in branches:
        kind: Any = cast("Mapping[str, Any]", branch).get("type") if isinstance(branch, Mapping) else None
        found += [kind] if isinstance(kind, str) else cast("list[str]", kind) if isinstance(kind, list) else []
    return found
