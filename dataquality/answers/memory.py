"""Reads small Parquet tables in this process, as Spark would, and answers metrics on them."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key
from itertools import chain
from typing import TYPE_CHECKING, Any

from dq.contracts.access.access_policy import is_remote
from dq.contracts.check_result import Row
from dq.contracts.layout import Layout, unescaped
from dq.contracts.model import SchemaObject
from dq.contracts.outcome import MissingTool
from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks import answer_in_memory
from dq.dataquality.answers.rows import (
    EXACT,
    Cells,
    Incomparable,
    Rows,
    compare,
    compile_predicate,
    compile_term,
    group_key,
    rows_from_arrow,
)
from dq.dataquality.answers.statistics import CERTAIN_FROM, PARTITION_PARSERS, Partitions, Scalar, leaf_type
from dq.dataquality.clauses.clause import Clause, ForeignKey, micros_of
from dq.dataquality.model.column import MASK, Column, resolve, struct_field
from dq.dataquality.model.metric import (
    FILE_BYTES,
    SCHEMA,
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    FileBytes,
    Group,
    Metric,
    MetricExecution,
    PerGroup,
    RepeatedKeys,
    Schema,
    SingleKeys,
    Value,
    count,
    reads,
)
from dq.dataquality.model.metric import Value as Aggregated
from dq.dataquality.model.predicate import (
    Function,
    Path,
    Predicate,
    Since1970,
    Term,
    UnsupportedPredicate,
    all_of,
)
from dq.dataquality.spark.columnar_files import NULL_PARTITION
from dq.dataquality.spark.dataset import SMALL_BYTES, SMALL_ROWS, Dataset
from dq.dataquality.spark.failing_rows import (
    MAX_SAMPLES,
    MIN_SECRET_LENGTH,
    MOST_CHARACTERS,
    Samples,
    identifying_columns,
    masked_names,
    secret_columns,
)
from dq.dataquality.spark.measure import COUNT, MOST_GROUPS, group_name, plan, too_many_groups
from dq.dataquality.sql_predicate import question
from dq.dataquality.text import carrier_type, java_double
from dq.lake.parquet import READABLE_ENCODINGS, chunks_of
from dq.lake.storage import file_system, is_data_name, is_data_path, split
from dq.lake.types import arrow_array, arrow_type, from_spark_json

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnSchema, FileMetaData, ParquetFile


# Metrics on rows in memory, with the same results as Spark.

# TABLE: aggregates of one column of rows in memory, with the same results as Spark.

Reader = Callable[[Cells], Any]


def is_supported(metric: Aggregate) -> bool:
    """Return whether the aggregate can be computed on rows in memory."""
    if metric.value is None:
        return metric.name == "count"
    return metric.name in _AGGREGATES and _reader(metric.value) is not None


def compute_aggregate(metric: Aggregate, rows: Sequence[Cells]) -> Aggregated:
    """Return the aggregate over these rows, None for NULL. Raises Incomparable for values that are not
    numbers.
    """
    if metric.value is None:
        return len(rows)
    reader = _reader(metric.value)
    assert reader is not None
    values = [value for cells in rows if (value := reader(cells)) is not None]
    result: Aggregated = _AGGREGATES[metric.name](values, metric)
    return result


def _reader(term: Term) -> Reader | None:
    match term:
        case Path() | Since1970(Path(), "date") | Function("try_decimal", (Path(), int(), int())):
            return compile_term(term)
        case _:
            return None


def _sort(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=cmp_to_key(compare))


def _sum(values: Sequence[Any], _metric: Aggregate) -> Aggregated:
    """Return the sum; NULL if it exceeds 64 bits, or 38 digits for decimals."""
    if not values:
        return None
    if any(isinstance(value, float) for value in values):
        return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
    if all(isinstance(value, int) for value in values):
        total = sum(values)
        return total if -(2**63) <= total < 2**63 else None
    with decimal.localcontext(EXACT):
        decimal_total = sum(values, Decimal(0))
    return decimal_total if len(decimal_total.as_tuple().digits) <= _MOST_DIGITS else None


_MOST_DIGITS = 38


def _sample_deviation(values: Sequence[Any], _metric: Aggregate) -> Aggregated:
    """Return the sample standard deviation; NULL for fewer than two values."""
    floats = [float(value) for value in values]
    if len(floats) < 2:
        return None
    if not all(map(math.isfinite, floats)):
        return math.nan
    mean = math.fsum(floats) / len(floats)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in floats) / (len(floats) - 1))


def _rank(round_: Callable[[Fraction], int]) -> Callable[[Sequence[Any], Aggregate], Aggregated]:
    def rank(values: Sequence[Any], metric: Aggregate) -> Aggregated:
        if not values:
            return None
        assert metric.share is not None
        result: Aggregated = _sort(values)[round_(Fraction(metric.share) * (len(values) - 1))]
        return result

    return rank


def _extreme(end: int) -> Callable[[Sequence[Any], Aggregate], Aggregated]:
    return lambda values, _metric: _sort(values)[end] if values else None


_AGGREGATES: Mapping[str, Callable[[Sequence[Any], Aggregate], Aggregated]] = {
    "min": _extreme(0),
    "max": _extreme(-1),
    "try_sum": _sum,
    "stddev_samp": _sample_deviation,
    "rank_below": _rank(math.floor),
    "rank_above": _rank(math.ceil),
    "rank_near": _rank(math.floor),
}


_UNSUPPORTED = {
    MetricExecution.SQL: "a query needs Spark",
    MetricExecution.UNMATCHED: "it looks up keys in another object",
    MetricExecution.COMPARED: "it compares the rows with another side, which needs Spark",
    MetricExecution.COMPARED_SUMS: "it compares sums with another side, which needs Spark",
}


def unsupported_reason(metric: Metric) -> str | None:
    """Return why rows in memory cannot answer a metric, or None if they can."""
    if isinstance(metric, Schema | FileBytes):
        return None
    if isinstance(metric, PerGroup):
        return unsupported_reason(metric.of) or _predicate_problem(metric.within)
    if not isinstance(metric, Aggregate | DistinctKeys | RepeatedKeys | SingleKeys):
        return _UNSUPPORTED.get(metric.kind, f"a metric of the kind {metric.kind} needs Spark")
    if isinstance(metric, Aggregate) and not is_supported(metric):
        return f"{metric.name} of a column needs Spark"
    return _predicate_problem(metric.where)


def _predicate_problem(where: Predicate | None) -> str | None:
    try:
        _compile_filter(where)
    except UnsupportedPredicate as error:
        return str(error)
    return None


def measure(rows: Rows, metrics: Iterable[Metric]) -> dict[Metric, Answer]:
    """Return every metric with its value, or with a Failure that says why it has none."""
    metric_plan = plan(metrics, rows.schema)
    answers: dict[Metric, Answer] = {SCHEMA: rows.schema, FILE_BYTES: None, **dict(metric_plan.failures)}
    for metric_pass in metric_plan.passes:
        answers |= {metric: _answer(rows, metric) for metric in metric_pass.metrics}
    return answers


def _answer(rows: Rows, metric: Metric) -> Answer:
    reason = unsupported_reason(metric)
    if reason is not None or isinstance(metric, Schema | FileBytes):
        return Failure(reason or "it cannot be computed from rows in memory")
    try:
        if isinstance(metric, PerGroup):
            return _measure_groups(rows, metric)
        return _measure_rows(rows, metric)
    except (Incomparable, UnsupportedPredicate) as error:
        return Failure(str(error))


def _measure_rows(rows: Rows, metric: Metric) -> Value:
    assert isinstance(metric, Aggregate | DistinctKeys | RepeatedKeys | SingleKeys)
    holds = _compile_filter(metric.where, rows.schema)
    selected = [cells for cells in rows.cells if holds(cells)]
    if isinstance(metric, Aggregate):
        return compute_aggregate(metric, selected)
    key_of = _key_of(metric.keys)
    keys = Counter(row_key for cells in selected if (row_key := key_of(cells)) is not None)
    if isinstance(metric, SingleKeys):
        return sum(times == 1 for times in keys.values())
    return len(keys) if isinstance(metric, DistinctKeys) else keys.total() - len(keys)


def _measure_groups(rows: Rows, metric: PerGroup) -> Answer:
    holds, readers = (
        _compile_filter(metric.within, rows.schema),
        [compile_term(column.path) for column in metric.by],
    )
    rows_by_group: dict[Group, list[Cells]] = {}
    for cells in rows.cells:
        if holds(cells):
            group = tuple(group_name(reader(cells)) for reader in readers)
            rows_by_group.setdefault(group, []).append(cells)
    if len(rows_by_group) > MOST_GROUPS:
        return too_many_groups(metric.by)
    results = {
        group: _measure_rows(Rows(rows.schema, tuple(cells)), metric.of)
        for group, cells in rows_by_group.items()
    }
    return {group: number for group, number in results.items() if not isinstance(number, str)}  # type: ignore[misc]


def find_violations(rows: Rows, clause: Clause) -> list[bool] | None:
    """Return for each row whether it breaks the clause or repeats a key, or None for a clause on several
    rows.

    Raises Incomparable or UnsupportedPredicate if the clause cannot be measured.
    """
    if not clause.is_row_level:
        return None
    within = _compile_filter(clause.row_filter.where, rows.schema)
    if clause.breaks is not None:
        breaks = _compile_filter(clause.breaks, rows.schema)
        return [within(cells) and breaks(cells) for cells in rows.cells]
    seen_keys: set[object] = set()
    key_of, violations = _key_of(clause.keys), []
    for cells in rows.cells:
        row_key = key_of(cells) if within(cells) else None
        violations.append(row_key is not None and row_key in seen_keys)
        seen_keys.add(row_key)
    return violations


@functools.lru_cache(1024)
def _compile_filter(where: Predicate | None, schema: DataType | None = None) -> Callable[[Cells], bool]:
    return (lambda _cells: True) if where is None else compile_predicate(where, schema)


def _key_of(columns: Sequence[Column]) -> Callable[[Cells], object]:
    """Return a function from a row to its key, or to None if a part of the key is NULL."""
    parts = [compile_term(column.path) for column in columns]

    def key_of(cells: Cells) -> object:
        values = [part(cells) for part in parts]
        return None if any(cell is None for cell in values) else tuple(map(group_key, values))

    return key_of


# Small Parquet tables read in this process.
#
# Tables that Spark may read differently raise `RequiresSpark`; the caller then uses Spark.

# Limit on the uncompressed bytes in memory, since small files may expand a lot.
MAX_UNPACKED_BYTES = 64 << 20
# Codecs that pyarrow and Spark decompress alike.
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
# Summary files from which Spark may take the schema.
_SUMMARIES = ("_metadata", "_common_metadata")
_SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


# Limit on files: each is opened in turn, and on a remote storage that takes two requests.
MAX_FILES = 64
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")


def _parse_time(text: str, _kind: DataType) -> dt.datetime:
    if not _TIME.fullmatch(text):
        raise ValueError(text)
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def _parse_string(text: str, _kind: DataType) -> str:
    if not text.isprintable():
        raise ValueError(text)
    return text


# Supported types of partition columns. Instants are those of a session in UTC.
_KEY_PARSERS: Mapping[str, Callable[[str, DataType], Scalar]] = {
    **{name: PARTITION_PARSERS[name] for name in ("date", "tinyint", "smallint", "int", "bigint")},
    "string": _parse_string,
    "timestamp": _parse_time,
}


class RequiresSpark(Exception):
    """The table may be read differently by Spark, or cannot be read in this process."""


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file in memory, its partition values by column, and its size in bytes."""

    content: ParquetFile
    partition_values: Mapping[str, Scalar | None]
    size: int


