"""A folder beside the table: its files are checked there, and then the catalog's partition is put there.

Moving a partition is one write of the catalog, and readers that ask the catalog see the old folder or the new
one. Files are not copied and not moved: an object store has no atomic rename.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from dq.contracts.access.filesystem import is_remote, opened, split
from dq.contracts.access.hive_path import partition_folder
from dq.contracts.shared.errors import DqError, UsageError
from dq.registry.catalog import Catalog, Values
from dq.registry.publishing.marker import require_folder
from dq.registry.table import fold_location

File = tuple[str, int, str]
"""The path of a file below the folder, its size in bytes, and when it was written."""


@dataclass(frozen=True, slots=True)
class StagedFolder:
    """A partition below a staging root: `root/day=2026-11-20`."""

    root: str
    values: Values

    @property
    def folder(self) -> str:
        return f"{self.root.rstrip('/')}/{partition_folder(self.values)}"

    def run(self, files: frozenset[File]) -> str:
        """What a retry of the same publish has too, and a folder that was written anew has not."""
        digest = hashlib.sha256(repr(sorted(files)).encode()).hexdigest()[:16]
        return f"{fold_location(self.folder)}#{digest}"

    def published(self, catalog: Catalog, database: str, table: str) -> bool:
        """Whether the catalog has the partition here already: an earlier run came so far."""
        return catalog.place_of(database, table, self.values) == fold_location(self.folder)

    def files(self) -> frozenset[File]:
        """What readers will read there: no markers, and nothing that is hidden.

        Raises DqError where there is no folder or no file, as `require_folder` too.
        """
        require_folder(self.folder)
        every = _remote(self.folder) if is_remote(self.folder) else _local(self.folder)
        found = frozenset(file for file in every if not _is_hidden(file[0]))
        if not found:
            raise DqError(f"Nothing was staged: {self.folder} holds no file.", "Write the data there first.")
        return found

    def require_unchanged(self, before: frozenset[File]) -> None:
        """Raises DqError when the files are not those that were checked."""
        now = self.files()
        if now != before:
            changed = sorted({path for path, _, _ in before ^ now})
            raise DqError(
                f"{self.folder} changed while it was checked: {', '.join(changed[:3])}.",
                "Publish when its writer is done; every delivery needs a folder of its own.",
            )


def staged_folder(root: str, values: Values, table_location: str) -> StagedFolder:
    """The partition below this root. Raises UsageError for a root where readers look already."""
    if not values:
        raise UsageError("A staged folder is of one partition.", "Name it with --partition.")
    own, place = fold_location(table_location), fold_location(root)
    below = place.removeprefix(f"{own}/") if place.startswith(f"{own}/") else None
    if own and (place == own or (below is not None and not _is_hidden(below))):
        raise UsageError(
            f"{root} is the table's own folder, or lies openly in it, where readers look.",
            "Write to a folder of its own for each run, such as …/_staged/run-42.",
        )
    return StagedFolder(fold_location(root), values)


def _is_hidden(path: str) -> bool:
    """Whether Spark, Hive and Trino leave it out: a step of the path begins with a dot or an underscore."""
    return any(step.startswith(("_", ".")) and "=" not in step for step in path.split("/"))


def _local(folder: str) -> list[File]:
    found = []
    top = fold_location(folder)
    for below, _, names in os.walk(top):
        for name in names:
            path = f"{below}/{name}"
            status = os.lstat(path)
            found.append((path.removeprefix(f"{top}/"), status.st_size, str(status.st_mtime_ns)))
    return found


def _remote(folder: str) -> list[File]:
    from pyarrow.fs import FileSelector, FileType

    root, path = split(folder)
    system, before = opened(root)
    top = (before + path).rstrip("/")
    infos = system.get_file_info(FileSelector(top, recursive=True))
    return [
        (one.path.removeprefix(f"{top}/"), one.size, str(one.mtime_ns))
        for one in infos
        if one.type is FileType.File
    ]
