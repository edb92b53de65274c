"""Every kind of signature that authors write: it works, or the build says why not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.schema.trial import answer, module_from, problems, schema_of
from thena_core import Thena
from thena_core.schema.signature import bound, read_signature

HEAD = """
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Optional, TypeVar, Union
from pydantic import BaseModel, Field
from thena_core import Context, Input, State, ToolDefinition, Toolbox, Tools, tool
if TYPE_CHECKING:
    from decimal import Decimal
    from far_away import Report, Tenant
A = TypeVar("A")
B = TypeVar("B")

class Args(BaseModel):
    a: int
    b: int = 2

@dataclass
class Point:
    x: int
    y: int

reused = tool(name="t", description="d")
"""
DECORATORS = {
    "@declare": '@tool(name="t", description="d")',
    "@with_schema": '@tool(name="t", description="d", schema=Args)',
}


class Case(NamedTuple):
    source: str
    arguments: dict[str, Any]
    says: str
    fields: set[str]


AB = {"a", "b"}
A3 = {"a": 3}

WORKING: dict[str, Case] = {
    "fields by name": Case("def execute(self, a: int, b: int = 2): return f'{a}:{b}'", A3, "3:2", AB),
    "async": Case("async def execute(self, a: int, b: int = 2): return f'{a}:{b}'", A3, "3:2", AB),
    "no annotation": Case("def execute(self, a, b=2): return f'{a}:{b}'", {"a": "x"}, "x:2", AB),
    "whole model": Case("def execute(self, args: Args): return f'{args.a}:{args.b}'", A3, "3:2", AB),
    "marked model": Case("def execute(self, x: Annotated[Args, Input]): return f'{x.a}:{x.b}'", A3, "3:2", AB),
    "model by keyword": Case("def execute(self, *, args: Args): return f'{args.a}:{args.b}'", A3, "3:2", AB),
    "model by position": Case("def execute(self, args: Args, /): return f'{args.a}:{args.b}'", A3, "3:2", AB),
    "whole dataclass": Case("def execute(self, p: Point): return f'{p.x}:{p.y}'", {"x": 1, "y": 2}, "1:2", {"x", "y"}),
    "one of several": Case(
        "def execute(self, p: Point, a: int = 0): return f'{type(p).__name__}:{p.y}:{a}'",
        {"p": {"x": 1, "y": 2}},
        "Point:2:0",
        {"p", "a"},
    ),
    "positional-only": Case("def execute(self, a: int, /, b: int = 2): return a * b", {"a": 3, "b": 4}, "12", AB),
    "positional-only left out": Case("def execute(self, a: int, b: int = 2, /): return a * b", A3, "6", AB),
    "positional-only injected": Case(
        "def execute(self, ctx: Context, a: int, /): return f'{bool(ctx.run_id)}:{a}'", A3, "True:3", {"a"}
    ),
    "keyword-only": Case("def execute(self, *, a: int, b: int = 2): return f'{a}:{b}'", A3, "3:2", AB),
    "keyword-only injected": Case(
        "def execute(self, *, ctx: Context, a: int, b: int = 2): return f'{bool(ctx.run_id)}:{a}:{b}'",
        A3,
        "True:3:2",
        AB,
    ),
    "all three kinds": Case(
        "def execute(self, a: int, /, ctx: Context, *, b: int = 2): return f'{a}:{bool(ctx.run_id)}:{b}'",
        A3,
        "3:True:2",
        AB,
    ),
    "injected between": Case(
        "def execute(self, a: int, ctx: Context, b: int): return f'{a}:{bool(ctx.run_id)}:{b}'",
        {"b": 1, "a": 3},
        "3:True:1",
        AB,
    ),
    "injected with a default": Case(
        "def execute(self, a: int, ctx: Annotated[Context, Context] = None): return f'{a}:{ctx is None}'",
        A3,
        "3:False",
        {"a"},
    ),
    "optional context": Case(
        "def execute(self, a: int, ctx: Optional[Context] = None): return f'{a}:{ctx is None}'", A3, "3:False", {"a"}
    ),
    "open-ended": Case("def execute(self, a: int, *rest: int, **more: str): return a", A3, "3", {"a"}),
    "optional path": Case(
        "def execute(self, a: int, log: Optional[Path] = None): return log", A3, "null", {"a", "log"}
    ),
    "literal": Case("def execute(self, a: Literal['x', 'y']): return a", {"a": "y"}, "y", {"a"}),
    "names in quotes": Case(
        "def execute(self, a: 'int', p: 'Optional[Point]' = None, ctx: 'Context' = None): return f'{a}:{ctx is None}'",
        A3,
        "3:False",
        {"a", "p"},
    ),
    "names in quotes, inside": Case(
        "def execute(self, p: list['Point'], q: Optional['Point'] = None, r: 'Point | None' = None): return repr(p[0])",
        {"p": [{"x": 1, "y": 2}]},
        "Point(x=1, y=2)",
        {"p", "q", "r"},
    ),
    "names in quotes, marked": Case(
        "def execute(self, p: Annotated['Args', Input], c: Annotated['Context', Context]): return f'{p!r} {bool(c.run_id)}'",
        A3,
        "Args(a=3, b=2) True",
        AB,
    ),
    "return type only for checkers": Case("def execute(self, a: int) -> 'Report': return a", A3, "3", {"a"}),
    "data type only for checkers": Case(
        "def execute(self, a: int, ctx: 'Context[Tenant]'): return f'{a}:{bool(ctx.run_id)}'", A3, "3:True", {"a"}
    ),
    "marked with a type only for checkers": Case(
        "def execute(self, a: int, ctx: 'Annotated[Tenant, Context]'): return f'{a}:{bool(ctx.run_id)}'",
        A3,
        "3:True",
        {"a"},
    ),
}

STANDING: dict[str, Case] = {
    "inherited": Case(
        "class Base:\n    def execute(self, a: int): return a\n@declare\nclass T(Base): ...", A3, "3", {"a"}
    ),
    "inherited with its decorator": Case(
        "@declare\nclass Base:\n    def execute(self, a: int): return a\nclass T(Base): ...", A3, "3", {"a"}
    ),
    "overridden under an inherited decorator": Case(
        "@declare\nclass Base:\n    def execute(self, a: int): return a\n"
        "class T(Base):\n    def execute(self, b: int): return b + 1",
        {"b": 3},
        "4",
        {"b"},
    ),
    "mixed in": Case(
        "class Mixin:\n    def execute(self, a: int, ctx: Context): return f'{self.extra}{a}'\n"
        "@declare\nclass T(Mixin):\n    extra = '+'",
        A3,
        "+3",
        {"a"},
    ),
    "generic base": Case(
        "class Base(Generic[A]):\n    def execute(self, args: A): return repr(args)\n@declare\nclass T(Base[Args]): ...",
        A3,
        "Args(a=3, b=2)",
        AB,
    ),
    "generic in two steps": Case(
        "class Base(Generic[A, B]):\n    def execute(self, one: A, two: B): return f'{one!r} {two!r}'\n"
        "class Middle(Base[B, int], Generic[B]): ...\n@declare\nclass T(Middle[Point]): ...",
        {"one": {"x": 1, "y": 2}, "two": 3},
        "Point(x=1, y=2) 3",
        {"one", "two"},
    ),
    "generic, one variable for two things": Case(
        "class Base(Generic[A]):\n    def execute(self, args: A): return repr(args)\n"
        "class Many(Base[list[A]], Generic[A]): ...\n@declare\nclass T(Many[Point]): ...",
        {"args": [{"x": 1, "y": 2}]},
        "[Point(x=1, y=2)]",
        {"args"},
    ),
    "generic left open": Case(
        "class Base(Generic[A]):\n    def execute(self, args: A): return repr(args)\n"
        "@declare\nclass T(Base[list[A]], Generic[A]): ...",
        {"args": [1, "x"]},
        "[1, 'x']",
        {"args"},
    ),
    "generic inside": Case(
        "class Base(Generic[A]):\n    def execute(self, many: list[A], one: Optional[A] = None): return repr(many[0])\n"
        "@declare\nclass T(Base[Point]): ...",
        {"many": [{"x": 1, "y": 2}]},
        "Point(x=1, y=2)",
        {"many", "one"},
    ),
    "generic marked": Case(
        "class Base(Generic[A]):\n    def execute(self, args: Annotated[A, Input]): return repr(args)\n"
        "@declare\nclass T(Base[Args]): ...",
        A3,
        "Args(a=3, b=2)",
        AB,
    ),
    "generic model": Case(
        "class Page(BaseModel, Generic[A]):\n    items: list[A]\n"
        "@declare\nclass T:\n    def execute(self, page: Page[Point]): return repr(page.items)",
        {"items": [{"x": 1, "y": 2}]},
        "[Point(x=1, y=2)]",
        {"items"},
    ),
    "decorated with wraps": Case(
        "def loud(fn):\n    @functools.wraps(fn)\n    def inner(*args, **kwargs): return f'<{fn(*args, **kwargs)}>'\n"
        "    return inner\n@declare\nclass T:\n    @loud\n    def execute(self, a: int, b: int = 2): return f'{a}:{b}'",
        A3,
        "<3:2>",
        AB,
    ),
    "decorated with wraps, async": Case(
        "def loud(fn):\n    @functools.wraps(fn)\n    async def inner(*args, **kwargs):\n"
        "        return f'<{await fn(*args, **kwargs)}>'\n    return inner\n"
        "@declare\nclass T:\n    @loud\n    async def execute(self, args: Args, ctx: Context): return f'{args.a}'",
        A3,
        "<3>",
        AB,
    ),
    "a sync decorator on an async execute": Case(
        "def same(fn):\n    @functools.wraps(fn)\n    def inner(*args, **kwargs): return fn(*args, **kwargs)\n"
        "    return inner\n@declare\nclass T:\n    @same\n    async def execute(self, a: int): return a",
        A3,
        "3",
        {"a"},
    ),
    "decorator with a signature of its own": Case(
        "def extra(fn):\n    def inner(self, a: int, ctx: Context): return fn(self, a, 7)\n    return inner\n"
        "@declare\nclass T:\n    @extra\n    def execute(self, a: int, secret: int): return a + secret",
        A3,
        "10",
        {"a"},
    ),
    "static": Case(
        "@declare\nclass T:\n    @staticmethod\n    def execute(a: int, b: int = 2): return f'{a}:{b}'", A3, "3:2", AB
    ),
    "of the class": Case(
        "@declare\nclass T:\n    @classmethod\n    def execute(cls, a: int, b: int = 2): return f'{cls.__name__}:{a}:{b}'",
        A3,
        "T:3:2",
        AB,
    ),
    "partial method": Case(
        "@declare\nclass T:\n    def both(self, a: int, b: int): return f'{a}:{b}'\n"
        "    execute = functools.partialmethod(both, b=5)",
        {"a": 3},
        "3:5",
        {"a"},
    ),
    "in a function": Case(
        "def make():\n    class Local(BaseModel):\n        a: int\n    @declare\n    class T:\n"
        "        def execute(self, args: Local): return repr(args)\n    return T\nT = make()",
        A3,
        "Local(a=3)",
        {"a"},
    ),
    "in a function, inside another type": Case(
        "def make():\n    @dataclass\n    class Local:\n        a: int\n    @declare\n    class T:\n"
        "        def execute(self, many: list[Local], one: Optional[Local] = None): return repr(many)\n"
        "    return T\nT = make()",
        {"many": [{"a": 1}]},
        "[make.<locals>.Local(a=1)]",
        {"many", "one"},
    ),
    "function in a function": Case(
        "def make():\n    class Local(BaseModel):\n        a: int\n    @tool\n    def t(args: Local):\n"
        "        'd'\n        return repr(args)\n    return t\nT = make()",
        A3,
        "Local(a=3)",
        {"a"},
    ),
    "inherited in a function": Case(
        "def make():\n    class Local(BaseModel):\n        a: int\n    class Base:\n"
        "        def execute(self, args: Local): return repr(args)\n    @declare\n    class T(Base): ...\n"
        "    return T\nT = make()",
        A3,
        "Local(a=3)",
        {"a"},
    ),
    "decorated with a stored decorator in a function": Case(
        "def make():\n    class Local(BaseModel):\n        a: int\n    @reused\n    class T:\n"
        "        def execute(self, args: Local): return repr(args)\n    return T\nT = make()",
        A3,
        "Local(a=3)",
        {"a"},
    ),
    "decorated in a function": Case(
        "def make():\n    class Local(BaseModel):\n        a: int\n    def same(fn):\n        @functools.wraps(fn)\n"
        "        def inner(*args, **kwargs): return fn(*args, **kwargs)\n        return inner\n    @declare\n    class T:\n"
        "        @same\n        def execute(self, args: Local): return repr(args)\n    return T\nT = make()",
        A3,
        "Local(a=3)",
        {"a"},
    ),
    "static in a function": Case(
        "def make():\n    class Local(BaseModel):\n        a: int\n    @declare\n    class T:\n        @staticmethod\n"
        "        def execute(args: Local): return repr(args)\n    return T\nT = make()",
        A3,
        "Local(a=3)",
        {"a"},
    ),
    "shadowed in a function": Case(
        "def make():\n    class Args(BaseModel):\n        own: int\n    @declare\n    class T:\n"
        "        def execute(self, args: Args): return repr(args)\n    return T\nT = make()",
        {"own": 1},
        "Args(own=1)",
        {"own"},
    ),
    "a method beside it named like a type": Case(
        "@declare\nclass T:\n    def execute(self, a: int, more: list[int]): return sum(more, a)\n"
        "    def list(self): return []",
        {"a": 1, "more": [2]},
        "3",
        {"a", "more"},
    ),
    "schema and an unnamed object": Case(
        "@with_schema\nclass T:\n    def execute(self, args): return repr(args)", A3, "Args(a=3, b=2)", AB
    ),
    "schema and fields": Case(
        "@with_schema\nclass T:\n    def execute(self, b: int, a: int): return f'{a}:{b}'", A3, "3:2", AB
    ),
    "schema and one field": Case("@with_schema\nclass T:\n    def execute(self, a: int): return a", A3, "3", AB),
    "schema and an ancestor": Case(
        "class More(Args):\n    c: int = 1\n@tool(name='t', description='d', schema=More)\n"
        "class T:\n    def execute(self, args: Args): return repr(args)",
        A3,
        "More(a=3, b=2, c=1)",
        {"a", "b", "c"},
    ),
    "schema and field by keyword": Case(
        "@with_schema\nclass T:\n    def execute(self, *, a: int, ctx: Context): return a", A3, "3", AB
    ),
    "schema and a decorator without wraps": Case(
        "def loud(fn):\n    def inner(*args, **kwargs): return f'<{fn(*args, **kwargs)}>'\n    return inner\n"
        "@with_schema\nclass T:\n    @loud\n    def execute(self, args: Args): return repr(args)",
        A3,
        "<Args(a=3, b=2)>",
        AB,
    ),
}


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A module name of the test's own, forgotten afterwards."""
    made = f"authored_{abs(hash(request.node.nodeid))}"
    yield made
    sys.modules.pop(made, None)


