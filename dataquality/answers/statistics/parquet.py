"""Facts of Parquet tables, from the footers of the files that Spark listed."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dq.contracts.types import DataType
from dq.dataquality.answers.statistics.dictionary import CERTAIN_FROM, chunks_of, values_of
from dq.dataquality.answers.statistics.facts import (
    Facts,
    File,
    Partitions,
    Scalar,
    Wanted,
    constant,
    named_alike,
    relation,
)
from dq.dataquality.answers.statistics.writers import believed, counts_rows
from dq.dataquality.model.column import Column, field, resolve
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.partitions import NULL_PARTITION
from dq.dataquality.spark.readers.columnar import opened
from dq.dataquality.spark.readers.open import Dataset
from dq.dataquality.spark.readers.text import with_rows
from dq.dataquality.spark.session import attempt, in_tasks
from dq.lake import parquet
from dq.lake.paths import unescaped

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.parquet import ColumnChunkMetaData, ColumnSchema, ParquetSchema
    from pyspark.sql import DataFrame


# One Parquet file's footer to facts; runs on the driver or in a task, without Spark.


@dataclass(frozen=True, slots=True)
class Asked:
    """A column as the frame has it, exactly so written, and whether its values are wanted."""

    column: Column
    type: DataType
    values: bool


def read(source: NativeFile, path: str, asked: tuple[Asked, ...]) -> File:
    """The file's rows, and what its footer and its dictionaries say about these columns.

    Raises OSError and pyarrow's errors, which are ValueErrors or OSErrors, for what is no Parquet file, and
    ValueError for one that says two numbers of rows.
    """
    import pyarrow.parquet as pq

    meta = pq.read_metadata(source)
    leaves = _leaves(meta.schema)
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    if sum(group.num_rows for group in groups) != meta.num_rows:
        raise ValueError(f"{path}: the footer and its row groups have different numbers of rows")
    writers = (meta.created_by or "",)
    wanted = {
        one: leaf
        for one in asked
        if (leaf := leaves.get(one.column)) is not None
        and _fits(meta.schema, leaf, one.type)
        # Spark fails where it cannot read the values, and so does whoever asks for them.
        and not any(parquet.unreadable_chunk(group.column(leaf)) for group in groups)
    }
    chunks = chunks_of(source, meta) if any(one.values for one in wanted) else []
    facts = {}
    for one, leaf in wanted.items():
        found = _bounds([group.column(leaf) for group in groups if group.num_rows], one.type)
        if one.values:
            values = values_of(source, [group[leaf] for group in chunks], one.type)
            found = Facts(found.nulls, found.least, found.greatest, found.attained, values)
        facts[one.column] = believed(found, writers, one.type.name, nested=len(one.column.steps) > 1)
    return File(path, meta.num_rows, counts_rows(writers), facts, writers)


def _leaves(schema: ParquetSchema) -> dict[Column, int]:
    """Columns without anything repeated on the way; names that differ only by case stand for nothing."""
    # A dot in a name cannot be told from a struct's field; such a path resolves to no column.
    ways = [tuple(schema.column(index).path.split(".")) for index in range(len(schema))]
    spelled: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for way in ways:
        for depth in range(1, len(way) + 1):
            spelled.setdefault(tuple(map(str.lower, way[:depth])), set()).add(way[:depth])
    seen = Counter(ways)
    twice = {spelling for same in spelled.values() if len(same) > 1 for spelling in same}
    return {
        Column(way): index
        for index, way in enumerate(ways)
        if schema.column(index).max_repetition_level == 0
        and seen[way] == 1
        and not any(way[:depth] in twice for depth in range(1, len(way) + 1))
    }


def _fits(schema: ParquetSchema, leaf: int | None, kind: DataType) -> bool:
    """Whether Spark reads this leaf as the type, with the same values, and its statistics are read here."""
    if leaf is None or kind.name == "binary" or leaf_type(schema.column(leaf)) != kind:
        return False
    return kind.name != "decimal" or schema.column(leaf).physical_type in ("INT32", "INT64")


def leaf_type(column: ColumnSchema) -> DataType | None:
    """Return the type as which Spark reads a leaf without changing a value; None where that is uncertain."""
    logical = json.loads(column.logical_type.to_json())
    if logical["Type"] == "Decimal":
        return parquet.leaf_type(column)
    if (
        logical["Type"] not in _UNCHANGED
        or logical.get("isSigned") is False
        or column.physical_type in ("INT96", "FIXED_LEN_BYTE_ARRAY")
    ):
        return None
    kind = parquet.leaf_type(column)
    # The zone of an older writer's instant is known to the converted type alone, and not to pyarrow.
    instant = kind is not None and kind.name == "timestamp"
    return None if instant and not logical["isAdjustedToUTC"] else kind


_UNCHANGED = frozenset({"None", "String", "Date", "Int", "Timestamp"})
_PYTHON: dict[str, type] = {
    "boolean": bool,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "date": dt.date,
    "timestamp": dt.datetime,
    "timestamp_ntz": dt.datetime,
}
# Of floats, only the number of NULLs is used.
_BOUNDED = frozenset({*_PYTHON, "decimal"})


def _bounds(chunks: list[ColumnChunkMetaData], kind: DataType) -> Facts:
    nulls: int | None = 0
    lows: list[Any] = []
    highs: list[Any] = []
    bounded = kind.name in _BOUNDED
    for chunk in chunks:
        found = chunk.statistics if chunk.is_stats_set else None
        absent = found.null_count if found is not None and found.has_null_count else None
        if absent is not None and not 0 <= absent <= chunk.num_values:
            absent = None
        nulls = None if nulls is None or absent is None else nulls + absent
        # A chunk of NULLs only has no bounds, and needs none.
        if absent == chunk.num_values or not bounded:
            continue
        low, high = _pair(found, kind) if found is not None else (None, None)
        if low is None or high is None:
            bounded = False
        else:
            lows.append(low)
            highs.append(high)
    if not bounded or not lows:
        return Facts(nulls)
    return Facts(nulls, min(lows), max(highs), True)


def _pair(found: Any, kind: DataType) -> tuple[Any, Any]:
    if not found.has_min_max:
        return None, None
    if kind.name == "decimal":
        # pyarrow makes decimals of integers only since release 22.
        low, high = (Decimal(one).scaleb(-kind.numbers[1]) for one in (found.min_raw, found.max_raw))
        return (low, high) if low <= high else (None, None)
    try:
        low, high = found.min, found.max
    except (ValueError, OverflowError, ArithmeticError):
        # A date after the year 9999, which Python cannot hold.
        return None, None
    if type(low) is not type(high) or not isinstance(low, _PYTHON[kind.name]) or low > high:
        return None, None
    if isinstance(low, dt.date):
        day = low.date() if isinstance(low, dt.datetime) else low
        if day < CERTAIN_FROM:
            return None, None
    if isinstance(low, dt.datetime) and (low.tzinfo is None) is (kind.name == "timestamp"):
        return None, None
    return low, high


# More footers than this are read in Spark's tasks.
MOST_ON_DRIVER = 2_000
# Object stores answer slowly and many at a time; the disk of this machine is faster one by one.
_AT_A_TIME = 16
_PER_TASK = 200


def files(
    frame: DataFrame, _dataset: Dataset | None, partitions: Partitions, wanted: Wanted
) -> list[File] | None:
    """The Parquet files that a query on these partitions would read."""
    paths = attempt(lambda: listing(frame))
    if paths is None or isinstance(paths, Failure):
        return None
    schema = schema_of(frame)
    # Not what the contract calls a partition column.
    keys = {name.lower(): name for name in folder_columns(frame)}
    chosen: dict[str, dict[Column, Scalar | None]] = {}
    for path in paths:
        placed = _placed(path, schema, keys)
        if placed is None:
            return None
        held = [_holds(placed, one, schema) for one in partitions]
        if None in held:
            return None
        if not partitions or any(held):
            chosen[path] = placed
    asked = tuple(_asked(schema, wanted))
    found = _read(frame, list(chosen), asked)
    if found is None:
        return None
    placed_in = {
        file.path: {column: constant(value, file.rows) for column, value in chosen[file.path].items()}
        for file in found
    }
    return [replace(file, columns={**file.columns, **placed_in[file.path]}) for file in found]


def folder_columns(frame: DataFrame) -> frozenset[str]:
    """The columns of a frame of Parquet files that Spark takes from the names of folders, by exact names.

    A file may hold such a column too, and then it says nothing.
    """
    found = _relation(frame)
    names = [] if found is None else list(found.partitionSchema().fieldNames())
    lowered = {name.lower() for name in names}
    return frozenset(name for name in frame.columns if name.lower() in lowered)


def _relation(frame: DataFrame) -> Any:
    """Spark's relation of a frame that is nothing but Parquet files; else None."""
    leaf = relation(frame, "LogicalRelation")
    found = leaf.relation() if leaf is not None else None
    if found is None or found.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    return found if found.fileFormat().getClass().getSimpleName() == "ParquetFileFormat" else None


