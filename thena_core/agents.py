"""Agents: what `@agent` leaves on a class, and the prompt that it names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from thena_core._render import qualified_name
from thena_core.errors import AgentDefinitionError
from thena_core.providers.base import Provider, Sampling, ToolCalls

ClassT = TypeVar("ClassT", bound=type)
ProviderSource = Provider | type[Provider] | Callable[[], Provider]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt given inline, where a `str` or `Path` would be a file."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What `@agent` leaves on a class."""

    provider: ProviderSource
    tools: Sequence[Any]
    prompt: str | Path | Prompt
    tool_calls: ToolCalls
    sampling: Sampling | None
    name: str | None
    output: Any


def agent(
    *,
    provider: ProviderSource,
    tools: Sequence[Any] = (),
    prompt: str | Path | Prompt,
    tool_calls: ToolCalls = "one",
    sampling: Sampling | None = None,
    name: str | None = None,
    output: Any = None,
) -> Callable[[ClassT], ClassT]:
    """Declare a class as an agent; its methods may be hooks (`before_tool`, `after_response`, …).

    Args:
        provider: The model: an instance, a class, or a function that makes one per run.
        tools: Tool classes, decorated functions, definitions, configured instances, or names of installed tools.
        prompt: A file, relative to the file of the agent's module, or `Prompt("text")`.
        tool_calls: `one` honours one call per model turn; `all` runs all of them, beside each other.
        sampling: How the model chooses its words.
        name: What the record calls it; the class's name unless given.
        output: The type of its answer (pydantic model, dataclass, TypedDict): the prompt asks for it, the answer is
            validated, and where it does not fit the model is told so once and answers again. `None`: text.
    """
    spec = AgentSpec(provider, tuple(tools), prompt, tool_calls, sampling, name, output)

    def declare(cls: ClassT) -> ClassT:
        cls.__thena_agent__ = spec  # type: ignore[attr-defined]
        return cls

    return declare


def agent_spec(cls: Any) -> AgentSpec:
    """Return what `@agent` declared.

    Raises:
        AgentDefinitionError: For a class without it.
    """
    spec: AgentSpec | None = getattr(cls, "__thena_agent__", None)
    if spec is None:
        name = getattr(cls, "__name__", repr(cls))
        raise AgentDefinitionError(
            f'[thena] The class "{name}" is not decorated with @agent().\n'
            f'Add above it: @agent(provider=…, tools=[…], prompt="./{name.lower()}.agent.md")'
        )
    return spec


def prompt_text(cls: type, prompt: str | Path | Prompt) -> str:
    """Read an agent's prompt, once.

    Raises:
        AgentDefinitionError: Where the file is missing or is not text, naming it and the agent's file.
    """
    if isinstance(prompt, Prompt):
        return prompt.text
    module = sys.modules.get(cls.__module__)
    home = getattr(module, "__file__", None)
    base = Path(home).resolve().parent if home else Path.cwd()
    path = base / prompt
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        hint = f' For a prompt that is no file, write Prompt("{str(prompt)[:30]}").' if "\n" in str(prompt) else ""
        reason = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise AgentDefinitionError(
            f"[thena] The prompt of {qualified_name(cls)} {reason}: {path}\n"
            f'prompt="{prompt}" is relative to the agent\'s file, {home or "which is unknown"}.{hint}'
        ) from error
