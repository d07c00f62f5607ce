"""Table metadata (files, rows, NULLs, schema violations), cached in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, unquote

from sqlalchemy import Column, Connection, String, Table, Text, delete, insert, select, tuple_

from dq.contracts.access.access_policy import is_remote
from dq.contracts.check_result import Status
from dq.contracts.layout import HIVE, Layout, PlacedPartition, parse_layout
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import ReadError
from dq.contracts.types import DataType, row_type
from dq.dataquality.answers.statistics import Statistic, counts_rows, distrusted
from dq.dataquality.check import evaluate_by_schema
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import bind_clauses
from dq.dataquality.clauses.coverage import select as select_clauses
from dq.dataquality.model.column import struct_field as field_of
from dq.dataquality.model.run_context import RunContext
from dq.dataquality.spark.columnar_files import NOT_OPENED, connected_storage, open_input
from dq.lake import delta, iceberg
from dq.lake.parquet import ParquetColumn, columns, require_distinct
from dq.lake.storage import ArrowFiles, Files, FileStat, is_data_name
from dq.lake.table_log import NOT_UNDERSTOOD, LiveFile, LiveTable, StatedNulls, row_count, unknown
from dq.store.schema import Json, metadata

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

A = TypeVar("A")
B = TypeVar("B")


table_metadata = Table(
    "table_metadata",
    metadata,
    # Hash of the contract's text and of everything that determines the location of its data.
    Column("digest", String(64), primary_key=True),
    Column("object", Text, primary_key=True),
    # The contract's key.
    Column("contract", Text, nullable=False),
    # Hash of the names, sizes and times of the table's files; empty: to be read again.
    Column("print", String(64), nullable=False),
    Column("place", Json, nullable=False),
    Column("facts", Json, nullable=False),
)


@dataclass(frozen=True, slots=True)
class TableLocation:
    """Location and format of a table.

    `keys` are the columns in its folder names, and `layout` is the template of these, "" for Hive's.
    """

    path: str
    format: str
    keys: Sequence[str] = ()
    layout: str = ""

    def values_of(self, file: str) -> dict[str, str]:
        """Return the values in the path of a file, by lower-case column."""
        return _layout_of(self).values_of_file(file.removeprefix(f"{self.path.rstrip('/')}/")) or {}


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """Facts from metadata. `newest` is the time of the newest file, in UTC as ISO 8601.

    For a table with a log, `files`, `bytes` and `newest` refer to its live data files. `rows` and each number
    of `nulls` (by column) are None if unknown. `broken` are the violated clauses about columns and types, if
    any file was `judged` by them. `problem` is the reason if nothing is known. `outside` are files and
    folders that are not in the layout, whose rows are left out.
    """

    files: int = 0
    bytes: int = 0
    newest: str | None = None
    rows: int | None = None
    nulls: Mapping[str, int | None] = field(default_factory=dict)
    broken: Sequence[str] = ()
    judged: bool = False
    problem: str = ""
    outside: Sequence[str] = ()


NOTHING = MetadataFacts()


@dataclass(frozen=True, slots=True)
class CachedMetadata:
    """An object of a contract's text, the location of its data, and its metadata at the time of `print`."""

    digest: str
    object: str
    contract: str
    place: TableLocation
    print: str = ""
    facts: MetadataFacts = NOTHING


def recall(tx: Connection, digests: Iterable[str]) -> Mapping[str, Sequence[CachedMetadata]]:
    """Return the cached tables by digest."""
    tables_by_digest: dict[str, list[CachedMetadata]] = {}
    columns = table_metadata.c
    rows = tx.execute(select(table_metadata).where(columns.digest.in_(list(digests))))
    for digest, object_name, contract, print_, place, facts in rows:
        cached = CachedMetadata(
            digest, object_name, contract, TableLocation(**place), print_, MetadataFacts(**facts)
        )
        tables_by_digest.setdefault(digest, []).append(cached)
    return tables_by_digest


def remember(tx: Connection, tables: Sequence[CachedMetadata]) -> None:
    """Store these tables, replacing rows of the same objects, including those of earlier contract texts."""
    if not tables:
        return
    columns = table_metadata.c
    names = sorted({(table.contract, table.object) for table in tables})
    tx.execute(delete(table_metadata).where(tuple_(columns.contract, columns.object).in_(names)))
    tx.execute(insert(table_metadata), list(map(asdict, tables)))


