"""Packages that a test pretends to have installed: their metadata and modules in a folder on the import path."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package by name and version: `install("acme", plugins={"audit": "acme.audit"}, files={…})`."""
    before, everything = set(sys.modules), importlib.metadata.entry_points
    monkeypatch.syspath_prepend(tmp_path)

    def of_the_test(**select: str) -> importlib.metadata.EntryPoints:
        # what happens to be installed around the tests must not change what they see
        found = [entry for entry in everything(**select) if entry.dist.locate_file("") == tmp_path]
        return importlib.metadata.EntryPoints(found)

    monkeypatch.setattr(importlib.metadata, "entry_points", of_the_test)

    def installed(
        package: str,
        version: str = "1.0",
        *,
        plugins: Mapping[str, str] | None = None,
        tools: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        requires: Sequence[str] = (),
        extras: Sequence[str] = (),
    ) -> None:
        metadata = tmp_path / f"{package.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {package}", f"Version: {version}"]
        lines += [f"Provides-Extra: {extra}" for extra in extras]
        lines += [f"Requires-Dist: {requirement}" for requirement in requires]
        (metadata / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
        groups = {"thena.plugins": plugins or {}, "thena.tools": tools or {}}
        points = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in groups.items()]
        (metadata / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        importlib.invalidate_caches()

    yield installed
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def plugins_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests must not depend on the switch of whoever runs them."""
    monkeypatch.delenv("THENA_PLUGINS", raising=False)
