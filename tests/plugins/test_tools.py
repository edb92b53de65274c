"""Installed tools: listed without being imported, and used only by name or class."""

from __future__ import annotations

import sys

import pytest

from tests.plugins.conftest import Install
from thena_core import BuildError, Thena

TOOL = """
from thena_core import tool
@tool
async def look() -> str:
    'Looks.'
    return __name__
"""


async def refused(*tools: str) -> list[str]:
    """Build an app that cannot be built, and return what is said of each problem."""
    with pytest.raises(BuildError) as caught:
        await Thena(tools=tools).call("look")
    return [str(problem) for problem in caught.value.exceptions]


@pytest.mark.behaviour("P03")
async def test_only_by_name(install: Install) -> None:
    """A tool is imported when it is named, and by nothing else."""
    install("acme", tools={"look": "acme_look:look"}, files={"acme_look.py": TOOL})
    await Thena(plugins="installed").call("look")
    assert await refused("lok") == [
        '[thena] No installed package brings a tool named "lok". Did you mean "look"? Installed: look.'
    ]
    assert "acme_look" not in sys.modules
    assert (await Thena(tools=["look"]).call("look")).content == "acme_look"


@pytest.mark.behaviour("P03")
async def test_name_of_two_packages(install: Install) -> None:
    """A name that two packages claim is refused: which of them was found first must not decide."""
    install("acme", "1.2", tools={"look": "acme_look:look"}, files={"acme_look.py": TOOL})
    install("other", "3.0", tools={"look": "other_look:look"}, files={"other_look.py": TOOL})
    assert await refused("look") == [
        '[thena] Several installed packages bring a tool named "look": acme 1.2, other 3.0. Uninstall all but one.'
    ]


@pytest.mark.behaviour("P03")
@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import sys; sys.exit(3)\n", "SystemExit: 3"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("", "AttributeError: module 'broken_look' has no attribute 'look'"),
    ],
    ids=["exits", "raises", "lacks"],
)
async def test_broken(install: Install, source: str, cause: str) -> None:
    """D11: a tool that cannot be imported is a problem of the build, by name, package and cause."""
    install("acme", "1.2", tools={"look": "broken_look:look"}, files={"broken_look.py": source})
    assert await refused("look") == [
        f'[thena] The installed tool "look" (broken_look:look of acme 1.2) cannot be imported: {cause}'
    ]
