"""New stores for the tests: the tables are made once and copied, and no commit waits for a disk."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

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


def hurry() -> None:
    """From here on no commit of this process to SQLite waits for the disk, as none to PostgreSQL does.

    A wait takes six times the commit or more. Other processes see it all the same; no test cuts the power.
    """
    event.listen(Engine, "connect", _unwritten)


def wait() -> None:
    """From here on commits wait again."""
    event.remove(Engine, "connect", _unwritten)


def _unwritten(connection: Any, _: object) -> None:
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute("PRAGMA synchronous = OFF")