@dataclass(frozen=True, slots=True)
class SmallTable:
    """A table in memory: its schema as in Spark, its number of rows, and its files."""

    schema: DataType
    rows: int
    files: tuple[SmallFile, ...]

    def columns(self, names: Iterable[str]) -> dict[str, Any]:
        """Return columns as Arrow arrays of the schema's types. Raises RequiresSpark and Arrow's errors."""
        import pyarrow as pa

        types = {name: arrow_type(kind) for name, kind in self._kinds().items()}
        chunks: dict[str, list[Any]] = {name: [] for name in names}
        size = 0
        for file in self.files:
            meta = file.content.metadata
            for name in chunks.keys() & file.partition_values.keys():
                value = file.partition_values[name]
                chunks[name].append(
                    pa.nulls(meta.num_rows, types[name])
                    if value is None
                    else pa.repeat(arrow_array([value], types[name])[0], meta.num_rows)
                )
            stored = [name for name in chunks if name not in file.partition_values]
            batches = file.content.iter_batches(_batch_rows(meta), columns=stored, use_threads=False)
            for batch in batches if stored else ():
                size += batch.nbytes
                if size > MAX_UNPACKED_BYTES:
                    raise RequiresSpark
                for name in stored:
                    values = batch.column(batch.schema.get_field_index(name))
                    chunks[name].append(values.cast(types[name]))
        arrays = {
            name: pa.chunked_array(parts, types[name]).combine_chunks() for name, parts in chunks.items()
        }
        for name, values in arrays.items():
            _require_certain_dates(values, self._kinds()[name])
        return arrays

    def _kinds(self) -> dict[str, DataType]:
        return dict(zip(self.schema.names, self.schema.parts, strict=True))


