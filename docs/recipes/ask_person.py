"""Ask a person, and wait for the answer.

Holds against: a person who never answers (a time limit), answers late or twice (`answer` says that nobody waits), or
picks what was not offered; a run that is stopped while it waits (the question is taken back); a model that asks all
the time or at length; guessed ids.

Does not hold against: a process that ends while somebody thinks: questions live in memory. Use it on the event loop;
from a thread, call `loop.call_soon_threadsafe(desk.answer, …)`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from thena_core import Context, Inject, tool

MAX_ANSWER = 4_000  # characters; the rest of an answer is cut


class Refused(Exception):
    """Say to the model why there is no answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: show it to the person of the run, and hand `id` back with the answer."""

    id: str
    run_id: str
    text: str
    options: Sequence[str]


class Desk:
    """Where questions wait.

    Args:
        announce: Called with each question: put it on a screen, into a queue, on a socket. It must not block.
        seconds: How long a question waits.
        most: How many questions may wait at once, and how many a run may ask while it lives.
    """

    def __init__(self, announce: Callable[[Question], object], seconds: float = 300.0, most: int = 20) -> None:
        self._announce = announce
        self._seconds = seconds
        self._most = most
        self._waiting: dict[str, tuple[Question, asyncio.Future[str]]] = {}
        self._asked: dict[str, int] = {}

    @property
    def waiting(self) -> Sequence[Question]:
        """The questions that nobody has answered yet, the oldest first."""
        return [question for question, answer in self._waiting.values() if not answer.done()]

    async def ask(self, ctx: Context, text: str, options: Sequence[str]) -> str:
        """Ask, and return the answer.

        Raises:
            Refused: Where nobody answers in time, or too many questions wait.
        """
        if ctx.run_id not in self._asked:
            self._asked[ctx.run_id] = 0
            ctx.on_dispose(lambda: self._asked.pop(ctx.run_id, None))
        if len(self._waiting) >= self._most or self._asked[ctx.run_id] >= self._most:
            raise Refused("too many questions were asked; go on without an answer")
        self._asked[ctx.run_id] += 1
        question = Question(secrets.token_urlsafe(16), ctx.run_id, text, tuple(options))
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = question, answer
        try:
            self._announce(question)
            return await asyncio.wait_for(answer, self._seconds)
        except TimeoutError as error:
            raise Refused(f"nobody answered within {self._seconds:g} seconds; go on without an answer") from error
        finally:
            del self._waiting[question.id]

    def answer(self, question_id: str, text: str) -> bool:
        """Answer a question; `False` where nobody waits for it (any more).

        Raises:
            ValueError: Where the answer is none of the options.
        """
        question, answer = self._waiting.get(question_id, (None, None))
        if question is None or answer is None or answer.done():
            return False
        if question.options and text not in question.options:
            raise ValueError(f"answer one of {', '.join(question.options)}")
        answer.set_result(text[:MAX_ANSWER])
        return True


@tool(effect="read")
async def ask_person(
    question: Annotated[str, Field(min_length=1, max_length=1_000)],
    desk: Annotated[Desk, Inject],
    ctx: Context,
    options: Annotated[tuple[str, ...], Field(max_length=10, description="to choose from; none: any answer")] = (),
) -> str:
    """Asks the person that you work for. Use it where you would have to guess what they want."""
    return await desk.ask(ctx, question, options)