def listing(frame: DataFrame) -> list[str] | None:
    """The addresses of the files of a frame that is nothing but Parquet files, each read once; else None."""
    found = _relation(frame)
    if found is None:
        return None
    location = found.location()
    # A catalog may say that a partition lies in a folder of another name.
    if location.getClass().getSimpleName() != "InMemoryFileIndex" and found.partitionSchema().length():
        return None
    roots = location.rootPaths()
    # What is read twice is listed once.
    if roots.distinct().size() != roots.size():
        return None
    # One call for all of them: each element of a Java array would be a call of its own. The addresses are
    # encoded, so that there is no line break in them.
    jvm: Any = frame.sparkSession._jvm
    joined = jvm.org.apache.hadoop.util.StringUtils.join("\n", location.inputFiles())
    return sorted(with_rows(joined.split("\n"))) if joined else []


def _placed(path: str, schema: DataType, keys: Mapping[str, str]) -> dict[Column, Scalar | None] | None:
    """The values of the partition columns of a file, by its path; None where one is not certain."""
    found: dict[Column, Scalar | None] = {}
    for segment in unquote(urlsplit(path).path).split("/")[:-1]:
        name, equals, text = segment.partition("=")
        key = keys.get(unescaped(name).lower()) if equals else None
        if key is None:
            continue
        kind = field(schema, key)
        make = TYPED.get(kind.name) if kind else None
        if kind is None or make is None:
            return None
        try:
            found[Column((key,))] = None if text == NULL_PARTITION else make(unescaped(text), kind)
        except (ValueError, ArithmeticError):
            return None
    return found if len(found) == len(keys) else None