futures = pytest.mark.parametrize("future", [True, False], ids=["strings", "objects"])


def inside(body: str) -> str:
    """Put an `execute` into a class."""
    return f"@declare\nclass T:\n    {body}\n"


def authored(source: str, name: str, *, future: bool) -> Any:
    """Make the module that an author would have written around `source`, and return its tool `T`."""
    for short, decorator in DECORATORS.items():
        source = source.replace(short, decorator)
    return module_from(HEAD + source, name, future=future).T


@pytest.mark.behaviour("I09")
@futures
@pytest.mark.parametrize("case", WORKING.values(), ids=WORKING)
async def test_parameters(case: Case, future: bool, name: str) -> None:
    """Each kind of parameter is filled, and only input reaches the schema."""
    tool = authored(inside(case.source), name, future=future)
    assert set((await schema_of(tool))["properties"]) == case.fields
    said = await answer(tool, case.arguments)
    assert (said.content, said.is_error) == (case.says, False)


@pytest.mark.behaviour("I09")
@futures
@pytest.mark.parametrize("case", STANDING.values(), ids=STANDING)
async def test_where_execute_comes_from(case: Case, future: bool, name: str) -> None:
    """`execute` may be inherited, generic, decorated, static, or defined in a function."""
    tool = authored(case.source, name, future=future)
    assert set((await schema_of(tool))["properties"]) == case.fields
    said = await answer(tool, case.arguments)
    assert (said.content, said.is_error) == (case.says, False)


