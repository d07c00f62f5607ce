"""Golden files: what is compared word for word, and written anew where DQ_GOLDEN is `write`."""

from __future__ import annotations

import os
from pathlib import Path

# Read before a test forgets all variables of dq.
WRITES = os.environ.get("DQ_GOLDEN") == "write"


def compare(file: Path, text: str) -> None:
    """The text must be that of the file; `make goldens` writes the files anew."""
    if WRITES:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8"), f"{file.name} is not what is printed: run 'make goldens'"
