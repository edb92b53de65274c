"""The plain model: what is asked for, and the way that each call must take through the layers of an app."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LEAVES = ("t0", "t1", "t2", "t3")
OUTER, PACKED = "outer", "parallel"
NOT_THERE = "no_such_tool"
RUNS = {"valid", "lenient"}
ENDING = {"fatal", "fatal group"}
FAILING = {"fail", "group"}


@dataclass(frozen=True)
class Call:
    """A call that somebody asks for: as it is written, and what the tool then does."""

    name: str = "t0"
    written: str = "valid"
    as_text: bool = False
    value: int = 0
    what: str = "ok"
    wait: int = 0
    inner: tuple[Call, ...] = ()
    turns: tuple[tuple[Call, ...], ...] = ()
    limit: int | None = None
    bounded: bool = False
    catches: bool = False
    key: int = 0

    @property
    def asked_name(self) -> str:
        """The name as the model writes it."""
        return NOT_THERE if self.written == "unknown" else self.name

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the tool's schema wants them."""
        if self.name == PACKED and self.written != "itself":
            return {"calls": [{"name": call.asked_name, "arguments": call.raw} for call in self.inner]}
        return {"key": self.key, "value": self.value}

    @property
    def raw(self) -> Any:
        """What is sent."""
        if self.written == "invalid":
            return {**self.arguments, "surplus": 1}
        text = json.dumps(self.arguments)
        if self.written == "malformed":
            return text[:-1] + ' "'
        if self.written == "lenient":
            return f"```json\n{text[:-1]},}}\n```"
        return text if self.as_text else self.arguments

    @property
    def ident(self) -> str:
        """What tells it from every other call of the app's life."""
        return identify(self.asked_name, self.raw)

    @property
    def children(self) -> tuple[Call, ...]:
        """Every call that its tool asks for, in a nested run or through its toolbox."""
        return self.inner + tuple(call for turn in self.turns for call in turn)


def identify(name: str, raw: Any) -> str:
    """Name a call by what was sent, which no layer changes: its key, of a packed one the first inner key."""
    found = re.search(r"key\W+(\d+)", str(raw))
    assert found is not None, f"a call that nobody asked for: {name} {raw!r}"
    return f"{'p' if name == PACKED and 'calls' in str(raw) else ''}{found.group(1)}"


def shown(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a call's arguments, those of packed calls as they were written."""
    return {name: [dict(part) for part in value] if name == "calls" else value for name, value in arguments.items()}


def numbered(call: Call, keys: Iterator[int]) -> Call:
    """Give a call, and each call in it, a key of its own."""
    return dataclasses.replace(
        call,
        key=next(keys),
        inner=tuple(numbered(inner, keys) for inner in call.inner),
        turns=tuple(tuple(numbered(inner, keys) for inner in turn) for turn in call.turns),
    )


@dataclass(frozen=True)
class Layer:
    """A hook or a middleware: what it does to the calls that it picks; the others it lets pass."""

    mode: str
    on: int
    waits: bool = False

    def picks(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a before-hook or a middleware does its thing to a call."""
        return arguments.get("value", len(arguments.get("calls", ()))) % 4 == self.on

    def picks_result(self, ident: str) -> bool:
        """Whether an after-hook does its thing to a result."""
        return int(ident.lstrip("p")) % 4 == self.on


@dataclass(frozen=True)
class Leaf:
    """A tool that calls no other."""

    form: str
    kind: str
    effect: Any
    limited: bool


@dataclass(frozen=True)
class PluginSpec:
    """The hooks of a plugin, and its middleware: for every tool, or only for `t0`."""

    before: Layer | None
    after: Layer | None
    around: Layer | None
    only_one: bool


@dataclass(frozen=True)
class AppSpec:
    """An app as drawn."""

    leaves: tuple[Leaf, ...]
    before: Layer | None
    after: Layer | None
    plugins: tuple[PluginSpec, ...]
    around: tuple[Layer, ...]
    every_call: bool
    recorded: bool

    def befores(self, *, hooked: bool) -> list[tuple[str, Layer]]:
        """The before-hooks in their order; `hooked` is the agent that has hooks of its own."""
        own = [("agent", self.before)] if hooked else []
        every = [*own, *((f"plugin{n}", plugin.before) for n, plugin in enumerate(self.plugins))]
        return [(who, layer) for who, layer in every if layer is not None]

    def afters(self, *, hooked: bool) -> list[tuple[str, Layer]]:
        """The after-hooks in their order: the mirror image of the way in."""
        own = [("agent", self.after)] if hooked else []
        every = [*own, *((f"plugin{n}", plugin.after) for n, plugin in enumerate(self.plugins))]
        return [(who, layer) for who, layer in reversed(every) if layer is not None]

    def arounds(self, name: str) -> list[tuple[str, Layer]]:
        """The middlewares of a tool in their order."""
        found = [
            (f"plugin{n}", plugin.around)
            for n, plugin in enumerate(self.plugins)
            if plugin.around is not None and (name == "t0" or not plugin.only_one)
        ]
        return [*found, *((f"app{n}", layer) for n, layer in enumerate(self.around))]


@dataclass(frozen=True)
class Road:
    """The way of one call: who sees it with which arguments, and where it comes to."""

    befores: list[tuple[str, dict[str, Any]]]
    arounds: list[tuple[str, dict[str, Any]]]
    end: str
    arguments: dict[str, Any]


def road(spec: AppSpec, call: Call, *, hooked: bool) -> Road:
    """Follow a call through the layers down to the budget."""
    if call.written not in RUNS:
        return Road([], [], "invalid" if call.written in ("invalid", "malformed") else "unknown", {})
    arguments = dict(call.arguments)
    befores: list[tuple[str, dict[str, Any]]] = []
    arounds: list[tuple[str, dict[str, Any]]] = []
    for who, layer in spec.befores(hooked=hooked):
        befores.append((who, dict(arguments)))
        if not layer.picks(arguments):
            continue
        if layer.mode in ("answer", "deny", "raise"):
            return Road(befores, arounds, layer.mode, arguments)
        if layer.mode == "rewrite" and "value" in arguments:
            arguments["value"] += 1
    for who, layer in spec.arounds(call.name):
        arounds.append((who, dict(arguments)))
        if layer.picks(arguments) and layer.mode in ("answer", "deny", "raise"):
            return Road(befores, arounds, layer.mode, arguments)
    return Road(befores, arounds, "arrives", arguments)


def outcomes(call: Call, road_: Road, *, stopped: bool) -> set[str]:
    """Say how a call that was answered may have ended, before any after-hook and any middleware on the way out."""
    known = {"unknown": "unknown", "invalid": "invalid", "answer": "ok", "deny": "denied"}
    if road_.end in known:
        return {known[road_.end]}
    found = {"over_budget", "ok"}
    if call.name in LEAVES:
        own = "error" if call.what in FAILING else "cancelled" if call.what == "cancels" else "ok"
        found = {"over_budget", own}
    elif call.name == PACKED or call.catches or call.what == "nested":
        found.add("error")
    return found | {"timeout", "cancelled", "error"} if stopped else found
