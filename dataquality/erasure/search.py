"""Search of files for keys: Parquet by row groups that cannot be skipped, other formats by all of their rows.

A file is read by its content, not by its name. What cannot be read to its end is a gap, never skipped.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from dq.contracts.access.access_policy import is_remote
from dq.contracts.identity import PHONE, TEXT, normalized
from dq.contracts.outcome import DqError, ReadError
from dq.dataquality import text
from dq.dataquality.answers.statistics import read_chunk_metadata
from dq.dataquality.erasure.files import IdentityColumn, Names, SearchedFile, SearchedTable, Step
from dq.dataquality.erasure.keys import Keys, Positions, Unsearchable
from dq.dataquality.erasure.model import FileResult, Gap, Hit, Means, Role
from dq.dataquality.erasure.skipping import ORDER, Skipper
from dq.dataquality.model.predicate import Inside
from dq.dataquality.spark.columnar_files import open_input
from dq.lake import compression, hudi_files, table_folders
from dq.lake.storage import ArrowFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import NativeFile
    from pyarrow.parquet import FileMetaData

_BATCH_ROWS = 65_536
_CSV_BLOCK = 16 << 20
_HEADER_BYTES = 1 << 20
# An unknown file up to this size is searched as a text.
_MOST_TEXT = 1 << 20
_MOST_JSON_ARRAY = 256 << 20
# Characters of a text in a log that may be a path.
_MOST_PATH = 4096
_CODECS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
# Parts of a log with numbers by the names of columns that are not values of these.
_COUNTS = frozenset({"nullCount", "null_count"})
_JSON = ("json", "jsonl", "ndjson")
_CHECKSUM = b"crc\x00"
_ACTIONS = frozenset({"add", "remove", "cdc"})


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row of keys: their positions, the columns with them, and its values as the file has them."""

    keys: Positions
    columns: tuple[str, ...]
    path: str
    row: Mapping[str, Any]


@dataclass(slots=True)
class FileSearch:
    """The search of a file: its result, unless it could not be read, its gaps, and the rows of keys."""

    result: FileResult | None = None
    gaps: list[Gap] = field(default_factory=list)
    rows: list[FoundRow] = field(default_factory=list)


@dataclass(slots=True)
class _Search:
    """A search in progress."""

    table: SearchedTable
    file: SearchedFile
    keys: Keys
    with_rows: bool
    hit_rows: Counter[tuple[int, str]] = field(default_factory=Counter)
    gaps: list[Gap] = field(default_factory=list)
    rows: list[FoundRow] = field(default_factory=list)
    bytes_read: int = 0
    means: Means = Means.SCAN
    row_count: int = 0
    rows_with_keys: int = 0

    def gap(self, why: str) -> None:
        gap = Gap(self.table.name, self.file.file.path, why)
        if gap not in self.gaps:
            self.gaps.append(gap)

    def add(self, by_column: Mapping[str, Positions], row: Mapping[str, Any] | None) -> None:
        """Count a row with keys."""
        self.rows_with_keys += 1
        for column, positions in by_column.items():
            for position in positions:
                self.hit_rows[position, column] += 1
        if self.with_rows and row is not None:
            positions = tuple(sorted({at for part in by_column.values() for at in part}))
            self.rows.append(FoundRow(positions, tuple(by_column), self.file.file.path, row))


def search_file(
    table: SearchedTable,
    file: SearchedFile,
    keys: Keys,
    storage: ArrowFiles | None = None,
    *,
    with_rows: bool = False,
) -> FileSearch:
    """Search a file for keys. With `with_rows`, also return the rows that have them."""
    search = _Search(table, file, keys, with_rows)
    try:
        if not file.relative.endswith("/"):
            with open_input(_address(file.file.path), storage) as source:
                _search_content(search, source)
        else:
            search.means = Means.EMPTY
    except DqError as error:
        # Messages of readers name lines, not values.
        search.gap(error.message)
    except Unsearchable as error:
        search.gap(str(error))
    except Exception as error:  # noqa: BLE001  # any damage of a file is a gap, and its text may have values
        search.gap(f"it cannot be read ({type(error).__name__})")
    _search_path(search)
    hits = tuple(Hit(key, column, rows) for (key, column), rows in sorted(search.hit_rows.items()))
    if search.gaps and not hits:
        # A file that was not searched to its end is not cleared.
        return FileSearch(None, search.gaps, search.rows)
    means = Means.SCAN if hits else search.means
    result = FileResult(file.file, means, search.bytes_read, hits, search.rows_with_keys)
    return FileSearch(result, search.gaps, search.rows)


def _address(path: str) -> str:
    """Return a path as the URL-encoded address that `open_input` takes."""
    if not is_remote(path):
        return quote(path)
    scheme, _, remainder = path.partition("://")
    host, slash, inside = remainder.partition("/")
    return f"{scheme}://{host}{slash}{quote(inside)}"


