"""What metadata says of a table, kept from one look to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from sqlalchemy import Column, Connection, String, Table, Text, delete, insert, select, tuple_

from dq.contracts.access.access_policy import is_remote
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import Status, Unreadable
from dq.contracts.types import DataType, row_type
from dq.dataquality.answers.statistics import Statistic, counts_rows, distrusted
from dq.dataquality.check import by_schema
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import asked_of
from dq.dataquality.clauses.coverage import select as select_clauses
from dq.dataquality.model.column import field as field_of
from dq.dataquality.model.run_context import Occasion
from dq.dataquality.spark.columnar_files import NOT_OPENED, opened
from dq.lake import delta, iceberg
from dq.lake.parquet import ParquetColumn, columns, require_distinct
from dq.lake.storage import Files, PlacedPartition, Seen, is_data_name, named_folders
from dq.lake.table_log import NOT_UNDERSTOOD, LiveFile, LiveTable, StatedNulls, row_count, unknown
from dq.store.schema import Json, metadata

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData


table_metadata = Table(
    "table_metadata",
    metadata,
    # Of the contract's text and of all that decides where its data lies.
    Column("digest", String(64), primary_key=True),
    Column("object", Text, primary_key=True),
    # The contract's key.
    Column("contract", Text, nullable=False),
    # Of the names, sizes and times of the table's files; empty: to be looked at again.
    Column("print", String(64), nullable=False),
    Column("place", Json, nullable=False),
    Column("facts", Json, nullable=False),
)


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
class KnownTable:
    """An object of a contract's text, where its data lies, and what its metadata said at this print."""

    digest: str
    object: str
    contract: str
    place: TablePlace
    print: str = ""
    facts: MetadataFacts = NOTHING


def recall(tx: Connection, digests: Iterable[str]) -> Mapping[str, Sequence[KnownTable]]:
    """The tables of these texts."""
    found: dict[str, list[KnownTable]] = {}
    columns = table_metadata.c
    rows = tx.execute(select(table_metadata).where(columns.digest.in_(list(digests))))
    for digest, one, contract, print_, place, facts in rows:
        known = KnownTable(digest, one, contract, TablePlace(**place), print_, MetadataFacts(**facts))
        found.setdefault(digest, []).append(known)
    return found


def remember(tx: Connection, tables: Sequence[KnownTable]) -> None:
    """Keeps these in the place of what was kept of the same objects, also of an earlier text."""
    if not tables:
        return
    columns = table_metadata.c
    names = sorted({(one.contract, one.object) for one in tables})
    tx.execute(delete(table_metadata).where(tuple_(columns.contract, columns.object).in_(names)))
    tx.execute(insert(table_metadata), list(map(asdict, tables)))


# The files of a table in a folder, without a log: those from which Spark reads rows.

MAX_FOLDERS = 20_000
# Links may lead in a circle.
MAX_DEPTH = 32


def table_files(files: Files, root: str, keys: Sequence[str]) -> Iterator[tuple[str, Seen]]:
    """Yield the path of each file and the file.

    Source: PartitioningAwareFileIndex.allFiles and PartitioningUtils.parsePartition of Spark 3.5 and 4.0.
    Where partition folders have data, the files next to them are in no partition, and Spark reads no row of
    them; it reads those in any folder inside of a partition folder.

    Raises Unreadable where the partition folders are not those of `keys`: Spark finds other columns then.
    """
    root = root.rstrip("/")
    top = [(f"{root}/{file.name}", file) for file in files.inside(root) if is_data_name(file.name)]
    partitioned = False
    pending: list[tuple[str, tuple[str, ...], int]] = [(root, (), 0)]
    visited = 0
    while pending:
        folder, columns, depth = pending.pop()
        visited += 1
        if visited > MAX_FOLDERS or depth > MAX_DEPTH:
            raise unknown(
                root, f"has more than {MAX_FOLDERS:,} folders, or more than {MAX_DEPTH} below each other"
            )
        inside = [file for file in files.inside(folder) if is_data_name(file.name)] if depth else []
        if inside:
            partitioned = True
            _require_keys(root, columns, keys)
            yield from ((f"{folder}/{file.name}", file) for file in inside)
        for name in filter(is_data_name, files.folders(folder)):
            key, equals, _ = name.partition("=")
            if equals and len(columns) < depth:
                raise unknown(f"{folder}/{name}", "is a partition folder inside of a folder that is none")
            if equals or depth:
                below = (*columns, unquote(key)) if equals else columns
                pending.append((f"{folder}/{name}", below, depth + 1))
    if not partitioned:
        yield from top


def _require_keys(root: str, columns: Sequence[str], keys: Sequence[str]) -> None:
    if sorted(map(str.lower, columns)) != sorted(map(str.lower, keys)):
        names = ", ".join(keys) or "no partition column"
        raise unknown(root, f"has partition folders of {', '.join(columns)}, and its contract names {names}")


# A table's rows and NULLs, added up over its files as far as their writers are believed.


@dataclass(slots=True)
class LoggedCounts:
    """The data files of a table by its log, added up.

    `nulls` has every column without parts. It and `rows` are None where they are not known.
    """

    nulls: dict[str, int | None]
    files: int = 0
    bytes: int = 0
    rows: int | None = 0

    @classmethod
    def from_table(cls, table: LiveTable) -> LoggedCounts:
        """Add up all files of a table."""
        found = cls(dict.fromkeys(table.columns, 0))
        for file in table.files:
            found.add(file)
        return found

    def add(self, file: LiveFile) -> None:
        """A file more."""
        rows = row_count(file.rows) if counts_rows(file.writers) else None
        left = None if rows is None or file.deleted is None or file.deleted > rows else rows - file.deleted
        self.files += 1
        self.bytes += file.size
        self.rows = _plus(self.rows, left)
        for name, before in self.nulls.items():
            stated = file.nulls.get(name, _NOT_STATED)
            number = None if rows is None else row_count(stated.count, rows)
            if any(Statistic.NULLS in distrusted(writer, stated.type) for writer in file.writers):
                number = None
            if number and number == rows:
                # All are, whichever are left.
                number = left
            elif number and not (stated.exact and file.deleted == 0):
                number = None
            self.nulls[name] = _plus(before, number)