@contextmanager
def leave_errors_to_spark() -> Iterator[None]:
    """Raise RequiresSpark for errors that occur when reading with Arrow in this process."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise RequiresSpark from error
    try:
        yield
    except (
        MissingTool, ImportError, pa.ArrowException, OSError, ValueError, OverflowError, NotImplementedError,
    ) as error:  # fmt: skip
        raise RequiresSpark from error


def small_table(dataset: Dataset, partitions: Partitions = ()) -> SmallTable:
    """Read these partitions (empty: all) of a dataset's table. Raises RequiresSpark."""
    if dataset.path is None or dataset.format != "parquet" or dataset.external_partitions:
        raise RequiresSpark
    with leave_errors_to_spark():
        return _small_table(dataset, dataset.path, partitions)


def _small_table(dataset: Dataset, path: str, partitions: Partitions) -> SmallTable:
    system, root = _resolve_path(path)
    kinds = _partition_kinds(dataset)
    if dataset.layout:
        listing = _list_layout(system, root, dataset.layout, kinds, partitions)
    else:
        listing = _list_partitions(system, root, kinds, partitions) if kinds else _list_folder(system, root)
    selected = listing.selected
    if len(selected) > MAX_FILES or sum(file.size for file in selected) > SMALL_BYTES:
        raise RequiresSpark
    files = [SmallFile(_open_file(system, file.path), file.partition_values, file.size) for file in selected]
    schemas = {place.path: _schema(file.content) for place, file in zip(selected, files, strict=True)}
    for path in (listing.first, *listing.merged):
        if path not in schemas:
            schemas[path] = _schema(_open_footer(system, path))
    rows = sum(file.content.metadata.num_rows for file in files)
    merged = {schemas[path] for path in (*listing.merged, *(file.path for file in selected))}
    if len(merged) > 1 or rows > SMALL_ROWS:
        raise RequiresSpark
    first = schemas[listing.first]
    schema = _merge_first(first, merged.pop()) if merged else first
    keys = listing.keys
    if {name.lower() for name in (*schema.names, *first.names)} & {name.lower() for name in keys}:
        raise RequiresSpark
    table_schema = DataType(
        "struct", (), (*schema.parts, *(kinds[name] for name in keys)), (*schema.names, *keys)
    )
    return SmallTable(table_schema, rows, tuple(files))