def _search_path(search: _Search) -> None:
    """Search the values of partitions in the path of a file; each of its rows has them."""
    values = dict(search.table.layout.values_of_file(search.file.relative) or {})
    for step in search.file.relative.split("/")[:-1]:
        name, sign, _ = step.partition("=")
        if sign and name.lower() not in values:
            values |= search.table.layout.__class__("").values_of_file(f"{step}/x") or {}
    for column in search.table.columns:
        for name, value in values.items():
            first = column.steps[0]
            if len(column.steps) == 1 and isinstance(first, Names) and first.fits(name):
                positions = _of_text(search.keys, value, column.normalize)
                if positions:
                    # Every row of the file has the value.
                    rows = max(search.row_count, 1)
                    search.hit_rows.update({(at, f"{column} (path)"): rows for at in positions})
                    search.rows_with_keys = max(search.rows_with_keys, rows)


def _of_text(keys: Keys, value: str, normalize: str) -> Positions:
    """Return the keys that a text is, as a text or as a number that is written as one."""
    positions = set(keys.matching(value, normalize))
    if re.fullmatch(r"-?[0-9]{1,38}", value, re.ASCII):
        positions |= set(keys.matching(int(value), normalize))
    return tuple(sorted(positions))


def _search_content(search: _Search, source: NativeFile) -> None:
    size = source.size()
    head = source.read_at(min(8, size), 0)
    source.seek(0)  # Arrow does not read on after `read_at`
    if size == 0 or head.startswith(_CHECKSUM):
        search.means = Means.EMPTY
    elif head.startswith(hudi_files.LOG_MAGIC) or _is_log_of_hudi(search):
        search.bytes_read += size
        _search_hudi_log(search, source, size)
    elif head in hudi_files.HFILE_MAGICS:
        search.bytes_read += size
        _search_hfile(search, source, size)
    elif head.startswith(b"PAR1"):
        _search_parquet(search, source)
    elif head.startswith(_PUFFIN):
        search.bytes_read += size
        _search_puffin(search, source.read())
    elif head.startswith(b"Obj\x01"):
        search.bytes_read += size
        _search_avro(search, source)
    elif head.startswith(b"ORC"):
        search.bytes_read += size
        _search_orc(search, source)
    elif search.file.file.role is Role.DELETES and search.file.relative.endswith(".bin"):
        search.means = Means.EMPTY  # deletion vectors of Delta
    elif head.startswith(b"PARE"):
        search.gap("it is encrypted")
    else:
        search.bytes_read += size
        _search_text(search, source, head)


