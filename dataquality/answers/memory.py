"""A small Parquet table in this process: its columns as Spark reads them, and the metrics that it answers."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dq.contracts.access.access_policy import is_remote
from dq.contracts.types import DataType
from dq.dataquality.answers.by_rows import measure, unanswerable
from dq.dataquality.answers.python_tasks.run import in_memory
from dq.dataquality.answers.rows import of_arrow
from dq.dataquality.answers.statistics.dictionary import CERTAIN_FROM
from dq.dataquality.answers.statistics.parquet import leaf_type
from dq.dataquality.clauses.clause import micros_of
from dq.dataquality.model.column import resolve
from dq.dataquality.model.metric import SCHEMA, Aggregate, Answer, Failure, Metric, PerGroup, reads
from dq.dataquality.model.term import Path, Since1970
from dq.dataquality.spark.plan import plan
from dq.dataquality.spark.readers.open import SMALL_BYTES, SMALL_FILES, SMALL_ROWS, Dataset
from dq.dataquality.sql.spark_predicate import question
from dq.lake.parquet import READABLE_ENCODINGS
from dq.lake.paths import is_data_name
from dq.lake.storage import file_system, split
from dq.lake.types import arrow_type, from_spark_json

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnSchema, FileMetaData, ParquetFile


# A small Parquet table in memory, with the columns, types and values that Spark reads; or none at all.
#
# What Spark may read in another way is `LeftToSpark`: the caller asks Spark then.

# What a few packed bytes may come to in memory.
MOST_UNPACKED = 64 << 20
# Both readers unpack and decode these alike.
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
# Spark may take the columns of a table from these.
_SUMMARIES = ("_metadata", "_common_metadata")
_SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


class LeftToSpark(Exception):
    """It is not certain that Spark would read the same."""


@dataclass(frozen=True, slots=True)
class SmallTable:
    """The columns and types as Spark has them, how many rows there are, and the files, held in memory."""

    schema: DataType
    rows: int
    files: tuple[ParquetFile, ...]

    def columns(self, names: Iterable[str]) -> dict[str, Any]:
        """These columns as Arrow arrays of the schema's types. Raises LeftToSpark, and Arrow's own errors."""
        import pyarrow as pa

        wanted = list(names)
        kinds = dict(zip(self.schema.names, self.schema.parts, strict=True))
        held: dict[str, list[Any]] = {name: [] for name in wanted}
        size = 0
        for file in self.files if wanted else ():
            for batch in file.iter_batches(_batch_rows(file.metadata), columns=wanted, use_threads=False):
                size += batch.nbytes
                if size > MOST_UNPACKED:
                    raise LeftToSpark
                for name in wanted:
                    values = batch.column(batch.schema.get_field_index(name))
                    held[name].append(values.cast(arrow_type(kinds[name])))
        made = {
            name: pa.chunked_array(held[name], arrow_type(kinds[name])).combine_chunks() for name in wanted
        }
        for name, values in made.items():
            _certain(values, kinds[name])
        return made


def small_table(dataset: Dataset) -> SmallTable:
    """The table at the path of a dataset. Raises LeftToSpark, and Arrow's errors."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if dataset.path is None or dataset.format != "parquet" or dataset.partitions:
        raise LeftToSpark
    files = []
    for content in _contents(dataset.path):
        file = pq.ParquetFile(pa.BufferReader(content))
        _plain(file.metadata)
        files.append(file)
    schemas = {_schema(file) for file in files}
    rows = sum(file.metadata.num_rows for file in files)
    if len(schemas) != 1 or rows > SMALL_ROWS:
        raise LeftToSpark
    return SmallTable(schemas.pop(), rows, tuple(files))


def _contents(path: str) -> list[Any]:
    """The bytes of each file at a path, in the order of their names, where they are few and small."""
    from pyarrow import fs

    # Spark takes a name with one of these for a pattern, or for an escape.
    if re.search(r"[*?\[\]{}\\%#]", path):
        raise LeftToSpark
    if is_remote(path):
        root, below = split(path)
        system, before = file_system(root)
        place = before + below
    else:
        system, place = fs.LocalFileSystem(), path.removeprefix("file://")
    found = system.get_file_info(place)
    if found.type is fs.FileType.Directory:
        listed = system.get_file_info(fs.FileSelector(place))
        if any(each.base_name.startswith(_SUMMARIES) for each in listed):
            raise LeftToSpark
        data = (each for each in listed if is_data_name(each.base_name))
        found = sorted(data, key=lambda info: info.path)
    else:
        found = [found]
    if not 0 < len(found) <= SMALL_FILES or sum(each.size or 0 for each in found) > SMALL_BYTES:
        raise LeftToSpark
    # A folder may be a partition or none, and a file that is named itself may be hidden; Spark passes over
    # an empty one.
    if any(
        each.type is not fs.FileType.File or not each.size or not is_data_name(each.base_name)
        for each in found
    ):
        raise LeftToSpark
    contents = []
    for each in found:
        with system.open_input_file(each.path) as source:
            contents.append(source.read_buffer(SMALL_BYTES))
    return contents


def _plain(meta: FileMetaData) -> None:
    """Refuses a file whose values the two readers may unpack to others."""
    groups = [meta.row_group(at) for at in range(meta.num_row_groups)]
    chunks = [group.column(at) for group in groups for at in range(meta.num_columns)]
    if (
        sum(group.num_rows for group in groups) != meta.num_rows
        or sum(group.total_byte_size for group in groups) > MOST_UNPACKED
        or not all(
            one.compression in _CODECS and READABLE_ENCODINGS.issuperset(one.encodings) for one in chunks
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
    groups = [meta.row_group(at) for at in range(meta.num_row_groups)]
    chunks = [group.column(at) for group in groups for at in range(meta.num_columns)]
    longest = max((chunk.total_uncompressed_size for chunk in chunks), default=1)
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
    """The metrics that this process can tell, each with the answer that Spark gives.

    Raises LeftToSpark, and Arrow's errors, where Spark may read other values.
    """
    asked = list(dict.fromkeys(metrics))
    failures = dict(plan(asked, table.schema).failures)
    told: dict[Metric, Answer] = {SCHEMA: table.schema}
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
