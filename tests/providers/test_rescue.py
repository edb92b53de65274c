"""Calls that a model wrote as text: which are read, which are text, and that no text takes long to tell."""

from __future__ import annotations

import time
from typing import Any

import pytest

from thena_core.definition import ToolDefinition
from thena_core.providers.rescue import WrittenCall, rescued


def tool(name: str, **properties: Any) -> ToolDefinition:
    return ToolDefinition(name, "A tool.", json_schema={"type": "object", "properties": properties})


TOOLS = [
    tool(
        "square", n={"type": "integer"}, note={"anyOf": [{"type": "string"}, {"type": "null"}]}, tags={"type": "array"}
    ),
    tool("read_file", path={"type": "string"}),
    tool("ping"),
]
SQUARE = WrittenCall("square", {"n": 3})
PING = WrittenCall("ping", {})

CALLS = [
    pytest.param('<tool_call>\n{"name": "square", "arguments": {"n": 3}}\n</tool_call>', [SQUARE], id="A25-hermes"),
    pytest.param(
        "<tool_call>\n<function=square>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>",
        [SQUARE],
        id="A25-qwen-coder",
    ),
    pytest.param('<tool_call>{"name": "square", "arguments": {"n": 3}}', [SQUARE], id="never-closed"),
    pytest.param(
        '<tool_call>{"name": "square", "arguments": {"n": 3}}</tool_call>\n<tool_call>{"name": "ping", "arguments": {}}</tool_call>',
        [SQUARE, PING],
        id="two-tags",
    ),
    pytest.param(
        '<tool_call>{"name": "read_file", "arguments": {"path": "</tool_call>"}}</tool_call>',
        [WrittenCall("read_file", {"path": "</tool_call>"})],
        id="closing-tag-in-a-value",
    ),
    pytest.param("<tool_call>square\n<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", [SQUARE], id="glm"),
    pytest.param('[TOOL_CALLS] [{"name": "square", "arguments": {"n": 3}}]', [SQUARE], id="mistral"),
    pytest.param('[TOOL_CALLS]square[ARGS]{"n": 3}', [SQUARE], id="mistral-args"),
    pytest.param('<|python_tag|>{"name": "square", "parameters": {"n": 3}}', [SQUARE], id="llama"),
    pytest.param('<function=square>{"n": 3}</function>', [SQUARE], id="llama-function"),
    pytest.param('functools[{"name": "square", "arguments": {"n": 3}}]', [SQUARE], id="phi"),
    pytest.param('<|tool_call|>[{"name": "ping", "arguments": {}}]<|/tool_call|>', [PING], id="granite"),
    pytest.param(
        '<function_calls>\n<invoke name="read_file">\n<parameter name="path">42</parameter>\n</invoke>\n</function_calls>',
        [WrittenCall("read_file", {"path": "42"})],
        id="invoke-keeps-text",
    ),
    pytest.param(
        "<function=square><parameter=n>3</parameter><parameter=note>7</parameter><parameter=tags>[1]</parameter></function>",
        [WrittenCall("square", {"n": 3, "note": "7", "tags": [1]})],
        id="types-by-schema",
    ),
    pytest.param(
        "<function=square><parameter=n>three</parameter></function>",
        [WrittenCall("square", {"n": "three"})],
        id="not-the-type",
    ),
    pytest.param('```json\n{"name": "square", "parameters": {"n": 3}}\n```', [SQUARE], id="fenced"),
    pytest.param('```\n<tool_call>{"tool": "square", "args": {"n": 3}}</tool_call>\n```', [SQUARE], id="fenced-tag"),
    pytest.param('  {"name": "square", "arguments": {"n": 3}}\n', [SQUARE], id="bare-json"),
    pytest.param(
        '[{"name": "square", "arguments": {"n": 3}}, {"name": "ping"}]',
        [SQUARE, WrittenCall("ping", "{}")],
        id="bare-list",
    ),
    pytest.param(
        '{"name":"square","arguments":{"n":3}}\n{"name":"ping","arguments":{}}', [SQUARE, PING], id="one-a-line"
    ),
    pytest.param('{"tool": "square", "tool_input": {"n": 3}}', [SQUARE], id="tool-input"),
    pytest.param('{"action": "square", "action_input": {"n": 3}}', [SQUARE], id="action"),
    pytest.param('{"type": "tool_use", "id": "x", "name": "square", "input": {"n": 3}}', [SQUARE], id="tool-use"),
    pytest.param(
        '{"function": {"name": "square", "arguments": {"n": 3}}, "type": "function"}', [SQUARE], id="function"
    ),
    pytest.param(
        '{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"name": "square", "arguments": "{\\"n\\": 3}"}}]}',
        [WrittenCall("square", '{"n": 3}')],
        id="whole-message",
    ),
    pytest.param('{"name": "functions.square", "arguments": {"n": 3}}', [SQUARE], id="namespace"),
    pytest.param('{"name": "ping", "arguments": null}', [WrittenCall("ping", "{}")], id="null-arguments"),
    pytest.param(
        '{"name": "read_file", "arguments": {"path": "a\nb"}}',
        [WrittenCall("read_file", {"path": "a\nb"})],
        id="raw-line-end",
    ),
]

