"""A folder beside the table: its files are checked there, and then the catalog's partition is put there.

Moving a partition is one write of the catalog, and readers that ask the catalog see the old folder or the new
one. Files are not copied and not moved: an object store has no atomic rename.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from dq.contracts.access.address import has_pattern, is_remote
from dq.contracts.shared.errors import DqError, UsageError
from dq.lake.paths import is_data_path, partition_folder
from dq.lake.storage import file_system, split
from dq.registry.catalog import Catalog, Values
from dq.registry.publishing.marker import folder_is_there
from dq.registry.table import fold_location

File = tuple[str, int, str, str]
"""Path of a file below the folder, its size in bytes, when it was written, and its mark.

The mark is the number of a local file and the time of its last change in any way, which no program can set.
"""


_EMPTY = "A delivery without rows has nothing to be audited: publish it with --rows 0, and without --audit."


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
        # Without the marks, which a change of rights changes too.
        written = sorted((path, size, at) for path, size, at, _ in files)
        digest = hashlib.sha256(repr(written).encode()).hexdigest()[:16]
        return f"{fold_location(self.folder)}#{digest}"

    def published(self, catalog: Catalog, database: str, table: str) -> bool:
        """Whether the catalog has the partition here already: an earlier run came so far."""
        return catalog.place_of(database, table, self.values) == fold_location(self.folder)

    def files(self) -> frozenset[File]:
        """What readers will read there: no markers, and nothing that is hidden.

        Raises UsageError for a link, which could be pointed elsewhere after the audit, and for a pipe, of
        which a reader never comes back. Raises DqError where there is no folder or no file, and as
        `folder_is_there` does.
        """
        self._require_no_link()
        if not folder_is_there(self.folder):
            raise DqError(f"Nothing was staged: {self.folder} does not exist.", self._mend())
        every = _remote(self.folder) if is_remote(self.folder) else _local(self.folder)
        found = frozenset(file for file in every if is_data_path(file[0]))
        if not found:
            raise DqError(
                f"Nothing was staged: {self.folder} holds no file.", f"Write the data there. {_EMPTY}"
            )
        return found

    def _require_no_link(self) -> None:
        """The root and each step below it. What lies above is the machine's own matter, as mounts are."""
        place = self.root
        for step in ("", *partition_folder(self.values).split("/")):
            place = f"{place}/{step}" if step else place
            if not is_remote(place) and Path(place).is_symlink():
                raise _no_file(place, "a link")

    def _mend(self) -> str:
        """What to do where there is no folder: often the partition's own was named, and not the one above."""
        partition = partition_folder(self.values)
        above = self.root.removesuffix(f"/{partition}")
        if above != self.root:
            return f"Name the folder above the partition's own: --audit {above}"
        return f"Write the data there: --audit names the folder that {partition} is in. {_EMPTY}"

    def require_unchanged(self, before: frozenset[File]) -> None:
        """Raises DqError when the files are not those that were checked."""
        now = self.files()
        if now != before:
            changed = sorted({path for path, *_ in before ^ now})
            raise DqError(
                f"{self.folder} changed while it was checked: {', '.join(changed[:3])}.",
                "Publish when its writer is done; every delivery needs a folder of its own.",
            )


def staged_folder(root: str, values: Values, table_location: str) -> StagedFolder:
    """The partition below this root. Raises UsageError for a root where readers look, and for a pattern."""
    if not values:
        raise UsageError("A staged folder is of one partition.", "Name it with --partition.")
    if has_pattern(root):
        # Spark would read what the pattern matches, and the catalog would name this very folder.
        raise UsageError(
            f"{root} is a pattern: what is checked could be another folder than what is published.",
            "Stage into a folder whose name has none of * ? [ ] { }.",
        )
    made = StagedFolder(fold_location(root), values)
    own = fold_location(table_location)
    # Neither by its letters nor where links lead.
    if own and any(
        _is_seen(place, table)
        for place, table in (
            (made.root, own),
            (_real(made.root), _real(own)),
            (_real(made.folder), _real(own)),
        )
    ):
        raise UsageError(
            f"{root} is the table's own folder, lies openly in it or leads there, where readers look.",
            "Write to a folder of its own for each run, such as …/_staged/run-42.",
        )
    return made


def _is_seen(place: str, table: str) -> bool:
    """Whether readers who list the table's folder come to this place."""
    return place == table or (place.startswith(f"{table}/") and is_data_path(place.removeprefix(f"{table}/")))


def _real(place: str) -> str:
    """Where a place is, links followed; no store that is not a disk of ours has any."""
    return place if is_remote(place) else os.path.realpath(place)


def _no_file(path: str, what: str) -> UsageError:
    return UsageError(
        f"{path} is {what}, and what stands behind it may be another thing after the audit.",
        "Stage the files themselves, and name the folder that they are in.",
    )


def _local(folder: str) -> list[File]:
    found = []
    top = fold_location(folder)
    for below, folders, names in os.walk(top):
        for name in (*names, *folders):
            path = f"{below}/{name}"
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode) and is_data_path(path.removeprefix(f"{top}/")):
                raise _no_file(path, "a link" if stat.S_ISLNK(status.st_mode) else "no file")
            mark = f"{status.st_ino} {status.st_ctime_ns}"
            found.append((path.removeprefix(f"{top}/"), status.st_size, str(status.st_mtime_ns), mark))
    return found


def _remote(folder: str) -> list[File]:
    from pyarrow.fs import FileSelector, FileType

    root, path = split(folder)
    system, before = file_system(root)
    top = (before + path).rstrip("/")
    infos = system.get_file_info(FileSelector(top, recursive=True))
    return [
        (one.path.removeprefix(f"{top}/"), one.size, str(one.mtime_ns), "")
        for one in infos
        if one.type is FileType.File
    ]
