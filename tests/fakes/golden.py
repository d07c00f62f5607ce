"""Golden files: what is compared word for word, and written anew where DQ_GOLDEN is `write`."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

# Read before a test forgets all variables of dq.
WRITES = os.environ.get("DQ_GOLDEN") == "write"
_MOST = 60


def compare(file: Path, text: str) -> None:
    """The text must be that of the file; `make goldens` writes the files anew."""
    if WRITES:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    expected = file.read_text("utf-8")
    if text != expected:
        names = (file.name, "as it is now")
        lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), *names, lineterm="", n=1)
        shown = "\n".join([*lines][:_MOST])
        raise AssertionError(f"{file.name} is not what is printed; if that is meant: make goldens\n{shown}")
