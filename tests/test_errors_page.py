"""The page of errors holds every error class, and the exact text of each mistake that it speaks of."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from dependency_injector import providers

from tests import provoked as p
from tests import wrong_parts as w
from thena_core import Budget, Thena, ThenaError, ToolDefinition, errors, loop, tool

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
CLASSES = {name: cls for name, cls in vars(errors).items() if inspect.isclass(cls) and issubclass(cls, ThenaError)}

RAISED_BY_AUTHORS = {"FatalToolError"}

MISTAKES: dict[str, tuple[str, p.Provoke]] = {
    "use after the build": ("ThenaError", p.use_after_build),
    "run after close": ("ThenaError", p.run_after_close),
    "close inside a run": ("ThenaError", p.close_inside_a_run),
    "a cost without a price": ("ThenaError", p.running(budget=Budget(max_cost_usd=1))),
    "a run that has ended": ("ThenaError", p.context_afterwards),
    "an abort": ("RunAborted", p.aborted),
    "nothing to run": ("ThenaError", lambda: Thena(tools=[p.read_file]).run("go")),
    "run_sync in a loop": ("ThenaError", p.run_sync_in_a_loop),
    "no such tool": ("ThenaError", p.misspelt_tool),
    "no such agent": ("ThenaError", p.misspelt_agent),
    "several agents have the tool": ("ThenaError", p.whose_tool),
    "no run here": ("ThenaError", p.context_outside),
    "no run around": ("ThenaError", p.runtime_outside),
    "too deep": ("NestingError", p.nesting),
    "a fatal tool": ("FatalToolError", lambda: Thena(tools=[p.delete_all]).call("delete_all")),
    "a thrown budget": ("BudgetExceededError", p.running(budget=Budget(max_tool_calls=0, mode="throw"))),
    "a guard raises": ("HookError", p.running({"before_tool": w.raising_hook})),
    "a guard answers wrongly": ("HookError", p.running({"before_tool": w.answering_wrongly})),
    "a guard's arguments do not fit": ("HookError", p.running({"before_tool": w.replacing_hook})),
    "an after_tool answers wrongly": ("HookError", p.running({"after_tool": w.listing_hook})),
    "a middleware raises": ("MiddlewareError", p.running(use=w.raising_middleware)),
    "a middleware goes on twice": ("MiddlewareError", p.running(use=w.twice)),
    "a middleware changes the call": ("MiddlewareError", p.running(use=w.another_call)),
    "a middleware returns text": ("MiddlewareError", p.running(use=w.returning_text)),
    "two markers": ("SignatureError", p.in_tools(p.execute_on(w.takes_model_and_more))),
    "a marker on *args": ("SignatureError", p.in_tools(p.execute_on(w.takes_marked_stars))),
    "a type for checkers only": ("SignatureError", p.in_tools(p.execute_on(w.takes_unknown_type))),
    "no workflow has a state": ("SignatureError", p.flow_of(p.agent_of(tools=[p.execute_on(w.takes_state)]))),
    "another state": (
        "SignatureError",
        p.flow_of(p.agent_of(tools=[p.execute_on(w.takes_state)]), state=w.Clock),
    ),
    "a provided type": ("SignatureError", p.in_tools(p.execute_on(w.takes_unmarked_clock), container=w.OneClock())),
    "no field of the schema": ("SignatureError", p.in_tools(p.execute_on(w.takes_what_is_no_field, schema=w.Args))),
    "nothing to fill in": ("SignatureError", p.in_tools(p.execute_on(w.takes_anything))),
    "a hook's parameter": (
        "SignatureError",
        p.built(lambda: Thena(p.agent_of({"before_tool": lambda self, cal, ctx: None}))),
    ),
    "an undecorated class": ("ToolDefinitionError", p.in_tools(type("ReadFile", (), {}))),
    "an undecorated function": ("ToolDefinitionError", p.in_tools(p.use_after_build)),
    "no execute": ("ToolDefinitionError", p.in_tools(tool(name="a", description="b")(type("MyTool", (), {})))),
    "run for execute": (
        "ToolDefinitionError",
        p.in_tools(tool(name="a", description="b")(type("MyTool", (), {"run": w.takes_path}))),
    ),
    "a refused name": ("ToolDefinitionError", p.in_tools(ToolDefinition("read file", "Reads.", None, w.takes_path))),
    "no description": ("ToolDefinitionError", p.in_tools(ToolDefinition("read_file", "", None, w.takes_path))),
    "a definition without execute": ("ToolDefinitionError", p.in_tools(ToolDefinition("read_file", "Reads."))),
    "two tools of one name": (
        "ToolDefinitionError",
        p.built(lambda: Thena(tools=[p.execute_on(w.takes_path, "First"), p.execute_on(w.takes_path, "Second")])),
    ),
    "an unknown installed tool": ("ToolDefinitionError", p.with_installed(p.in_tools("paralel"))),
    "a broken installed tool": ("ToolDefinitionError", p.with_installed(p.in_tools("broken"))),
    "a schema that is none": ("ToolDefinitionError", p.in_tools(p.execute_on(w.takes_path, schema=int))),
    "a remote reference": (
        "ToolDefinitionError",
        p.in_tools(p.execute_on(w.takes_path, schema={"$ref": "https://example.com/a.json"})),
    ),
    "strict over an open object": ("ToolDefinitionError", p.in_tools(p.execute_on(w.takes_open_object, strict=True))),
    "an undecorated agent": ("AgentDefinitionError", lambda: agent_step(type("Explorer", (), {}))),
    "a missing prompt": ("AgentDefinitionError", p.a_missing_prompt),
    "a misspelt hook": (
        "AgentDefinitionError",
        p.built(lambda: Thena(p.agent_of({"before_tols": lambda self: None}))),
    ),
    "a provider with arguments": ("AgentDefinitionError", p.built(lambda: Thena(p.agent_of(provider=w.NeedsAKey)))),
    "an output of numbers": ("AgentDefinitionError", p.built(lambda: Thena(p.agent_of(output=int)))),
    "an answer that does not fit": ("AgentOutputError", p.an_answer_that_does_not_fit),
    "an undecorated workflow": ("WorkflowDefinitionError", p.built(lambda: Thena(type("ReviewFlow", (), {})))),
    "no steps": ("WorkflowDefinitionError", p.flow_of()),
    "a step that is none": ("WorkflowDefinitionError", p.flow_of(type("Explorer", (), {}))),
    "an until with three parameters": (
        "WorkflowDefinitionError",
        p.flow_of(loop([p.agent_of()], until=lambda ctx, state, more: True)),
    ),
    "a constructor raises": ("DependencyError", p.in_tools(p.execute_on(w.takes_path, init=w.raising_init))),
    "a provider raises": (
        "DependencyError",
        p.serving(w.takes_clock, lambda: w.services(clock=providers.Singleton(w.failing))),
    ),
    "a resource raises": (
        "DependencyError",
        p.serving(w.takes_path, lambda: w.services(clock=providers.Resource(w.failing))),
    ),
    "a deep chain": ("DependencyError", p.serving(w.takes_clock, w.too_deep)),
    "an argument is not given": (
        "MissingDependencyError",
        p.serving(
            w.takes_diary, lambda: w.services(clock=providers.Factory(w.Clock), diary=providers.Singleton(w.Diary))
        ),
    ),
    "a dependency is not given": (
        "MissingDependencyError",
        p.serving(w.takes_clock, lambda: w.services(clock=providers.Dependency(instance_of=w.Clock))),
    ),
    "a provider's type for checkers only": (
        "MissingDependencyError",
        p.serving(w.takes_clock, lambda: w.services(clock=providers.Singleton(w.for_checkers))),
    ),
    "an override of nothing": ("MissingDependencyError", p.override_nothing),
    "a circle": ("CircularDependencyError", p.serving(w.takes_clock, w.a_circle)),
    "a run-scoped service in a constructor": (
        "ScopeError",
        p.serving(w.takes_path, w.a_captive, init=w.init_with_clock),
    ),
    "a captive": ("ScopeError", p.serving(w.takes_diary, w.a_captive)),
    "a handle outside": ("ScopeError", p.handle_outside),
    "a bad close": ("ResourceCloseError", p.bad_close),
    "nothing provides it": ("MissingDependencyError", p.in_tools(p.execute_on(w.takes_clock))),
    "no provider of that name": (
        "MissingDependencyError",
        p.in_tools(p.execute_on(w.takes_named), container=w.OneClock()),
    ),
    "a built-in type": ("MissingDependencyError", p.in_tools(p.execute_on(w.takes_path, init=w.init_with_text))),
    "two provide it": ("AmbiguousDependencyError", p.in_tools(p.execute_on(w.takes_clock), container=w.TwoClocks())),
    "a run in a constructor": ("ScopeError", p.in_tools(p.execute_on(w.takes_path, init=w.init_with_context))),
    "no such plugin": ("PluginLoadError", p.with_installed(p.built(lambda: Thena(plugins=["adit"])))),
    "a broken plugin": ("PluginLoadError", p.with_installed(p.built(lambda: Thena(plugins=["audit"])))),
    "a plugin class": ("PluginLoadError", p.built(lambda: Thena(plugins=[type("Audit", (), {})]))),
    "a plugin without hooks": ("PluginLoadError", p.built(lambda: Thena(plugins=[type("Audit", (), {})()]))),
    "no key": ("ProviderError", p.without_a_key),
    "a wrong key": ("ProviderError", p.with_a_wrong_key),
    "no such model": ("ProviderError", p.with_a_model_that_is_not_there),
    "no Ollama": ("ProviderError", p.without_ollama),
    "one problem": ("BuildError", p.one_problem),
    "two problems": ("BuildError", p.two_problems),
}


async def agent_step(cls: type) -> None:
    """Name a class without `@agent` as the agent of a call."""
    async with Thena(tools=[p.read_file]) as app:
        await app.call("read_file", {"path": "a"}, agent=cls)


def texts(section: str) -> list[str]:
    """Return the texts that a section shows."""
    return re.findall(r"^```text\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)


async def said_of(provoke: p.Provoke) -> tuple[str, str]:
    """Return class and text of the error that a mistake provokes; this machine's folder is `/`, every line the 12th."""
    with pytest.raises(ThenaError) as caught:
        await provoke()
    text = str(caught.value).replace(str(Path.cwd()), "")
    return type(caught.value).__name__, re.sub(r", line \d+$", ", line 12", text, flags=re.MULTILINE)


