"""Keep a model's thoughts out of its answer: `<think>`-like blocks in the text, also while it streams."""

from __future__ import annotations

import re

_TAGS = {
    **{f"<{name}>": f"</{name}>" for name in ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think")},
    "[think]": "[/think]",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
}
"""The tags of the open models, in lower case: DeepSeek, Qwen and others; Seed; Magistral; Kimi."""

_CANDIDATE = re.compile("[<\\[\u25c1]")
_FENCE = "```"
_TICKS = re.compile("`+")
_CLOSING = {tag: re.compile(re.escape(tag), re.IGNORECASE) for tag in _TAGS.values()}
_LONGEST = max(map(len, (*_TAGS, *_TAGS.values())))
_STRAY = re.compile(r"(?:\A|\n)[ \t]*</(?:think|thinking|thought|reasoning)>\s*", re.IGNORECASE)


class Thoughts:
    """Take the text of an answer in pieces, and give what a reader should see of it.

    A block that opens the answer, follows another block, or opens a line counts whether it is closed or not; one
    within a line counts where it is closed. Tags in code spans and code blocks are text, and so is a tag that is only
    similar (`<thinker>`, `<think-tank>`).
    """

    __slots__ = ("_closing", "_code", "_fenced", "_head", "_kept", "_lead", "_pending", "_skipping", "_tick")

    def __init__(self) -> None:
        self._pending = ""
        self._closing = ""  # the tag that ends the block we are in
        self._kept = ""  # of a block within a line: all of it, should it never be closed
        self._lead: str | None = ""  # white space before the first visible text
        self._skipping = False  # over the white space behind a block
        self._head = ""  # what this line begins with, white space apart
        self._code = self._fenced = self._tick = False

    def feed(self, piece: str) -> str:
        """Return what can be shown now; what may still turn out to be a thought is kept."""
        text = self._pending + piece
        shown: list[str] = []
        at = 0
        while at < len(text):
            after = self._leave_block(text, at) if self._closing else self._pass_text(text, at, shown)
            if after == at:
                break
            at = after
        self._pending = text[at:]
        if self._closing and len(self._pending) > _LONGEST:
            # half a tag may stand at the end; the rest of a thought is not needed, unless it may be text after all
            if self._kept:
                self._kept += self._pending[:-_LONGEST]
            self._pending = self._pending[-_LONGEST:]
        return "".join(shown)

    def end(self) -> str:
        """Return what was kept and is no thought after all; called once, when the answer is complete."""
        rest = self._kept + self._pending if self._kept or not self._closing else ""
        lead, self._lead = self._lead or "", None
        self._pending = self._kept = self._closing = ""
        return lead + rest

    def _leave_block(self, text: str, at: int) -> int:
        found = _CLOSING[self._closing].search(text, at)
        if found is None:
            return at
        if not self._kept:
            # what separates thoughts from the answer, or stands before them, belongs to neither
            self._skipping = True
            self._lead = "" if self._lead is not None else None
        self._closing = self._kept = ""
        return found.end()

    def _pass_text(self, text: str, at: int, shown: list[str]) -> int:
        """Show the text up to the next tag, or enter the block of a tag; no progress where a tag is incomplete."""
        found = _CANDIDATE.search(text, at)
        if found is None:
            self._show(text[at:], shown)
            return len(text)
        if found.start() > at:
            self._show(text[at : found.start()], shown)
            return found.start()
        if not (self._fenced or self._code):
            start = text[at : at + _LONGEST].lower()
            tag = next((tag for tag in _TAGS if start.startswith(tag)), None)
            if tag is not None:
                self._closing = _TAGS[tag]
                self._kept = "" if not self._head else text[at : at + len(tag)]
                return at + len(tag)
            if len(text) - at < _LONGEST and any(tag.startswith(start) for tag in _TAGS):
                return at
        self._show(text[at], shown)
        return at + 1

    def _show(self, text: str, shown: list[str]) -> None:
        self._see(text)
        if self._skipping:
            text = text.lstrip()
            self._skipping = not text
        if self._lead is not None:
            text, self._lead = (self._lead + text, None) if text.strip() else ("", self._lead + text)
        if text:
            shown.append(text)

    def _see(self, text: str) -> None:
        """Follow the lines and the code in them."""
        for number, part in enumerate(text.split("\n")):
            if number:
                self._head, self._code, self._tick = "", False, False
            if len(self._head) < len(_FENCE):
                self._head = (self._head + part).lstrip()[: len(_FENCE)]
                if self._head in {_FENCE, "~~~"}:
                    self._fenced = not self._fenced
            if not self._fenced and "`" in part:
                for run in _TICKS.finditer(part):
                    if run.start() or not self._tick:
                        self._code = not self._code
            if part:
                self._tick = part.endswith("`")


def visible(text: str) -> str:
    """Return a whole answer without the thoughts in it.

    Also without those that were never opened: where a service's template writes the opening tag into the prompt, the
    answer begins with thoughts and has only the tag that ends them, on a line of its own.
    """
    thoughts = Thoughts()
    shown = thoughts.feed(text) + thoughts.end()
    stray = _STRAY.search(shown)
    return shown[stray.end() :] if stray is not None else shown