# Parquet.


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf of a file's schema below an identity column: its index, and the steps to it in Arrow's types.

    Without `fits`, the file has another shape than the contract, and the leaf is one of all in its place.
    """

    column: IdentityColumn
    index: int
    steps: tuple[str | Inside, ...]
    fits: bool = True


# A proof is many small steps of Python and Arrow. Threads that take turns at each step take twice the time.
_PROOF = threading.Lock()


def _search_parquet(search: _Search, source: NativeFile) -> None:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    meta: FileMetaData = file.metadata
    search.bytes_read += meta.serialized_size + 8
    search.row_count = meta.num_rows
    if not _has_rows(search):
        search.bytes_read += search.file.file.size
        for batch in file.iter_batches(1_024):
            for record in batch.to_pylist():
                _search_record_of_log(search, record)
        return
    if _is_summary(meta):
        _search_bounds(search, meta)
        return
    if sum(meta.row_group(group).num_rows for group in range(meta.num_row_groups)) != meta.num_rows:
        search.gap("its footer and its row groups have different numbers of rows")
    elif meta.num_rows == 0:
        search.means = Means.EMPTY
        return
    leaves = list(_leaves(file.schema_arrow, search.table.columns))
    if not leaves:
        _without_columns(search, [field.name for field in file.schema_arrow])
        return
    _require_all(search, {leaf.column for leaf in leaves}, [field.name for field in file.schema_arrow])
    scanned: dict[int, list[_Leaf]] = {}
    used = {Means.ABSENT}
    # Requests to a remote storage are made at the same time.
    with nullcontext() if is_remote(search.file.file.path) else _PROOF:
        skipper = Skipper(source, meta, read_chunk_metadata(source, meta), search.keys)
        for group in range(meta.num_row_groups):
            for leaf in leaves:
                means = Means.SCAN
                if leaf.fits:
                    means = skipper.means_of(group, leaf.index, leaf.column.normalize)
                used.add(means)
                if means is Means.SCAN:
                    scanned.setdefault(group, []).append(leaf)
    search.bytes_read += skipper.read_bytes
    search.means = max(used, key=ORDER.index)
    for group, group_leaves in scanned.items():
        _scan_group(search, file, group, group_leaves)


@dataclass(slots=True)
class ColumnProfile:
    """Parquet files with a column, and bytes of its compressed chunks that have filters or dictionaries."""

    files: int = 0
    bytes: int = 0
    bloom_bytes: int = 0
    dictionary_bytes: int = 0
    uncovered_bytes: int = 0
    has_one_spelling: bool = True
    can_have_filter: bool = True


def profile_file(
    table: SearchedTable,
    file: SearchedFile,
    storage: ArrowFiles | None,
    profiles: Mapping[str, ColumnProfile],
) -> None:
    """Add a file to the profiles of its columns; files of other formats are left out.

    Raises OSError or ValueError for a file that cannot be read.
    """
    import pyarrow.parquet as pq

    with open_input(_address(file.file.path), storage) as source:
        if source.size() < 4 or source.read_at(4, 0) != b"PAR1":
            return
        parquet = pq.ParquetFile(source)
        meta = parquet.metadata
        if _is_summary(meta):
            return
        skipper = Skipper(source, meta, read_chunk_metadata(source, meta), Keys(()))
        for leaf in _leaves(parquet.schema_arrow, table.columns):
            profile = profiles[str(leaf.column)]
            profile.files += 1
            one_spelling, can_have_filter = skipper.filter_use(leaf.index, leaf.column.normalize)
            profile.has_one_spelling &= one_spelling
            profile.can_have_filter &= can_have_filter
            for group in range(meta.num_row_groups):
                size = meta.row_group(group).column(leaf.index).total_compressed_size
                bloom = one_spelling and can_have_filter and skipper.has_filter(group, leaf.index)
                dictionary = skipper.has_dictionary(group, leaf.index)
                profile.bytes += size
                profile.bloom_bytes += size if bloom else 0
                profile.dictionary_bytes += size if dictionary else 0
                profile.uncovered_bytes += 0 if bloom or dictionary else size


def _scan_group(search: _Search, file: Any, group: int, leaves: Sequence[_Leaf]) -> None:
    indices = sorted({leaf.index for leaf in leaves})
    chunks = [file.metadata.row_group(group).column(index) for index in indices]
    search.bytes_read += sum(chunk.total_compressed_size for chunk in chunks)
    hits: dict[int, dict[str, set[int]]] = {}
    start = 0
    for batch in file.reader.iter_batches(_BATCH_ROWS, row_groups=[group], column_indices=indices):
        for leaf in leaves:
            for row, positions in _in_column(search.keys, batch.column(_top(batch, leaf)), leaf):
                hits.setdefault(start + row, {}).setdefault(str(leaf.column), set()).update(positions)
        start += batch.num_rows
    if start != file.metadata.row_group(group).num_rows:
        search.gap(f"row group {group} has another number of rows than its footer says")
    rows = iter(_rows_at(file, group, sorted(hits)) if search.with_rows and hits else ())
    for _, by_column in sorted(hits.items()):
        search.add({column: tuple(sorted(at)) for column, at in by_column.items()}, next(rows, None))


def _top(batch: pa.RecordBatch, leaf: _Leaf) -> int:
    return _only_index(batch.schema, str(leaf.steps[0]))


def _only_index(fields: pa.Schema | pa.StructType, name: str) -> int:
    """Return the index of a field. Raises Unsearchable if several have the name."""
    index = int(fields.get_field_index(name))
    if index < 0:
        raise Unsearchable(f"several of its columns are named {name}")
    return index


def _rows_at(file: Any, group: int, rows: Sequence[int]) -> list[dict[str, Any]]:
    return list(file.read_row_group(group).take(list(rows)).to_pylist())


def _in_column(keys: Keys, column: pa.Array, leaf: _Leaf) -> Iterator[tuple[int, Positions]]:
    import pyarrow as pa

    values, rows = _flattened(column, leaf.steps[1:])
    as_cells = not leaf.fits and (pa.types.is_string(values.type) or pa.types.is_large_string(values.type))
    matches = (
        _in_cells(keys, values, leaf.column) if as_cells else keys.in_array(values, leaf.column.normalize)
    )
    for index, positions in matches:
        yield (index if rows is None else rows[index].as_py()), positions


def _flattened(array: pa.Array, steps: Sequence[str | Inside]) -> tuple[pa.Array, pa.Array | None]:
    """Return the values below an array, and the row of each, or None if there is one value a row."""
    import pyarrow as pa
    from pyarrow import compute as pc

    rows: pa.Array | None = None
    for step in steps:
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if isinstance(step, str):
            array = pc.struct_field(array, [_only_index(array.type, step)])
            continue
        if pa.types.is_map(array.type):
            array = array.cast(
                pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)]))
            )
        parents = pc.list_parent_indices(array)
        rows = parents if rows is None else rows.take(parents)
        array = pc.list_flatten(array)
        if step is not Inside.ITEM:
            array = pc.struct_field(array, [0 if step is Inside.KEY else 1])
    return array, rows


def _leaves(schema: pa.Schema, columns: Sequence[IdentityColumn]) -> Iterator[_Leaf]:
    """Yield the leaves of a file's schema at or below identity columns, with their index among all leaves."""
    paths = list(_paths(list(schema)))
    for column in columns:
        fitting = [index for index, path in enumerate(paths) if _is_at(path, column.steps)]
        inside = [index for index, path in enumerate(paths) if _fits(column.steps[0], path[0])]
        for index in fitting or inside:
            steps = (step if isinstance(step, Inside) else step[0] for step in paths[index])
            yield _Leaf(column, index, tuple(steps), bool(fitting))


