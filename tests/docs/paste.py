"""Pastes the blocks of one page, in order, into one process: `python paste.py BLOCKS OUTPUT`, in the page's folder.

It runs in environments that have nothing but Python and Thena, so it imports nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path
from typing import Any


def paste(block: dict[str, Any], names: dict[str, Any]) -> bool:
    """Do with a block what a reader does; return whether that went well."""
    if block["file"] is not None:
        path = Path(block["file"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block["code"], encoding="utf-8")
        return True
    if block["language"] == "bash":
        return subprocess.run(["bash", "-euo", "pipefail", "-c", block["code"]], check=False).returncode == 0
    try:
        # with the lines of the page, so that a traceback names them
        exec(compile("\n" * (block["line"] - 1) + block["code"], block["page"], "exec"), names)  # noqa: S102
    except Exception:  # noqa: BLE001 - whatever it is, it is told
        traceback.print_exc()
        return False
    return True


def main(blocks: Path, output: Path) -> None:
    """Paste all blocks up to the first that fails; write what each printed, on stdout and stderr as they came."""
    session = sys.modules["__main__"] = types.ModuleType("__main__")  # where a shell keeps its names
    sys.path.insert(0, str(Path.cwd()))
    printed: list[dict[str, Any]] = []
    for block in json.loads(blocks.read_text(encoding="utf-8")):
        with tempfile.TemporaryFile("w+b") as file:
            outside = os.dup(1), os.dup(2)
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            try:
                done = paste(block, session.__dict__)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os.dup2(outside[0], 1)
                os.dup2(outside[1], 2)
            file.seek(0)
            printed.append({"done": done, "text": file.read().decode("utf-8", "replace").replace("\r\n", "\n")})
        output.write_text(json.dumps(printed), encoding="utf-8")
        if not done:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
