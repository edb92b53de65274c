"""Agents: where their prompt comes from, and what one turn does."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from thena_core import BuildError, Prompt, Thena, agent, tool
from thena_core.errors import AgentDefinitionError
from thena_core.messages import ToolRequest
from thena_core.testing import FakeProvider


@tool
async def echo(text: str) -> str:
    """Repeats a text."""
    return text


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    """A module of its own folder, as an agent's file is."""
    made = ModuleType("some_agents")
    made.__file__ = str(tmp_path / "some_agents.py")
    sys.modules["some_agents"] = made
    yield made
    del sys.modules["some_agents"]


def agent_in(module: ModuleType, prompt: str | Path | Prompt, provider: FakeProvider) -> type:
    """Declare an agent as if its class stood in `module`."""
    made = type("Explorer", (), {"__module__": module.__name__})
    return agent(provider=provider, prompt=prompt)(made)


@pytest.mark.behaviour("W01")
@pytest.mark.parametrize("as_path", [False, True], ids=["str", "Path"])
async def test_prompt_file_is_relative_to_the_agents_file(module: ModuleType, tmp_path: Path, as_path: bool) -> None:
    """`prompt="./a.agent.md"` is read beside the file that defines the agent, wherever the process runs."""
    (tmp_path / "a.agent.md").write_text("You look at files. çã", encoding="utf-8")
    provider = FakeProvider(["done"])
    prompt = Path("a.agent.md") if as_path else "./a.agent.md"
    async with Thena(agent_in(module, prompt, provider)) as app:
        await app.run("hello")
    assert provider.requests[0].system == "You look at files. çã"


@pytest.mark.behaviour("W01")
async def test_missing_prompt_file_names_both_files(module: ModuleType, tmp_path: Path) -> None:
    """A prompt that is not there is a build error naming the file and the agent's file."""
    with pytest.raises(BuildError) as caught:
        async with Thena(agent_in(module, "./gone.agent.md", FakeProvider())):
            pass
    [problem] = caught.value.exceptions
    assert isinstance(problem, AgentDefinitionError)
    assert str(problem) == (
        f"[thena] The prompt of some_agents.Explorer is not there: {tmp_path / 'gone.agent.md'}\n"
        f'prompt="./gone.agent.md" is relative to the agent\'s file, {tmp_path / "some_agents.py"}.'
    )


@pytest.mark.behaviour("W01")
async def test_inline_prompt() -> None:
    """`Prompt("text")` is the prompt itself."""
    provider = FakeProvider(["done"])

    @agent(provider=provider, prompt=Prompt("Be brief."))
    class Brief: ...

    async with Thena(Brief) as app:
        await app.run("hello")
    assert provider.requests[0].system == "Be brief."


@pytest.mark.behaviour("W10")
async def test_an_agent_is_looped_until_it_answers() -> None:
    """`Thena(Agent)` takes turns while the model asks for tools, and ends with its first answer without one."""
    provider = FakeProvider(
        [ToolRequest("c1", "echo", '{"text": "a"}'), ToolRequest("c2", "echo", '{"text": "b"}'), "both read", "never"]
    )

    @agent(provider=provider, tools=[echo], prompt=Prompt(""))
    class Reader: ...

    async with Thena(Reader) as app:
        result = await app.run("read")
    assert (result.output, result.stopped_by) == ("both read", "answered")
    assert [message.content for message in result.history] == ["read", "", "a", "", "b", "both read"]
    assert len(provider.requests) == 3


@pytest.mark.behaviour("W10")
async def test_an_agent_that_never_answers_is_exhausted() -> None:
    """The loop around a single agent has the same limits as any other."""

    @agent(provider=FakeProvider([ToolRequest("c", "echo", '{"text": "again"}')]), tools=[echo], prompt=Prompt(""))
    class Endless: ...

    async with Thena(Endless) as app:
        result = await app.run("go")
    assert (result.stopped_by, result.usage.chat_calls) == ("exhausted", 10)
