"""Tests of thena_core.record.event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thena_core.record.event import Event
from thena_core.record.redact import mask

KEY = "sk-ant-REDACTED"


def event(**fields: Any) -> Event:
    given = {"phase": "end", "run_id": "r", "id": "r/0", "parent_id": "r", "depth": 1, "kind": "tool", "name": "look"}
    return Event(**(given | {"redact": mask} | fields))


@pytest.mark.behaviour("O05", "Q01")
def test_everything_is_masked() -> None:
    """Name, error, input, output and meta hide secret shapes, and what stands under a secret's name."""
    made = event(
        name=f"tool {KEY}",
        error=f"401 for {KEY}",
        input={"key": KEY, "password": "hunter2"},
        output=[f"the key is {KEY}"],
        meta={"data": {"deep": [KEY]}},
        status="error",
    )
    shown = json.dumps(made.as_dict())
    assert KEY not in shown
    assert "hunter2" not in shown
    assert KEY not in repr(made) + str(made)
    assert KEY not in made.brief()
    assert made.input["password"] == "…masked"


@pytest.mark.behaviour("O05")
def test_masking_is_the_apps_own() -> None:
    """With another masking, or none, the event shows what that leaves; it is plain in any case."""
    assert event(output=KEY, redact=None).output == KEY
    assert event(name="a", redact=str.upper).name == "A"
    assert event(output={1, 2}, redact=None).output == [1, 2]


@pytest.mark.behaviour("O03")
def test_what_nobody_reads_is_not_masked() -> None:
    """Masking is paid by who looks, and once."""
    looked: list[str] = []

    def counting(text: str) -> str:
        looked.append(text)
        return text

    made = event(input="in", output="out", meta={"a": "b"}, redact=counting)
    assert (made.phase, made.kind, made.id, made.duration_ms) == ("end", "tool", "r/0", None)
    assert looked == []
    assert made.output == made.output == "out"
    assert looked == ["out"]


def test_it_is_a_copy() -> None:
    """Who changes what an event shows changes nothing else."""
    arguments = {"path": ["a"]}
    made = event(input=arguments, meta={"data": arguments})
    made.input["path"].append("b")
    made.meta["data"]["path"].append("b")
    assert arguments == {"path": ["a"]}


def test_as_dict_is_ready_for_json() -> None:
    """All fields, and values that any JSON reader takes, whatever a tool left there."""
    made = event(input=object(), output=float("nan"), meta={"n": {1: b"x"}})
    told = json.loads(json.dumps(made.as_dict(), allow_nan=False))
    assert list(told) == [
        "phase", "run_id", "id", "parent_id", "depth", "kind", "name", "status", "outcome", "error", "started_at",
        "duration_ms", "input", "output", "meta",
    ]  # fmt: skip
    assert told["output"] is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"phase": "start", "input": {"path": "a"}}, '{"path": "a"}'),
        ({"phase": "start", "input": None}, ""),
        ({"output": "one\ntwo"}, "one two"),
        ({"status": "error", "error": "no", "output": "out"}, "no"),
        ({"phase": "progress", "meta": {"progress": {"done": 3, "total": 8, "message": "read"}}}, "3/8 read"),
        ({"phase": "progress"}, ""),
    ],
    ids=["arguments", "nothing", "output", "error", "progress", "no progress"],
)
def test_brief_is_what_matters(fields: dict[str, Any], text: str) -> None:
    """One line of what went in, came out, went wrong, or how far it is."""
    assert event(**fields).brief() == text


def test_repr_has_no_content() -> None:
    """A repr ends up in logs."""
    assert repr(event(output="private")) == "<Event end of tool r/0: running>"
