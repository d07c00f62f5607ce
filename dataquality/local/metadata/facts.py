"""A table's files by their names, sizes and times, and what footers or a log say: rows, NULLs, columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from dq.contracts.access.access_policy import is_remote
from dq.contracts.shared.outcome import Unreadable
from dq.contracts.types import DataType
from dq.dataquality.local.metadata import delta_log, iceberg_log
from dq.dataquality.local.metadata.logged import LoggedTable, unknown
from dq.dataquality.local.metadata.table_files import table_files
from dq.dataquality.spark.readers.columnar import NOT_OPENED, opened
from dq.lake.commits import NOT_UNDERSTOOD
from dq.lake.parquet import ParquetColumn, columns, require_distinct
from dq.lake.paths import PlacedPartition, is_data_name, named_folders
from dq.lake.storage import Files, Seen

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

MOST_FILES = 20_000
# A file that is younger may be written once more within the resolution of its time.
SETTLED_AFTER = timedelta(minutes=1)
_PATTERN = frozenset("*?[{")
# Of these, the files that are there are not those that are read: their logs say which. The folder and the
# reader of a log, None: it is not read.
_LOGS: Mapping[str, tuple[str, Callable[[Files, str], LoggedTable]] | None] = {
    "delta": (delta_log.FOLDER, delta_log.read),
    "iceberg": (iceberg_log.FOLDER, iceberg_log.read),
    "hudi": None,
}


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where a table lies and in which format; `keys` are the columns that the names of its folders hold."""

    path: str
    format: str
    keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """What metadata says. `newest` is when the newest file was written, in UTC as ISO 8601. Of a table with a
    log, `files`, `bytes` and `newest` are those of the data files that it has now.

    `rows` and each number of `nulls`, by column, are None where it is not known; `broken` are the promises
    about columns and types that are not kept, if any file was `judged` by them; `problem` is why nothing is
    known.
    """

    files: int = 0
    bytes: int = 0
    newest: str | None = None
    rows: int | None = None
    nulls: Mapping[str, int | None] = field(default_factory=dict)
    broken: Sequence[str] = ()
    judged: bool = False
    problem: str = ""


NOTHING = MetadataFacts()


@dataclass(frozen=True, slots=True)
class Listed:
    """The files of a table by their paths, and a print of them; it is empty while they are being written."""

    print: str
    files: tuple[tuple[str, Seen], ...]


Judge = Callable[[DataType, Mapping[str, str]], Sequence[str]]
"""From the columns and types of some files to the broken promises about them.

The mapping has the columns that Spark does not read, each with the reason. Raises Unreadable for one of them
that is promised.
"""


def listed(files: Files, place: TablePlace, now: datetime, placed: Sequence[PlacedPartition] = ()) -> Listed:
    """What lies there, and in the folders of the `placed` partitions. Raises Unreadable where that cannot be
    told."""
    log = _LOGS.get(place.format)
    if log is None and place.format in _LOGS:
        raise unknown(place.path, f"is a table of {place.format}, whose log is not read here")
    if _PATTERN & set(place.path):
        raise unknown(place.path, "is a pattern of paths, and not one table")
    seen: list[tuple[str, Seen]] = []
    within = f"{place.path.rstrip('/')}/{log[0]}" if log else place.path
    for each in _log_files(files, within) if log else table_files(files, within, place.keys):
        seen.append(each)
        if len(seen) > MOST_FILES:
            raise unknown(within, f"has more than {MOST_FILES:,} files")
    if not seen and log and files.holds(place.path):
        raise unknown(place.path, f"has no folder {log[0]}: it is no table of {place.format}")
    if not seen:
        # An address that ends so may be the one file of its table.
        alone = files.stat(place.path) if place.path.endswith(f".{place.format}") else None
        if alone is not None:
            seen = [(place.path, alone)]
        elif not files.holds(place.path):
            raise Unreadable(f"{place.path} is not there.", "Check the path, and what should write there.")
    if placed:
        seen = [
            each
            for each in seen
            if not any(partition.is_named_in(named_folders(each[0])) for partition in placed)
        ] + [(f"{each.folder}/{one.name}", one) for each in placed for one in _data_in(files, each.folder)]
    identities = sorted(f"{path}\n{one.identity}" for path, one in seen)
    young = any(now - one.modified_at < SETTLED_AFTER for _, one in seen)
    made = (
        ""
        if young
        else hashlib.sha256("\n\n".join(identities).encode("utf-8", "surrogateescape")).hexdigest()
    )
    return Listed(made, tuple(seen))


