"""One conversation for all wires (list, two reads at once, a mistake, the answer), and the bodies it must send."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from thena_core import Prompt, Thena, agent, tool
from thena_core.output import ToolOutput
from thena_core.providers import Provider, Sampling
from thena_core.run import RunResult

QUESTION = "How is it installed?"
ANSWER = "With pip install thena-core."

Calls = list[tuple[str, str, dict[str, Any]]]
TURNS: list[Calls] = [
    [("call_1", "list_dir", {"path": "."})],
    [("call_2", "read_file", {"path": "README.md"}), ("call_3", "read_file", {"path": "docs/é.md"})],
    [("call_4", "read_file", {"path": "nowhere.md"})],
]
"""What the model asks for, turn by turn; after the last it gives `ANSWER`."""

FILES = {"README.md": "pip install thena-core\n", "docs/é.md": ""}
GOLDEN = Path(__file__).parent / "golden"


def explorer(provider: Provider) -> type:
    """Make the agent."""

    @tool(effect="read")
    async def list_dir(path: str) -> str:
        """Lists a folder."""
        return "\n".join(FILES)

    @tool(effect="read")
    async def read_file(path: str) -> str | ToolOutput:
        """Reads a file."""
        found = FILES.get(path)
        return ToolOutput(f'There is no "{path}".', is_error=True) if found is None else found

    @agent(
        provider=provider,
        tools=[list_dir, read_file],
        prompt=Prompt("You explore a folder."),
        tool_calls="all",
        sampling=Sampling(temperature=0.0, max_tokens=500),
    )
    class Explorer:
        pass

    return Explorer


async def held(provider: Provider, *, stream: bool) -> tuple[RunResult, str]:
    """Hold the conversation; return its result and the text that was heard meanwhile."""
    async with Thena(explorer(provider)) as app:
        if not stream:
            return await app.run(QUESTION), ""
        async with app.start(QUESTION) as handle:
            heard = [piece async for piece in handle.text()]
            return await handle.result(), "".join(heard)


def compare(name: str, bodies: list[Any]) -> None:
    """Compare bodies with those on record, the order of their fields included.

    `THENA_GOLDEN=write` writes the record anew, for a look at what changed.
    """
    path = GOLDEN / f"{name}.json"
    written = json.dumps(bodies, ensure_ascii=False, indent=1) + "\n"
    if os.environ.get("THENA_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(written, encoding="utf-8")
    assert written == path.read_text(encoding="utf-8")
