"""The page of checks lists every check that is made when an app is built, with the exact text that it gives."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import Distribution, EntryPoint, EntryPoints
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import pytest
from dependency_injector.wiring import Provide
from typing_extensions import TypedDict

from tests import provoked as p
from tests import wrong_parts as w
from tests.test_errors_page import MISTAKES, said_of, texts
from thena_core import Inject, State, Thena, ThenaError, hookimpl, loop, tool

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "checks.md"

GROUPS = {
    "Tools": {"ToolDefinitionError"},
    "Signatures": {"SignatureError"},
    "Agents": {"AgentDefinitionError"},
    "Workflows": {"WorkflowDefinitionError"},
    "Services": {
        "DependencyError",
        "MissingDependencyError",
        "AmbiguousDependencyError",
        "CircularDependencyError",
        "ScopeError",
    },
    "Plugins": {"PluginLoadError"},
}

LATER = {"a handle outside", "an override of nothing", "an undecorated agent"}
"""Mistakes on the page of errors that are made when an app is used, not when it is built."""

ELSEWHERE = {
    ("thena_core/agents.py", "AgentDefinitionError"): "a class that is no agent is named in app.call",
    ("thena_core/di/scopes.py", "ScopeError"): "a handle is called later",
    ("thena_core/di/keeper.py", "ScopeError"): "a handle is called later",
    ("thena_core/di/keeper.py", "CircularDependencyError"): "a service is opened in a run",
    ("thena_core/testing/override.py", "MissingDependencyError"): "a test overrides a service",
    ("thena_core/hooks/manager.py", "PluginLoadError"): "pluggy refuses what `mistakes` let pass: nothing known",
}
"""Places in the source that speak of something else than a check of the build, or of nothing that can be provoked."""


class Installed(Distribution):
    """A package that is installed, as far as entry points can tell."""

    def __init__(self, name: str, requires: str = "") -> None:
        self._metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}"

    def read_text(self, filename: str) -> str | None:
        return self._metadata if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


def packages(*entries: tuple[EntryPoint, Installed], build: dict[str, Any]) -> p.Provoke:
    """Build an app on a machine where these packages, and no others, bring tools and plugins."""
    found = [EntryPoint(entry.name, entry.value, entry.group)._for(package) for entry, package in entries]

    async def provoke() -> None:
        with mock.patch("importlib.metadata.entry_points", EntryPoints(found).select):
            await p.built(lambda: Thena(**build))()

    return provoke


def plugin(**hooks: Any) -> p.Provoke:
    """Build an app with a tool, an agent, and a plugin that has these hooks."""
    members = {name: hookimpl(function) for name, function in hooks.items()}
    made = type("Audit", (), members)()
    return p.built(lambda: Thena(p.agent_of(), tools=[p.read_file], plugins=[made]))


class Half(TypedDict, total=False):
    """Arguments that may be left out."""

    path: str


async def no_self() -> str:
    return ""


async def names_a_provider(self: Any, clock: Annotated[w.Clock, Provide[w.OneClock.clock]]) -> str:
    return ""


async def asks_all(self: Any, clock: Annotated[w.Clock, State, Inject]) -> str:
    return ""


def failing(*_: Any) -> Any:
    raise OSError("disk full")


def with_schema_for(schema_for: Any) -> type:
    """Make a tool with this `schema_for`."""
    made = p.execute_on(w.takes_path)
    made.schema_for = schema_for  # type: ignore[attr-defined]
    return made


AUDIT = EntryPoint("audit", "tests.wrong_parts:Audit", "thena.plugins")
SEARCH = EntryPoint("search", "tests.wrong_parts:Search", "thena.tools")

MORE: dict[str, tuple[str, p.Provoke]] = {
    "no schema can be made": ("Tools", p.in_tools(p.execute_on(w.takes_unmarked_clock))),
    "no JSON schema": ("Tools", p.in_tools(p.execute_on(w.takes_function))),
    "a schema of a list": ("Tools", p.in_tools(p.execute_on(w.takes_path, schema={"type": "array"}))),
    "not a JSON Schema": (
        "Tools",
        p.in_tools(p.execute_on(w.takes_path, schema={"type": "object", "properties": 3})),
    ),
    "two packages bring a tool": (
        "Tools",
        packages((SEARCH, Installed("one")), (SEARCH, Installed("two")), build={"tools": ["search"]}),
    ),
    "an alias that is taken": (
        "Tools",
        p.built(
            lambda: Thena(
                tools=[
                    p.execute_on(w.takes_path),
                    tool(name="find", description="Finds.", aliases=["search"])(
                        type("FindTool", (), {"__module__": p.MODULE, "execute": w.takes_path})
                    ),
                ]
            )
        ),
    ),
    "schema_for raises": ("Tools", p.in_tools(with_schema_for(failing))),
    "schema_for gives something else": ("Tools", p.in_tools(with_schema_for(lambda self, tools: 7))),
    "an ending without parameters": ("Workflows", p.flow_of(loop([p.agent_of()], on_fail=lambda: None))),
    "a limit of nothing": ("Workflows", p.flow_of(loop([p.agent_of()], max_iterations=0))),
    "no self": ("Signatures", p.in_tools(p.execute_on(no_self))),
    "a field without a default": ("Signatures", p.in_tools(p.execute_on(w.takes_path, schema=Half))),
    "a provider for a name": ("Signatures", p.in_tools(p.execute_on(names_a_provider))),
    "a hook without self": ("Signatures", p.built(lambda: Thena(p.agent_of({"before_tool": lambda: None})))),
    "a generator for a hook": (
        "Signatures",
        p.built(lambda: Thena(p.agent_of({"before_tool": lambda self, call: (yield)}))),
    ),
    "a constructor's annotation": (
        "Services",
        p.in_tools(p.execute_on(w.takes_path, init=w.init_for_checkers)),
    ),
    "a constructor's markers": ("Services", p.in_tools(p.execute_on(w.takes_path, init=asks_all))),
    "two packages bring a plugin": (
        "Plugins",
        packages((AUDIT, Installed("one")), (AUDIT, Installed("two")), build={"plugins": ["audit"]}),
    ),
    "another version": (
        "Plugins",
        packages((AUDIT, Installed("thena-audit", "Requires-Dist: thena-core>=99\n")), build={"plugins": ["audit"]}),
    ),
    "an unreadable requirement": (
        "Plugins",
        packages((AUDIT, Installed("thena-audit", "Requires-Dist: thena-core>>1\n")), build={"plugins": ["audit"]}),
    ),
    "named twice": ("Plugins", p.built(lambda: Thena(plugins=[w.AUDIT, w.AUDIT]))),
    "an unknown hook": ("Plugins", plugin(before_tol=lambda self: None)),
    "an unknown parameter": ("Plugins", plugin(before_tool=lambda self, cal: None)),
    "a wrapper": ("Plugins", p.built(lambda: Thena(plugins=[w.WRAPPING]))),
    "a generator": ("Plugins", plugin(before_tool=lambda self, call: (yield))),
    "nobody awaits it": ("Plugins", plugin(on_event=w.on_event_async)),
    "an unmarked hook": ("Plugins", p.built(lambda: Thena(plugins=[w.UNMARKED]))),
    "services fail": ("Plugins", plugin(services=failing)),
    "services give something else": ("Plugins", plugin(services=lambda self: 7)),
    "tool_middleware fails": ("Plugins", plugin(tool_middleware=failing)),
    "tool_middleware gives something else": ("Plugins", plugin(tool_middleware=lambda self, tool: 7)),
}


def checks() -> dict[str, tuple[str, p.Provoke]]:
    """Return every check: a name, its group on the page, and what provokes it."""
    group_of = {cls: group for group, classes in GROUPS.items() for cls in classes}
    known = {
        name: (group_of[cls], provoke)
        for name, (cls, provoke) in MISTAKES.items()
        if cls in group_of and name not in LATER
    }
    return known | MORE


def sections() -> dict[str, list[str]]:
    """Return the texts of each group on the page."""
    page = PAGE.read_text(encoding="utf-8")
    return {
        name: texts(body) for name, body in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    }


async def told(provoke: p.Provoke) -> str:
    """Return what a check says; what a library words is cut, for it is that library's."""
    _, text = await said_of(provoke)
    text = re.sub(r"(thena-core )\d+(\.\d+)+", r"\g<1>0.1.0", text)
    first = re.match(r"\[thena\] (No schema can be made|.* have no JSON schema|.* is not a JSON Schema)[^:]*: ", text)
    return f"{first.group().rstrip()} …" if first else text