def _is_at(path: FilePath, steps: tuple[Step, ...]) -> bool:
    return len(path) >= len(steps) and all(map(_fits, steps, path))


FilePath = tuple[tuple[str, int | None] | Inside, ...]
"""The way to a leaf of a file: names of fields with their ids, and steps into containers."""


def _fits(step: Step, part: tuple[str, int | None] | Inside) -> bool:
    if isinstance(part, Inside):
        return step is part
    return isinstance(step, Names) and step.fits(*part)


def _paths(fields: Sequence[pa.Field]) -> Iterator[FilePath]:
    for node in fields:
        yield from (((node.name, _field_id(node)), *path) for path in _paths_of_type(node.type))


def _paths_of_type(kind: pa.DataType) -> Iterator[FilePath]:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        yield from _paths([kind.field(at) for at in range(kind.num_fields)])
    elif pa.types.is_map(kind):
        yield from ((Inside.KEY, *path) for path in _paths_of_type(kind.key_type))
        yield from ((Inside.VALUE, *path) for path in _paths_of_type(kind.item_type))
    elif "list" in str(kind).partition("<")[0]:
        yield from ((Inside.ITEM, *path) for path in _paths_of_type(kind.value_type))
    else:
        yield ()


def _field_id(node: Any) -> int | None:
    value = (node.metadata or {}).get(b"PARQUET:field_id")
    return None if value is None else int(value)


def _is_summary(meta: FileMetaData) -> bool:
    """Return True for a file of footers alone, as Spark once wrote them for folders."""
    return any(
        meta.row_group(group).column(0).file_path
        for group in range(meta.num_row_groups)
        if meta.row_group(group).num_columns
    )


def _search_bounds(search: _Search, meta: FileMetaData) -> None:
    """Search the least and greatest values in footers, which are values of people too."""
    for group in range(meta.num_row_groups):
        for at in range(meta.row_group(group).num_columns):
            chunk = meta.row_group(group).column(at)
            steps = [
                step for step in chunk.path_in_schema.lower().split(".") if step not in ("list", "element")
            ]
            for column in search.table.columns:
                names = [step for step in column.steps if isinstance(step, Names)]
                if len(names) == len(steps) and all(map(Names.fits, names, steps)) and chunk.statistics:
                    for bound in (chunk.statistics.min, chunk.statistics.max):
                        if positions := search.keys.matching(bound, column.normalize):
                            search.add({str(column): positions}, None)


def _without_columns(search: _Search, names: Sequence[str]) -> None:
    search.means = Means.ABSENT
    _require_all(search, set(), names)


def _require_all(search: _Search, present: set[IdentityColumn], names: Sequence[str]) -> None:
    """Add a gap for a file that lacks a column and has another one that the contract does not describe.

    It may be the same column by an older name. Columns of partitions are in the path, and files of deletes
    have only a few of the columns.
    """
    if search.file.file.role is Role.DELETES:
        return
    absent = [
        column
        for column in search.table.columns
        if column not in present
        and str(column.column.steps[0]).lower() not in {name.lower() for name in search.table.partitions}
    ]
    unknown = sorted(
        name
        for name in names
        if name.lower() not in search.table.described and not name.startswith("_hoodie_")
    )
    if absent and unknown:
        search.gap(
            f"it has no column {absent[0]}, and columns that the contract does not describe: "
            f"{', '.join(unknown[:5])}"
        )


# Rows as Python values: JSON, Avro, ORC.


def _search_orc(search: _Search, source: NativeFile) -> None:
    from pyarrow import orc

    file = orc.ORCFile(source)
    search.row_count = file.nrows
    _require_all(search, _present_columns(search, file.schema.names), file.schema.names)
    for stripe in range(file.nstripes):
        for row in file.read_stripe(stripe).to_pylist():
            _search_row(search, row)


def _present_columns(search: _Search, names: Iterable[str]) -> set[IdentityColumn]:
    names = list(names)
    return {
        column
        for column in search.table.columns
        if isinstance(column.steps[0], Names) and any(map(column.steps[0].fits, names))
    }


def _search_avro(search: _Search, source: NativeFile) -> None:
    import fastavro

    reader = fastavro.reader(source)
    schema = reader.writer_schema
    names = [part["name"] for part in schema.get("fields", ())] if isinstance(schema, dict) else []
    if not _has_rows(search):
        for record in reader:
            _search_record_of_log(search, record)
        return
    _require_all(search, _present_columns(search, names), names)
    for record in reader:
        search.row_count += 1
        _search_row(search, record)


