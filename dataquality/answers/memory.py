"""A small Parquet table in this process: columns as Spark reads them, and the metrics it answers."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from dq.contracts.access.access_policy import is_remote
from dq.contracts.outcome import MissingTool
from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks import in_memory
from dq.dataquality.answers.rows import (
    EXACT,
    Cells,
    Incomparable,
    Rows,
    key,
    of_arrow,
    order,
    predicate,
    value,
)
from dq.dataquality.answers.statistics import CERTAIN_FROM, TYPED, Partitions, Scalar, leaf_type
from dq.dataquality.clauses.clause import Clause, micros_of
from dq.dataquality.model.column import Column, field, resolve
from dq.dataquality.model.metric import (
    SCHEMA,
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    Group,
    Kind,
    Metric,
    PerGroup,
    RepeatedKeys,
    Schema,
    SingleKeys,
    Value,
    reads,
)
from dq.dataquality.model.metric import Value as Aggregated
from dq.dataquality.model.predicate import Function, NoReading, Path, Predicate, Since1970, Term
from dq.dataquality.spark.columnar_files import CANONICAL_TEXTS, NULL_PARTITION
from dq.dataquality.spark.dataset import SMALL_BYTES, SMALL_FILES, SMALL_ROWS, Dataset
from dq.dataquality.spark.measure import COUNT, MOST_GROUPS, group_name, plan, too_many
from dq.dataquality.sql_predicate import question
from dq.dataquality.text import carried
from dq.lake.parquet import READABLE_ENCODINGS, chunks_of
from dq.lake.storage import file_system, is_data_name, is_data_path, split, unescaped
from dq.lake.types import arrow_array, arrow_type, from_spark_json

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnSchema, FileMetaData, ParquetFile


# Metrics asked of rows in memory: the same questions as on Spark, and the same answers.

# TABLE: aggregates of one column of rows in memory, the same numbers as on Spark.

Reader = Callable[[Cells], Any]


def known(metric: Aggregate) -> bool:
    """Whether rows in memory answer it."""
    if metric.value is None:
        return metric.name == "count"
    return metric.name in _AGGREGATES and _reader(metric.value) is not None


def answer(metric: Aggregate, rows: Sequence[Cells]) -> Aggregated:
    """The number of these rows, NULL as Spark has it. Raises Incomparable for values that are no numbers."""
    if metric.value is None:
        return len(rows)
    read = _reader(metric.value)
    assert read is not None
    values = [value for cells in rows if (value := read(cells)) is not None]
    found: Aggregated = _AGGREGATES[metric.name](values, metric)
    return found


def _reader(term: Term) -> Reader | None:
    match term:
        case Path() | Since1970(Path(), "date") | Function("try_decimal", (Path(), int(), int())):
            return value(term)
        case _:
            return None


def _ordered(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=cmp_to_key(order))


def _sum(values: Sequence[Any], _metric: Aggregate) -> Aggregated:
    """NULL where 64 bits, or 38 digits of decimals, do not hold it."""
    if not values:
        return None
    if any(isinstance(value, float) for value in values):
        return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
    if all(isinstance(value, int) for value in values):
        total = sum(values)
        return total if -(2**63) <= total < 2**63 else None
    with decimal.localcontext(EXACT):
        summed = sum(values, Decimal(0))
    return summed if len(summed.as_tuple().digits) <= _MOST_DIGITS else None


_MOST_DIGITS = 38


def _deviation(values: Sequence[Any], _metric: Aggregate) -> Aggregated:
    """That of a sample, NULL for fewer than two values."""
    floats = [float(value) for value in values]
    if len(floats) < 2:
        return None
    if not all(map(math.isfinite, floats)):
        return math.nan
    mean = math.fsum(floats) / len(floats)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in floats) / (len(floats) - 1))


def _ranked(round_: Callable[[Fraction], int]) -> Callable[[Sequence[Any], Aggregate], Aggregated]:
    def ranked(values: Sequence[Any], metric: Aggregate) -> Aggregated:
        if not values:
            return None
        assert metric.share is not None
        found: Aggregated = _ordered(values)[round_(Fraction(metric.share) * (len(values) - 1))]
        return found

    return ranked


def _extreme(end: int) -> Callable[[Sequence[Any], Aggregate], Aggregated]:
    return lambda values, _metric: _ordered(values)[end] if values else None


_AGGREGATES: Mapping[str, Callable[[Sequence[Any], Aggregate], Aggregated]] = {
    "min": _extreme(0),
    "max": _extreme(-1),
    "try_sum": _sum,
    "stddev_samp": _deviation,
    "rank_below": _ranked(math.floor),
    "rank_above": _ranked(math.ceil),
    "rank_near": _ranked(math.floor),
}


_OTHERS = {
    Kind.SQL: "a query needs Spark",
    Kind.UNMATCHED: "the keys would have to be looked up in another object",
}


def unanswerable(metric: Metric) -> str | None:
    """Why rows in memory cannot answer a metric, or None when they can."""
    if isinstance(metric, Schema):
        return None
    if isinstance(metric, PerGroup):
        return unanswerable(metric.of) or _unread(metric.within)
    if not isinstance(metric, Aggregate | DistinctKeys | RepeatedKeys | SingleKeys):
        return _OTHERS.get(metric.kind, f"a question of the kind {metric.kind} needs Spark")
    if isinstance(metric, Aggregate) and not known(metric):
        return f"{metric.name} of a column needs Spark"
    return _unread(metric.where)


def _unread(where: Predicate | None) -> str | None:
    try:
        _holds(where)
    except NoReading as error:
        return str(error)
    return None


def measure(rows: Rows, metrics: Iterable[Metric]) -> dict[Metric, Answer]:
    """Every metric with its value, or with a Failure that says why it has none."""
    made = plan(metrics, rows.schema)
    answers: dict[Metric, Answer] = {SCHEMA: rows.schema, **dict(made.failures)}
    for one in made.passes:
        answers |= {metric: _answer(rows, metric) for metric in one.metrics}
    return answers


def _answer(rows: Rows, metric: Metric) -> Answer:
    reason = unanswerable(metric)
    if reason is not None or isinstance(metric, Schema):
        return Failure(reason or "rows do not answer it")
    try:
        if isinstance(metric, PerGroup):
            return _of_groups(rows, metric)
        return _of_rows(rows, metric)
    except (Incomparable, NoReading) as error:
        return Failure(str(error))


def _of_rows(rows: Rows, metric: Metric) -> Value:
    assert isinstance(metric, Aggregate | DistinctKeys | RepeatedKeys | SingleKeys)
    holds = _holds(metric.where, rows.schema)
    chosen = [cells for cells in rows.cells if holds(cells)]
    if isinstance(metric, Aggregate):
        return answer(metric, chosen)
    key_of = _key_of(metric.keys)
    keys = Counter(made for cells in chosen if (made := key_of(cells)) is not None)
    if isinstance(metric, SingleKeys):
        return sum(times == 1 for times in keys.values())
    return len(keys) if isinstance(metric, DistinctKeys) else keys.total() - len(keys)


def _of_groups(rows: Rows, metric: PerGroup) -> Answer:
    holds, by = _holds(metric.within, rows.schema), [value(column.path) for column in metric.by]
    found: dict[Group, list[Cells]] = {}
    for cells in rows.cells:
        if holds(cells):
            group = tuple(group_name(read(cells)) for read in by)
            found.setdefault(group, []).append(cells)
    if len(found) > MOST_GROUPS:
        return too_many(metric.by)
    told = {group: _of_rows(Rows(rows.schema, tuple(cells)), metric.of) for group, cells in found.items()}
    return {group: number for group, number in told.items() if not isinstance(number, str)}  # type: ignore[misc]


def broken(rows: Rows, clause: Clause) -> list[bool] | None:
    """For each row whether it breaks the clause, or repeats a key; None where that is not of single rows.

    Raises Incomparable and NoReading where the clause cannot be measured.
    """
    if not clause.of_rows:
        return None
    within = _holds(clause.extent.where, rows.schema)
    if clause.breaks is not None:
        breaks = _holds(clause.breaks, rows.schema)
        return [within(cells) and breaks(cells) for cells in rows.cells]
    seen: set[object] = set()
    key_of, found = _key_of(clause.keys), []
    for cells in rows.cells:
        made = key_of(cells) if within(cells) else None
        found.append(made is not None and made in seen)
        seen.add(made)
    return found


@functools.lru_cache(1024)
def _holds(where: Predicate | None, schema: DataType | None = None) -> Callable[[Cells], bool]:
    return (lambda _cells: True) if where is None else predicate(where, schema)


def _key_of(columns: Sequence[Column]) -> Callable[[Cells], object]:
    """From a row to its key, None when a part of it is NULL."""
    parts = [value(column.path) for column in columns]

    def key_of(cells: Cells) -> object:
        values = [part(cells) for part in parts]
        return None if any(each is None for each in values) else tuple(map(key, values))

    return key_of


# A small Parquet table in this process: its columns as Spark reads them, and the metrics that it answers.
#
# What Spark may read in another way is `LeftToSpark`: the caller asks Spark then.

# What a few packed bytes may come to in memory.
MOST_UNPACKED = 64 << 20
# Both readers unpack and decode these alike.
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
# Spark may take the columns of a table from these.
_SUMMARIES = ("_metadata", "_common_metadata")
_SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


# Types of partition columns, and the texts of each of which no other one means the same.
CANONICAL = {
    "string": CANONICAL_TEXTS["string"],
    "date": CANONICAL_TEXTS["date"],
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), CANONICAL_TEXTS["integer"]),
}


class LeftToSpark(Exception):
    """It is not certain that Spark would read the same."""


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file held in memory, and the values of its partition, by column."""

    content: ParquetFile
    placed: Mapping[str, Scalar | None]


