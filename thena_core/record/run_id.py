"""What a run may be called: its id names a folder of its report."""

from __future__ import annotations

import re

# Windows has files of its own by these names in every folder, whatever follows a dot, and drops a dot at the end.
_PATTERN = re.compile(
    r"(?!(?i:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z))[A-Za-z0-9_-](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?"
)


def checked_id(run_id: object) -> str:
    """Accept a run's id, which becomes a folder's name.

    Raises:
        ValueError: For anything but 1 to 128 letters, digits, `.`, `_` and `-`, with a dot at either end, or for a name
            that Windows keeps for a device.
    """
    if not isinstance(run_id, str) or not _PATTERN.fullmatch(run_id):
        shown = run_id[:140] if isinstance(run_id, str) else run_id
        raise ValueError(
            f"[thena] run_id={shown!r}: use 1 to 128 letters, digits, `.`, `_` or `-`, no dot at either end, and no "
            f"name that Windows keeps for a device (CON, NUL …)."
        )
    return run_id