def _whole(text: str, kind: DataType) -> int:
    if (
        not re.fullmatch("-?[0-9]{1,18}", text)
        or not -(2 ** _BITS[kind.name]) <= int(text) < 2 ** _BITS[kind.name]
    ):
        raise ValueError(text)
    return int(text)


def _day(text: str, _kind: DataType) -> dt.date:
    # Python also reads dates without hyphens, and weeks.
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def _fraction(text: str, kind: DataType) -> Decimal:
    precision, scale = kind.numbers
    parts = re.fullmatch(r"-?0*([0-9]+)(?:\.([0-9]+))?", text)
    # What has more digits than the type is rounded when it is read.
    if parts is None or len(parts[1]) > max(precision - scale, 1) or len(parts[2] or "") > scale:
        raise ValueError(text)
    return Decimal(text)


_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
# Only texts that Spark and Python read alike.
TYPED: dict[str, Callable[[str, DataType], Scalar]] = {
    "string": lambda text, _: text,
    **dict.fromkeys(_BITS, _whole),
    "date": _day,
    "decimal": _fraction,
}


def _holds(
    placed: Mapping[Column, Scalar | None], partition: Mapping[str, str], schema: DataType
) -> bool | None:
    """Whether a file lies in a partition; None where its path does not tell."""
    by_name = {str(column).lower(): value for column, value in placed.items()}
    for name, text in partition.items():
        kind = field(schema, name)
        if name.lower() not in by_name or kind is None:
            return None
        try:
            wanted = None if text == NULL_PARTITION else TYPED[kind.name](text, kind)
        except (KeyError, ValueError, ArithmeticError):
            return None
        if by_name[name.lower()] != wanted:
            return False
    return True


def _asked(schema: DataType, wanted: Wanted) -> Iterator[Asked]:
    for column in sorted(wanted.bounds | wanted.values, key=str):
        kind = resolve(schema, column)
        if isinstance(kind, DataType) and named_alike(schema, column):
            yield Asked(column, kind, column in wanted.values)


def _read(frame: DataFrame, paths: Sequence[str], asked: tuple[Asked, ...]) -> list[File] | None:
    work = partial(read_footers, asked=asked)
    if len(paths) > MOST_ON_DRIVER:
        chunks = [paths[at : at + _PER_TASK] for at in range(0, len(paths), _PER_TASK)]
        told = in_tasks(frame.sparkSession.sparkContext, chunks, work)
        parts = [None] if isinstance(told, Failure) else told
    elif paths and urlsplit(paths[0]).scheme not in ("", "file"):
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            parts = list(pool.map(work, ([path] for path in paths)))
    else:
        parts = [work(paths)]
    sound = [part for part in parts if part is not None]
    return [file for part in sound for file in part] if len(sound) == len(parts) else None


def read_footers(paths: Iterable[str], asked: tuple[Asked, ...]) -> list[File] | None:
    """The facts of these files in their order; None when one of them cannot be read."""
    found = []
    for path in paths:
        try:
            with opened(path) as source:
                found.append(read(source, path, asked))
        except (OSError, ValueError, NotImplementedError):
            return None
    return found