@dataclass(frozen=True, slots=True)
class SmallTable:
    """The columns and types as Spark has them, how many rows there are, and the files, held in memory."""

    schema: DataType
    rows: int
    files: tuple[SmallFile, ...]

    def columns(self, names: Iterable[str]) -> dict[str, Any]:
        """These columns as Arrow arrays of the schema's types. Raises LeftToSpark, and Arrow's own errors."""
        import pyarrow as pa

        types = {name: arrow_type(kind) for name, kind in self._kinds().items()}
        held: dict[str, list[Any]] = {name: [] for name in names}
        size = 0
        for file in self.files:
            meta = file.content.metadata
            for name in held.keys() & file.placed.keys():
                value = file.placed[name]
                held[name].append(
                    pa.nulls(meta.num_rows, types[name])
                    if value is None
                    else pa.repeat(arrow_array([value], types[name])[0], meta.num_rows)
                )
            stored = [name for name in held if name not in file.placed]
            batches = file.content.iter_batches(_batch_rows(meta), columns=stored, use_threads=False)
            for batch in batches if stored else ():
                size += batch.nbytes
                if size > MOST_UNPACKED:
                    raise LeftToSpark
                for name in stored:
                    values = batch.column(batch.schema.get_field_index(name))
                    held[name].append(values.cast(types[name]))
        made = {name: pa.chunked_array(parts, types[name]).combine_chunks() for name, parts in held.items()}
        for name, values in made.items():
            _certain(values, self._kinds()[name])
        return made

    def _kinds(self) -> dict[str, DataType]:
        return dict(zip(self.schema.names, self.schema.parts, strict=True))