REFUSED: dict[str, tuple[str, list[str]]] = {
    "input only for checkers": (
        inside("def execute(self, amount: 'Decimal'): return amount"),
        ["T.execute", "`amount`", "`Decimal`", "TYPE_CHECKING"],
    ),
    "input only for checkers, inside": (
        inside("def execute(self, amounts: 'list[Decimal]'): return amounts"),
        ["T.execute", "`amounts`", "`Decimal`", "TYPE_CHECKING"],
    ),
    "input only for checkers, optional": (
        inside("def execute(self, amount: 'Optional[Decimal]' = None): return amount"),
        ["T.execute", "`amount`", "`Decimal`", "TYPE_CHECKING"],
    ),
    "input only for checkers, union": (
        inside("def execute(self, amount: 'Decimal | None' = None): return amount"),
        ["T.execute", "`amount`", "`Decimal`", "TYPE_CHECKING"],
    ),
    "input only for checkers, marked": (
        inside("def execute(self, amount: 'Annotated[Decimal, Input]'): return amount"),
        ["T.execute", "`amount`", "`Decimal`", "TYPE_CHECKING"],
    ),
    "misspelt": (inside("def execute(self, amount: 'Decimall'): return amount"), ["T.execute", "`amount`", "Decimall"]),
    "not a type": (inside("def execute(self, amount: 'in t'): return amount"), ["T.execute", "`amount`", "in t"]),
    "an instance as a type": (inside("def execute(self, amount: 'Path(\"x\")'): return amount"), ['"t"']),
    "no schema for it": (inside("def execute(self, hook: type(len)): return hook"), ['"t"']),
    "marker on *args": (
        inside("def execute(self, a: int, *args: Annotated[int, Input]): return 1"),
        ["T.execute", "`*args`"],
    ),
    "marker on **kwargs": (
        inside("def execute(self, a: int, **more: Annotated[int, Input]): return 1"),
        ["T.execute", "`**more`"],
    ),
    "only *args and **kwargs": (
        inside("def execute(self, *args, **kwargs): return 1"),
        ["T.execute", "*args/**kwargs"],
    ),
    "a decorator without wraps": (
        (
            "def loud(fn):\n    def inner(*args, **kwargs): return fn(*args, **kwargs)\n    return inner\n"
            "@declare\nclass T:\n    @loud\n    def execute(self, a: int): return a"
        ),
        ["T.execute", "functools.wraps"],
    ),
    "a parameter that is no field": (
        "@with_schema\nclass T:\n    def execute(self, q: int): return q",
        ["T.execute", "`q`", "Args", "a, b"],
    ),
    "no self": (inside("def execute(): return 1"), ["T.execute", "self"]),
    "a property": (inside("@property\n    def execute(self): return lambda a: a"), ['"T"', "execute"]),
}


