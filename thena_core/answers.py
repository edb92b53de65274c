"""What `@agent(output=Model)` makes of an answer: asked for with its schema, read, and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from thena_core._render import said_by, type_name
from thena_core.errors import AgentDefinitionError, AgentOutputError
from thena_core.schema.model import ArgumentsSchema, is_object_type, schema_from_type
from thena_core.schema.parse import recover

INSTRUCTION = "When you give your answer, write one JSON object that fits this JSON Schema, and nothing around it:"
AGAIN = "Your answer does not fit what was asked for: {problem}. Write the whole answer again, as one JSON object."


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What an agent's answer must be.

    Attributes:
        agent: Whose, for messages.
        schema: What it must fit.
        instruction: What is added to the prompt: every model understands it, also where its service has no such
            setting.
    """

    agent: str
    schema: ArgumentsSchema
    instruction: str

    def read(self, text: str) -> Any:
        """Read an answer.

        Raises:
            AgentOutputError: Where it does not fit, with what is wrong in `.problem`.
        """
        try:
            return self.schema.validate_json(text)
        except ValidationError as error:
            found = recover(self.schema, text, error)
        except Exception as error:
            raise AgentOutputError(self.agent, said_by(error), text) from error  # an author's validator raised
        if isinstance(found, str):
            raise AgentOutputError(self.agent, found.partition(" — ")[2] or found, text)
        return found[0]


def answer_form(output: Any, agent: str) -> AnswerForm | None:
    """Make the form of an agent's answer; `None` where it is plain text.

    Raises:
        AgentDefinitionError: For what is no model, dataclass or TypedDict.
        ToolDefinitionError: Where no JSON Schema can be made of it.
    """
    if output is None:
        return None
    if not is_object_type(output):
        raise AgentDefinitionError(
            f"[thena] The output of the agent {agent} is {type_name(output)}: give a pydantic model, a dataclass or a "
            f"TypedDict. For a list or a number, make a model with one field."
        )
    schema = schema_from_type(output, tool=f"output of {agent}")
    return AnswerForm(agent, schema, f"{INSTRUCTION}\n{json.dumps(schema.json_schema, ensure_ascii=False)}")
