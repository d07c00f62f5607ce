"""The cache of the gate's results: where it is, and the facts on which all results of a run depend."""

from __future__ import annotations

import hashlib
import json
import os
import zoneinfo
from contextlib import suppress
from datetime import date
from pathlib import Path

import dq.contracts
import dq.dataquality
import dq.lake
import dq.operations
import dq.validators
from dq.contracts import install
from dq.operations.runtime.context import outermost_root, registry_root
from dq.validators.context import OfficialSchema
from dq.validators.result_cache import FolderCache

# The code that decides findings.
_PACKAGES = (dq.contracts, dq.dataquality, dq.lake, dq.operations, dq.validators)


def open_cache(
    folder: Path,
    root: Path,
    paths: list[Path],
    policy_text: tuple[str, bytes] | None,
    official: OfficialSchema | None,
    today: date,
) -> FolderCache | None:
    """Return the cache of the contracts at these paths, or None if its folder cannot be trusted.

    A folder in a repository or a registry may be part of a branch.
    """
    real_folder = Path(os.path.realpath(folder))
    real_paths = sorted({os.path.realpath(path) for path in paths})
    roots = {root, *(registry_root(path) for path in paths)}
    if any(real_folder.is_relative_to(outermost_root(top) or top) for top in roots):
        return None
    try:
        code = install.fingerprint(_PACKAGES)
    except OSError:
        code = b""
    if not code:
        return None
    facts = json.dumps(
        [
            code.hex(),
            None if policy_text is None else [policy_text[0], policy_text[1].hex()],
            None if official is None else [official.release, official.version],
            _time_zones(),
        ]
    )
    name = hashlib.sha256("\0".join([str(root), *real_paths]).encode("utf-8", "surrogateescape")).hexdigest()
    return FolderCache(real_folder, f"validate-{name[:32]}", facts.encode(), today)


def _time_zones() -> list[list[object]]:
    """Return the folders with the time zones of the system, and when each was changed."""
    folders: list[list[object]] = []
    for folder in zoneinfo.TZPATH:
        with suppress(OSError):
            folders.append([folder, Path(folder).stat().st_mtime_ns])
    return folders
