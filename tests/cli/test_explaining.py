"""`thena explain`: an app's tools, or what the framework made of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Typed = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def test_all(thena: Typed, capsys: Capture) -> None:
    """Without a tool there is a line for each, by agent, and the way to see one in full."""
    assert thena("explain", "shop:app") == 0
    out, err = capsys.readouterr()
    assert out == "agent Clerk:\n  price  read  Says what an item costs. Use it before naming a price.\n"
    assert err == "one of them in full: thena explain shop:app TOOL\n"


def test_the_apps_own(thena: Typed, capsys: Capture) -> None:
    """Tools that no agent has are the app's own."""
    assert thena("explain", "shop:counter") == 0
    assert capsys.readouterr().out.startswith("the app's own:\n  price  read  Says")


def test_one(thena: Typed, capsys: Capture) -> None:
    """With a tool there is its schema, what fills its parameters, and its layers with their origin."""
    assert thena("explain", "shop:app", "price") == 0
    out, err = capsys.readouterr()
    assert out.startswith("price — shop.price\n")
    assert '"required": [' in out
    assert "  item   from the model\n" in out
    assert "  3. middleware shop.closed\n" in out
    assert err == ""


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(["shop:app", "prise"], 'there is no tool "prise". Did you mean "price"?', id="tool"),
        pytest.param(["shop:app", "price", "x"], "too many words: x. Write: thena explain TARGET [TOOL]", id="words"),
        pytest.param(["shop:app", "price", "--agent", "X"], 'the app has no agent "X". There are: Clerk.', id="agent"),
    ],
)
def test_wrong_words(thena: Typed, capsys: Capture, words: list[str], problem: str) -> None:
    """What there is not is one line with the nearest right name."""
    assert thena("explain", *words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert problem in err