_NOT_STATED = StatedNulls("", None, exact=False)


def _plus(before: int | None, more: int | None) -> int | None:
    return None if before is None or more is None else before + more


# A table's files by their names, sizes and times, and what footers or a log say: rows, NULLs, columns.

MOST_FILES = 20_000
# A file that is younger may be written once more within the resolution of its time.
SETTLED_AFTER = timedelta(minutes=1)
_PATTERN = frozenset("*?[{")
# Of these, the files that are there are not those that are read: their logs say which. The folder and the
# reader of a log, None: it is not read.
_LOGS: Mapping[str, tuple[str, Callable[[Files, str], LiveTable]] | None] = {
    "delta": (delta.LOG_FOLDER, delta.live_table),
    "iceberg": (iceberg.METADATA_FOLDER, iceberg.live_table),
    "hudi": None,
}


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
        table, counts = _logged(files, place, log[1])
        at = table.newest_at.isoformat() if table.newest_at else None
        unkept = tuple(judge(table.schema, {}))
        return MetadataFacts(counts.files, counts.bytes, at, counts.rows, counts.nulls, unkept, judged=True)
    newest = max((one.modified_at for _, one in found.files), default=None)
    seen = MetadataFacts(
        len(found.files), sum(one.size for _, one in found.files), newest.isoformat() if newest else None
    )
    if place.format != "parquet":
        return seen
    rows: int | None = 0
    nulls, schemas = _Nulls(), dict[tuple[ParquetColumn, ...], None]()
    for path, one in found.files:
        # Readers pass over a file without a byte.
        if one.size:
            meta, schema = _footer(path, files.address(path))
            rows = _plus(rows, meta.num_rows if counts_rows([meta.created_by or ""]) else None)
            nulls.add(meta, schema)
            schemas[schema] = None
    broken = dict.fromkeys(message for schema in schemas for message in _judged(schema, judge))
    return replace(seen, rows=rows, nulls=nulls.total(rows), broken=tuple(broken), judged=bool(schemas))


def _logged(
    files: Files, place: TablePlace, read: Callable[[Files, str], LiveTable]
) -> tuple[LiveTable, LoggedCounts]:
    import pyarrow as pa

    try:
        table = read(files, place.path.rstrip("/"))
        return table, LoggedCounts.from_table(table)
    except (*NOT_UNDERSTOOD, pa.ArrowException) as error:
        raise unknown(place.path, f"has a log of {place.format} that cannot be understood") from error


def _judged(columns: Sequence[ParquetColumn], judge: Judge) -> Sequence[str]:
    kinds = {column.name: column.type for column in columns if column.type is not None}
    unread = {column.name: column.problem for column in columns if column.type is None}
    return judge(DataType("struct", (), tuple(kinds.values()), tuple(kinds)), unread)


def _footer(path: str, address: str) -> tuple[FileMetaData, tuple[ParquetColumn, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with opened(address if is_remote(address) else quote(address.removeprefix("file://"))) as source:
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

    def add(self, meta: FileMetaData, schema: Iterable[ParquetColumn]) -> None:
        """One file more; what its writer is known to count wrongly is not known."""
        types = {column.name: column.type.name for column in schema if column.type is not None}
        for at in range(meta.num_columns):
            leaf = meta.schema.column(at)
            if leaf.path != leaf.name or leaf.max_repetition_level:
                continue
            stated = [meta.row_group(group).column(at).statistics for group in range(meta.num_row_groups)]
            counts = [one.null_count if one is not None and one.has_null_count else None for one in stated]
            if Statistic.NULLS in distrusted(meta.created_by or "", types.get(leaf.name, "")):
                counts.append(None)
            self.rows[leaf.name] = self.rows.get(leaf.name, 0) + meta.num_rows
            self.counts[leaf.name] = reduce(_plus, counts, self.counts.get(leaf.name, 0))

    def total(self, rows: int | None) -> dict[str, int | None]:
        """By column; a file that lacks a column has NULL in each of its rows."""
        return {
            name: None if count is None or rows is None else count + rows - self.rows[name]
            for name, count in self.counts.items()
        }


# The promises about columns and types that metadata alone can tell of.


def judge_of(contract: Contract, one: SchemaObject) -> Judge:
    """What `dq check` would say of the columns and types of an object's files, where a promise is broken."""
    kinds = built_in()
    clauses = select_clauses(contract, one, kinds).clauses
    promised = row_type(one)
    keys = [prop.column for prop in one.partition_keys()]

    def broken(schema: DataType, unread: Mapping[str, str]) -> list[str]:
        for name, reason in unread.items():
            if field_of(promised, name) is not None:
                raise Unreadable(f"{one.name}.{name}: {reason}.", "Write this column with another type.")
        placed = {name: field_of(promised, name) for name in keys if field_of(schema, name) is None}
        more = {name: kind for name, kind in placed.items() if kind is not None}
        whole = DataType("struct", (), (*schema.parts, *more.values()), (*schema.names, *more))
        asked = asked_of(whole, clauses, Occasion(None))
        results = by_schema(asked, kinds, whole).values()
        return [result.message for result in results if result.status is Status.FAIL]

    return broken