@pytest.mark.behaviour("I09")
@futures
@pytest.mark.parametrize(("source", "words"), REFUSED.values(), ids=REFUSED)
async def test_refused_at_build(source: str, words: list[str], future: bool, name: str) -> None:
    """What cannot work is one build error that names the callable, the parameter and the cause."""
    [problem] = await problems(authored(source, name, future=future))
    assert [word for word in words if word not in problem] == []
    assert problem.startswith("[thena] ")


@pytest.mark.behaviour("I09")
async def test_names_of_the_base_classes_module(name: str) -> None:
    """String annotations of an inherited `execute` are read where they were written, not where it is inherited."""
    base = module_from(HEAD + "class Base:\n    def execute(self, args: Args): return repr(args)", name, future=True)
    child = module_from(
        f"from {name} import Base, reused\nclass Args: ...\n@reused\nclass T(Base): ...", f"{name}_child", future=True
    )
    assert (await answer(child.T, {"a": 1})).content == repr(base.Args(a=1))
    del sys.modules[f"{name}_child"]


@pytest.mark.behaviour("I09")
async def test_one_bad_annotation_does_not_spoil_the_others(name: str) -> None:
    """Each annotation is evaluated on its own: a bad one leaves the roles of the rest as they are (B02, woltapp/magic-di#5)."""
    source = inside("def execute(self, a: Missing, ctx: Context, b: Gone): return 1")
    found = read_signature(bound(authored(source, name, future=True), "execute"), where="T.execute")
    assert [(parameter.name, parameter.role) for parameter in found.parameters] == [
        ("a", "input"),
        ("ctx", "context"),
        ("b", "input"),
    ]


