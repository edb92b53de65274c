"""Marks for the parameters of `execute`: what is injected and what the model fills in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Input:
    """Mark what the model fills in: `Annotated[ReadFile, Input]`, `Annotated[str, Input(description="…")]`.

    Attributes:
        description: What the model reads about the field.
        alias: The field's name on the wire, where it cannot be a Python name (`from`).
    """

    description: str | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """Mark the workflow's state: `Annotated[ReviewState, State]`."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Mark the agent's other tools, wrapped in all layers: `Annotated[Toolbox, Tools]`."""


@dataclass(frozen=True, slots=True)
class Inject:
    """Mark a service of the app's container, by type: `Annotated[Clock, Inject]`."""
