"""Everything public is on the page of the API, and says of each field and parameter what it is."""

from __future__ import annotations

import dataclasses
import inspect
import re
from importlib import import_module
from typing import Any

import pytest

from tests.docs.page import DOCS

MODULES = ["thena_core", "thena_core.providers", "thena_core.testing", "thena_tools"]
SHOWN = re.findall(r"^::: ([\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
PUBLIC: dict[str, Any] = {
    f"{module}.{name}": getattr(import_module(module), name)
    for module in MODULES
    for name in import_module(module).__all__
}
DOCUMENTED = {name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing) or inspect.isroutine(thing)}


def is_shown(name: str) -> bool:
    """Whether a name is on the page, there or under another module that exports the same thing."""
    return any(PUBLIC.get(other) is PUBLIC[name] for other in SHOWN)


def test_every_name_is_on_the_page() -> None:
    """What a module exports is documented, and nothing else is."""
    assert [name for name in PUBLIC if not is_shown(name)] == []
    assert [name for name in SHOWN if name not in PUBLIC] == []
    assert len(SHOWN) == len(set(SHOWN))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_it_has_a_docstring(name: str) -> None:
    """A class or function has a docstring of its own, and so has each public method."""
    thing = DOCUMENTED[name]
    assert own_docstring(thing)
    if inspect.isclass(thing):
        members = [member for key, member in vars(thing).items() if not key.startswith("_") and is_code(member)]
        assert [member for member in members if not inspect.getdoc(member)] == []


@pytest.mark.parametrize("name", [name for name, thing in DOCUMENTED.items() if dataclasses.is_dataclass(thing)])
def test_every_field_is_explained(name: str) -> None:
    """A dataclass says of each field what it is, with its unit where it has one."""
    section = own_docstring(DOCUMENTED[name]).partition("Attributes:")[2]
    explained = set(re.findall(r"^\s+(\w+): ", section, re.MULTILINE))
    fields = {field.name for field in dataclasses.fields(DOCUMENTED[name])}
    if len(fields) > 1:
        assert fields - explained == set()


def own_docstring(thing: Any) -> str:
    """Return what is written on a thing itself, not on a base of it."""
    return inspect.cleandoc(thing.__doc__ or "")


def is_code(member: Any) -> bool:
    """Whether a member of a class is a method or a property."""
    return inspect.isroutine(member) or isinstance(member, (property, classmethod, staticmethod))