def _search_row(search: _Search, row: Any) -> None:
    by_column: dict[str, Positions] = {}
    for column in search.table.columns:
        positions = set[int]()
        for value in _values(row, column.steps):
            for at in search.keys.in_tree(value, column.normalize):
                positions.update(at)
        if positions:
            by_column[str(column)] = tuple(sorted(positions))
    if by_column:
        search.add(by_column, row)


def _values(value: Any, steps: Sequence[Step], nested: bool = False) -> Iterator[Any]:
    """Yield the values of a column in a row; whatever is at its place, if it has another shape."""
    if value is None:
        return
    if not steps:
        yield value
        return
    step, below = steps[0], steps[1:]
    if isinstance(step, Names):
        if isinstance(value, Mapping):
            parts = [inner for name, inner in value.items() if step.fits(str(name))]
            for inner in parts:
                yield from _values(inner, below, True)
            if not parts and nested:
                # The field may have had another name.
                yield {name: inner for name, inner in value.items() if isinstance(inner, str)}
        elif isinstance(value, list | tuple):
            for inner in value:
                yield from _values(inner, steps, True)
        else:
            yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _values(name if step is Inside.KEY else inner, below, True)
    elif isinstance(value, list | tuple):
        for inner in value:
            # Arrow and fastavro return the entries of a map as pairs.
            is_pair = step is not Inside.ITEM and isinstance(inner, tuple) and len(inner) == 2
            yield from _values(inner[0 if step is Inside.KEY else 1] if is_pair else inner, below, True)
    else:
        yield value


# Logs: the bounds and partitions that they have are values of people too.


def _has_rows(search: _Search) -> bool:
    """Return False for a file of a log; log files of Hudi next to its base files have rows."""
    is_in_home = search.file.relative.startswith(f"{table_folders.HUDI_FOLDER}/")
    return search.file.file.role is not Role.LOG or (search.table.format == "hudi" and not is_in_home)


def _search_record_of_log(search: _Search, record: Any, *record_keys: str, with_words: bool = False) -> None:
    """Search a log's record, and record keys of Hudi."""
    columns = search.table.columns
    positions = keys_in_record(search.keys, columns, record, with_words=with_words)
    for part in chain.from_iterable(map(_parts_of_key, record_keys)):
        positions |= _of_log_text(search.keys, columns, part)
        for column in columns:
            if str(column.column.steps[0]).lower() in search.table.key_fields:
                positions |= _of_log_value(search.keys, part, column.normalize)
    if positions:
        search.add({f"{columns[0]} (log)": tuple(sorted(positions))}, None)


def keys_in_record(
    keys: Keys, columns: Sequence[IdentityColumn], record: Any, *, with_words: bool = False
) -> set[int]:
    """Return the keys in a JSON or Avro value: all of its texts, and numbers where it names their column.

    With `with_words`, also the words of its texts, and the values in `column=value`.
    """
    positions = set[int]()
    for value, column in _log_leaves(record, columns, None):
        if column is not None:
            positions |= _of_log_value(keys, value, column.normalize)
        if not isinstance(value, str | bytes):
            continue
        content = value if isinstance(value, str) else value.decode("utf-8", "replace")
        if column is None:
            positions |= _of_log_text(keys, columns, content)
            for name, part in _path_values(content):
                positions |= _of_log_text(keys, columns, part)
                for named in _named(columns, name):
                    positions |= _of_log_value(keys, part, named.normalize)
        if with_words:
            for word in _WORD_ENDS.split(content):
                positions |= _of_log_text(keys, columns, word)
            for match in _ASSIGNMENT.finditer(content):
                for named in _named(columns, match[1].rpartition(".")[2]):
                    positions |= _of_log_value(keys, match[2], named.normalize)
    return positions


_WORD_ENDS = re.compile(r"""[\s,;='"()<>\[\]{}]+""")
# Up to the next assignment, since values have spaces.
_ASSIGNMENT = re.compile(r"(?<![\w.])([\w.]{1,200})=(.*?)(?=\s+[\w.]+=|[,;\n]|$)")


def _named(columns: Sequence[IdentityColumn], name: str) -> Iterator[IdentityColumn]:
    return (column for column in columns if name and _is_leaf(column, name))


def _of_log_text(keys: Keys, columns: Sequence[IdentityColumn], content: str) -> set[int]:
    """Return the keys that a text of an unknown column is. Texts of digits are no phone numbers then."""
    if not content.strip("-+.0123456789 "):
        return set()
    normalizers = {column.normalize for column in columns}
    return {
        position
        for normalize in normalizers
        if not normalize.startswith(PHONE)
        for position in keys.matching(content, normalize)
    }


def _of_log_value(keys: Keys, value: Any, normalize: str) -> set[int]:
    """Return the keys that a value of an identity column is, in any form in which logs have values."""
    positions = set[int]()
    if isinstance(value, bytes):
        if len(value) in (4, 8):
            number = int.from_bytes(value, "little", signed=True)
            positions.update(keys.matching(number, normalize), keys.encoded(number))
        positions.update(keys.matching(value, normalize))
    elif isinstance(value, str):
        positions.update(_of_text(keys, value, normalize), keys.written(value))
    elif not isinstance(value, bool):
        positions.update(keys.matching(value, normalize))
        if isinstance(value, int):
            positions.update(keys.encoded(value))
    return positions


