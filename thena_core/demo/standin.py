"""A stand-in for a model, and no language model: it drives the demo's agent by fixed rules, offline."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thena_core._render import listed
from thena_core.demo.conversation import (
    Quote,
    Step,
    found_lines,
    last_question,
    listed_files,
    listed_folders,
    read_lines_of,
    telling_words,
)
from thena_core.messages import ChatTurn, ToolRequest
from thena_core.providers.base import ChatRequest, Provider

MAX_LISTINGS = 3
"""Folders that are listed before the rules go on with what they have."""

MAX_BATCH = 3
"""Calls of one batch."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the rules look at: nothing but the conversation and the tools on offer."""

    question: str
    steps: Sequence[Step]
    tools: frozenset[str]

    def called(self, name: str) -> bool:
        """Whether the tool was called since the question."""
        return any(step.name == name for step in self.steps)


Call = tuple[str, dict[str, Any]]
Rule = Callable[[Seen], Call | None]


class StandIn(Provider):
    """Answer as a model would, by the rules below: the first one that has a call to make makes it.

    It keeps no state and knows no folder: the same conversation always gets the same turn. It understands nothing of
    what it reads; it exists so that the demo drives every part of Thena without a key or a network. It reports no
    token usage, for there is none.
    """

    async def chat(self, request: ChatRequest) -> ChatTurn:
        """Ask for the next call, or answer once every rule is done."""
        question, steps = last_question(request.messages)
        seen = Seen(question, steps, frozenset(tool.name for tool in request.tools))
        for rule in RULES:
            call = rule(seen)
            if call is not None and call[0] in seen.tools:
                number = 1 + sum(len(message.tool_requests) for message in request.messages)
                asked = ToolRequest(f"call_{number}", call[0], json.dumps(call[1]))
                return ChatTurn(tool_requests=[asked], finish_reason="tool_calls")
        text = answer(seen)
        if request.on_text is not None:
            request.on_text(text)
        return ChatTurn(content=text, finish_reason="stop")


def read_the_folder(seen: Seen) -> Call | None:
    """Begin with a mistake, as models do: read the folder as if it were a file. The answer says how to go on."""
    return None if seen.steps else ("read_file", {"path": "."})


def list_the_top(seen: Seen) -> Call | None:
    """See what there is."""
    return None if seen.called("list_dir") else ("list_dir", {"path": "."})


def list_below(seen: Seen) -> Call | None:
    """Go down into the first folder not listed yet, while fewer than two text files are known."""
    listings = [step.arguments.get("path") for step in seen.steps if step.name == "list_dir"]
    if len(listed_files(seen.steps)) >= 2 or len(listings) >= MAX_LISTINGS:  # noqa: PLR2004 - a batch needs two
        return None
    below = [path for path in listed_folders(seen.steps) if path not in listings]
    return ("list_dir", {"path": below[0]}) if below else None


def search(seen: Seen) -> Call | None:
    """Search for the longest word of the question, then for the next ones until something is found."""
    searched = [step.arguments.get("text") for step in seen.steps if step.name == "search_files"]
    words = [word for word in telling_words(seen.question) if word not in searched]
    if not words or not listed_files(seen.steps) + listed_folders(seen.steps) or found_lines(seen.steps):
        return None
    return "search_files", {"text": words[0]}


def read_together(seen: Seen) -> Call | None:
    """Read the best files in one batch; with a single file, read it and list its folder."""
    files = files_to_read(seen)
    if seen.called("parallel") or not files or "parallel" not in seen.tools:
        return None
    calls: list[Mapping[str, Any]] = [{"name": "read_file", "arguments": reading(seen, path)} for path in files]
    if len(calls) == 1:
        calls.append({"name": "list_dir", "arguments": {"path": "."}})
    return "parallel", {"calls": calls[:MAX_BATCH]}


def read_one(seen: Seen) -> Call | None:
    """Read the best file alone, where no batch was possible or none gave a line to quote."""
    files = [path for path in files_to_read(seen) if not was_read_alone(seen, path)]
    if not files or found_lines(seen.steps) or read_lines_of(seen.steps):
        return None
    return "read_file", reading(seen, files[0])


def save_the_finding(seen: Seen) -> Call | None:
    """Try to save what was found. The demo forbids it; the refusal is read like any other answer."""
    quote = best_quote(seen)
    if quote is None or seen.called("save_note"):
        return None
    return "save_note", {"path": "thena-note.md", "text": f"{quote.path}:{quote.line}: {quote.text}\n"}


RULES: tuple[Rule, ...] = (
    read_the_folder,
    list_the_top,
    list_below,
    search,
    read_together,
    read_one,
    save_the_finding,
)


def files_to_read(seen: Seen) -> list[str]:
    """Return the files worth reading: where a search matched, then what listings showed, READMEs first."""
    ranked = sorted(found_lines(seen.steps), key=lambda quote: rank(seen, quote), reverse=True)
    shown = sorted(listed_files(seen.steps), key=lambda path: (not is_readme(path), path.startswith(".")))
    return list(dict.fromkeys([*(quote.path for quote in ranked), *shown]))[:MAX_BATCH]


def reading(seen: Seen, path: str) -> dict[str, Any]:
    """Return the arguments that read a file from a little above its first match on."""
    lines = [quote.line for quote in found_lines(seen.steps) if quote.path == path]
    start = max(1, min(lines, default=1) - 5)
    return {"path": path, "start_line": start} if start > 1 else {"path": path}


def was_read_alone(seen: Seen, path: str) -> bool:
    """Whether the file has been asked for outside of a batch."""
    return any(step.name == "read_file" and step.arguments.get("path") == path for step in seen.steps)


def rank(seen: Seen, quote: Quote) -> tuple[int, bool]:
    """Order found lines: by how many of the question's telling words they have, then a README's before others."""
    return sum(word in quote.text.lower() for word in telling_words(seen.question)), is_readme(quote.path)


def is_readme(path: str) -> bool:
    """Whether a file is there to be read first."""
    return path.lower().rpartition("/")[2].startswith("readme")


def best_quote(seen: Seen) -> Quote | None:
    """Return the found line with most of the question's words, else the first line that was read."""
    found = found_lines(seen.steps) or read_lines_of(seen.steps)[:1]
    return max(found, key=lambda quote: rank(seen, quote), default=None)


def answer(seen: Seen) -> str:
    """Word the answer from what the calls found, with its source."""
    quote = best_quote(seen)
    if quote is None:
        return f"The folder holds nothing readable, so there is nothing to say about: {seen.question}"
    found = found_lines(seen.steps)
    words = [str(step.arguments.get("text")) for step in seen.steps if step.name == "search_files"]
    if found:
        files = list(dict.fromkeys(line.path for line in found))
        parts = [f'"{words[-1]}" stands in {listed(files, 5)}. The line nearest to the question is:']
    else:
        tried = "No line holds " + " or ".join(f'"{word}"' for word in words) + ". " if words else ""
        parts = [f"{tried}The first line that was read is:"]
    parts.append(f"  {quote.path}:{quote.line}: {quote.text}")
    refusals = [step.output for step in seen.steps if step.name == "save_note" and step.failed]
    parts += [f"It was not saved as a note: {words}" for words in refusals]
    return "\n".join(parts)