@pytest.mark.behaviour("I09")
async def test_two_bad_parameters_are_both_named(name: str) -> None:
    """Several unresolvable inputs are reported together."""
    found = "\n".join(
        await problems(authored(inside("def execute(self, a: Missing, b: Gone): return 1"), name, future=True))
    )
    assert "`Missing`" in found
    assert "`Gone`" in found


@pytest.mark.behaviour("I09")
async def test_unresolved_names_never_reach_a_call(name: str) -> None:
    """An injected parameter of a type that only checkers know works by its marker (B02, pydantic/pydantic#10862)."""
    source = inside("def execute(self, q: str, s: Annotated[Session, State]): return q")
    async with Thena(tools=[authored(source, name, future=True)]) as app:
        assert (await app.call("t", {"q": "asked"}, state=object())).content == "asked"


@pytest.mark.behaviour("I09")
def test_a_class_in_a_function_keeps_nothing_it_does_not_name(name: str) -> None:
    """Only the local names that annotations mention are kept, so that nothing else stays alive."""
    source = (
        "def make():\n    big = object()\n    class Local(BaseModel):\n        a: int\n    @declare\n    class T:\n"
        "        def execute(self, args: Local): return 1\n    return T\nT = make()"
    )
    kept = authored(source, name, future=True).__thena_tool__.local_names
    assert set(kept) == {"Local"}


