"""What the framework made of a tool, for people: its schema, what fills its parameters, the layers around it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thena_core.definition import ToolDefinition


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `app.explain` says of a tool; printed, it is meant to be read.

    Attributes:
        definition: The tool, with its JSON schema.
        parameters: Parameter of `execute` to what fills it.
        layers: The layers around it, outermost first, each with its origin.
        origin: Where the tool is defined.
    """

    definition: ToolDefinition
    parameters: Mapping[str, str]
    layers: Sequence[str]
    origin: str

    def __str__(self) -> str:
        definition = self.definition
        width = max((len(name) for name in self.parameters), default=0)
        filled = [f"  {name:<{width}}  {source}" for name, source in self.parameters.items()]
        layers = [f"  {number}. {layer}" for number, layer in enumerate(self.layers, 1)]
        return "\n".join(
            [
                f"{definition.name} — {self.origin}",
                f"  {definition.description}",
                "schema, as the model sees it:",
                *(
                    f"  {line}"
                    for line in json.dumps(definition.json_schema, indent=2, ensure_ascii=False).splitlines()
                ),
                "parameters of execute:",
                *(filled or ["  none"]),
                "layers, outermost first:",
                *layers,
            ]
        )