def _path_values(content: str) -> Iterator[tuple[str, str]]:
    """Yield the steps of a text that may be a path: a name, or "", and the value behind its equals sign."""
    if len(content) <= _MOST_PATH and re.search("[/=%]", content):
        for step in content.split("/"):
            name, sign, value = step.partition("=")
            yield (name if sign else ""), unquote(value if sign else step)


def _log_leaves(
    value: Any, columns: Sequence[IdentityColumn], column: IdentityColumn | None
) -> Iterator[tuple[Any, IdentityColumn | None]]:
    """Yield every leaf, with the identity column that the log names for it."""
    if isinstance(value, Mapping):
        if value.keys() == {"key", "value"} and isinstance(
            value["key"], int
        ):  # bounds of Iceberg by field id
            yield value["value"], next((item for item in columns if _has_id(item, value["key"])), column)
            return
        # Statistics of Hudi have the name of their column next to their values.
        steps = str(value.get("columnName") or "").split(".")
        column = next((item for item in columns if any(_is_leaf(item, step) for step in steps)), column)
        for name, inner in value.items():
            named = next((item for item in columns if _is_leaf(item, str(name))), column)
            yield name, None
            yield from _log_leaves(inner, columns, named)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _log_leaves(inner, columns, column)
    elif isinstance(value, str) and value[:1] in ("{", "["):
        inner = None
        with suppress(ValueError, RecursionError):
            inner = json.loads(value)
        yield value, column
        if inner is not None:
            yield from _log_leaves(inner, columns, column)
    elif isinstance(value, bytes) and value.startswith(compression.MAGIC):
        yield from _log_leaves(compression.parse_avro(value, "its Avro value"), columns, column)
    else:
        yield value, column


def _has_id(column: IdentityColumn, number: int) -> bool:
    names = [step for step in column.steps if isinstance(step, Names)]
    return number in names[-1].ids or isinstance(column.steps[-1], Inside)


def _is_leaf(column: IdentityColumn, name: str) -> bool:
    names = [step for step in column.steps if isinstance(step, Names)]
    return names[-1].fits(name)


# Puffin: https://iceberg.apache.org/puffin-spec.

_PUFFIN = b"PFA1"
# Hashes and positions of rows.
_BLOBS_WITHOUT_VALUES = frozenset({"apache-datasketches-theta-v1", "deletion-vector-v1"})


def _search_puffin(search: _Search, content: bytes) -> None:
    try:
        size, flags = struct.unpack("<ii", content[-12:-4])
        footer = json.loads(content[-12 - size : -12])
        kinds = {str(blob["type"]) for blob in footer["blobs"]}
    except (struct.error, ValueError, LookupError, TypeError):
        search.gap("its footer cannot be read")
        return
    if flags or not content.endswith(_PUFFIN):
        search.gap("its footer cannot be read")
    elif unknown := sorted(kinds - _BLOBS_WITHOUT_VALUES):
        search.gap(f"it has blobs of the unknown kind {unknown[0][:40]}")
    else:
        _search_record_of_log(search, footer)
        search.means = Means.EMPTY


# Log files and HFiles of Hudi.


def _is_log_of_hudi(search: _Search) -> bool:
    """Return True by the name of a file, for one whose first block is damaged."""
    name = search.file.relative.rpartition("/")[2]
    return search.table.format == "hudi" and re.match(r"\..+_\d{14,17}\.log\.\d+(?:_|$)", name) is not None


def _search_hudi_log(search: _Search, source: NativeFile, size: int) -> None:
    for block in hudi_files.log_blocks(source, size):
        try:
            _search_block(search, block)
        except ReadError as error:
            search.gap(error.message)
    search.means = Means.SCAN


def _search_block(search: _Search, block: hudi_files.LogBlock) -> None:
    import pyarrow as pa

    match block.kind:
        case hudi_files.Kind.COMMAND:
            return
        case hudi_files.Kind.AVRO:
            _search_avro_block(search, block)
        case hudi_files.Kind.PARQUET:
            _search_parquet(search, pa.BufferReader(block.content))
        case hudi_files.Kind.HFILE:
            _search_hfile(search, io.BytesIO(block.content), len(block.content))
        case hudi_files.Kind.CDC:
            for record in hudi_files.avro_rows(block):
                images = [record.get(name) for name in ("before", "after")]
                if not any(isinstance(image, Mapping) for image in images):
                    _search_record_of_log(search, record, str(record.get("record_key") or ""))
                for image in images:
                    _search_row(search, image)
        case hudi_files.Kind.DELETE:
            deleted = hudi_files.deleted_records(block)
            if deleted is None:
                search.gap("it has deletes in a form of Hudi before 0.12")
            for record in deleted or ():
                _search_record_of_log(search, {"partition": record["partition"]}, record["key"] or "")
        case hudi_files.Kind.CORRUPT:
            search.gap("it has bytes that are not blocks, e.g. of a writer that crashed")
        case _:
            search.gap(f"it has blocks of the unknown kind {block.kind}")


