"""What `execute` asks for, and what it gets."""

from __future__ import annotations

import asyncio
import itertools
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tests.schema.trial import answer, problems, schema_of
from thena_core import Context, Input, Prompt, State, Thena, Toolbox, ToolDefinition, Tools, agent, tool, workflow
from thena_core.messages import ToolRequest
from thena_core.testing import FakeProvider


class Args(BaseModel):
    path: str
    depth: int = 1


class Odd(BaseModel):
    args: str


class Tally:
    def __init__(self) -> None:
        self.seen: list[str] = []


PARTS = {
    "args": "args: Annotated[Args, Input]",
    "ctx": "ctx: Context",
    "state": "state: Annotated[Tally, State]",
    "tools": "toolbox: Annotated[Toolbox, Tools]",
}


@pytest.mark.behaviour("I01")
@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)), ids="-".join)
@pytest.mark.parametrize("keyword", ["", "*, "], ids=["by position", "by keyword"])
async def test_the_order_does_not_matter(order: tuple[str, ...], keyword: str) -> None:
    """Whatever the order of its parameters, each gets what its marker says."""
    source = (
        f"async def execute(self, {keyword}{', '.join(PARTS[part] for part in order)}):\n"
        "    state.seen.append(args.path)\n"
        "    return f'{type(args).__name__} {ctx.data} {type(state).__name__} {[d.name for d in toolbox]}'\n"
    )
    scope = dict(globals())
    exec(source, scope)  # noqa: S102 - our own text
    made = tool(name="t", description="d", schema=Args)(type("T", (), {"execute": scope["execute"]}))
    provider = FakeProvider([ToolRequest("c1", "t", '{"path": "p"}'), "done"])

    @agent(provider=provider, tools=[made, ToolDefinition("other", "d", None, lambda: "")], prompt=Prompt(""))
    class Caller: ...

    @workflow(steps=[Caller], state=Tally)
    class Flow: ...

    async with Thena(Flow) as app:
        result = await app.run("go", data="tenant")
    assert result.history[2].content == "Args tenant Tally ['other']"


@pytest.mark.behaviour("I01")
@pytest.mark.parametrize(
    "annotation",
    [
        Context,
        Context[Any],
        Annotated[Context, Context],
        Annotated[Any, Context],
        Annotated[Context[str], "note"],
        Context | None,
    ],
    ids=["bare", "generic", "marked", "marked Any", "with another mark", "optional"],
)
async def test_every_way_to_ask_for_the_context(annotation: Any) -> None:
    """`ctx: Context`, `Context[Tenant]` and `Annotated[…, Context]` mean the same, and none is input."""

    def execute(n: int, ctx: Any) -> str:
        return f"{n} {type(ctx).__name__} {ctx.data}"

    execute.__annotations__["ctx"] = annotation
    made = ToolDefinition("t", "d", None, execute)
    assert set((await schema_of(made))["properties"]) == {"n"}
    async with Thena(tools=[made]) as app:
        assert (await app.call("t", {"n": 1}, data="d")).content == "1 Context d"


@pytest.mark.behaviour("I01")
async def test_the_context_is_the_runs_own() -> None:
    """All calls of a run get one context, another run another."""
    seen: list[Any] = []

    def execute(ctx: Context) -> str:
        seen.append(ctx)
        return ""

    provider = FakeProvider([ToolRequest("1", "t", "{}"), ToolRequest("2", "t", "{}"), "done"])

    @agent(provider=provider, tools=[ToolDefinition("t", "d", None, execute)], prompt=Prompt(""))
    class Caller: ...

    async with Thena(Caller) as app:
        first = await app.run("go")
        await app.call("t")
    assert seen[0] is seen[1]
    assert seen[0] is not seen[2]
    assert seen[0].run_id == first.run_id


@pytest.mark.behaviour("I02")
async def test_without_markers_the_object() -> None:
    """One parameter, no marker: the whole validated object, and nothing else."""
    got: list[tuple[Any, ...]] = []

    @tool(name="t", description="d", schema=Args)
    class T:
        async def execute(self, *received: Any, **more: Any) -> str:
            raise AssertionError("replaced below")

    async def execute(self: Any, anything) -> str:
        got.append((anything,))
        return "ran"

    T.execute = execute  # type: ignore[method-assign]
    assert (await answer(T, {"path": "p"})).content == "ran"
    assert got == [(Args(path="p"),)]


