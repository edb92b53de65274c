"""Hand the text of a streamed answer on as it comes: without thoughts, and without calls that are written as text."""

from __future__ import annotations

import re
from collections.abc import Callable

from thena_core.providers.base import ChatRequest
from thena_core.providers.rescue import ARGUMENTS, BESIDE, NAMES, WRAPPERS, Rescue
from thena_core.providers.thinking import Thoughts
from thena_core.providers.transport import StreamedReply

_TAGGED = ("tool_call", "toolcall", "tool\u2581call", "function", "tool_use", "tool", "invoke", "python_tag|>")
_OPENINGS = (
    *(f"<{bar}{name}" for bar in ("", "|") for name in _TAGGED),
    "[TOOL_CALLS]",
    "functools[",
)
_FENCED = ("json", "tool_call", "tool_code", "tool", "xml", "javascript", "js")
_KEYS = frozenset({*NAMES, *ARGUMENTS, *WRAPPERS, *BESIDE})
_FENCE = re.compile(r"```[ \t]*([\w+-]*)[ \t]*(\n?)")
_KEY = re.compile(r"[{\[]\s*(?:\{\s*)?\"(\w*)(\"?)")
_BEGUN = re.compile(r"[{\[][\s{]*\Z")
_CANDIDATE = re.compile(r"[{\[<`]|functools")


class Spoken:
    """The text of one streamed answer.

    Attributes:
        raw: All of it as it came, thoughts included.
    """

    __slots__ = ("_answer", "_held", "_inside", "_on_text", "_pieces", "_shown", "_thoughts", "_watching")

    def __init__(self, request: ChatRequest, answer: StreamedReply, rescue: Rescue) -> None:
        """Make it at the begin of each attempt: `Spoken(request, answer, rescue)`."""
        self._answer = answer
        self._on_text: Callable[[str], None] | None = request.on_text
        self._pieces: list[str] = []
        self._shown: list[str] = []
        self._thoughts = Thoughts()
        self._held = ""
        self._watching = bool(request.tools) and rescue is not False
        self._inside = rescue == "lenient"

    @property
    def raw(self) -> str:
        """All of it as it came, thoughts included."""
        return "".join(self._pieces)

    def add(self, piece: str) -> None:
        """Take a piece of text, and hand on what is known to be meant for a reader."""
        if not piece:
            return
        self._pieces.append(piece)
        shown = self._thoughts.feed(piece)
        if not shown:
            return
        if not self._watching:
            self._hand_on(shown)
            return
        self._held += shown
        self._release()

    def end(self, content: str) -> None:
        """Hand on what is still missing of the content that the turn was given."""
        shown = "".join(self._shown)
        if content.startswith(shown):
            self._hand_on(content[len(shown) :])

    def _release(self) -> None:
        """Show what is held back, up to where a call may begin; unless lenient, that is the very beginning."""
        held = self._held
        at = len(held) - len(held.lstrip())
        while True:
            if at == len(held) or may_be_call(held[at : at + 200]):
                break
            found = _CANDIDATE.search(held, at + 1) if self._inside else None
            if found is None:
                at = len(held)
                self._watching = self._inside
                break
            at = found.start()
        if at == len(held) and not held.strip() and not self._shown:
            return
        self._held = held[at:]
        self._hand_on(held[:at])

    def _hand_on(self, text: str) -> None:
        if text and self._on_text is not None:
            self._answer.handed_on = True
            self._shown.append(text)
            self._on_text(text)


def may_be_call(text: str) -> bool:
    """Say whether a text may be the beginning of a call, as far as it has come; an answer that is none is shown."""
    if any(text.startswith(opening) or opening.startswith(text) for opening in _OPENINGS):
        return True
    if text.startswith("`"):
        found = _FENCE.match(text)
        if found is None:
            return "```".startswith(text)
        language, line_end = found.groups()
        if not line_end and found.end() == len(text):
            return any(known.startswith(language) for known in _FENCED)
        rest = text[found.end() :].lstrip()
        return (not language or language in _FENCED) and (not rest or may_be_call(rest))
    found = _KEY.match(text)
    if found is None:
        return bool(_BEGUN.match(text))
    key, complete = found.groups()
    return key in _KEYS if complete else any(known.startswith(key) for known in _KEYS)