def _data_in(files: Files, folder: str) -> list[Seen]:
    found = [one for one in files.inside(folder) if is_data_name(one.name)]
    if not found and not files.holds(folder):
        raise Unreadable(f"{folder}, where a partition was published, is not there.", "Publish it anew.")
    return found


def _log_files(files: Files, folder: str) -> Iterator[tuple[str, Seen]]:
    inside = (file for file in files.inside(folder) if is_data_name(file.name))
    return ((f"{folder.rstrip('/')}/{file.name}", file) for file in inside)


def facts(files: Files, found: Listed, place: TablePlace, judge: Judge) -> MetadataFacts:
    """What the files and, of Parquet, their footers say, or the log. Raises Unreadable for what says nothing
    certain."""
    if log := _LOGS.get(place.format):
        told = _logged(files, place, log[1])
        at = told.newest.isoformat() if told.newest else None
        unkept = tuple(judge(told.schema, {}))
        return MetadataFacts(told.files, told.bytes, at, told.rows, told.nulls, unkept, judged=True)
    newest = max((one.modified_at for _, one in found.files), default=None)
    seen = MetadataFacts(
        len(found.files), sum(one.size for _, one in found.files), newest.isoformat() if newest else None
    )
    if place.format != "parquet":
        return seen
    rows, nulls, schemas = 0, _Nulls(), dict[tuple[ParquetColumn, ...], None]()
    for path, one in found.files:
        # Readers pass over a file without a byte.
        if one.size:
            meta, schema = _footer(path)
            rows += meta.num_rows
            nulls.add(meta)
            schemas[schema] = None
    broken = dict.fromkeys(message for schema in schemas for message in _judged(schema, judge))
    return replace(seen, rows=rows, nulls=nulls.told(rows), broken=tuple(broken), judged=bool(schemas))


def _logged(files: Files, place: TablePlace, read: Callable[[Files, str], LoggedTable]) -> LoggedTable:
    import pyarrow as pa

    try:
        return read(files, place.path.rstrip("/"))
    except (*NOT_UNDERSTOOD, pa.ArrowException) as error:
        raise unknown(place.path, f"has a log of {place.format} that cannot be understood") from error


def _judged(columns: Sequence[ParquetColumn], judge: Judge) -> Sequence[str]:
    kinds = {column.name: column.type for column in columns if column.type is not None}
    unread = {column.name: column.problem for column in columns if column.type is None}
    return judge(DataType("struct", (), tuple(kinds.values()), tuple(kinds)), unread)


def _footer(path: str) -> tuple[FileMetaData, tuple[ParquetColumn, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with opened(path if is_remote(path) else quote(path.removeprefix("file://"))) as source:
            meta = pq.read_metadata(source)
            found = columns(meta.schema)
    except (*NOT_OPENED, pa.ArrowException) as error:
        raise Unreadable(f"{path} has no footer that can be read.", "Deliver this file again.") from error
    require_distinct(found, path)
    return meta, found


@dataclass(slots=True)
class _Nulls:
    """The NULLs of plain columns, added up over files."""

    counts: dict[str, int | None] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def add(self, meta: FileMetaData) -> None:
        """One file more."""
        for at in range(meta.num_columns):
            leaf = meta.schema.column(at)
            if leaf.path != leaf.name or leaf.max_repetition_level:
                continue
            known = self.counts.get(leaf.name, 0)
            self.rows[leaf.name] = self.rows.get(leaf.name, 0) + meta.num_rows
            for group in range(meta.num_row_groups):
                told = meta.row_group(group).column(at).statistics
                absent = told.null_count if told is not None and told.has_null_count else None
                known = None if known is None or absent is None else known + absent
            self.counts[leaf.name] = known

    def told(self, rows: int) -> dict[str, int | None]:
        """By column; a file that lacks a column has NULL in each of its rows."""
        return {
            name: None if count is None else count + rows - self.rows[name]
            for name, count in self.counts.items()
        }