def _merge_first(first: DataType, schema: DataType) -> DataType:
    """Return the columns of the selected files, those of the table's first file first, as Spark has them.

    Spark takes names and types from the first file, even if it is in another partition. Raises RequiresSpark
    if these differ.
    """
    kinds = dict(zip(schema.names, schema.parts, strict=True))
    shared = {name: kind for name, kind in zip(first.names, first.parts, strict=True) if name in kinds}
    spellings = {name.lower() for name in first.names} & {name.lower() for name in schema.names}
    if len(shared) != len(spellings) or any(kinds[name] != kind for name, kind in shared.items()):
        raise RequiresSpark
    merged = shared | kinds
    return DataType("struct", (), tuple(merged.values()), tuple(merged))


@dataclass(frozen=True, slots=True)
class _DataFile:
    """A file of the table, with its partition values by column."""

    path: str
    size: int
    partition_values: Mapping[str, Scalar | None]


@dataclass(frozen=True, slots=True)
class _FileListing:
    """The requested files, sorted by path, and the partition columns in the order of the folders.

    Spark takes the schema from `first`, and merges it with those of the requested files and of `merged`.
    """

    selected: Sequence[_DataFile]
    first: str
    keys: tuple[str, ...] = ()
    merged: Sequence[str] = ()


def _resolve_path(path: str) -> tuple[Any, str]:
    """Return the file system of a path, and the path in it."""
    from pyarrow import fs

    # Spark interprets these characters as a glob pattern or an escape.
    if re.search(r"[*?\[\]{}\\%#]", path):
        raise RequiresSpark
    if is_remote(path):
        root, below = split(path)
        system, prefix = file_system(root)
        return system, prefix + below
    return fs.LocalFileSystem(), path.removeprefix("file://")


def _list_folder(system: Any, root: str) -> _FileListing:
    """List the files of a folder, or the file of this name."""
    from pyarrow import fs

    root_info = system.get_file_info(root)
    if root_info.type is fs.FileType.Directory:
        children = system.get_file_info(fs.FileSelector(root))
        if any(child.base_name.startswith(_SUMMARIES) for child in children):
            raise RequiresSpark
        infos = [child for child in children if is_data_name(child.base_name)]
    else:
        infos = [root_info]
    # A subfolder may be a partition, a file named explicitly may be hidden, and Spark skips empty files.
    if not all(
        file.type is fs.FileType.File and file.size and is_data_name(file.base_name) for file in infos
    ):
        raise RequiresSpark
    if not infos:
        raise RequiresSpark
    files = sorted((_DataFile(file.path, file.size, {}) for file in infos), key=_path_order)
    return _FileListing(files, files[0].path)


def _path_order(file: _DataFile) -> bytes:
    """Return a key that orders files by path as Java does."""
    return file.path.encode("utf-16-be")


def _list_partitions(
    system: Any, root: str, kinds: Mapping[str, DataType], partitions: Partitions
) -> _FileListing:
    """List the files of these partitions. Every file of the table must lie in a folder of its partition
    columns.

    The folders of the first column are listed before the others, which may be very many.
    """
    from pyarrow import fs

    requested = _requested_values(partitions, kinds)
    top = [entry for entry in system.get_file_info(fs.FileSelector(root)) if is_data_name(entry.base_name)]
    if any(entry.type is not fs.FileType.Directory for entry in top):
        raise RequiresSpark
    folders = [
        folder for folder in top if _is_requested(_folder_values(f"{folder.base_name}/", kinds), requested)
    ]
    if len(folders) > MAX_FILES:
        raise RequiresSpark
    files = [file for folder in folders for file in _data_files_below(system, folder.path)]
    all_files = _data_files_below(system, root) if requested else files
    placed = [
        _DataFile(file.path, file.size, _folder_values(file.path.removeprefix(root), kinds))
        for file in all_files
    ]
    orders = {tuple(file.partition_values) for file in placed}
    if len(orders) != 1 or len(keys := orders.pop()) != len(kinds):
        raise RequiresSpark
    placed.sort(key=_path_order)
    selected = [file for file in placed if _is_requested(file.partition_values, requested)]
    if not all(file.size for file in selected):
        raise RequiresSpark
    return _FileListing(selected, placed[0].path, keys)


