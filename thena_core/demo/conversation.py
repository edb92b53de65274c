"""What the model stand-in can read out of a conversation: the question, the calls so far, and what they found."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from thena_core.messages import Message, ToolRequest

WORD_CHARS = 4
"""Shorter words of a question say too little to search for them."""

# fmt: off
COMMON_WORDS = frozenset({
    "about", "after", "also", "before", "could", "does", "each", "find", "folder", "from", "have", "here", "hold",
    "into", "kind", "many", "more", "most", "much", "only", "other", "over", "please", "project", "says", "should",
    "show", "some", "tell", "than", "that", "their", "them", "then", "there", "these", "they", "thing", "things",
    "this", "those", "under", "used", "using", "very", "want", "what", "when", "where", "which", "whose", "will",
    "with", "would", "write", "your",
})
# fmt: on
"""Words that stand in any question; searching for them finds everything."""

_MATCH = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+): (?P<text>.*\S.*)$", re.MULTILINE)
_HEADING = re.compile(r"^(?P<path>.+), lines \d+ to \d+ of \d+$")
_NUMBERED = re.compile(r"^(?P<line>\d+): (?P<text>.*\S.*)$")
_FILE_ROW = re.compile(r"^(?P<path>.+?)  [\d,]+ bytes$", re.MULTILINE)
_FOLDER_ROW = re.compile(r"^(?P<path>[^(\n].*)/$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the conversation and what came of it."""

    name: str
    arguments: Mapping[str, Any]
    output: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Quote:
    """A line that was really found."""

    path: str
    line: int
    text: str


def last_question(messages: Sequence[Message]) -> tuple[str, list[Step]]:
    """Return what the user asked last, and the calls made since, in order."""
    start = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    question = messages[start].content if start >= 0 else ""
    since = messages[start + 1 :]
    answers = {message.tool_call_id: message for message in since if message.role == "tool"}
    steps: list[Step] = []
    for message in since:
        for request in message.tool_requests:
            answer = answers.get(request.id)
            if answer is not None:
                steps.append(Step(request.name, arguments_of(request), answer.content, answer.is_error))
    return question, steps


def arguments_of(request: ToolRequest) -> Mapping[str, Any]:
    """Return a request's arguments as a mapping."""
    if isinstance(request.arguments, str):
        return cast("Mapping[str, Any]", json.loads(request.arguments))
    return request.arguments


def telling_words(question: str) -> list[str]:
    """Return the words of a question that are worth a search: the longest first, at most three."""
    words = dict.fromkeys(word.lower() for word in re.findall(r"\w+", question))
    telling = [word for word in words if len(word) >= WORD_CHARS and word not in COMMON_WORDS]
    return sorted(telling, key=len, reverse=True)[:3]


def listed_folders(steps: Sequence[Step]) -> list[str]:
    """Return the folders that listings showed."""
    return [match["path"] for step in steps if step.name == "list_dir" for match in _FOLDER_ROW.finditer(step.output)]


def listed_files(steps: Sequence[Step]) -> list[str]:
    """Return the text files that listings showed."""
    return [match["path"] for step in steps if step.name == "list_dir" for match in _FILE_ROW.finditer(step.output)]


def found_lines(steps: Sequence[Step]) -> list[Quote]:
    """Return the lines that searches found."""
    outputs = [step.output for step in steps if step.name == "search_files" and not step.failed]
    return [
        Quote(match["path"], int(match["line"]), match["text"]) for text in outputs for match in _MATCH.finditer(text)
    ]


def read_lines_of(steps: Sequence[Step]) -> list[Quote]:
    """Return the lines that were read, one file at a time or in a batch."""
    quotes: list[Quote] = []
    for step in steps:
        if step.name not in {"read_file", "parallel"} or step.failed:
            continue
        path: str | None = None
        for row in step.output.split("\n"):
            if not row:  # the end of one result of a batch; an empty line of a file has its number
                path = None
            elif heading := _HEADING.match(row):
                path = heading["path"]
            elif path is not None and (numbered := _NUMBERED.match(row)):
                quotes.append(Quote(path, int(numbered["line"]), numbered["text"]))
    return quotes
