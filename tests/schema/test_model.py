"""Schemas made of the parameters of `execute`: types, defaults, `Field`s, docstrings."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from tests.schema.kinds import JSON_SCHEMA, KINDS
from tests.schema.trial import answer, answers, problems, schema_of
from thena_core import tool


@pytest.mark.behaviour("T06")
async def test_types_defaults_fields_and_docstring_make_the_schema() -> None:
    """The parameters of `execute` become the schema: their types, defaults, `Field`s and `Args:` lines."""

    @tool(name="t", description="d")
    class Search:
        async def execute(
            self,
            query: str,
            limit: Annotated[int, Field(ge=1, le=50, description="at most so many")] = 10,
            kinds: list[Literal["file", "folder"]] | None = None,
            depth: int = Field(default=3, description="how deep"),
        ) -> str:
            """Search.

            Args:
                query: What to look for,
                    in words.
                limit (int): Not this, the Field's own text.
                depth: Nor this.
                kinds: Which kinds.
            """
            return f"{query}:{limit}:{kinds}:{depth}"

    schema = await schema_of(Search)
    assert schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "What to look for, in words."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "at most so many"},
            "kinds": {
                "anyOf": [{"type": "array", "items": {"type": "string", "enum": ["file", "folder"]}}, {"type": "null"}],
                "default": None,
                "description": "Which kinds.",
            },
            "depth": {"type": "integer", "default": 3, "description": "how deep"},
        },
    }
    assert await answers(Search, [{"query": "x"}, {"query": "x", "depth": 1, "kinds": ["file"]}]) == [
        "x:10:None:3",
        "x:10:['file']:1",
    ]


@pytest.mark.behaviour("T06")
async def test_default_factory() -> None:
    """`Field(default_factory=…)` makes a new value per call."""

    @tool
    async def t(tags: list[str] = Field(default_factory=list)) -> str:  # noqa: B008 - the subject
        """D."""
        tags.append("x")
        return ",".join(tags)

    assert await answers(t, [{}, {}, {"tags": ["a"]}]) == ["x", "x", "a,x"]


@pytest.mark.behaviour("T06")
async def test_arguments_are_validated_before_the_function_runs() -> None:
    """A derived schema guards as a given one does."""
    ran: list[int] = []

    @tool
    async def t(n: Annotated[int, Field(ge=1)]) -> str:
        """D."""
        ran.append(n)
        return ""

    assert await answers(t, [{"n": 0}, {}, {"n": "1", "m": 2}]) == [
        "invalid arguments — n: input should be greater than or equal to 1, received number 0",
        "invalid arguments — n: missing",
        "invalid arguments — m: unknown argument (accepted: n)",
    ]
    assert ran == []


@pytest.mark.behaviour("T06")
@pytest.mark.parametrize(
    "kind", [KINDS["model"], KINDS["dataclass"], KINDS["typed dict"]], ids=["model", "dataclass", "typed dict"]
)
async def test_a_single_object_parameter_is_the_whole_schema(kind: Any) -> None:
    """`execute(self, args: ReadFile)` needs no `schema=`: the type's fields are the arguments."""

    async def t(args: Any) -> str:
        """D."""
        return str(args["path"] if isinstance(args, dict) else args.path)

    t.__annotations__["args"] = kind
    assert set((await schema_of(tool(t)))["properties"]) == {"path", "limit", "tags"}
    assert (await answer(tool(t), {"path": "a"})).content == "a"


@pytest.mark.behaviour("T06")
async def test_typed_dict_fields_by_name() -> None:
    """A field that may be left out of a TypedDict falls back to the parameter's own default."""

    @tool(name="t", description="d", schema=KINDS["typed dict"])
    async def t(path: str, limit: int = 7) -> str:
        return f"{path}:{limit}"

    assert await answers(t, [{"path": "a"}, {"path": "a", "limit": 1}]) == ["a:7", "a:1"]


@pytest.mark.behaviour("T06")
async def test_json_schema_fields_by_name() -> None:
    """The same for a JSON Schema."""

    @tool(name="t", description="d", schema=JSON_SCHEMA)
    async def t(path: str, limit: int = 7) -> str:
        return f"{path}:{limit}"

    assert await answers(t, [{"path": "a"}, {"path": "a", "limit": 1}]) == ["a:7", "a:1"]


@pytest.mark.behaviour("T06")
@pytest.mark.parametrize("schema", [KINDS["typed dict"], JSON_SCHEMA], ids=["typed dict", "json schema"])
async def test_a_field_that_may_be_missing_needs_a_default(schema: Any) -> None:
    """A parameter that the model may leave without a value is a build error with the line to write."""

    @tool(name="t", description="d", schema=schema)
    async def t(path: str, limit: int) -> str:
        return ""

    [problem] = await problems(t)
    assert "`limit`" in problem
    assert "`limit=None`" in problem