def _list_layout(
    system: Any, root: str, layout: Layout, kinds: Mapping[str, DataType], partitions: Partitions
) -> _FileListing:
    """List the files of these partitions.

    If each is one folder, others are not listed. Otherwise all files of the table must be in the layout, and
    Spark merges the columns of all.
    """
    requested = _requested_values(partitions, kinds)
    # An integer may have several folders, e.g. `1` and `01`.
    has_one_folder = all(kind.name == "string" or layout.precision(name) for name, kind in kinds.items())
    is_direct = has_one_folder and requested and all(len(values) == len(kinds) for values in requested)
    below = [layout.folder_of(partition.items()) for partition in partitions] if is_direct else [""]
    spellings = {name.lower(): name for name in kinds}
    files: list[_DataFile] = []
    for folder in dict.fromkeys(below):
        for file in _data_files_below(system, f"{root.rstrip('/')}/{folder}".rstrip("/")):
            path = file.path.removeprefix(root).strip("/")
            texts = layout.values_of_file(path)
            if texts is None or path.count("/") != layout.depth or not file.size or len(files) >= MAX_FILES:
                raise RequiresSpark
            values = {
                spellings[name]: _parse_key(text, kinds[spellings[name]]) for name, text in texts.items()
            }
            files.append(_DataFile(file.path, file.size, values))
    files.sort(key=_path_order)
    selected = [file for file in files if _is_requested(file.partition_values, requested)]
    if not selected:
        raise RequiresSpark
    keys = tuple(spellings[column.lower()] for column in layout.columns)
    return _FileListing(selected, files[0].path, keys, [file.path for file in files])


def _data_files_below(system: Any, folder: str) -> list[Any]:
    """Return the data files below a folder. Raises RequiresSpark if there is a summary file, a pipe or a
    broken link.
    """
    from pyarrow import fs

    entries = system.get_file_info(fs.FileSelector(folder, recursive=True))
    if any(entry.base_name.startswith(_SUMMARIES) for entry in entries):
        raise RequiresSpark
    data = [entry for entry in entries if is_data_path(entry.path.removeprefix(folder).strip("/"))]
    if not all(entry.type in (fs.FileType.File, fs.FileType.Directory) for entry in data):
        raise RequiresSpark
    return [entry for entry in data if entry.type is fs.FileType.File]


def _requested_values(
    partitions: Partitions, kinds: Mapping[str, DataType]
) -> list[dict[str, Scalar | None]]:
    """Return the values of the requested partitions by column, spelled as in the contract."""
    spellings = {name.lower(): name for name in kinds}
    if any(name.lower() not in spellings for partition in partitions for name in partition):
        raise RequiresSpark
    return [
        {
            spellings[name.lower()]: _parse_key(text, kinds[spellings[name.lower()]])
            for name, text in partition.items()
        }
        for partition in partitions
    ]


def _is_requested(
    values: Mapping[str, Scalar | None], requested: Sequence[Mapping[str, Scalar | None]]
) -> bool:
    """Return whether a folder of these values may hold one of the requested partitions, or none is
    requested.
    """
    return not requested or any(
        all(partition[name] == value for name, value in values.items() if name in partition)
        for partition in requested
    )


def _folder_values(path: str, kinds: Mapping[str, DataType]) -> dict[str, Scalar | None]:
    """Return the values in the names of a file's folders, in their order. Raises RequiresSpark for a folder
    that is not one of a partition, and ValueError for an invalid value.
    """
    values: dict[str, Scalar | None] = {}
    for segment in path.lstrip("/").split("/")[:-1]:
        column, equals, written = segment.partition("=")
        name = unescaped(column)
        if not equals or name not in kinds or name in values or _BROKEN_ESCAPE.search(segment):
            raise RequiresSpark
        text, kind = unescaped(written), kinds[name]
        # Spark unescapes only texts and times, and looks for NULL in the escaped name.
        if text != written and (kind.name not in ("string", "timestamp") or text == NULL_PARTITION):
            raise RequiresSpark
        values[name] = _parse_key(text, kind)
    return values


_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def _parse_key(text: str, kind: DataType) -> Scalar | None:
    """Return a partition value, None for NULL. Raises ValueError if Spark may read another from this text."""
    if not text:
        raise ValueError(text)
    return None if text == NULL_PARTITION else _KEY_PARSERS[kind.name](text, kind)