def test_every_class_has_a_section() -> None:
    """The page speaks of each class of `thena_core.errors`, in its order, and of no other."""
    assert list(SECTIONS) == list(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_the_state_is_true(name: str) -> None:
    """What the page says about who raises a class agrees with the source."""
    raised = {
        node.func.id
        for file in [*(ROOT / "thena_core").rglob("*.py"), *(ROOT / "thena_tools").rglob("*.py")]
        if file.parent.name != "testing"  # its tools raise as an author's do
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    if name in raised:
        state = "Raised by Thena."
    elif name in RAISED_BY_AUTHORS:
        state = "Raised by you."
    else:
        state = "A base class." if CLASSES[name].__subclasses__() else "Planned."
    assert SECTIONS[name].strip().startswith(f"*{state}*")


@pytest.mark.parametrize(("name", "provoke"), MISTAKES.values(), ids=list(MISTAKES))
async def test_the_text_is_exact(name: str, provoke: p.Provoke) -> None:
    """Each mistake raises the class in whose section its text stands, word for word."""
    raised, text = await said_of(provoke)
    assert raised == name
    assert text in texts(SECTIONS[name])


async def test_every_text_is_provoked() -> None:
    """No text of the page is left over from an earlier version."""
    shown = {(name, text) for name, section in SECTIONS.items() for text in texts(section)}
    assert shown - {await said_of(provoke) for _, provoke in MISTAKES.values()} == set()


@pytest.mark.parametrize("name", [name for name, section in SECTIONS.items() if "*Planned.*" not in section])
def test_every_text_has_a_cause_and_a_cure(name: str) -> None:
    """Each text follows a line with its cause in bold and, in the same paragraph, the cure."""
    blocks = SECTIONS[name].split("```text\n")[:-1]
    assert all(re.search(r"^\*\*.+\*\* .+", block.strip().rpartition("\n\n")[2], re.DOTALL) for block in blocks)