@contextmanager
def certain() -> Iterator[None]:
    """Turns what keeps Arrow, or this process, from reading what Spark may read into LeftToSpark."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise LeftToSpark from error
    try:
        yield
    # Keys are compared with NumPy, which comes with Spark and not with Arrow.
    except (
        MissingTool, ImportError, pa.ArrowException, OSError, ValueError, OverflowError, NotImplementedError,
    ) as error:  # fmt: skip
        raise LeftToSpark from error


def small_table(dataset: Dataset, partitions: Partitions = ()) -> SmallTable:
    """The rows of these partitions (none: all) of the table of a dataset. Raises LeftToSpark."""
    if dataset.path is None or dataset.format != "parquet" or dataset.placed:
        raise LeftToSpark
    with certain():
        return _small_table(dataset, dataset.path, partitions)


def _small_table(dataset: Dataset, path: str, partitions: Partitions) -> SmallTable:
    system, root = _place(path)
    kinds = _partition_kinds(dataset)
    listed = _in_partitions(system, root, kinds, partitions) if kinds else _side_by_side(system, root)
    if not 0 < len(listed.chosen) <= SMALL_FILES or sum(size for _, size in listed.chosen) > SMALL_BYTES:
        raise LeftToSpark
    files = [
        SmallFile(_opened(system, place), _placed(place.removeprefix(root), kinds))
        for place, _ in listed.chosen
    ]
    # Spark takes the columns of all files from the first one, wherever it lies.
    first = () if kinds == {} or listed.first == listed.chosen[0][0] else (_footer(system, listed.first),)
    schemas = {_schema(file) for file in (*(file.content for file in files), *first)}
    rows = sum(file.content.metadata.num_rows for file in files)
    if len(schemas) != 1 or rows > SMALL_ROWS:
        raise LeftToSpark
    schema, keys = schemas.pop(), tuple(files[0].placed)
    if {name.lower() for name in schema.names} & {name.lower() for name in keys}:
        raise LeftToSpark
    whole = DataType("struct", (), (*schema.parts, *(kinds[name] for name in keys)), (*schema.names, *keys))
    return SmallTable(whole, rows, tuple(files))


@dataclass(frozen=True, slots=True)
class _Listed:
    """The files that are asked for, with their sizes, in the order of their names; and the table's first."""

    chosen: Sequence[tuple[str, int]]
    first: str


