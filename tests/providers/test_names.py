"""Names of tools that models write a little differently."""

from __future__ import annotations

import pytest

from thena_core.providers.names import known_name

NAMES = ("read_file", "Bash", "bash", "ls")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param("read_file", "read_file", id="exact"),
        pytest.param("bash", "bash", id="exact-beats-alike"),
        pytest.param("functions.read_file", "read_file", id="A23-namespace"),
        pytest.param("default_api.read_file", "read_file", id="gemini-namespace"),
        pytest.param(" read_file\n", "read_file", id="A23-white-space"),
        pytest.param("Read_File", "read_file", id="A23-case"),
        pytest.param("functions.LS", "ls", id="namespace-and-case"),
        pytest.param("BASH", None, id="A23-ambiguous"),
        pytest.param("read_fil", None, id="A23-similar"),
        pytest.param("my.read_file", None, id="other-namespace"),
        pytest.param("", None, id="empty"),
    ],
)
def test_only_what_can_be_meant_one_way_is_known(written: str, meant: str | None) -> None:
    """Namespace, white space and case are forgiven where one tool is left, and nothing is guessed (case A23)."""
    assert known_name(written, NAMES) == meant
