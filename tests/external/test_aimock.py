"""The three wires against aimock, a mock of all of them: the same conversation and bodies as against our own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.external.servers import HERE, Recording, first_line, started
from tests.providers.conversation import ANSWER, QUESTION, TURNS, compare, held
from thena_core.providers import AnthropicProvider, OllamaProvider, OpenAIProvider, Provider

pytestmark = pytest.mark.external


@pytest.fixture(scope="module")
def aimock(installed: Path) -> Iterator[str]:
    calls = [[{"id": i, "name": name, "arguments": arguments} for i, name, arguments in turn] for turn in TURNS]
    turns = [*({"toolCalls": turn} for turn in calls), {"content": ANSWER}]
    package = installed / "node_modules" / "@copilotkit" / "aimock"
    with started("node", HERE / "aimock.mjs", package, json.dumps(turns), AIMOCK_STRICT_TURN_INDEX="1") as process:
        yield first_line(process)


PROVIDERS: dict[str, Callable[[str, Recording], Provider]] = {
    "openai": lambda url, transport: OpenAIProvider("m", "k", f"{url}/v1", transport=transport),
    "anthropic": lambda url, transport: AnthropicProvider("m", "k", url, transport=transport),
    "ollama": lambda url, transport: OllamaProvider("m", url, transport=transport),
}


@pytest.mark.behaviour("V01")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", PROVIDERS)
async def test_list_read_fail_answer(aimock: str, wire: str, stream: bool) -> None:
    """A model of somebody else's leads through the whole conversation, and the bodies are those on record."""
    transport = Recording(wire)
    result, heard = await held(PROVIDERS[wire](aimock, transport), stream=stream)
    assert (result.output, result.usage.chat_calls, result.usage.tool_calls) == (ANSWER, 4, 4)
    assert heard == (ANSWER if stream else "")
    for body in transport.bodies:
        assert body.pop("stream", False) is stream
        body.pop("stream_options", None)
    compare(wire, transport.bodies)


@pytest.mark.parametrize("wire", PROVIDERS)
def test_the_demo_takes_it(aimock: str, wire: str, tmp_path: Path) -> None:
    """`thena demo --model …` reads a folder with each of them."""
    (tmp_path / "README.md").write_text("pip install thena-core\n", encoding="utf-8")
    environment: dict[str, Any] = {
        "OPENAI_BASE_URL": f"{aimock}/v1",
        "ANTHROPIC_BASE_URL": aimock,
        "OLLAMA_HOST": aimock,
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
        "PYTHONPATH": str(HERE.parents[1]),
    }
    script = "import sys; from thena_core.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "demo", str(tmp_path), QUESTION, "--model", f"{wire}:m"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, ANSWER)
