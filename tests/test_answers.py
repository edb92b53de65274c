"""`@agent(output=Model)`: the answer is a validated object, asked for once more where it does not fit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from tests.hooks.scripted import ask
from thena_core import (
    AgentOutputError,
    Budget,
    BuildError,
    Prompt,
    Thena,
    agent,
    loop,
    tool,
    workflow,
)
from thena_core.providers import ChatTurn
from thena_core.testing import FakeProvider
from thena_tools import workflow_tool


class Verdict(BaseModel):
    """What is found."""

    safe: bool
    reasons: list[str] = Field(default_factory=list, description="why")


@dataclass
class Point:
    """A place."""

    x: int


class Typed(TypedDict):
    """A mapping."""

    x: int


@tool
async def echo(text: str = "x") -> str:
    """Echoes."""
    return text


def judge(*turns: Any, output: Any = Verdict, hooks: type = object, **options: Any) -> Any:
    """Make an agent with an output; its `.provider` keeps what was asked."""
    provider = FakeProvider(turns)
    made = type("Judge", (hooks,), {"__module__": __name__, "provider": provider})
    return agent(provider=provider, tools=[echo], prompt=Prompt("Judge."), output=output, **options)(made)


RIGHT = '{"safe": true, "reasons": ["tested"]}'
WRONG = '{"safe": "perhaps"}'


@pytest.mark.behaviour("W09")
@pytest.mark.parametrize(
    ("output", "text", "value"),
    [
        (Verdict, RIGHT, Verdict(safe=True, reasons=["tested"])),
        (Verdict, '{"safe": false}', Verdict(safe=False)),
        (Verdict, f"```json\n{RIGHT}\n```", Verdict(safe=True, reasons=["tested"])),
        (Point, '{"x": 3}', Point(3)),
        (Typed, '{"x": 3}', {"x": 3}),
    ],
    ids=["a model", "a default", "in a fence", "a dataclass", "a TypedDict"],
)
async def test_the_output_is_an_object(output: Any, text: str, value: Any) -> None:
    """The model is shown the schema, and what it answers is read."""
    model = judge(text, output=output)
    async with Thena(model) as app:
        result = await app.run("go")
    assert result.output == value
    assert type(result.output) is type(value)
    system = model.provider.requests[0].system
    assert system.startswith("Judge.\n\n")
    assert json.loads(system.splitlines()[-1])["type"] == "object"
    assert result.history[-1].content == text


@pytest.mark.behaviour("W09")
async def test_one_repair_turn() -> None:
    """An answer that does not fit is told what is wrong, once, and answered again; both stay in the history."""
    model = judge(WRONG, RIGHT)
    async with Thena(model) as app:
        result = await app.run("go")
    assert result.output == Verdict(safe=True, reasons=["tested"])
    assert [message.role for message in result.history] == ["user", "assistant", "user", "assistant"]
    assert result.history[2].content == (
        'Your answer does not fit what was asked for: safe: expected boolean, received string "perhaps". '
        "Write the whole answer again, as one JSON object."
    )
    assert result.usage.chat_calls == 2


@pytest.mark.behaviour("W09")
@pytest.mark.parametrize("text", ["I am sure.", WRONG, "", "[]", '{"safe": true, "sure": 1}', '{"safe": tr'])
async def test_a_second_wrong_answer_is_an_error(text: str) -> None:
    """It says whose answer does not fit and why, and keeps what was said."""
    async with Thena(judge("no", text)) as app:
        with pytest.raises(AgentOutputError, match="The answer of the agent Judge does not fit its output: ") as caught:
            await app.run("go")
    error = caught.value
    assert (error.agent, error.text) == ("Judge", text)
    assert error.run is not None
    assert [message.content for message in error.run.history][:2] == ["go", "no"]


@pytest.mark.behaviour("W09", "H07")
async def test_on_error_may_answer() -> None:
    """The agent's own `on_error` gives the output where the model gives none."""

    class Hooks:
        def on_error(self, error: Exception) -> Any:
            return Verdict(safe=False, reasons=[type(error).__name__])

    async with Thena(judge("no", "no", hooks=Hooks)) as app:
        assert (await app.run("go")).output == Verdict(safe=False, reasons=["AgentOutputError"])


@pytest.mark.behaviour("W09")
async def test_tools_come_before_the_answer() -> None:
    """A turn that asks for a tool is no answer, also as a repair; its text is no output."""
    turn = ChatTurn("let me look", [ask("echo")])
    model = judge(turn, WRONG, turn, RIGHT)
    async with Thena(model) as app:
        result = await app.run("go")
    assert result.output == Verdict(safe=True, reasons=["tested"])
    assert [message.role for message in result.history].count("tool") == 2
    exhausted = judge(turn)
    async with Thena(workflow(steps=[loop([exhausted], max_iterations=2)])(type("Flow", (), {}))) as app:
        assert (await app.run("go")).output is None


@pytest.mark.behaviour("W09")
async def test_the_repair_is_a_model_call() -> None:
    """It counts, and a budget stops before it."""
    model = judge(WRONG, RIGHT)
    async with Thena(model) as app:
        result = await app.run("go", budget=Budget(max_chat_calls=1))
    assert (result.stopped_by, result.output, len(model.provider.requests)) == ("budget", None, 1)


@pytest.mark.behaviour("W09")
async def test_hooks_see_the_prompt_and_the_text() -> None:
    """`before_prompt` writes the prompt and not the schema; `after_response` may mend the text before it is read."""
    prompts: list[str] = []

    class Hooks:
        def before_prompt(self, prompt: str) -> str:
            prompts.append(prompt)
            return "Judge well."

        def after_response(self, text: str) -> str:
            return text.replace("yes", "true")

    model = judge('{"safe": yes}', hooks=Hooks)
    async with Thena(model) as app:
        assert (await app.run("go")).output == Verdict(safe=True)
    assert prompts == ["Judge."]
    assert model.provider.requests[0].system.startswith("Judge well.\n\nWhen you give your answer")


@pytest.mark.behaviour("W09")
async def test_a_validator_that_raises_is_a_wrong_answer() -> None:
    """Whatever an author's validator raises is told to the model."""

    class Picky(BaseModel):
        safe: bool

        @field_validator("safe")
        @classmethod
        def check(cls, value: bool) -> bool:
            if not value:
                raise LookupError("never unsafe")
            return value

    model = judge('{"safe": false}', '{"safe": true}', output=Picky)
    async with Thena(model) as app:
        assert (await app.run("go")).output == Picky(safe=True)
    assert "LookupError: never unsafe" in model.provider.requests[1].messages[-1].content


@pytest.mark.behaviour("W09", "W07")
async def test_an_object_of_a_nested_run_is_its_json() -> None:
    """The model around it reads the object as JSON."""
    inner = judge(RIGHT)
    provider = FakeProvider([ask("judge", {"message": "it"}), "done"])

    @agent(provider=provider, tools=[workflow_tool(inner, name="judge", description="d")], prompt=Prompt("p"))
    class Outer: ...

    async with Thena(Outer) as app:
        result = await app.run("go")
    assert json.loads(result.history[2].content) == json.loads(RIGHT)


@pytest.mark.parametrize("output", [int, list[int], "Verdict", Verdict(safe=True)], ids=str)
async def test_an_output_that_is_no_object_type(output: Any) -> None:
    """What can be no JSON object is a build error that says what to write."""
    with pytest.raises(BuildError) as caught:
        async with Thena(judge("x", output=output)):
            raise AssertionError("built")
    assert "The output of the agent Judge is" in str(caught.value.exceptions[0])
