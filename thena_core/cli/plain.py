"""The commands that work without the extra `cli`: `tools` and `plugins`, read without typer."""

from __future__ import annotations

from collections.abc import Sequence

from thena_core._render import listed
from thena_core.cli.problems import FAILED, UsageProblem, guarded
from thena_core.cli.show import complain

WITHOUT_EXTRA = ("tools", "plugins")


def run_plain(words: Sequence[str], missing: Sequence[str]) -> int:
    """Run a command that needs no extra; for the others say in one line what to install.

    Args:
        words: The command and its arguments.
        missing: The packages of the extra that are not installed.

    Returns:
        The exit code.
    """
    if not words or words[0] not in WITHOUT_EXTRA or "--help" in words:
        complain(f'{" and ".join(missing)} not installed: pip install "thena-core[cli]"')
        return FAILED
    return guarded(lambda: _work(words[0], [word for word in words[1:] if word != "--debug"]), words)


def _work(command: str, arguments: Sequence[str]) -> int:
    from thena_core.cli import listing  # noqa: PLC0415 - a wrong command needs no framework

    allowed = 1 if command == "plugins" else 0
    wrong = [word for word in arguments if word.startswith("-")] or list(arguments[allowed:])
    if wrong:
        usage = "thena plugins [TARGET]" if command == "plugins" else "thena tools"
        raise UsageProblem(f"{command} takes no {listed(wrong)}. Write: {usage}")
    if command == "tools":
        return listing.list_tools()
    return listing.list_plugins(arguments[0] if arguments else None)
