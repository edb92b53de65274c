"""A real llama.cpp with a small model: both of its routes, streamed, a schema, its loading, and its death."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.external.servers import HERE, first_line, free_port, started
from thena_core import Prompt, Thena, agent
from thena_core.errors import ProviderError
from thena_core.messages import Message
from thena_core.providers import AnthropicProvider, ChatRequest, OpenAIProvider, Provider, Retry, Sampling

pytestmark = pytest.mark.external

ROUTES: dict[str, Callable[..., Provider]] = {
    "openai": lambda url, **settings: OpenAIProvider("m", base_url=f"{url}/v1", **settings),
    "anthropic": lambda url, **settings: AnthropicProvider("m", base_url=url, **settings),
}
on_both_routes = pytest.mark.parametrize("route", ROUTES)


class Llama:
    """A server that may be started late and killed early."""

    def __init__(self, installed: Path, life: contextlib.ExitStack) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._life = life
        self._command = (installed / "venv" / "bin" / "python", HERE / "llama_server.py", port)
        self._processes: list[subprocess.Popen[str]] = []

    def begin(self) -> Llama:
        """Start it, without waiting until it can answer."""
        self._processes.append(self._life.enter_context(started(*self._command)))
        return self

    def ready(self) -> Llama:
        """Start it and wait until it has loaded its model."""
        first_line(self.begin()._processes[0])
        return self

    def kill(self) -> None:
        self._processes[0].kill()


@pytest.fixture
def llama(installed: Path) -> Iterator[Llama]:
    with contextlib.ExitStack() as life:
        yield Llama(installed, life)


def ask(words: str, tokens: int, **more: Any) -> ChatRequest:
    return ChatRequest([Message("user", words)], sampling=Sampling(temperature=0.0, max_tokens=tokens, seed=1), **more)


@pytest.mark.behaviour("V01", "V07", "F07")
@on_both_routes
async def test_streamed_and_whole_are_the_same(llama: Llama, route: str) -> None:
    """The same question gives the same text streamed and not, piece by piece, with usage, and is cut off by name."""
    provider = ROUTES[route](llama.ready().url)
    pieces: list[str] = []
    whole = await provider.chat(ask("What is the capital of France?", 12))
    streamed = await provider.chat(ask("What is the capital of France?", 12, on_text=pieces.append))
    await provider.aclose()
    assert whole.content == streamed.content == "".join(pieces) != ""
    assert len(pieces) >= 6
    for turn in (whole, streamed):
        assert turn.usage is not None
        assert (turn.usage.completion_tokens, turn.finish_reason) == (12, "length")
        assert turn.usage.prompt_tokens > 5


@pytest.mark.behaviour("V02")
async def test_holds_the_model_to_a_schema(llama: Llama) -> None:
    """A field in `raw` that only this server knows holds its model to a JSON Schema."""
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
    raw = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    provider = ROUTES["openai"](llama.ready().url, raw=raw)
    turn = await provider.chat(ask("Name the capital of France as JSON.", 40))
    await provider.aclose()
    assert json.loads(turn.content)["city"] in ("Paris", "Rome")


@pytest.mark.behaviour("V03")
@on_both_routes
async def test_waits_while_the_model_loads(llama: Llama, route: str) -> None:
    """Asked while it starts, the server refuses or says 503, and the request is tried again until it answers."""
    provider = ROUTES[route](llama.begin().url, retry=Retry(attempts=600, base=0.1, cap=0.1))
    turn = await provider.chat(ask("Hello!", 3))
    await provider.aclose()
    assert turn.content
    assert turn.meta is not None
    assert turn.meta["attempts"] > 1


@pytest.mark.behaviour("V08", "X04")
@on_both_routes
async def test_its_death_ends_the_run(llama: Llama, route: str) -> None:
    """Killing the server in mid-stream ends the run with one line, and leaves no task behind."""

    @agent(provider=ROUTES[route](llama.ready().url), prompt=Prompt("Talk."), sampling=Sampling(max_tokens=400))
    class Talker:
        pass

    before = asyncio.all_tasks()
    async with Thena(Talker) as app, app.start("Tell a long story.") as handle:
        async for _ in handle.text():
            llama.kill()
        with pytest.raises(ProviderError) as caught:
            await handle.result()
    assert str(caught.value).count("\n") == 0
    assert asyncio.all_tasks() == before