def _place(path: str) -> tuple[Any, str]:
    """The file system of a path, and where it is there."""
    from pyarrow import fs

    # Spark takes a name with one of these for a pattern, or for an escape.
    if re.search(r"[*?\[\]{}\\%#]", path):
        raise LeftToSpark
    if is_remote(path):
        root, below = split(path)
        system, before = file_system(root)
        return system, before + below
    return fs.LocalFileSystem(), path.removeprefix("file://")


def _side_by_side(system: Any, root: str) -> _Listed:
    """The files of a folder, or the one of this name."""
    from pyarrow import fs

    found = system.get_file_info(root)
    if found.type is fs.FileType.Directory:
        listed = system.get_file_info(fs.FileSelector(root))
        if any(each.base_name.startswith(_SUMMARIES) for each in listed):
            raise LeftToSpark
        infos = [each for each in listed if is_data_name(each.base_name)]
    else:
        infos = [found]
    # A folder may be a partition or none, and a file that is named itself may be hidden; Spark passes over
    # an empty one.
    if not all(
        each.type is fs.FileType.File and each.size and is_data_name(each.base_name) for each in infos
    ):
        raise LeftToSpark
    files = sorted((each.path, each.size) for each in infos)
    return _Listed(files, files[0][0] if files else "")


def _in_partitions(system: Any, root: str, kinds: Mapping[str, DataType], partitions: Partitions) -> _Listed:
    """The files of these partitions. Every file of the table must lie in a folder of its columns.

    The folders of the first column are looked at before all others, which may be very many.
    """
    from pyarrow import fs

    names = {name.lower(): name for name in kinds}
    if any(name.lower() not in names for partition in partitions for name in partition):
        raise LeftToSpark
    wanted = [{names[name.lower()]: text for name, text in each.items()} for each in partitions]
    for each in wanted:
        _values(each, kinds)
    top = [each for each in system.get_file_info(fs.FileSelector(root)) if is_data_name(each.base_name)]
    some = [each for each in top if not wanted or any(_may_hold(each.base_name, one) for one in wanted)]
    if len(some) > SMALL_FILES or any(each.type is not fs.FileType.Directory for each in top):
        raise LeftToSpark
    near = [each for one in some for each in _below(system, one.path)]
    chosen = sorted(
        (each.path, each.size)
        for each in near
        if not wanted or any(one.items() <= _texts(each.path.removeprefix(root)).items() for one in wanted)
    )
    if not 0 < len(chosen) <= SMALL_FILES or not all(size for _, size in chosen):
        raise LeftToSpark
    every = _below(system, root) if wanted else near
    keys = {tuple(_placed(each.path.removeprefix(root), kinds)) for each in every}
    if len(keys) != 1:
        raise LeftToSpark
    return _Listed(chosen, min(each.path for each in every))


def _below(system: Any, folder: str) -> list[Any]:
    """The files with rows below a folder. Raises LeftToSpark where a summary stands for their columns."""
    from pyarrow import fs

    listed = system.get_file_info(fs.FileSelector(folder, recursive=True))
    if any(each.base_name.startswith(_SUMMARIES) for each in listed):
        raise LeftToSpark
    files = (each for each in listed if each.type is fs.FileType.File)
    return [each for each in files if is_data_path(each.path.removeprefix(folder).strip("/"))]


def _may_hold(folder: str, partition: Mapping[str, str]) -> bool:
    """Whether a folder's name does not exclude the partition."""
    return all(partition.get(name, text) == text for name, text in _texts(f"{folder}/").items())


def _texts(path: str) -> dict[str, str]:
    """The values that the names of a file's folders say, by column, in their order."""
    segments = [segment.partition("=") for segment in path.lstrip("/").split("/")[:-1]]
    return {unescaped(name): unescaped(text) for name, _, text in segments}


