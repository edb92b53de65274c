"""Loading plugins: only what is named, wherever it comes from, in whatever form it is written."""

from __future__ import annotations

import sys
import types
import warnings
from dataclasses import dataclass
from typing import Any

import pytest

from tests.plugins.conftest import Install
from tests.plugins.watched import GUARD, guarding, hooks_of, plugin, ran, refused
from thena_core import hookimpl
from thena_core.hooks.manager import load_plugins


@pytest.mark.behaviour("P02")
async def test_only_what_is_named(install: Install) -> None:
    """Installing a package never changes what a run does: its module is not even imported."""
    install("acme", plugins={"acme-audit": "acme_audit"}, files={"acme_audit.py": GUARD})
    assert await hooks_of([]) == []
    assert await hooks_of([guarding("Mine")]) == ["Mine"]
    assert "acme_audit" not in sys.modules
    assert await hooks_of(["acme-audit"]) == ["acme_audit"]


@pytest.mark.behaviour("P02")
async def test_all_installed(install: Install) -> None:
    """`"installed"` takes every one of them in the order of their names, not of the packages on the path."""
    install("a-package", plugins={"zeta": "zeta_plugin", "alpha": "alpha_plugin"})
    install("b-package", plugins={"mid": "mid_plugin"})
    for name in ("zeta", "alpha", "mid"):
        install(f"{name}-code", files={f"{name}_plugin.py": GUARD})
    assert await hooks_of("installed") == ["alpha_plugin", "mid_plugin", "zeta_plugin"]
    assert await hooks_of("installed", blocked=["mid"]) == ["alpha_plugin", "zeta_plugin"]


@pytest.mark.behaviour("P02")
@pytest.mark.parametrize("blocked", [["audit", "Mine"], ("Mine", "audit")], ids=["list", "tuple"])
async def test_blocked(install: Install, blocked: Any) -> None:
    """`blocked` leaves a plugin out by its name, installed or not, and imports nothing of it."""
    install("acme", plugins={"audit": "blocked_audit"}, files={"blocked_audit.py": GUARD})
    assert await hooks_of(["audit", guarding("Mine"), guarding("Other")], blocked=blocked) == ["Other"]
    assert "blocked_audit" not in sys.modules


@pytest.mark.behaviour("P02")
async def test_blocked_is_a_name_and_no_part_of_one() -> None:
    """One name may be given as it is; it blocks that name, and none that stands in it."""
    assert await hooks_of([guarding("Mine"), guarding("Min")], blocked="Mine") == ["Min"]


@pytest.mark.behaviour("P02")
@pytest.mark.parametrize("named", [["audit"], "installed", ["no such"]], ids=["named", "installed", "unknown"])
async def test_switched_off(install: Install, monkeypatch: pytest.MonkeyPatch, named: Any) -> None:
    """`THENA_PLUGINS=0` switches off what is named; a plugin given as an object is code of the app and stays."""
    install("acme", plugins={"audit": "switched_audit"}, files={"switched_audit.py": GUARD})
    monkeypatch.setenv("THENA_PLUGINS", "0")
    assert await hooks_of(named) == []
    assert "switched_audit" not in sys.modules
    if named != "installed":
        assert await hooks_of([*named, guarding("Mine")]) == ["Mine"]


@pytest.mark.behaviour("P02")
async def test_other_values_switch_nothing_off(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `0` switches plugins off."""
    install("acme", plugins={"audit": "on_audit"}, files={"on_audit.py": GUARD})
    for value in ("1", ""):
        monkeypatch.setenv("THENA_PLUGINS", value)
        assert await hooks_of(["audit"]) == ["on_audit"]


@pytest.mark.behaviour("P02")
async def test_a_name_alone(install: Install) -> None:
    """One name may be given as it is, and is not taken for a list of letters."""
    install("acme", plugins={"audit": "alone_audit"}, files={"alone_audit.py": GUARD})
    assert await hooks_of("audit") == ["alone_audit"]


@pytest.mark.behaviour("P01")
@pytest.mark.parametrize(
    "members",
    [
        {"before_tool": lambda self: ran.append("none")},
        {"before_tool": lambda self, ctx: ran.append(type(ctx).__name__)},
        {"before_tool": lambda self, call: ran.append(call.name)},
        {"before_tool": lambda self, ctx, call: ran.append(call.name)},
        {"before_tool": lambda self, call, *, ctx: ran.append(call.name)},
        {"before_tool": lambda self, call, ctx, extra=1: ran.append(call.name)},
        {"before_tool": staticmethod(lambda call, ctx: ran.append(call.name))},
        {"before_tool": classmethod(lambda cls, call, ctx: ran.append(call.name))},
    ],
    ids=["none", "ctx", "call", "turned", "keyword", "default", "static", "class-method"],
)
async def test_fewer_parameters(members: dict[str, Any]) -> None:
    """D13: a hook function takes what it needs of the hook's parameters, by name."""
    [(name, function)] = members.items()
    mark = type(function)(hookimpl(function.__func__)) if hasattr(function, "__func__") else hookimpl(function)
    [seen] = await hooks_of([plugin(**{name: mark})])
    assert seen in {"none", "Context", "look"}


@pytest.mark.behaviour("P01")
async def test_modules_and_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin is a module or an object; what a module merely imports under a hook's name is none of its hooks."""

    def before_tool() -> None:
        ran.append("module")

    module = types.ModuleType("my_plugins.guard")
    before_tool.__module__ = module.__name__
    module.before_tool = hookimpl(before_tool)  # type: ignore[attr-defined]
    module.services = warnings.warn  # type: ignore[attr-defined]
    assert await hooks_of([guarding("object"), module]) == ["object", "module"]
    del module.before_tool.thena_impl  # type: ignore[attr-defined]
    assert await refused([module]) == [
        '[thena] The plugin "my_plugins.guard" cannot be loaded: before_tool is not marked: write @hookimpl above it'
    ]


@pytest.mark.behaviour("P01")
async def test_another_name() -> None:
    """`@hookimpl(specname=…)` marks a function of any name, more than one of them, too."""

    class Named:
        @hookimpl(specname="before_tool")
        def first(self, call: Any) -> None:
            ran.append("first")

        @hookimpl(specname="before_tool")
        def second(self) -> None:
            ran.append("second")

    assert sorted(await hooks_of([Named()])) == ["first", "second"]


@pytest.mark.behaviour("P01")
async def test_optional_hooks_of_newer_hosts() -> None:
    """A hook that this version does not have is accepted where its author says that it is optional."""

    class Newer:
        @hookimpl(optionalhook=True)
        async def before_everything(self, anything: Any) -> None:
            ran.append("never")

        @hookimpl
        def before_tool(self) -> None:
            ran.append("before")

    assert await hooks_of([Newer()]) == ["before"]
    [loaded] = load_plugins([Newer()], problems=[]).loaded
    assert list(loaded.hooks) == ["before_tool"]


@pytest.mark.behaviour("P02")
async def test_the_same_twice() -> None:
    """The same object twice is refused: its hooks would be called twice."""
    one = guarding("Mine")
    assert await refused([one, one]) == ['[thena] The plugin "Mine" cannot be loaded: it is named twice']


@pytest.mark.behaviour("P02")
async def test_two_instances() -> None:
    """Two instances of one class are two plugins, also where they are equal."""

    @dataclass
    class Guard:
        level: str

        @hookimpl
        def before_tool(self) -> None:
            ran.append(self.level)

    assert await hooks_of([Guard("low"), Guard("high"), Guard("low")]) == ["low", "high", "low"]
    assert await hooks_of([Guard("low"), Guard("high")], blocked=["Guard"]) == []