# Files of a table without a log: those from which Spark reads rows.

MAX_FOLDERS = 20_000
# Links may form a cycle.
MAX_DEPTH = 32
# Names of files outside of the layout that are kept.
_MAX_OUTSIDE = 100


def _layout_of(place: TableLocation) -> Layout:
    layout = parse_layout(place.layout) if place.layout else HIVE
    assert isinstance(layout, Layout)
    return layout


def table_files(
    files: Files, root: str, place: TableLocation, outside: list[str]
) -> Iterator[tuple[str, FileStat]]:
    """Yield the path of each file and the file. Files and folders that are not in the layout are added to
    `outside`.

    Source: PartitioningAwareFileIndex.allFiles and PartitioningUtils.parsePartition of Spark 3.5 and 4.0.
    If partition folders have data, Spark ignores files next to them, and reads files in any folder inside of
    a partition folder.

    Raises ReadError if the partition folders are not those of the table, because Spark would find other
    columns.
    """
    root, keys = root.rstrip("/"), place.keys
    if place.layout:
        yield from _files_in_layout(files, root, _layout_of(place), outside)
        return
    top: list[tuple[str, FileStat]] = []
    partitioned = False
    level: list[tuple[str, tuple[str, ...]]] = [(root, ())]
    visited = depth = 0
    while level:
        visited += len(level)
        _require_limits(root, visited, depth)
        next_level = []
        listings = _map_requests(files.entries, [folder for folder, _ in level], is_remote(root))
        for (folder, folder_columns), (files_inside, folders) in zip(level, listings, strict=True):
            data = [(f"{folder}/{file.name}", file) for file in files_inside if is_data_name(file.name)]
            if data and depth:
                partitioned = True
                _require_keys(root, folder_columns, keys)
                yield from data
            elif data:
                top = data
            for name in filter(is_data_name, folders):
                key, equals, _ = name.partition("=")
                if equals and len(folder_columns) < depth:
                    raise unknown(f"{folder}/{name}", "is a partition folder inside a folder that is not one")
                if equals or depth:
                    partition_columns = (*folder_columns, unquote(key)) if equals else folder_columns
                    next_level.append((f"{folder}/{name}", partition_columns))
        level, depth = next_level, depth + 1
    if not partitioned:
        yield from top


def _files_in_layout(
    files: Files, root: str, layout: Layout, outside: list[str]
) -> Iterator[tuple[str, FileStat]]:
    """Yield the files of the partitions, and add others to `outside`, with folders as `name/`.

    Raises ReadError if there are other folders, and none is in the layout.
    """
    level, visited, depth, has_data = [""], 0, 0, False
    while level:
        visited += len(level)
        _require_limits(root, visited, depth)
        next_level = []
        folders = [f"{root}/{above}".rstrip("/") for above in level]
        listings = _map_requests(files.entries, folders, is_remote(root))
        for above, folder, (files_inside, names) in zip(level, folders, listings, strict=True):
            data = [file for file in files_inside if is_data_name(file.name)]
            if above and depth >= layout.depth:
                has_data = has_data or bool(data)
                yield from ((f"{folder}/{file.name}", file) for file in data)
            else:
                outside += [f"{above}/{file.name}".lstrip("/") for file in data]
            for name in filter(is_data_name, names):
                below = f"{above}/{name}" if above else name
                partition = "/".join(below.split("/")[: layout.depth])
                is_partition = depth + 1 == layout.depth
                if layout.may_contain(partition) and (not is_partition or layout.partition_of(partition)):
                    next_level.append(below)
                else:
                    outside.append(f"{below}/")
        level, depth = next_level, depth + 1
    other_folders = [name for name in outside if name.endswith("/")]
    if other_folders and not has_data:
        example = min(other_folders).rstrip("/")
        raise unknown(root, f"has no folder of the layout {layout.template!r}, only others, e.g. {example!r}")


def _require_limits(root: str, visited: int, depth: int) -> None:
    """Raise ReadError for more folders, or deeper ones, than a table is expected to have."""
    if visited > MAX_FOLDERS or depth > MAX_DEPTH:
        raise unknown(root, f"has more than {MAX_FOLDERS:,} folders, or is nested more than {MAX_DEPTH} deep")