def _search_avro_block(search: _Search, block: hudi_files.LogBlock) -> None:
    names: list[str] | None = None
    for record in hudi_files.avro_rows(block):
        if not _has_rows(search):
            _search_record_of_log(search, record)
            continue
        if names is None:
            names = list(record)
            present = _present_columns(search, names)
            _require_all(search, present, names)
        search.row_count += 1
        _search_row(search, record)
        if len(present) < len(search.table.columns):
            # A partial update has the record key, and only the columns that it changes.
            _search_record_of_log(search, None, str(record.get("_hoodie_record_key") or ""))


def _search_hfile(search: _Search, source: Any, size: int) -> None:
    for key, record in hudi_files.hfile_records(source, size):
        _search_record_of_log(search, record, key.decode("utf-8", "replace"), *_bounds_of_keys(record))


def _bounds_of_keys(record: Any) -> Iterator[str]:
    """Yield the least and the greatest record key, if a record of the metadata table has them."""
    statistics = (record or {}).get("ColumnStatsMetadata") or {}
    if statistics.get("columnName") == "_hoodie_record_key":
        for bound in (statistics.get("minValue"), statistics.get("maxValue")):
            if isinstance(bound, Mapping) and isinstance(bound.get("value"), str):
                yield bound["value"]


def _parts_of_key(key: str) -> Iterator[str]:
    """Yield a record key of Hudi, and the values that it may consist of: `name:value,name:value`.

    Values are not escaped, so each text between a colon and a comma counts. Keys of secondary indexes are
    `value$key`, with backslashes as escapes.
    """
    if not key:
        return
    yield key
    texts = [key]
    if "$" in key:
        parts = (re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\)\$", key))
        texts += [part for part in parts if part]
        yield from texts[1:]
    for content in texts:
        starts = [0, *(match.end() for match in re.finditer(":", content))]
        ends = [*(match.start() for match in re.finditer(",", content)), len(content)]
        if len(starts) > 1 or len(ends) > 1:
            yield from (content[start:end] for start in starts for end in ends if start < end)


# Text.


def _search_text(search: _Search, source: NativeFile, head: bytes) -> None:
    import pyarrow as pa

    codec = next((name for magic, name in _CODECS.items() if head.startswith(magic)), None)
    stream = source if codec is None else pa.CompressedInputStream(source, codec)
    role, kind = search.file.file.role, search.table.format
    if role is Role.LOG:
        content = stream.read()
        _search_log_text(search, content)
    elif kind == "csv" and not _is_other(search.file.relative, _JSON):
        _search_csv(search, stream)
    elif kind == "json" or _is_other(search.file.relative, _JSON):
        _search_json(search, stream)
    elif not kind and _is_other(search.file.relative, ("csv",)):
        _search_csv(search, stream)
    else:
        _search_unknown(search, stream)


def _is_other(path: str, endings: Sequence[str]) -> bool:
    return any(f".{ending}" in path.rpartition("/")[2].lower() for ending in endings)


def _search_log_text(search: _Search, content: bytes) -> None:
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if b"\x00" in content:
        search.gap("its format is unknown")
        return
    decoded = content.decode("utf-8")
    try:
        records = [json.loads(decoded)]
    except ValueError:
        try:
            records = [json.loads(line) for line in decoded.splitlines() if line.strip()]
        except ValueError:
            _search_whole(search, decoded)
            return
    for record in records:
        # Delta writes the condition of a deletion into its commit. Its actions on files are many.
        is_action = isinstance(record, Mapping) and not _ACTIONS.isdisjoint(record)
        _search_record_of_log(search, record, with_words=not is_action)


def _search_unknown(search: _Search, stream: Any) -> None:
    content = stream.read(_MOST_TEXT + 1)
    try:
        if len(content) > _MOST_TEXT or b"\x00" in content:
            raise ValueError
        decoded = content.decode("utf-8")
    except ValueError:
        search.gap(f"its format is unknown, and not {search.table.format}")
        return
    _search_whole(search, decoded)


def _search_whole(search: _Search, content: str) -> None:
    """Search a short text for keys inside of it."""
    for column in search.table.columns:
        normalize = TEXT if not column.normalize.startswith(PHONE) else column.normalize
        haystack = normalized(content, TEXT) if normalize == TEXT else re.sub("[^0-9]", "", content)
        for spelled, positions in search.keys.spelled(normalize).items():
            inside = spelled and re.search(rf"(?<!\w){re.escape(spelled)}(?!\w)", haystack)
            if inside or (normalize != TEXT and len(spelled) > 5 and spelled in haystack):
                search.add({f"{column} (text)": positions}, None)


