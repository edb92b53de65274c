"""The recipe for asking a person: who is late, silent, twice or gone leaves nothing behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from dependency_injector import containers, providers

from tests.recipes.recipe import recipe
from thena_core import Prompt, RunAborted, Thena, ToolOutput, ToolRequest, agent
from thena_core.testing import FakeProvider

ask_person = recipe("ask_person")


class Office:
    """An app with the tool, and the questions that arrive at the desk."""

    def __init__(self, *more: Any, seconds: float = 30.0, most: int = 20) -> None:
        self.questions: asyncio.Queue[Any] = asyncio.Queue()
        desk = self.desk = ask_person.Desk(self.questions.put_nowait, seconds, most)

        class Services(containers.DeclarativeContainer):
            desk_ = providers.Object(desk)

        self.app = Thena(*more, tools=() if more else [ask_person.ask_person], container=Services())

    def ask(self, question: str = "Which one?", **more: Any) -> asyncio.Task[ToolOutput]:
        return asyncio.create_task(self.app.call("ask_person", {"question": question, **more}))


async def test_an_answer() -> None:
    """The model reads what the person said; until then the question waits, with its run's id."""
    office = Office()
    async with office.app:
        asked = office.ask(options=["red", "blue"])
        question = await office.questions.get()
        assert (question.text, question.options, question.run_id != "") == ("Which one?", ("red", "blue"), True)
        assert office.desk.waiting == [question]
        assert office.desk.answer(question.id, "blue")
        assert office.desk.waiting == []
        assert await asked == ToolOutput("blue")


async def test_answers_that_come_too_often_or_too_late() -> None:
    """The first answer counts; a second one, one after the time, and one to a guessed id say that nobody waits."""
    office = Office(seconds=0.05)
    async with office.app:
        asked = office.ask()
        question = await office.questions.get()
        assert office.desk.answer(question.id, "one")
        assert not office.desk.answer(question.id, "two")
        assert (await asked).content == "one"
        assert not office.desk.answer(question.id, "three")
        assert not office.desk.answer("1", "four")
        late = office.ask()
        question = await office.questions.get()
        assert await late == ToolOutput(
            "Refused: nobody answered within 0.05 seconds; go on without an answer", is_error=True
        )
        assert not office.desk.answer(question.id, "late")


async def test_what_was_not_offered() -> None:
    """An answer that is none of the options is the person's mistake, and the question waits on."""
    office = Office()
    async with office.app:
        asked = office.ask(options=["yes", "no"])
        question = await office.questions.get()
        with pytest.raises(ValueError, match="answer one of yes, no"):
            office.desk.answer(question.id, "maybe")
        assert office.desk.answer(question.id, "no")
        assert (await asked).content == "no"


async def test_the_run_stops_while_it_waits() -> None:
    """A question of a run that is aborted is taken back."""

    @agent(
        provider=FakeProvider([ToolRequest("c1", "ask_person", {"question": "Now?"}), "done"]),
        tools=[ask_person.ask_person],
        prompt=Prompt("Ask."),
    )
    class Asker: ...

    office = Office(Asker)
    async with office.app:
        handle = office.app.start("go")
        question = await office.questions.get()
        handle.abort("never mind")
        with pytest.raises(RunAborted):
            await handle.result()
        assert office.desk.waiting == []
        assert not office.desk.answer(question.id, "yes")
        assert office.desk._asked == {}


async def test_too_many_questions() -> None:
    """Only so many wait at once, and a run asks only so many while it lives."""

    @agent(
        provider=FakeProvider([ToolRequest("c1", "ask_person", {"question": "And now?"})] * 3 + ["done"]),
        tools=[ask_person.ask_person],
        prompt=Prompt("Ask."),
    )
    class Asker: ...

    office = Office(Asker, most=2)
    async with office.app:
        handle = office.app.start("go")
        for _ in range(2):
            office.desk.answer((await office.questions.get()).id, "ok")
        result = await handle.result()
        texts = [message.content for message in result.history if message.role == "tool"]
        assert texts == ["ok", "ok", "Refused: too many questions were asked; go on without an answer"]
    office = Office(most=1)
    async with office.app:
        first = office.ask()
        question = await office.questions.get()
        assert (await office.ask()).is_error
        office.desk.answer(question.id, "ok")
        assert (await first).content == "ok"


@pytest.mark.parametrize(
    "arguments",
    [{"question": ""}, {"question": "x" * 1_001}, {"question": "?", "options": ["x"] * 11}],
    ids=["nothing", "too long", "too many options"],
)
async def test_questions_that_are_none(arguments: dict[str, Any]) -> None:
    """They do not reach the person."""
    office = Office()
    async with office.app:
        assert (await office.app.call("ask_person", arguments)).content.startswith("invalid arguments")
    assert office.questions.empty()


async def test_a_long_answer() -> None:
    """An answer is cut, not refused."""
    office = Office()
    async with office.app:
        asked = office.ask()
        office.desk.answer((await office.questions.get()).id, "x" * 10_000)
        assert len((await asked).content) == ask_person.MAX_ANSWER


async def test_a_screen_that_fails() -> None:
    """Where the question cannot be shown, the model reads that, and nothing waits."""

    def broken(_question: Any) -> None:
        raise ConnectionError("no screen")

    office = Office()
    office.desk._announce = broken
    async with office.app:
        assert (await office.ask()).content == "ConnectionError: no screen"
    assert office.desk.waiting == []