@pytest.mark.behaviour("I02")
@pytest.mark.parametrize("given", [True, False], ids=["schema given", "derived"])
async def test_without_markers_the_fields_by_name(given: bool) -> None:
    """Parameters named like the fields get them, validated, in whatever order they stand."""
    got: list[Any] = []

    async def execute(depth: int, path: str) -> str:
        got.append((path, depth))
        return "ran"

    made = ToolDefinition("t", "d", Args if given else None, execute)
    assert (await answer(made, {"path": "p", "depth": "3"})).content == "ran"
    assert got == [("p", 3)]


@pytest.mark.behaviour("I02")
async def test_a_field_may_be_called_like_anything_of_ours() -> None:
    """Names do not inject: `ctx`, `state` and `toolbox` without a marker or type are input."""

    def execute(ctx: str, state: int, toolbox: list[str], self_: str = "s") -> str:
        return f"{ctx} {state} {toolbox} {self_}"

    made = ToolDefinition("t", "d", None, execute)
    assert set((await schema_of(made))["properties"]) == {"ctx", "state", "toolbox", "self_"}
    assert (await answer(made, {"ctx": "c", "state": 1, "toolbox": ["x"]})).content == "c 1 ['x'] s"


@pytest.mark.behaviour("I02")
async def test_defaults_of_the_schema_and_not_of_the_parameter() -> None:
    """A field that the model left out has the schema's default, which is what the model was told."""

    def execute(path: str, depth: int = 99) -> str:
        return f"{path} {depth}"

    assert (await answer(ToolDefinition("t", "d", Args, execute), {"path": "p"})).content == "p 1"


@pytest.mark.behaviour("I05")
async def test_no_injected_parameter_is_in_the_schema() -> None:
    """Nothing that the framework fills in is shown to the model, whatever way it is written."""

    @tool(name="t", description="d")
    class T:
        def execute(
            self,
            path: str,
            ctx: Context,
            marked: Annotated[Context, Context],
            toolbox: Toolbox,
            others: Annotated[Toolbox, Tools],
            state: Annotated[Tally, State],
        ) -> str:
            """Do it.

            Args:
                path: Where.
                ctx: The hidden run.
                marked: The hidden run.
                toolbox: The hidden tools.
                others: The hidden tools.
                state: The hidden state.
            """
            return ""

    provider = FakeProvider(["done"])

    @agent(provider=provider, tools=[T], prompt=Prompt(""))
    class Caller: ...

    @workflow(steps=[Caller], state=Tally)
    class Flow: ...

    async with Thena(Flow) as app:
        await app.run("go")
    schema = provider.requests[0].tools[0].json_schema
    assert set(schema["properties"]) == {"path"}
    assert schema["required"] == ["path"]
    assert "hidden" not in str(schema)


@pytest.mark.behaviour("I05")
@pytest.mark.parametrize("as_text", [True, False], ids=["text", "mapping"])
@pytest.mark.parametrize("schema", [None, Args], ids=["derived", "schema given"])
@pytest.mark.parametrize("name", ["ctx", "toolbox"])
async def test_a_value_for_an_injected_parameter_is_refused(name: str, schema: Any, as_text: bool) -> None:
    """Who sends one is told that the argument is unknown, and the tool does not run."""
    ran: list[Any] = []

    def execute(path: str, ctx: Context, toolbox: Toolbox) -> str:
        ran.append(ctx)
        return ""

    arguments: Any = {"path": "p", name: {"run_id": "x"}}
    if as_text:
        arguments = f'{{"path": "p", "{name}": {{"run_id": "x"}}}}'
    said = await answer(ToolDefinition("t", "d", schema, execute), arguments)
    assert said.content.startswith(f"invalid arguments — {name}: unknown argument (accepted: path")
    assert ran == []


