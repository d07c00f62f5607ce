"""New stores for the tests: the migrations run once, and their outcome is copied."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from dq.store import open_store


def new_sqlite(file: Path) -> str:
    """The URL of a store in `file` in which nothing stands yet; its folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as copy:
        copy.write(_template())
    return f"sqlite:///{file}"


@cache
def _template() -> bytes:
    with tempfile.TemporaryDirectory(prefix="dq-template-") as folder:
        # Closed, its log is in the file.
        open_store(f"sqlite:///{folder}/store.db").close()
        return Path(folder, "store.db").read_bytes()