@pytest.mark.behaviour("I09")
def test_a_class_of_a_module_keeps_no_local_names(name: str) -> None:
    """At the top of a module there is nothing to keep."""
    tool = authored(inside("def execute(self, args: Args): return 1"), name, future=True)
    assert dict(tool.__thena_tool__.local_names) == {}


@pytest.mark.behaviour("I09")
async def test_class_in_a_function_of_a_function(name: str) -> None:
    """A name of an outer function that the inner one does not hold is a build error, not a wrong schema."""
    source = (
        "def outer():\n    class Far(BaseModel):\n        a: int\n    def inner():\n        @declare\n        class T:\n"
        "            def execute(self, args: Far): return 1\n        return T\n    return inner()\nT = outer()"
    )
    [problem] = await problems(authored(source, name, future=True))
    assert "`Far`" in problem


@pytest.mark.parametrize("future", [True, False], ids=["strings", "objects"])
@pytest.mark.behaviour("I09")
async def test_case_b01(future: bool, name: str) -> None:
    """B01: string annotations keep typed input and injected context (crewAIInc/crewAI#7623, Giskard-AI/giskard-oss#2687)."""
    source = inside(
        "def execute(self, start: Annotated[Point, Input], way: Annotated[Literal['up', 'down'], Input] = 'up',\n"
        "                out: Annotated[Optional[Path], Input] = None, ctx: Annotated[Context, Context] = None) -> str:\n"
        "        return f'{type(start).__name__} {start.x} {start.y} {way} {type(ctx).__name__}'"
    )
    tool = authored(source, name, future=future)
    schema = await schema_of(tool)
    assert set(schema["properties"]) == {"start", "way", "out"}
    assert schema["required"] == ["start"]
    assert (await answer(tool, {"start": {"x": 4, "y": 5}})).content == "Point 4 5 up Context"


@pytest.mark.behaviour("I09")
@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        ("def execute(self, a: int, /, b: int = 2): return a * b", {"a": 5, "b": 3}, "15"),
        ("def execute(self, a: int, *args: int, **kwargs: str): return a", {"a": 5}, "5"),
    ],
    ids=["slash", "stars"],
)
async def test_case_b11(function: str, arguments: dict[str, Any], says: str, name: str) -> None:
    """B11: `/`, `*args` and `**kwargs` never turn the schema into an array or into phantom fields (anthropics/anthropic-sdk-python#1911, langchain-ai/langchain#39011)."""
    tool = authored(inside(function), name, future=True)
    schema = await schema_of(tool)
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert set(schema["properties"]) <= {"a", "b"}
    assert (await answer(tool, arguments)).content == says
    assert (await answer(tool, {**arguments, "kwargs": "x"})).is_error