class Counting:
    """A class whose constructions are counted."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1


@pytest.mark.behaviour("T13")
async def test_a_tool_class_is_inspected_and_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signature is read at build, once; no call reads it again, and none makes another instance."""
    import inspect

    read: list[Any] = []
    original = inspect.signature

    def counting(function: Any, **options: Any) -> Any:
        read.append(getattr(function, "__qualname__", function))
        return original(function, **options)

    @tool(name="t", description="d")
    class T(Counting):
        def execute(self, n: int, ctx: Context) -> str:
            return f"{n} {id(self)}"

    monkeypatch.setattr(inspect, "signature", counting)
    async with Thena(tools=[T]) as app:
        app.explain("t", show=False)
        assert [name for name in read if "execute" in str(name)] == [T.execute.__qualname__]
        read.clear()
        said = {(await app.call("t", {"n": 1})).content for _ in range(5)}
        assert (await app.call("t", {"n": "x"})).is_error
        assert read == []
    assert len(said) == 1
    assert T.made == 1


@pytest.mark.behaviour("T13")
async def test_nothing_of_typing_is_asked_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the build, calls work although every tool of inspection is broken."""
    import inspect
    import typing

    import pydantic

    @tool(name="t", description="d")
    class T:
        def execute(self, n: Annotated[int, Field(ge=1)], args: list[Args], ctx: Context) -> str:
            return f"{n} {args[0].path}"

    def broken(*args: Any, **options: Any) -> Any:
        raise AssertionError("inspected in a call")

    async with Thena(tools=[T]) as app:
        app.explain("t", show=False)
        for owner, name in (
            (inspect, "signature"),
            (inspect, "getmembers"),
            (typing, "get_type_hints"),
            (typing, "get_args"),
            (pydantic.TypeAdapter, "__init__"),
        ):
            monkeypatch.setattr(owner, name, broken)
        assert (await app.call("t", {"n": 1, "args": [{"path": "p"}]})).content == "1 p"
        assert (await app.call("t", {"n": 0})).content.startswith("invalid arguments — ")


@pytest.mark.behaviour("T11")
async def test_timeout_is_per_tool() -> None:
    """A tool's own `timeout` ends its call and no other's; the observation says it."""
    cancelled: list[bool] = []

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return ""

    async def patient() -> str:
        await asyncio.sleep(0.05)
        return "done"

    tools = [
        ToolDefinition("slow", "d", None, slow, timeout=0.01),
        ToolDefinition("patient", "d", None, patient),
        ToolDefinition("quick", "d", None, patient, timeout=30),
    ]
    seen: list[Any] = []
    async with Thena(tools=tools, log=seen.append) as app:
        said = await app.call("slow")
        assert (said.content, said.is_error) == ("slow timed out after 0.01 s", True)
        assert (await app.call("patient")).content == "done"
        assert (await app.call("quick")).content == "done"
    assert cancelled == [True]
    assert [event.outcome for event in seen if event.phase == "end"] == ["timeout", "ok", "ok"]


@pytest.mark.behaviour("T11")
async def test_a_timeout_of_the_tools_own_is_an_error_and_no_timeout() -> None:
    """A `TimeoutError` that the tool raised itself keeps its words and its outcome."""

    async def execute() -> str:
        raise TimeoutError("the printer")

    seen: list[Any] = []
    async with Thena(tools=[ToolDefinition("t", "d", None, execute, timeout=30)], log=seen.append) as app:
        assert (await app.call("t")).content == "TimeoutError: the printer"
    assert seen[-1].outcome == "error"


@pytest.mark.behaviour("I02")
async def test_a_parameter_that_nothing_fills() -> None:
    """A parameter that is neither field nor object is a build error naming the nearest field."""

    def execute(pathe: str) -> str:
        return ""

    [problem] = await problems(ToolDefinition("t", "d", Args, execute))
    assert "`str` is neither the schema Args nor one of its fields (path, depth)." in problem
    assert 'Did you mean "path"?' in problem


@pytest.mark.behaviour("I01")
async def test_input_marks_the_object_of_a_given_schema() -> None:
    """`Annotated[Args, Input]` is the validated object, also where a field has the parameter's name."""

    def execute(args: Annotated[Odd, Input]) -> str:
        return f"{type(args).__name__} {args.args}"

    assert (await answer(ToolDefinition("t", "d", Odd, execute), {"args": "x"})).content == "Odd x"
