"""What a plugin under observation did: how often its hooks were called, and everything that was wrong."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from thena_core._render import said_by


@dataclass(slots=True)
class Ledger:
    """What a plugin's functions did, over all scenes.

    Attributes:
        problems: What was wrong, to the scenes where it was seen, and the tools whose calls showed it.
        scene: The scene that is played.
        cancels: Whether the scene cancels something: only then a cancellation that goes missing was swallowed.
        abort_in: The hook in which the run is to be aborted, once.
        calls: How often each hook was called for each tool in this scene: `("after_tool", "look")`.
        answered: How often `before_tool` answered in the place of a tool, in this scene.
        standing: The tools around which a `tool_middleware` stands, in this scene, with the hook's id.
    """

    problems: dict[str, dict[str, list[str]]] = field(default_factory=dict[str, dict[str, list[str]]])
    scene: str = ""
    cancels: bool = False
    abort_in: str | None = None
    calls: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    answered: Counter[str] = field(default_factory=Counter[str])
    standing: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def begin(self, scene: str, *, cancels: bool, abort_in: str | None) -> None:
        """Begin a scene."""
        self.scene, self.cancels, self.abort_in = scene, cancels, abort_in
        self.calls.clear()
        self.answered.clear()
        self.standing.clear()

    def blame(self, problem: str, tool: str = "") -> None:
        """Note what is wrong, and where it was seen."""
        tools = self.problems.setdefault(problem, {}).setdefault(self.scene, [])
        if tool and tool not in tools:
            tools.append(tool)

    @property
    def is_blamed(self) -> bool:
        """Whether this scene has shown something wrong."""
        return any(self.scene in scenes for scenes in self.problems.values())

    @contextmanager
    def blaming(self, where: str, tool: str = "") -> Generator[None, None, None]:
        """Note what is raised, unless it is the cancellation that the scene is about."""
        try:
            yield
        except asyncio.CancelledError:
            if not self.cancels:
                self.blame(f"{where} raised CancelledError, and nobody cancelled the run", tool)
            raise
        except Exception as error:
            self.blame(f"{where} raised {said_by(error)}", tool)
            raise

    async def awaited(self, answer: Any, where: str, tool: str = "") -> Any:
        """Await what a function returned, if it is to be awaited; note a cancellation that it swallowed."""
        if not inspect.isawaitable(answer):
            return answer
        watched = Watched(answer)
        value = await watched
        if watched.is_cancelled and self.cancels:
            self.blame(f"{where} swallowed the cancellation of the run: let CancelledError pass", tool)
        return value


class Watched:
    """Something awaited step by step, so that a cancellation is seen that goes in and does not come out."""

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._awaitable = awaitable
        self.is_cancelled = False

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._awaitable.__await__()
        thrown = False
        try:
            waiting = steps.send(None)
            while True:
                try:
                    sent = yield waiting
                except GeneratorExit:
                    steps.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - all of it goes where it was going
                    thrown = thrown or isinstance(error, asyncio.CancelledError)
                    waiting = steps.throw(error)
                else:
                    waiting = steps.send(sent)
        except StopIteration as end:
            # a time limit of its own takes its cancellation back, and is nobody's business
            task = asyncio.current_task()
            self.is_cancelled = thrown and task is not None and task.cancelling() > 0
            return end.value
