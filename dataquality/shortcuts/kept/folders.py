"""The folders of a table of plain files, and the print that tells one from what it becomes later."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from dq.contracts.shared.errors import MissingTool, Unreadable
from dq.dataquality.model.metric import Failure
from dq.dataquality.shortcuts.kept.questions import Circumstances, circumstances
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.readers.open import Dataset, open_folders
from dq.dataquality.spark.readers.text import with_rows
from dq.dataquality.spark.session import attempt
from dq.lake.paths import is_data_name
from dq.lake.storage import Files, files_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A file this young may be written again within one tick of the storage's clock, and look the same.
SETTLED_AFTER = timedelta(seconds=60)
# So many files at most: their answers come to the driver.
MOST_FILES = 50_000
_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class Folder:
    """Where Spark says a folder is, and the names of the files that it found there."""

    address: str
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of a table, their prints (None: not settled), and all else that its answers depend on."""

    listed: Mapping[str, Folder]
    prints: Mapping[str, str | None]
    around: Circumstances


def folders_of(table: DataFrame, dataset: Dataset, now: datetime) -> Folders | None:
    """All of it, as it is now; None where something cannot be known."""
    around, found = circumstances(table, dataset), _listed(table)
    seen = _prints(found, now) if found else None
    return None if around is None or not found or seen is None else Folders(found, seen, around)


def _listed(table: DataFrame) -> dict[str, Folder] | None:
    """What Spark found, by the folder's place; None where there are too many files."""
    files = attempt(table.inputFiles)
    if isinstance(files, Failure) or len(files) > MOST_FILES:
        return None
    found: dict[str, Folder] = {}
    for file in with_rows(files):
        address, _, name = file.rpartition("/")
        found.setdefault(place(address), Folder(address)).names.add(unquote(name))
    return found


def _prints(folders: Mapping[str, Folder], now: datetime) -> dict[str, str | None] | None:
    """The print of each folder, None for one that has not settled; None when one cannot be known."""
    schemes = {urlsplit(one).scheme for one in folders}
    if len(schemes) != 1:
        return None
    files = files_for(next(iter(folders)))
    try:
        with ThreadPoolExecutor(1 if schemes == {""} else _AT_A_TIME) as pool:
            seen = list(pool.map(lambda one: _print(files, one, folders[one].names, now), folders))
    except (MissingTool, Unreadable):
        return None
    if any(one is None for one in seen):
        return None
    return dict(zip(folders, (one or None for one in seen), strict=True))


def _print(files: Files, folder: str, names: set[str], now: datetime) -> str | None:
    """The print of a folder, "" when it has not settled, None when Spark listed something else."""
    inside = [one for one in files.inside(folder) if is_data_name(one.name)]
    if {one.name for one in inside} != names:
        return None
    if any(now - one.modified_at < SETTLED_AFTER for one in inside):
        return ""
    return hashlib.sha256("\n\n".join(sorted(file.identity for file in inside)).encode()).hexdigest()


def place(folder: str) -> str:
    """A folder as `files_for` reads it, one text for it whoever names it; a plain path on this machine."""
    parts = urlsplit(folder)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}{unquote(parts.path)}"


def rows_of(table: DataFrame, dataset: Dataset, folders: Sequence[Folder]) -> DataFrame | None:
    """The rows of these folders alone; None where Spark would take the name of one for a pattern."""
    if any(sign in unquote(folder.address) for folder in folders for sign in "*?[]{}\\"):
        return None
    schema = schema_of(table)
    addresses = [folder.address for folder in folders]
    frame = attempt(lambda: open_folders(table.sparkSession, dataset, schema, addresses))
    if isinstance(frame, Failure) or schema_of(frame) != schema:
        return None
    return frame