TEXTS = [
    pytest.param("The answer is 9.", id="text"),
    pytest.param("", id="nothing"),
    pytest.param('{"name": "other", "arguments": {}}', id="unknown-tool"),
    pytest.param('[{"name": "ping"}, {"name": "other"}]', id="one-unknown-tool"),
    pytest.param('{"name": "square", "n": 3}', id="other-keys"),
    pytest.param('{"name": "ping", "content": "a file"}', id="content"),
    pytest.param('{"name": "ping", "tool": "square"}', id="two-names"),
    pytest.param('{"city": "Paris"}', id="json-answer"),
    pytest.param('{"name": "square", "arguments": [3]}', id="list-arguments"),
    pytest.param('{"name": "square", "arguments": "three"}', id="text-arguments"),
    pytest.param("[]", id="empty-list"),
    pytest.param("[1, 2]", id="numbers"),
    pytest.param("```python\nprint(1)\n```", id="code"),
    pytest.param('<tool_call>{"name": "square", "argum', id="cut-off"),
    pytest.param("<function=square><parameter=n>3", id="cut-off-parameter"),
    pytest.param("<tool_call></tool_call>", id="empty-tag"),
]


@pytest.mark.behaviour("V04")
@pytest.mark.parametrize(("text", "calls"), CALLS)
@pytest.mark.parametrize("lenient", [False, True], ids=["whole", "lenient"])
def test_an_answer_that_is_nothing_but_calls_is_read(text: str, calls: list[WrittenCall], lenient: bool) -> None:
    """The forms in which small models write calls are read, all calls in their order (case A25)."""
    assert rescued(text, TOOLS, lenient=lenient) == (calls, "")


@pytest.mark.behaviour("V04")
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("lenient", [False, True], ids=["whole", "lenient"])
def test_everything_else_is_text(text: str, lenient: bool) -> None:
    """What names no registered tool, or is not written as a call, stays an answer."""
    assert rescued(text, TOOLS, lenient=lenient) is None


@pytest.mark.behaviour("V04")
@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        pytest.param(
            'The log has <tool_call>{"name": "square", "arguments": {"n": 3}}</tool_call> in it.',
            [SQUARE],
            "The log has\nin it.",
            id="A25-inside",
        ),
        pytest.param('I look:\n```json\n{"name": "ping", "arguments": {}}\n```', [PING], "I look:", id="behind-text"),
        pytest.param('{"name": "square", "arguments": {"n": 3}} done', [SQUARE], "done", id="before-text"),
        pytest.param(
            'It is {"a": {"name": "ping"}} here, {"name": "square", "arguments": {"n": 3}}',
            [SQUARE],
            'It is {"a": {"name": "ping"}} here,',
            id="inner-object-is-none",
        ),
    ],
)
def test_only_lenient_looks_inside_text(text: str, calls: list[WrittenCall], rest: str) -> None:
    """Inside other text a call is read only where the user asked for it, and the text around it stays."""
    assert rescued(text, TOOLS, lenient=False) is None
    assert rescued(text, TOOLS, lenient=True) == (calls, rest)


def test_without_tools_nothing_is_a_call() -> None:
    """An agent without tools gets its text."""
    assert rescued('{"name": "ping"}', [], lenient=True) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 40_000,
        "{" * 200_000,
        "[" * 100_000,
        "<function=square><parameter=n>" * 6_000,
        "```" * 60_000,
        '{"a":"b' * 20_000,
        "<tool_call>" * 18_000,
        "{" * 300_000,
        ("<function=square><parameter=n>" * 6_000) + "</parameter> x",
    ],
    ids=["objects", "braces", "brackets", "elements", "fences", "strings", "tags", "too-long", "one-closing"],
)
def test_hostile_text_is_told_quickly(text: str) -> None:
    """No text of this kind takes long, and none is a call."""
    started = time.perf_counter()
    assert rescued(text, TOOLS, lenient=True) is None
    assert time.perf_counter() - started < 10
