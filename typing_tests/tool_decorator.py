"""What type checkers know of `@tool`: a class stays itself, a function keeps its parameters, the rest is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, assert_type

from pydantic import BaseModel

from thena_core import Context, ToolDefinition, ToolOutput, tool


class Args(BaseModel):
    path: str


# A class with `execute` stays its own type, sync or async, static or inherited, whatever it takes and returns.


@tool(name="read_file", description="Reads a file.", schema=Args)
class ReadFile:
    def __init__(self, root: str = ".") -> None:
        self.root = root

    async def execute(self, args: Args) -> str:
        return f"{self.root}/{args.path}"

    def helper(self) -> int:
        return len(self.root)


@tool(name="read_sync", description="Reads a file.")
class ReadSync:
    def execute(self, path: str, *, lines: int = 10) -> ToolOutput:
        return ToolOutput(path[:lines])


@tool(name="static", description="Has no use for itself.")
class Static:
    @staticmethod
    async def execute(path: str) -> str:
        return path


class Base:
    async def execute(self, path: str) -> str:
        return path


@tool(name="inherits", description="Inherits its execute.")
class Inherits(Base):
    pass


class SubclassOfATool(ReadFile):
    async def execute(self, args: Args) -> str:
        return (await super().execute(args)).upper()


assert_type(ReadFile, type[ReadFile])
assert_type(ReadFile("src"), ReadFile)
assert_type(ReadFile().helper(), int)
assert_type(ReadFile().root, str)
assert_type(ReadSync().execute("a", lines=1), ToolOutput)
assert_type(Static(), Static)
assert_type(Inherits(), Inherits)
assert_type(SubclassOfATool().helper(), int)
ReadFile(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ReadFile().missing()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


# A class without `execute` is no tool. (mypy says so at the class, pyright at the decorator.)


@tool(name="runs", description="Says run.")  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedClassDecorator]
class WithoutExecute:  # type: ignore[type-var]
    async def run(self, args: Args) -> str:
        return args.path


@tool(name="holds", description="Has an execute that cannot be called.")  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedClassDecorator]
class ExecuteIsNoMethod:  # type: ignore[type-var]
    execute: str = "read"


# A function, bare or with arguments, is called as it was declared.


@tool
async def read_file(path: str, *, lines: int = 100) -> str:
    """Read a file."""
    return path[:lines]


@tool(name="size", effect="read", timeout=2.5)
def size(path: str, ctx: Context[None]) -> int:
    """Tell a file's size."""
    return len(path) + len(ctx.history)


async def calls_of_functions(ctx: Context[None]) -> None:
    assert_type(await read_file("a"), str)
    assert_type(await read_file("a", lines=3), str)
    assert_type(size("a", ctx), int)
    await read_file(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await read_file()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await read_file("a", 3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await read_file("a", wrong=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    size("a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


as_callable: Callable[[str, Context[None]], int] = size
as_async_callable: Callable[[str], Awaitable[str]] = read_file
wrong_callable: Callable[[int], int] = size  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


# What is neither is refused, and so is an argument that `@tool` does not have.

tool(42)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
tool(ReadFile)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
tool(name="read", descripton="misspelt")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
tool(effect="reads")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
tool(disclose={ValueError: str, KeyError: "no such key"})
tool(disclose={"ValueError": "a name is no class"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]


# A tool without a class.


def cut(args: dict[str, Any]) -> str:
    return str(args)[:10]


assert_type(ToolDefinition("cut", "Cuts.", Args, cut).name, str)
ToolDefinition("cut", "Cuts.", Args, "cut")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolDefinition("cut", "Cuts.", effect="reads")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