def _placed(path: str, kinds: Mapping[str, DataType]) -> dict[str, Scalar | None]:
    """The values of the partition columns of a file below the table, in the order of its folders."""
    if not kinds:
        return {}
    texts = _texts(path)
    if texts.keys() != kinds.keys() or path.lstrip("/").count("/") != len(kinds):
        raise LeftToSpark
    return _values(texts, kinds)


def _values(texts: Mapping[str, str], kinds: Mapping[str, DataType]) -> dict[str, Scalar | None]:
    """Raises LeftToSpark for a text that another one equals, and ValueError for one that is no value."""
    for name, text in texts.items():
        if text != NULL_PARTITION and not CANONICAL[kinds[name].name].fullmatch(text):
            raise LeftToSpark
    return {
        name: None if text == NULL_PARTITION else TYPED[kinds[name].name](text, kinds[name])
        for name, text in texts.items()
    }


def _partition_kinds(dataset: Dataset) -> dict[str, DataType]:
    """The types of the partition columns, which are those of the contract."""
    found = {}
    for name in dataset.partitions:
        kind = field(dataset.columns, name)
        if kind is None or carried(kind).name not in CANONICAL:
            raise LeftToSpark
        found[name] = carried(kind)
    return found


def _opened(system: Any, place: str) -> ParquetFile:
    """A file in memory. Raises LeftToSpark where the two readers may unpack its values to others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with system.open_input_file(place) as source:
        file = pq.ParquetFile(pa.BufferReader(source.read_buffer(SMALL_BYTES)))
    _plain(file.metadata)
    return file


def _footer(system: Any, place: str) -> ParquetFile:
    import pyarrow.parquet as pq

    return pq.ParquetFile(system.open_input_file(place))


def _plain(meta: FileMetaData) -> None:
    """Refuses a file whose values the two readers may unpack to others."""
    groups = [meta.row_group(at) for at in range(meta.num_row_groups)]
    if (
        sum(group.num_rows for group in groups) != meta.num_rows
        or sum(group.total_byte_size for group in groups) > MOST_UNPACKED
        or not all(
            chunk.compression in _CODECS and READABLE_ENCODINGS.issuperset(chunk.encodings)
            for chunk in chunks_of(meta)
        )
    ):
        raise LeftToSpark


def _schema(file: ParquetFile) -> DataType:
    """The columns of a file as Spark has them; they are flat, and no two differ only by case."""
    columns = [file.schema.column(at) for at in range(len(file.schema))]
    names = [column.path for column in columns]
    if any(column.path != column.name or column.max_repetition_level for column in columns):
        raise LeftToSpark
    if not names or len({name.lower() for name in names}) < len(names) or any("." in name for name in names):
        raise LeftToSpark
    made = DataType("struct", (), tuple(map(_kind, columns)), tuple(names))
    told = (file.metadata.metadata or {}).get(_SPARKS_SCHEMA)
    # Spark believes what it has written there; its own notes on a column may say more than the type.
    if told is not None:
        stored = json.loads(told)
        if from_spark_json(stored) != made or any(field.get("metadata") for field in stored["fields"]):
            raise LeftToSpark
    return made


def _kind(column: ColumnSchema) -> DataType:
    found = leaf_type(column)
    if found is None:
        raise LeftToSpark
    return found


def _batch_rows(meta: FileMetaData) -> int:
    """So few rows at once that not even the longest text, repeated in each of them, is too much."""
    longest = max((chunk.total_uncompressed_size for chunk in chunks_of(meta)), default=1)
    return max(1, min(SMALL_ROWS, MOST_UNPACKED // max(longest, 1)))


def _certain(values: Any, kind: DataType) -> None:
    """Refuses days of which writers and readers had several calendars, and those that Python cannot hold."""
    import pyarrow.compute as pc

    if kind.name not in ("date", "timestamp", "timestamp_ntz"):
        return
    bounds = pc.min_max(values)
    # Raises ValueError or OverflowError beyond the year 9999.
    for bound in (bounds["min"].as_py(), bounds["max"].as_py()):
        day = bound.date() if isinstance(bound, dt.datetime) else bound
        if day is not None and day < CERTAIN_FROM:
            raise LeftToSpark


# Metrics of a small table: by Arrow where it means the same as Spark, by rows of Python for the rest.

# Comparisons that Python makes for the questions to one table: about half a second of them.
MOST_STEPS = 500_000
_FLOATS = frozenset({"float", "double"})
# Spark reckons these in doubles, whatever the numbers are.
_ROUNDED = frozenset({"stddev_samp"})
# Of floats, all others depend on the order in which the rows are added up.
_EXACT = frozenset({"count", "min", "max", "rank_below", "rank_above", "rank_near"})


def answers(metrics: Iterable[Metric], table: SmallTable) -> dict[Metric, Answer]:
    """The metrics that this process can tell, each with the answer that Spark gives; the number of rows too.

    Raises LeftToSpark where Spark may read other values.
    """
    with certain():
        return _answers(metrics, table)


def _answers(metrics: Iterable[Metric], table: SmallTable) -> dict[Metric, Answer]:
    asked = list(dict.fromkeys(metrics))
    failures = dict(plan(asked, table.schema).failures)
    told: dict[Metric, Answer] = {SCHEMA: table.schema, COUNT: table.rows}
    # Another way to ask it is Spark's.
    told |= {one: why for one, why in failures.items() if getattr(one, "instead", None) is None}
    plain = [one for one in asked if one not in told and one not in failures and _alike(one, table.schema)]
    columns = table.columns(_names(plain, table.schema))
    told |= _since_1970(plain, columns)
    told |= in_memory([one for one in plain if one not in told], table.schema, columns, table.rows)
    rest = _within_reason([one for one in plain if one not in told], table)
    return told | _by_rows(rest, table.schema, columns) if rest else told


def _names(metrics: Sequence[Metric], schema: DataType) -> list[str]:
    """The columns that are read, as the table has them."""
    wanted = {str(need.column.steps[0]).lower() for metric in metrics for need in reads(metric)}
    return [name for name in schema.names if name.lower() in wanted]


def _alike(metric: Metric, schema: DataType) -> bool:
    """Whether Python gives the number that Spark gives."""
    if _instant(metric) is not None:
        return True
    if unanswerable(metric) is not None:
        return False
    of = metric.of if isinstance(metric, PerGroup) else metric
    if not isinstance(of, Aggregate) or of.value is None or of.name in _EXACT:
        return True
    if of.name in _ROUNDED:
        return False
    kinds = (resolve(schema, need.column) for need in reads(of))
    return not any(isinstance(kind, DataType) and kind.name in _FLOATS for kind in kinds)


def _instant(metric: Metric) -> str | None:
    """The column whose first or last instant is asked for, of all rows, in microseconds since 1970."""
    match metric:
        case Aggregate("min" | "max", Since1970(Path((str(name),)), "timestamp" | "timestamp_ntz"), None):
            return name
        case _:
            return None


def _since_1970(metrics: Sequence[Metric], columns: dict[str, Any]) -> dict[Metric, Answer]:
    import pyarrow.compute as pc

    spelled = {name.lower(): name for name in columns}
    found: dict[Metric, Answer] = {}
    for metric in metrics:
        name = _instant(metric)
        if name is not None and isinstance(metric, Aggregate):
            bound = pc.min_max(columns[spelled[name.lower()]])[metric.name].as_py()
            found[metric] = None if bound is None else micros_of(_aware(bound))
    return found


def _aware(moment: dt.datetime) -> dt.datetime:
    """A civil time counts as if it were one of UTC."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


def _within_reason(metrics: Sequence[Metric], table: SmallTable) -> list[Metric]:
    """Of these the ones that rows of Python answer at once: nobody could stop them, as Spark's jobs are."""
    left, found = MOST_STEPS, []
    for metric in metrics:
        # About a node of the predicate, or a value of a list, for each of so many characters.
        size = len(question(metric, table.schema)) if isinstance(metric, Aggregate) else 0
        steps = table.rows * (1 + size // 20)
        if steps <= left:
            left -= steps
            found.append(metric)
    return found


def _by_rows(metrics: Sequence[Metric], schema: DataType, columns: dict[str, Any]) -> dict[Metric, Answer]:
    import pyarrow as pa

    wanted = _names(metrics, schema)
    kinds = dict(zip(schema.names, schema.parts, strict=True))
    rows = of_arrow(pa.table({name: columns[name] for name in wanted}), schema)
    if rows.schema.parts != tuple(kinds[name] for name in wanted):
        raise LeftToSpark
    found = measure(rows, metrics)
    return {metric: found[metric] for metric in metrics if not isinstance(found[metric], Failure)}