_CONCURRENT_REQUESTS = 16
# Requests sent ahead of the answer that is used next; their answers have to fit into memory.
_REQUESTS_AHEAD = 1_000


def _map_requests(request: Callable[[A], B], arguments: Sequence[A], remote: bool) -> Iterator[B]:
    """Yield the answers in the order of the arguments; a remote storage gets many requests at once."""
    if not remote:
        yield from map(request, arguments)
        return
    with ThreadPoolExecutor(_CONCURRENT_REQUESTS) as pool:
        for start in range(0, len(arguments), _REQUESTS_AHEAD):
            yield from pool.map(request, arguments[start : start + _REQUESTS_AHEAD])


def _require_keys(root: str, columns: Sequence[str], keys: Sequence[str]) -> None:
    if sorted(map(str.lower, columns)) != sorted(map(str.lower, keys)):
        names = ", ".join(keys) or "no partition column"
        raise unknown(
            root, f"has partition folders of {', '.join(columns)}, but its contract declares {names}"
        )


# Rows and NULLs of a table, summed over its files unless their writers are known to be wrong.


@dataclass(slots=True)
class LoggedCounts:
    """Totals of the data files of a table with a log.

    `nulls` has every column without nested fields. Its values and `rows` are None if unknown.
    """

    nulls: dict[str, int | None]
    files: int = 0
    bytes: int = 0
    rows: int | None = 0

    @classmethod
    def from_table(cls, table: LiveTable) -> LoggedCounts:
        """Add up all files of a table."""
        counts = cls(dict.fromkeys(table.columns, 0))
        for file in table.files:
            counts.add(file)
        return counts

    def add(self, file: LiveFile) -> None:
        """Add a file."""
        rows = row_count(file.rows) if counts_rows(file.writers) else None
        live_rows = (
            None if rows is None or file.deleted is None or file.deleted > rows else rows - file.deleted
        )
        self.files += 1
        self.bytes += file.size
        self.rows = _add(self.rows, live_rows)
        for name, previous in self.nulls.items():
            stated = file.nulls.get(name, _NOT_STATED)
            number = None if rows is None else row_count(stated.count, rows)
            if any(Statistic.NULLS in distrusted(writer, stated.type) for writer in file.writers):
                number = None
            if number and number == rows:
                # All values are NULL, whichever rows remain.
                number = live_rows
            elif number and not (stated.exact and file.deleted == 0):
                number = None
            self.nulls[name] = _add(previous, number)


_NOT_STATED = StatedNulls("", None, exact=False)


def _add(total: int | None, added: int | None) -> int | None:
    return None if total is None or added is None else total + added


# Files of a table by name, size and time, and facts from footers or a log: rows, NULLs, columns.

MAX_FILES = 20_000
# A younger file may be rewritten within the resolution of its modification time.
SETTLED_AFTER = timedelta(minutes=1)
_GLOB_CHARACTERS = frozenset("*?[{")
# Formats whose logs list the live files -> folder and reader of the log, or None if the log is not supported.
_LOG_READERS: Mapping[str, tuple[str, Callable[[Files, str], LiveTable]] | None] = {
    "delta": (delta.LOG_FOLDER, delta.live_table),
    "iceberg": (iceberg.METADATA_FOLDER, iceberg.live_table),
    "hudi": None,
}


@dataclass(frozen=True, slots=True)
class FileListing:
    """Files of a table by path, and their fingerprint, which is empty while files are being written.

    `outside` are files and folders that are not in the layout.
    """

    print: str
    files: tuple[tuple[str, FileStat], ...]
    outside: tuple[str, ...] = ()


SchemaValidator = Callable[[DataType, Mapping[str, str]], Sequence[str]]
"""Returns the violations of a schema.

The mapping has the columns that Spark does not read, each with the reason. Raises ReadError if one of them
is in the contract.
"""


