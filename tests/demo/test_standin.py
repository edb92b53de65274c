"""The model stand-in: what it asks for next, decided from the conversation alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from thena_core.definition import ToolDefinition
from thena_core.demo.conversation import telling_words
from thena_core.demo.files import (
    ListDir,
    ListDirTool,
    ReadFile,
    ReadFileTool,
    SearchFiles,
    SearchFilesTool,
)
from thena_core.demo.folder import Folder
from thena_core.demo.standin import StandIn
from thena_core.messages import Message
from thena_core.output import ToolOutput
from thena_core.providers.base import ChatRequest

ALL = ("read_file", "list_dir", "search_files", "parallel", "save_note")


def execute(folder: Folder, name: str, arguments: dict[str, Any]) -> ToolOutput:
    """Do what the demo's app does with a call, without the app."""
    if name == "read_file":
        return ReadFileTool(folder).execute(ReadFile(**arguments))
    if name == "list_dir":
        return ListDirTool(folder).execute(ListDir(**arguments))
    if name == "search_files":
        return SearchFilesTool(folder).execute(SearchFiles(**arguments))
    if name == "parallel":
        outputs = [execute(folder, call["name"], call["arguments"]).content for call in arguments["calls"]]
        return ToolOutput("\n\n".join(outputs))
    return ToolOutput("Not allowed.", is_error=True)


async def explore(root: Path, question: str, tools: tuple[str, ...] = ALL) -> tuple[list[tuple[str, Any]], str]:
    """Run the stand-in to its answer; a fresh one per turn, for it may keep nothing."""
    messages = [Message("user", question)]
    calls: list[tuple[str, Any]] = []
    definitions = [ToolDefinition(name, "") for name in tools]
    while len(calls) < 20:
        turn = await StandIn().chat(ChatRequest(messages, tools=definitions))
        messages.append(Message("assistant", turn.content, turn.tool_requests))
        if not turn.tool_requests:
            return calls, turn.content
        [asked] = turn.tool_requests
        assert isinstance(asked.arguments, str)
        arguments = json.loads(asked.arguments)
        calls.append((asked.name, arguments))
        output = execute(Folder(root), asked.name, arguments)
        messages.append(Message("tool", output.content, tool_call_id=asked.id, is_error=output.is_error))
    raise AssertionError(f"no answer after {calls}")


async def test_finds_what_was_asked(tmp_path: Path) -> None:
    """It recovers from its first call, searches, reads in a batch, takes a refusal, and quotes the line found."""
    (tmp_path / "README.md").write_text("nothing to see\n")
    (tmp_path / "zebra.txt").write_text("\n" * 40 + "the quagga grazes here\n")
    (tmp_path / "moss.txt").write_text("a quagga\n")
    calls, answer = await explore(tmp_path, "Where does the quagga graze?")
    assert calls == [
        ("read_file", {"path": "."}),
        ("list_dir", {"path": "."}),
        ("search_files", {"text": "quagga"}),
        (
            "parallel",
            {
                "calls": [
                    {"name": "read_file", "arguments": {"path": "zebra.txt", "start_line": 36}},
                    {"name": "read_file", "arguments": {"path": "moss.txt"}},
                    {"name": "read_file", "arguments": {"path": "README.md"}},
                ]
            },
        ),
        ("save_note", {"path": "thena-note.md", "text": "zebra.txt:41: the quagga grazes here\n"}),
    ]
    assert "zebra.txt:41: the quagga grazes here" in answer
    assert "It was not saved as a note: Not allowed." in answer


async def test_searches_on(tmp_path: Path) -> None:
    """A word that is nowhere is followed by the next; where none is found the first line read is quoted."""
    (tmp_path / "a.txt").write_text("\n\nfirst words\n")
    (tmp_path / "b.txt").write_text("other\n")
    calls, answer = await explore(tmp_path, "Unicorns and mermaids?")
    assert [arguments["text"] for name, arguments in calls if name == "search_files"] == ["unicorns", "mermaids"]
    assert 'No line holds "unicorns" or "mermaids".' in answer
    assert "a.txt:3: first words" in answer


async def test_goes_down(tmp_path: Path) -> None:
    """With fewer than two text files on top it lists the first folder too."""
    (tmp_path / "alpha").mkdir()
    for name in ("one.txt", "two.txt"):
        (tmp_path / "alpha" / name).write_text("x\n")
    calls, answer = await explore(tmp_path, "?")
    assert ("list_dir", {"path": "alpha"}) in calls
    assert "alpha/one.txt:1: x" in answer


async def test_single_file(tmp_path: Path) -> None:
    """With a single file the batch reads it and lists its folder."""
    (tmp_path / "a.txt").write_text("only line\n")
    calls, answer = await explore(tmp_path, "?")
    batch = [arguments["calls"] for name, arguments in calls if name == "parallel"]
    assert [[call["name"] for call in packed] for packed in batch] == [["read_file", "list_dir"]]
    assert "a.txt:1: only line" in answer


@pytest.mark.parametrize("content", [None, b"\0\1\2"], ids=["empty-folder", "only-binary"])
async def test_nothing_readable(tmp_path: Path, content: bytes | None) -> None:
    """Where nothing can be read there is no batch, no note, and an answer that says so."""
    if content is not None:
        (tmp_path / "a.bin").write_bytes(content)
    calls, answer = await explore(tmp_path, "Where is the treasure?")
    assert {name for name, _ in calls} <= {"read_file", "list_dir", "search_files"}
    assert answer == "The folder holds nothing readable, so there is nothing to say about: Where is the treasure?"


async def test_without_the_batch_tool(tmp_path: Path) -> None:
    """Without `parallel` it reads one file alone, and asks only for tools that are on offer."""
    (tmp_path / "a.txt").write_text("alone\n")
    calls, answer = await explore(tmp_path, "?", ("read_file", "list_dir"))
    assert [name for name, _ in calls] == ["read_file", "list_dir", "read_file"]
    assert "a.txt:1: alone" in answer


async def test_second_question(tmp_path: Path) -> None:
    """A question that follows another starts the rules anew, with ids of its own."""
    messages = [Message("user", "first"), Message("assistant", "done"), Message("user", "second")]
    turn = await StandIn().chat(ChatRequest(messages, tools=[ToolDefinition("read_file", "")]))
    assert [(asked.id, asked.name) for asked in turn.tool_requests] == [("call_1", "read_file")]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        pytest.param("Where is the entry point?", ["entry", "point"], id="longest-first"),
        pytest.param("What does this do?", [], id="nothing-telling"),
        pytest.param("Zeta zeta ZETA alphabet", ["alphabet", "zeta"], id="each-once"),
    ],
)
def test_telling_words(question: str, words: list[str]) -> None:
    """The words worth a search are the long ones that not every question has."""
    assert telling_words(question) == words