def _search_json(search: _Search, stream: Any) -> None:
    encoding = search.table.text.encoding
    reader = io.TextIOWrapper(io.BufferedReader(_Raw(stream)), encoding, newline="\n")
    first = reader.readline()
    names: set[str] = set()
    try:
        if text.is_array(first.removeprefix(text.MARK)):
            content = first + reader.read(_MOST_JSON_ARRAY + 1)
            if len(content) > _MOST_JSON_ARRAY:
                search.gap(f"it is one JSON array of more than {_MOST_JSON_ARRAY >> 20} MiB")
                return
            records: Iterator[dict[str, Any]] = (record for _, record in text.objects(content))
        else:
            records = _json_lines(first, reader)
        for record in records:
            search.row_count += 1
            names |= record.keys()
            _search_row(search, record)
    except text.MalformedJson as error:
        search.gap(f"row {search.row_count + 1} is not JSON ({type(error).__name__})")
    _require_all(search, _present_columns(search, names), sorted(names))


def _json_lines(first: str, reader: Iterable[str]) -> Iterator[dict[str, Any]]:
    record = text.object_in_line(first.removeprefix(text.MARK))
    if record is not None:
        yield record
    for line in reader:
        record = text.object_in_line(line)
        if record is not None:
            yield record


class _Raw(io.RawIOBase):
    """A stream of Arrow as one of Python."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _search_csv(search: _Search, stream: Any) -> None:
    import pyarrow as pa
    from pyarrow import csv

    form = search.table.text
    names = list(search.table.header)
    start = stream.read(_HEADER_BYTES)
    if form.header:
        decoded = start.decode(form.encoding, errors="ignore").removeprefix(text.MARK)
        header = next(text.rows(decoded, search.file.file.path, form), None)
        if header is None:
            search.means = Means.EMPTY
            return
        names = [str(cell) for cell in header[1]]
    if len({name.lower() for name in names}) < len(names):
        search.gap("two of its columns have the same name")
        return
    present = _present_columns(search, names)
    _require_all(search, present, names)
    if not present:
        search.means = Means.ABSENT
        return
    malformed = []

    def skip(row: Any) -> str:
        malformed.append(row.number)
        return "skip"

    reader = csv.open_csv(
        pa.PythonFile(_Joined(start, stream), mode="r"),
        csv.ReadOptions(
            column_names=names,
            skip_rows_after_names=1 if form.header else 0,
            block_size=_CSV_BLOCK,
            encoding=form.encoding,
            use_threads=False,
        ),
        csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char=form.quote or False,
            double_quote=bool(form.quote) and form.escape == form.quote,
            escape_char=form.escape if form.escape not in ("", form.quote) else False,
            newlines_in_values=True,
            ignore_empty_lines=True,
            invalid_row_handler=skip,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=True
        ),
    )
    for batch in reader:
        search.row_count += batch.num_rows
        hits: dict[int, dict[str, Positions]] = {}
        for column in present:
            first = column.steps[0]
            for at, name in enumerate(names):
                if isinstance(first, Names) and first.fits(name):
                    for index, positions in _in_cells(search.keys, batch.column(at), column):
                        hits.setdefault(index, {})[str(column)] = positions
        for index, by_column in sorted(hits.items()):
            values = dict(zip(names, (part[index].as_py() for part in batch.columns), strict=True))
            search.add(by_column, values)
    if malformed:
        search.gap(f"{len(malformed)} rows have another number of values than the header has columns")


def _in_cells(keys: Keys, cells: pa.Array, column: IdentityColumn) -> Iterator[tuple[int, Positions]]:
    """Yield the cells that are keys: as texts, and as numbers and JSON in them."""
    from pyarrow import compute as pc

    by_row = dict(keys.in_array(cells, column.normalize))
    odd = pc.match_substring_regex(cells, r"^\s*(?:[-+]?[0-9]+(?:\.[0-9]+)?|[\[{].*)\s*$")
    indices = pc.indices_nonzero(odd)
    for at, value in zip(indices.to_pylist(), cells.take(indices).to_pylist(), strict=True):
        positions = set(by_row.get(at, ()))
        for part in keys.in_tree(value.strip(), column.normalize):
            positions.update(part)
        if re.fullmatch(r"\s*[-+]?[0-9]{1,40}(\.[0-9]{1,40})?\s*", value):
            positions.update(keys.matching(Decimal(value.strip()), column.normalize))
        if positions:
            by_row[at] = tuple(sorted(positions))
    yield from sorted(by_row.items())


class _Joined(io.RawIOBase):
    """The bytes at the start of a stream, and its rest."""

    def __init__(self, start: bytes, stream: Any) -> None:
        self._start, self._stream = start, stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._start:
            return bytes(self._stream.read() if size < 0 else self._stream.read(size))
        part, self._start = (self._start, b"") if size < 0 else (self._start[:size], self._start[size:])
        return part