def list_files(
    files: Files, place: TableLocation, now: datetime, external_partitions: Sequence[PlacedPartition] = ()
) -> FileListing:
    """List the files of a table, including the folders of its external partitions.

    Raises ReadError if they cannot be determined.
    """
    log = _LOG_READERS.get(place.format)
    if log is None and place.format in _LOG_READERS:
        raise unknown(place.path, f"is a {place.format} table, whose log is not supported")
    if _GLOB_CHARACTERS & set(place.path):
        raise unknown(place.path, "is a path pattern, not a single table")
    entries: list[tuple[str, FileStat]] = []
    root = f"{place.path.rstrip('/')}/{log[0]}" if log else place.path
    outside: list[str] = []
    for entry in _log_files(files, root) if log else table_files(files, root, place, outside):
        entries.append(entry)
        if len(entries) > MAX_FILES:
            raise unknown(root, f"has more than {MAX_FILES:,} files")
    if not entries and log and files.holds(place.path):
        raise unknown(place.path, f"has no folder {log[0]}: it is not a {place.format} table")
    if not entries:
        # A path with the suffix of the format may be a single file.
        single_file = files.stat(place.path) if place.path.endswith(f".{place.format}") else None
        if single_file is not None:
            entries = [(place.path, single_file)]
        elif not files.holds(place.path):
            raise ReadError(f"{place.path} does not exist.", "Check the path and the job that writes to it.")
    if external_partitions:
        entries = [
            entry
            for entry in entries
            if not any(partition.is_named_in(place.values_of(entry[0])) for partition in external_partitions)
        ] + [
            (f"{partition.folder}/{file.name}", file)
            for partition in external_partitions
            for file in _data_files(files, partition.folder)
        ]
    identities = sorted(f"{path}\n{file.identity}" for path, file in entries) + sorted(outside)
    is_recent = any(now - file.modified_at < SETTLED_AFTER for _, file in entries)
    fingerprint = (
        ""
        if is_recent
        else hashlib.sha256("\n\n".join(identities).encode("utf-8", "surrogateescape")).hexdigest()
    )
    return FileListing(fingerprint, tuple(entries), tuple(sorted(outside)))


def _data_files(files: Files, folder: str) -> list[FileStat]:
    data_files = [file for file in files.inside(folder) if is_data_name(file.name)]
    if not data_files and not files.holds(folder):
        raise ReadError(f"{folder}, where a partition was published, does not exist.", "Publish it again.")
    return data_files


def _log_files(files: Files, folder: str) -> Iterator[tuple[str, FileStat]]:
    data_files = (file for file in files.inside(folder) if is_data_name(file.name))
    return ((f"{folder.rstrip('/')}/{file.name}", file) for file in data_files)


def read_facts(
    files: Files, listing: FileListing, place: TableLocation, validate: SchemaValidator
) -> MetadataFacts:
    """Return the facts from the log, or from the files and (for Parquet) their footers.

    Raises ReadError if the metadata is not conclusive.
    """
    if log := _LOG_READERS.get(place.format):
        table, counts = _read_log(files, place, log[1])
        newest_at = table.newest_at.isoformat() if table.newest_at else None
        log_violations = tuple(validate(table.schema, {}))
        return MetadataFacts(
            counts.files, counts.bytes, newest_at, counts.rows, counts.nulls, log_violations, judged=True
        )
    newest = max((file.modified_at for _, file in listing.files), default=None)
    listed_facts = MetadataFacts(
        len(listing.files),
        sum(file.size for _, file in listing.files),
        newest.isoformat() if newest else None,
        outside=listing.outside[:_MAX_OUTSIDE],
    )
    if place.format != "parquet":
        return listed_facts
    rows: int | None = 0
    nulls, schemas = _NullCounts(), dict[tuple[ParquetColumn, ...], None]()
    # Readers skip empty files.
    for meta, schema in _footers([(path, files.address(path)) for path, file in listing.files if file.size]):
        rows = _add(rows, meta.num_rows if counts_rows([meta.created_by or ""]) else None)
        nulls.add(meta, schema)
        schemas[schema] = None
    broken = dict.fromkeys(message for schema in schemas for message in _broken_promises(schema, validate))
    return replace(
        listed_facts, rows=rows, nulls=nulls.total(rows), broken=tuple(broken), judged=bool(schemas)
    )


def _read_log(
    files: Files, place: TableLocation, read: Callable[[Files, str], LiveTable]
) -> tuple[LiveTable, LoggedCounts]:
    import pyarrow as pa

    try:
        table = read(files, place.path.rstrip("/"))
        return table, LoggedCounts.from_table(table)
    except (*NOT_UNDERSTOOD, pa.ArrowException) as error:
        raise unknown(place.path, f"has a log of {place.format} that cannot be understood") from error