def _partition_kinds(dataset: Dataset) -> dict[str, DataType]:
    """Return the types of the partition columns, as in the contract."""
    kinds = {}
    for name in dataset.partitions:
        kind = struct_field(dataset.columns, name)
        if kind is None or carrier_type(kind).name not in _KEY_PARSERS:
            raise RequiresSpark
        kinds[name] = carrier_type(kind)
    return kinds


def _open_file(system: Any, place: str) -> ParquetFile:
    """Read a file into memory. Raises RequiresSpark if Arrow and Spark may decode its values differently."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with system.open_input_file(place) as source:
        file = pq.ParquetFile(pa.BufferReader(source.read_buffer(SMALL_BYTES)))
    _require_plain(file.metadata)
    return file


def _open_footer(system: Any, place: str) -> ParquetFile:
    import pyarrow.parquet as pq

    return pq.ParquetFile(system.open_input_file(place))


def _require_plain(meta: FileMetaData) -> None:
    """Raise RequiresSpark if Arrow and Spark may decode the values of a file differently."""
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    if (
        sum(group.num_rows for group in groups) != meta.num_rows
        or sum(group.total_byte_size for group in groups) > MAX_UNPACKED_BYTES
        or not all(
            chunk.compression in _CODECS and READABLE_ENCODINGS.issuperset(chunk.encodings)
            for chunk in chunks_of(meta)
        )
    ):
        raise RequiresSpark


def _schema(file: ParquetFile) -> DataType:
    """Return the schema of a file as in Spark. Raises RequiresSpark if it is nested or names differ only by
    case.
    """
    columns = [file.schema.column(index) for index in range(len(file.schema))]
    names = [column.path for column in columns]
    if any(column.path != column.name or column.max_repetition_level for column in columns):
        raise RequiresSpark
    if not names or len({name.lower() for name in names}) < len(names) or any("." in name for name in names):
        raise RequiresSpark
    schema = DataType("struct", (), tuple(map(_kind, columns)), tuple(names))
    spark_schema = (file.metadata.metadata or {}).get(_SPARKS_SCHEMA)
    # Spark prefers the schema it stored in the footer; its column metadata may say more than the type.
    if spark_schema is not None:
        stored = json.loads(spark_schema)
        if from_spark_json(stored) != schema or any(field.get("metadata") for field in stored["fields"]):
            raise RequiresSpark
    return schema


def _kind(column: ColumnSchema) -> DataType:
    kind = leaf_type(column)
    if kind is None:
        raise RequiresSpark
    return kind


def _batch_rows(meta: FileMetaData) -> int:
    """Return a batch size that stays below the memory limit even if every row has the longest value."""
    longest = max((chunk.total_uncompressed_size for chunk in chunks_of(meta)), default=1)
    return max(1, min(SMALL_ROWS, MAX_UNPACKED_BYTES // max(longest, 1)))


def _require_certain_dates(values: Any, kind: DataType) -> None:
    """Raise for dates on which calendars of writers and readers may differ, and for those beyond Python's
    range.
    """
    import pyarrow.compute as pc

    if kind.name not in ("date", "timestamp", "timestamp_ntz"):
        return
    bounds = pc.min_max(values)
    # Raises ValueError or OverflowError beyond the year 9999.
    for bound in (bounds["min"].as_py(), bounds["max"].as_py()):
        day = bound.date() if isinstance(bound, dt.datetime) else bound
        if day is not None and day < CERTAIN_FROM:
            raise RequiresSpark


# Metrics of a small table: with Arrow if it agrees with Spark, with Python rows otherwise.

# Limit on comparisons in Python per table, about half a second.
MOST_STEPS = 500_000
_FLOATS = frozenset({"float", "double"})
# Spark computes these in double precision for all types.
_ROUNDED = frozenset({"stddev_samp"})
# Aggregates of floats that do not depend on the order of the rows.
_EXACT = frozenset({"count", "min", "max", "rank_below", "rank_above", "rank_near"})


def answers(metrics: Iterable[Metric], table: SmallTable) -> dict[Metric, Answer]:
    """Return the answers that this process can compute as Spark does, including the row count.

    Raises RequiresSpark if Spark may read other values.
    """
    with leave_errors_to_spark():
        return _answers(metrics, table)


def _answers(metrics: Iterable[Metric], table: SmallTable) -> dict[Metric, Answer]:
    requested = list(dict.fromkeys(metrics))
    failures = dict(plan(requested, table.schema).failures)
    results: dict[Metric, Answer] = {SCHEMA: table.schema, COUNT: table.rows}
    # Spark tries the alternative metric.
    results |= {
        metric: failure for metric, failure in failures.items() if getattr(metric, "instead", None) is None
    }
    plain = [
        metric
        for metric in requested
        if metric not in results and metric not in failures and _agrees_with_spark(metric, table.schema)
    ]
    columns = table.columns(_names(plain, table.schema))
    results |= _since_1970(plain, columns)
    # Arrow alone does not bring NumPy, which keys and lengths of texts need; rows answer these as well.
    with suppress(ImportError):
        results |= answer_in_memory(
            [metric for metric in plain if metric not in results], table.schema, columns, table.rows
        )
    remaining = _affordable([metric for metric in plain if metric not in results], table)
    return results | _answer_by_rows(remaining, table.schema, columns) if remaining else results


def _names(metrics: Sequence[Metric], schema: DataType) -> list[str]:
    """Return the columns that the metrics read, spelled as in the table."""
    needed = {str(need.column.steps[0]).lower() for metric in metrics for need in reads(metric)}
    return [name for name in schema.names if name.lower() in needed]


def _agrees_with_spark(metric: Metric, schema: DataType) -> bool:
    """Return whether Python computes the same number as Spark."""
    if _instant(metric) is not None:
        return True
    if unsupported_reason(metric) is not None:
        return False
    aggregate = metric.of if isinstance(metric, PerGroup) else metric
    if not isinstance(aggregate, Aggregate) or aggregate.value is None or aggregate.name in _EXACT:
        return True
    if aggregate.name in _ROUNDED:
        return False
    kinds = (resolve(schema, need.column) for need in reads(aggregate))
    return not any(isinstance(kind, DataType) and kind.name in _FLOATS for kind in kinds)


def _instant(metric: Metric) -> str | None:
    """Return the column whose first or last instant (in microseconds since 1970) the metric is, or None."""
    match metric:
        case Aggregate("min" | "max", Since1970(Path((str(name),)), "timestamp" | "timestamp_ntz"), None):
            return name
        case _:
            return None


def _since_1970(metrics: Sequence[Metric], columns: dict[str, Any]) -> dict[Metric, Answer]:
    import pyarrow.compute as pc

    spelled = {name.lower(): name for name in columns}
    results: dict[Metric, Answer] = {}
    for metric in metrics:
        name = _instant(metric)
        if name is not None and isinstance(metric, Aggregate):
            bound = pc.min_max(columns[spelled[name.lower()]])[metric.name].as_py()
            results[metric] = None if bound is None else micros_of(_aware(bound))
    return results


def _aware(moment: dt.datetime) -> dt.datetime:
    """Return an aware instant; a local time without a zone counts as UTC."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


