"""Shorten big outputs, as middleware, and let the model read what was left out.

Holds against: outputs that fill the model's context (of each long one the model gets the beginning and the end, and a
tool to read the rest, since errors mostly stand at the end); reading what another run has put aside; memory (what a
run put aside is dropped when it ends, and there is a limit before).

Does not hold against: what a tool itself has cut: `max_output_chars` (50,000 unless set) comes first, so raise it
where the rest matters.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from thena_core import CallNext, Context, Inject, ToolCall, ToolOutput, tool


class Shelf:
    """Where the long outputs of the runs are, each as long as its run lives. Use `shelf.shorten` as middleware.

    Args:
        limit: The most characters of an output that stay together.
        most: The most characters that one run may put aside.
    """

    def __init__(self, limit: int = 8_000, most: int = 5_000_000) -> None:
        self.limit = limit
        self.most = most
        self._texts: dict[str, list[str]] = {}

    async def shorten(self, call: ToolCall, call_next: CallNext) -> ToolOutput:
        """Put a long output aside, and show its beginning and its end."""
        output = await call_next(call)
        text = output.content
        if len(text) <= self.limit or call.name == read_rest.__name__:
            return output
        head, tail = self.limit * 2 // 3, self.limit // 3
        hint = self._put_aside(call.ctx, text, head)
        left_out = len(text) - head - tail
        call.meta(left_out=left_out)
        shown = f"{text[:head]}\n… [{left_out:,} characters left out{hint}] …\n{text[len(text) - tail :]}"
        return ToolOutput(shown, output.is_error, output.data)

    def read(self, ctx: Context, ref: int, start: int) -> str:
        """Return a part of what this run has put aside.

        Raises:
            LookupError: Where there is no such text in this run.
        """
        texts = self._texts.get(ctx.run_id, [])
        if not 0 <= ref < len(texts):
            raise LookupError(f"there is no ref={ref} in this run")
        text, end = texts[ref], start + self.limit
        more = f"\n… [read on with start={end}, of {len(text):,}]" if end < len(text) else ""
        return f"{text[start:end]}{more}"

    def _put_aside(self, ctx: Context, text: str, start: int) -> str:
        run_id = ctx.run_id
        if run_id not in self._texts:
            self._texts[run_id] = []
            ctx.on_dispose(lambda: self._texts.pop(run_id, None))
        texts = self._texts[run_id]
        if sum(map(len, texts)) + len(text) > self.most:
            return ""
        texts.append(text)
        return f"; read on with {read_rest.__name__}(ref={len(texts) - 1}, start={start})"


@tool(effect="read", max_output_chars=200_000)  # `limit` decides
def read_rest(shelf: Annotated[Shelf, Inject], ctx: Context, ref: int, start: Annotated[int, Field(ge=0)] = 0) -> str:
    """Reads on in an output that was too long to be shown. `ref` and `start` stand where it was cut."""
    return shelf.read(ctx, ref, start)
