"""What hypothesis draws: apps, calls, budgets, and the ways to stop a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.proof.asked import Limits
from tests.proof.model import LEAVES, OUTER, PACKED, AppSpec, Call, Layer, Leaf, PluginSpec


@dataclass(frozen=True)
class Stop:
    """How a run is stopped: after how many notes, and whether inside of what was noted or a turn of the loop later."""

    how: str
    after: int
    at_once: bool


@dataclass(frozen=True)
class Operation:
    """One thing to do with an app."""

    turns: tuple[tuple[Call, ...], ...]
    limits: Limits
    recorded: bool
    goes_on: bool


def layers(*modes: str) -> st.SearchStrategy[Layer | None]:
    """Draw a hook or a middleware, or none; most of them let everything pass."""
    return st.none() | st.builds(Layer, st.sampled_from(modes), st.integers(0, 3), st.booleans())


befores = layers("keep", "keep", "rewrite", "rewrite", "answer", "deny", "raise")
afters = layers("keep", "keep", "reword", "reword", "flag", "mend", "raise")
middlewares = st.builds(
    Layer,
    st.sampled_from(["pass", "pass", "pass", "answer", "deny", "hide", "hide", "raise", "twice", "nonsense"]),
    st.integers(0, 3),
    st.booleans(),
)
leaves = st.builds(
    Leaf,
    st.sampled_from(["class", "fields", "parameters", "function", "definition", "dict", "instance", "scoped"]),
    st.sampled_from(["async", "async", "thread", "inline"]),
    st.sampled_from([None, "write", None, "destructive"]),
    st.booleans(),
)
plugins = st.builds(PluginSpec, befores, afters, st.none() | middlewares, st.booleans())
apps = st.builds(
    AppSpec,
    st.tuples(leaves, leaves, leaves, leaves),
    befores,
    afters,
    st.lists(plugins, max_size=2).map(tuple),
    st.lists(middlewares, max_size=2).map(tuple),
    st.sampled_from([True, True, False]),
    st.booleans(),
)

written = st.sampled_from(["valid"] * 6 + ["lenient", "invalid", "malformed", "unknown"])
done = st.sampled_from(["ok"] * 5 + ["fail", "group", "cancels", "stubborn", "stubborn", "fatal", "fatal group"])


@st.composite
def calls(draw: Any, depth: int = 2, *, as_mapping: bool = False) -> Call:
    """Draw a call; one in three asks for more of them, down to `depth`."""
    kind = draw(st.integers(0, 8)) if depth else 0
    value = draw(st.integers(0, 3))
    if kind < 6:
        how = draw(written)
        if as_mapping and how in ("lenient", "malformed"):
            how = "valid"
        return Call(
            draw(st.sampled_from(LEAVES)), how, how == "valid" and not as_mapping and value > 1, value, draw(done),
            draw(st.sampled_from([0, 0, 1, 1, 4])),
        )  # fmt: skip
    if kind == 6:
        return Call(PACKED, "valid", inner=tuple(draw(st.lists(_inside(PACKED, depth), min_size=2, max_size=3))))
    what = draw(st.sampled_from(["each", "batch", "nested"]))
    catches = draw(st.booleans())
    if what == "nested":
        turns = draw(st.lists(st.lists(calls(depth - 1), min_size=1, max_size=2).map(tuple), max_size=2))
        limit = draw(st.none() | st.integers(0, 2))
        return Call(OUTER, value=value, what=what, turns=tuple(turns), limit=limit, catches=catches)
    inner = tuple(draw(st.lists(_inside(OUTER, depth), max_size=3)))
    if what == "batch":
        return Call(OUTER, value=value, what=what, inner=inner, catches=catches, bounded=draw(st.booleans()))
    return Call(OUTER, value=value, what=what, inner=inner, catches=catches)


def _inside(name: str, depth: int) -> st.SearchStrategy[Call]:
    """Draw a call out of another one's toolbox, which may ask for itself."""
    itself = Call(name, "itself")
    return calls(depth - 1, as_mapping=name == PACKED).map(lambda call: itself if call.name == name else call)


limits = st.one_of(
    st.just(Limits()),
    st.builds(
        Limits,
        st.none() | st.integers(0, 4),
        st.none() | st.integers(0, 2),
        st.sampled_from([None, None, None, 1, 2]),
        st.sampled_from([False, False, True]),
    ),
)
stops = st.builds(
    Stop,
    st.sampled_from(["abort", "cancel", "deadline", "cancel_call", "time passes"]),
    st.integers(1, 14),
    st.booleans(),
)
turn = st.lists(calls(), min_size=1, max_size=3).map(tuple)
operations = st.builds(
    Operation, st.lists(turn, min_size=1, max_size=2).map(tuple), limits, st.booleans(), st.booleans()
)