def _affordable(metrics: Sequence[Metric], table: SmallTable) -> list[Metric]:
    """Return the metrics that are cheap enough for Python rows, which cannot be cancelled like Spark jobs."""
    budget, selected = MOST_STEPS, []
    for metric in metrics:
        # A predicate has about one node or list value per 20 characters of SQL.
        size = len(question(metric, table.schema)) if isinstance(metric, Aggregate) else 0
        steps = table.rows * (1 + size // 20)
        if steps <= budget:
            budget -= steps
            selected.append(metric)
    return selected


def _answer_by_rows(
    metrics: Sequence[Metric], schema: DataType, columns: dict[str, Any]
) -> dict[Metric, Answer]:
    import pyarrow as pa

    names = _names(metrics, schema)
    kinds = dict(zip(schema.names, schema.parts, strict=True))
    rows = rows_from_arrow(pa.table({name: columns[name] for name in names}), schema)
    if rows.schema.parts != tuple(kinds[name] for name in names):
        raise RequiresSpark
    results = measure(rows, metrics)
    return {metric: results[metric] for metric in metrics if not isinstance(results[metric], Failure)}


# Samples of failing rows of a small table, as `failing_rows.samples` takes them with Spark.

# Java before 19 writes doubles of more digits, very small and very large ones not always as Python does.
_DIGITS_OF_DOUBLE, _LEAST_DOUBLE, _GREATEST_DOUBLE = 15, 1e-3, 1e7


def small_samples(
    table: SmallTable, schema_object: SchemaObject, failed: Sequence[Clause], *, is_utc: bool
) -> Samples:
    """Return samples of failed clauses by path, the same as Spark's.

    Args:
        is_utc: The session that Spark would use has the time zone UTC, in which it writes instants.

    Raises:
        RequiresSpark: A clause that only Spark can test, or a value that Spark may write in another way.
    """
    with leave_errors_to_spark():
        try:
            return _small_samples(table, schema_object, failed, is_utc)
        except (Incomparable, UnsupportedPredicate) as error:
            raise RequiresSpark from error


def _small_samples(
    table: SmallTable, schema_object: SchemaObject, failed: Sequence[Clause], is_utc: bool
) -> Samples:
    import pyarrow as pa

    schema = table.schema
    counts = {clause.path: count(all_of(clause.row_filter.where, clause.breaks)) for clause in failed}
    is_affordable = len(_affordable(list(counts.values()), table)) == len(counts)
    if not is_affordable or any(isinstance(clause.test, ForeignKey) for clause in failed):
        raise RequiresSpark
    shown = {
        clause.path: clause.keys or identifying_columns(clause, schema_object, schema) for clause in failed
    }
    secrets = secret_columns(schema_object, schema)
    names = {name.lower() for name in _names(list(counts.values()), schema)}
    names |= {str(column.steps[0]).lower() for column in (*secrets, *chain(*shown.values()))}
    arrays = table.columns([name for name in schema.names if name.lower() in names])
    rows = rows_from_arrow(pa.table(arrays), schema)
    texts = _Texts(rows.schema, masked_names(schema_object, failed), tuple(secrets), is_utc)
    samples: dict[str, tuple[Row, ...]] = {}
    for clause in failed:
        holds = _compile_filter(counts[clause.path].where, rows.schema)
        selected = [cells for cells in rows.cells if holds(cells)]
        take_samples = _sample_keys if clause.keys else _sample_rows
        samples[clause.path] = take_samples(selected, shown[clause.path], texts)
    return samples


def _sample_rows(rows: Sequence[Cells], columns: Sequence[Column], texts: _Texts) -> tuple[Row, ...]:
    """Return the first rows in the order of their JSON."""
    shown_rows = [{str(column): texts.shown(cells, column) for column in columns} for cells in rows]
    as_json = functools.partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
    return tuple(sorted(shown_rows, key=as_json)[:MAX_SAMPLES])


def _sample_keys(rows: Sequence[Cells], keys: Sequence[Column], texts: _Texts) -> tuple[Row, ...]:
    """Return the most frequent repeated keys. A value is masked if it repeats a secret in any of its rows."""
    if any(kind.name in _FLOATS for kind in map(texts.kind_of, keys)):
        raise RequiresSpark
    key_of = _key_of(keys)
    rows_by_key: dict[object, list[Cells]] = {}
    for cells in rows:
        if (row_key := key_of(cells)) is not None:
            rows_by_key.setdefault(row_key, []).append(cells)
    repeated: list[tuple[int, list[str]]] = []
    for same_key in (same_key for same_key in rows_by_key.values() if len(same_key) > 1):
        values = [{str(texts.shown(cells, key)) for cells in same_key} for key in keys]
        repeated.append((len(same_key), [MASK if MASK in shown else shown.pop() for shown in values]))
    repeated.sort(key=lambda pair: (-pair[0], pair[1]))
    labels = [str(key) for key in keys]
    return tuple(
        {**dict(zip(labels, values, strict=True)), "count": number}
        for number, values in repeated[:MAX_SAMPLES]
    )


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts of values for samples. Classified values and those that repeat one of their row are masked."""

    schema: DataType
    masked: frozenset[str]
    secrets: tuple[Column, ...]
    is_utc: bool

    def shown(self, cells: Cells, column: Column) -> str | None:
        """Return the text of a value, or None for NULL. Raises RequiresSpark if Spark may show another."""
        if str(column.steps[0]).lower() in self.masked:
            return MASK
        text = self._text(cells, column)
        if text is None or not self.secrets:
            return text and text[:MOST_CHARACTERS]
        secrets = [
            secret for secret in (self._text(cells, key) for key in self.secrets) if secret is not None
        ]
        if not all(map(str.isascii, (text, *secrets))):
            # Java and Python may have other lower-case letters.
            raise RequiresSpark
        repeats = any(
            len(secret) >= MIN_SECRET_LENGTH and secret.lower() in text.lower() for secret in secrets
        )
        return MASK if repeats else text[:MOST_CHARACTERS]

    def kind_of(self, column: Column) -> DataType:
        """Return the type of a column. Raises RequiresSpark for one that is not in the data."""
        kind = resolve(self.schema, column)
        if not isinstance(kind, DataType):
            raise RequiresSpark
        return kind

    def _text(self, cells: Cells, column: Column) -> str | None:
        """Return a value as Spark casts it to a string."""
        value: Any = compile_term(column.path)(cells)
        if value is None:
            return None
        match self.kind_of(column).name:
            case "string" | "tinyint" | "smallint" | "int" | "bigint" | "date":
                return str(value)
            case "boolean":
                return "true" if value else "false"
            case "timestamp_ntz":
                return _time_text(value)
            case "timestamp" if self.is_utc:
                return _time_text(value.astimezone(dt.UTC).replace(tzinfo=None))
            case "double":
                return _double_text(value)
            # Spark has no exponents in decimals.
            case "decimal" if "E" not in str(value):
                return str(value)
            case _:
                raise RequiresSpark


def _time_text(moment: dt.datetime) -> str:
    text = str(moment)
    return text.rstrip("0") if "." in text else text


def _double_text(number: float) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "-Infinity" if number < 0 else "Infinity"
    digits = Decimal(repr(number)).normalize().as_tuple().digits
    is_plain = number == 0 or _LEAST_DOUBLE <= abs(number) < _GREATEST_DOUBLE
    if len(digits) > _DIGITS_OF_DOUBLE or not is_plain:
        raise RequiresSpark
    return java_double(number)
