"""Faults of every kind from llmock, which also judges the client: its verdict must be a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.external.servers import free_port, get, started, wait_for
from thena_core import Prompt, Thena, agent, tool
from thena_core.errors import ProviderError
from thena_core.providers import AnthropicProvider, OpenAIProvider, Provider, Retry, Timeout
from thena_core.run import RunResult

pytestmark = pytest.mark.external

WIRES: dict[str, Callable[..., Provider]] = {
    "openai": lambda url, **settings: OpenAIProvider("gpt-4o-mini", "k", f"{url}/v1", **settings),
    "anthropic": lambda url, **settings: AnthropicProvider("claude-sonnet-4-5", "k", f"{url}/anthropic", **settings),
}
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
on_both_wires = pytest.mark.parametrize("wire", WIRES)


@pytest.fixture(scope="module")
def server(installed: Path) -> Iterator[str]:
    url = f"http://127.0.0.1:{(port := free_port())}"
    with started(installed / "venv" / "bin" / "llmock", "serve", "-p", port, "--log-level", "error"):
        wait_for(f"{url}/_llmock/verdict")
        yield url


@pytest.fixture
def llmock(server: str) -> str:
    """Return the server's address, with nothing left of earlier tests."""
    get(f"{server}/_llmock/reset", {})
    return server


@tool
async def get_weather(city: str) -> str:
    """Get the current weather for a city."""
    return f"21 °C in {city}"


async def asked(provider: Provider, *, stream: bool, with_tool: bool) -> RunResult:
    @agent(provider=provider, tools=[get_weather] if with_tool else [], prompt=Prompt("Help with the weather."))
    class Forecaster:
        pass

    async with Thena(Forecaster) as app:
        if not stream:
            return await app.run("What is the weather in Paris?")
        async with app.start("What is the weather in Paris?") as handle:
            return await handle.result()


def cut(kind: str, after: int, **more: Any) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": after, **more}


def failed(status: int, **more: Any) -> dict[str, Any]:
    return {"type": "fail", "status": status, **more}


RECOVERED = [
    pytest.param([failed(429, retry_after=0.3, times=2)], id="429"),
    pytest.param([failed(503, times=2)], id="503"),
    pytest.param([failed(529)], id="529"),
    pytest.param([failed(500)], id="500"),
    *(
        pytest.param([cut(kind, after, **({"stall_seconds": 20} if kind == "stall" else {}))], id=f"{kind}-{after}")
        for kind in ("disconnect", "truncate", "malformed", "stall")
        for after in (0, 2)
    ),
    pytest.param([{"type": "slow_first_token", "seconds": 0.5}], id="slow"),
    pytest.param([{"type": "tool_fault", "kind": "malformed_arguments"}], id="bad-arguments"),
    pytest.param([{"type": "tool_fault", "kind": "unknown_tool"}], id="unknown-tool"),
]


@pytest.mark.behaviour("V03")
@both_ways
@on_both_wires
@pytest.mark.parametrize("faults", RECOVERED)
async def test_recovers(llmock: str, wire: str, faults: list[dict[str, Any]], stream: bool) -> None:
    """A run with a tool gets over a fault that comes before any text was shown, and llmock finds nothing to object."""
    get(f"{llmock}/_llmock/scenario", {"behaviors": faults})
    provider = WIRES[wire](llmock, timeout=Timeout(read=1.5), retry=Retry(base=0.2))
    result = await asked(provider, stream=stream, with_tool=True)
    verdict = get(f"{llmock}/_llmock/verdict")
    assert result.stopped_by == "answered"
    assert result.output
    assert verdict["passed"], verdict["findings"]


@pytest.mark.behaviour("V03", "V08")
@both_ways
@on_both_wires
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_does_not_repeat_what_cannot_pass(llmock: str, wire: str, status: int, stream: bool) -> None:
    """An error that would come again is raised at once, in the service's words."""
    get(f"{llmock}/_llmock/scenario", {"behaviors": [failed(status)]})
    with pytest.raises(ProviderError) as caught:
        await asked(WIRES[wire](llmock), stream=stream, with_tool=False)
    verdict = get(f"{llmock}/_llmock/verdict")
    assert (caught.value.status, caught.value.attempts, verdict["attempts"]) == (status, 1, 1)
    assert verdict["passed"], verdict["findings"]


@pytest.mark.behaviour("V03")
@on_both_wires
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed"])
async def test_is_not_tried_again_after_text(llmock: str, wire: str, kind: str) -> None:
    """After text was shown a fault is an error and no second try, whatever llmock thinks of that."""
    get(
        f"{llmock}/_llmock/scenario",
        {"behaviors": [{"type": "reply", "text": "one two three four five"}, cut(kind, 5)]},
    )
    with pytest.raises(ProviderError) as caught:
        await asked(WIRES[wire](llmock), stream=True, with_tool=False)
    assert (caught.value.attempts, str(caught.value).count("\n")) == (1, 0)
    assert get(f"{llmock}/_llmock/verdict")["attempts"] == 1