def test_the_groups() -> None:
    """The page has these groups, in this order."""
    assert list(sections()) == list(GROUPS)


@pytest.mark.behaviour("D03")
@pytest.mark.parametrize("group", GROUPS)
async def test_the_texts_are_exact(group: str) -> None:
    """A group on the page holds what its checks say, word for word, each once, and nothing else."""
    shown = sections()[group]
    said = {await told(provoke) for where, provoke in checks().values() if where == group}
    assert len(shown) == len(set(shown))
    assert set(shown) == said


def test_each_text_is_explained() -> None:
    """Before each text stands what is checked, in bold."""
    before = [block.strip().rpartition("\n\n")[2] for block in PAGE.read_text(encoding="utf-8").split("```text\n")[:-1]]
    assert [line for line in before if not re.fullmatch(r"\*\*.+\.\*\*", line, re.DOTALL)] == []


async def test_no_check_is_left_out() -> None:
    """Each place in the source that tells of such a problem is reached by a check that stands on the page."""
    reached: set[tuple[str, int]] = set()

    def note(self: ThenaError, *args: Any) -> None:
        Exception.__init__(self, *args)
        frame = sys._getframe(1)
        while frame.f_code.co_filename.endswith("errors.py") and frame.f_back is not None:
            frame = frame.f_back
        reached.add((frame.f_code.co_filename, frame.f_lineno))

    with mock.patch.object(ThenaError, "__init__", note, create=True):
        for _, provoke in checks().values():
            await said_of(provoke)
    names = {name for classes in GROUPS.values() for name in classes}
    left_out = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.func.id}"
        for file in sorted((ROOT / "thena_core").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        if not any((str(file), line) in reached for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if (str(file.relative_to(ROOT)), node.func.id) not in ELSEWHERE
    ]
    assert not left_out, "\n".join(left_out)
