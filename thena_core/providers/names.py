"""Find the tool that a model means where it writes the name a little differently."""

from __future__ import annotations

from collections.abc import Collection

_NAMESPACES = ("functions.", "default_api.", "tools.")
"""What models put before a name, since their training or a service's prompt shows tools in such a namespace."""


def known_name(written: str, names: Collection[str]) -> str | None:
    """Return the tool that a written name can only mean, or `None`.

    The exact name wins; then the one without white space around it and without a namespace (`functions.read_file`);
    then the one that differs in upper and lower case only, if there is just one. Nothing is guessed: what is only
    similar is another name.
    """
    if written in names:
        return written
    bare = written.strip()
    for namespace in _NAMESPACES:
        bare = bare.removeprefix(namespace)
    if bare in names:
        return bare
    folded = bare.casefold()
    alike = [name for name in names if name.casefold() == folded]
    return alike[0] if len(alike) == 1 else None