def _broken_promises(columns: Sequence[ParquetColumn], validate: SchemaValidator) -> Sequence[str]:
    kinds = {column.name: column.type for column in columns if column.type is not None}
    unreadable = {column.name: column.problem for column in columns if column.type is None}
    return validate(DataType("struct", (), tuple(kinds.values()), tuple(kinds)), unreadable)


def _footers(
    addresses: Sequence[tuple[str, str]],
) -> Iterator[tuple[FileMetaData, tuple[ParquetColumn, ...]]]:
    """Yield the footers of files, given as path and address, in their order."""
    storage = connected_storage(address for _, address in addresses)
    yield from _map_requests(lambda pair: _footer(pair[0], pair[1], storage), addresses, storage is not None)


def _footer(
    path: str, address: str, storage: ArrowFiles | None
) -> tuple[FileMetaData, tuple[ParquetColumn, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_input(_encoded(address), storage) as source:
            meta = pq.read_metadata(source)
            parquet_columns = columns(meta.schema)
    except (*NOT_OPENED, pa.ArrowException) as error:
        raise ReadError(f"{path} has no footer that can be read.", "Deliver this file again.") from error
    require_distinct(parquet_columns, path)
    return meta, parquet_columns


def _encoded(address: str) -> str:
    """Return the URL-encoded address of a file, as Spark writes it."""
    if not is_remote(address):
        return quote(address.removeprefix("file://"))
    scheme, separator, place = address.partition("://")
    return f"{scheme}{separator}{quote(place, safe='/@:')}"


@dataclass(slots=True)
class _NullCounts:
    """NULL counts of columns without nested fields, summed over files."""

    counts: dict[str, int | None] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def add(self, meta: FileMetaData, schema: Iterable[ParquetColumn]) -> None:
        """Add a file; counts are unknown if the writer is known to be wrong."""
        types = {column.name: column.type.name for column in schema if column.type is not None}
        for index in range(meta.num_columns):
            leaf = meta.schema.column(index)
            if leaf.path != leaf.name or leaf.max_repetition_level:
                continue
            column_statistics = [
                meta.row_group(group).column(index).statistics for group in range(meta.num_row_groups)
            ]
            counts = [
                statistics.null_count if statistics is not None and statistics.has_null_count else None
                for statistics in column_statistics
            ]
            if Statistic.NULLS in distrusted(meta.created_by or "", types.get(leaf.name, "")):
                counts.append(None)
            self.rows[leaf.name] = self.rows.get(leaf.name, 0) + meta.num_rows
            self.counts[leaf.name] = reduce(_add, counts, self.counts.get(leaf.name, 0))

    def total(self, rows: int | None) -> dict[str, int | None]:
        """Return the NULLs by column; a file without a column has NULL in each of its rows."""
        return {
            name: None if count is None or rows is None else count + rows - self.rows[name]
            for name, count in self.counts.items()
        }


# Clauses about columns and types, which metadata alone can test.


def schema_validator(contract: Contract, schema_object: SchemaObject) -> SchemaValidator:
    """Return a validator of an object's columns and types, with the failure messages of `dq check`."""
    kinds = built_in()
    clauses = select_clauses(contract, schema_object, kinds).clauses
    promised = row_type(schema_object)
    keys = [prop.column for prop in schema_object.partition_keys()]

    def broken_promises(schema: DataType, unreadable: Mapping[str, str]) -> list[str]:
        for name, reason in unreadable.items():
            if field_of(promised, name) is not None:
                raise ReadError(
                    f"{schema_object.name}.{name}: {reason}.", "Write this column with another type."
                )
        partition_types = {name: field_of(promised, name) for name in keys if field_of(schema, name) is None}
        missing_types = {name: kind for name, kind in partition_types.items() if kind is not None}
        full_schema = DataType(
            "struct", (), (*schema.parts, *missing_types.values()), (*schema.names, *missing_types)
        )
        bound_clauses = bind_clauses(full_schema, clauses, RunContext(None))
        results = evaluate_by_schema(bound_clauses, kinds, full_schema).values()
        return [result.message for result in results if result.status is Status.FAIL]

    return broken_promises
