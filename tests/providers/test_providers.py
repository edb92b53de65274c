"""The package's own surface."""

from __future__ import annotations

import subprocess
import sys

import pytest

import thena_core.providers as package


def test_importing_loads_no_http_client() -> None:
    """Neither the package nor the class of a provider loads httpx."""
    code = (
        "import sys, thena_core.providers as p; p.OpenAIProvider; p.Retry; "
        "print([name for name in ('httpx', 'httpcore', 'anyio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_every_public_name_is_there() -> None:
    """`__all__` is sorted, and each of its names can be had and is listed by `dir`."""
    assert package.__all__ == sorted(package.__all__)
    assert all(getattr(package, name) for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A name that is not there fails as in any module."""
    with pytest.raises(AttributeError, match="NoProvider"):
        package.NoProvider  # noqa: B018
