"""The partitions that a table has, oldest first, and those that may be asked together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dq.contracts.shared.outcome import Unreadable, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model import column
from dq.dataquality.model.metric import Failure
from dq.dataquality.model.run_context import Partition
from dq.dataquality.spark.measure import Key
from dq.dataquality.spark.partitions import NULL_PARTITION, literal
from dq.dataquality.spark.readers.columnar import MOST_FILES as MOST_FILES
from dq.dataquality.spark.readers.columnar import columns_of, named_folders
from dq.dataquality.spark.readers.open import FILES, TEXTS, Dataset, files_of
from dq.dataquality.spark.schema import type_ddl
from dq.dataquality.spark.session import attempt
from dq.lake.storage import unescaped
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The partitions that a table has, oldest first, each as a path names it and as its rows hold it.

# More are no partitions but a column of its own value in nearly each row.
MOST = 100_000
# So many are asked of Spark in one list of values.
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class FoundPartition:
    """A partition that is there.

    `key` has the values of its columns as Spark gives them, and is None where its text is no value of its
    column. `files` are those in its folder, None where a
    table's format keeps them to itself.
    """

    partition: Partition
    key: Key | None
    files: tuple[str, ...] | None = None


def partitions(
    spark: SparkSession, table: DataFrame | Dataset, columns: Sequence[str]
) -> tuple[FoundPartition, ...]:
    """Every partition of the data, the oldest first, by its columns' values; NULL comes before all others.

    `columns` are those that the contract calls partition columns; without any, those of the names of folders,
    or of the catalog. Nothing but names is read where folders or the catalog tell; else one pass reads these
    columns. Raises UsageError, with the way out, for a table without partitions.
    """
    if isinstance(table, Dataset) and not table.placed:
        found = _of_folders(spark, table, columns) if table.format in FILES and table.path else None
        if found is not None:
            return found
        found = _of_catalog(spark, table, columns) if table.table else None
        if found is not None:
            return found
    if not columns:
        raise UsageError(
            "it has no partitions, so that there is no history to test rules on.",
            "'dq check --all' tests it as it stands; or mark its partition columns: partitioned: true.",
        )
    from dq.dataquality.request import opened

    return _of_rows(spark, opened(table, spark), columns)


def _of_folders(
    spark: SparkSession, dataset: Dataset, columns: Sequence[str]
) -> tuple[FoundPartition, ...] | None:
    """By the names of folders; None where they do not hold these columns."""
    files, fields = files_of(spark, dataset)
    types = {one.name.lower(): from_spark_json(one.dataType.jsonValue()) for one in fields}
    named = tuple(columns) or tuple(one.name for one in fields)
    if not named or any(name.lower() not in types for name in named):
        return None
    held: dict[Partition, list[str]] = {}
    for file in files:
        told = named_folders(file)
        if any(name.lower() not in told for name in named):
            return None
        held.setdefault(tuple((name, told[name.lower()]) for name in named), []).append(file)
    made = [FoundPartition(partition, None, tuple(files)) for partition, files in held.items()]
    return _in_order(_with_keys(spark, made, [types[name.lower()] for name in named]))


def _of_catalog(
    spark: SparkSession, dataset: Dataset, columns: Sequence[str]
) -> tuple[FoundPartition, ...] | None:
    """By the catalog's list; None where the catalog has none for such a table."""
    shown = attempt(lambda: spark.sql(f"SHOW PARTITIONS {dataset.table}").collect())
    if isinstance(shown, Failure) or not shown:
        return None
    schema = from_spark_json(spark.table(str(dataset.table)).schema.jsonValue())
    found: dict[Partition, None] = {}
    for (text,) in shown:
        pairs = [part.partition("=") for part in text.split("/")]
        told = {unescaped(name).lower(): (unescaped(name), unescaped(value)) for name, _, value in pairs}
        if any(name.lower() not in told for name in columns):
            return None
        named = columns or [name for name, _ in told.values()]
        found[tuple((name, told[name.lower()][1]) for name in named)] = None
    kinds = [column.field(schema, name) for name, _ in next(iter(found))]
    if any(kind is None for kind in kinds):
        return None
    return _in_order(_with_keys(spark, [FoundPartition(one, None) for one in found], kinds))  # type: ignore[arg-type]


def _of_rows(spark: SparkSession, frame: DataFrame, columns: Sequence[str]) -> tuple[FoundPartition, ...]:
    """By the different values of the columns in all rows."""
    schema = from_spark_json(frame.schema.jsonValue())
    kinds = []
    for name in columns:
        kind = column.field(schema, name)
        if kind is None:
            raise UsageError(
                f"its data has no column {name!r}, which the contract calls a partition column.",
                "Correct the contract, or deliver the column.",
            )
        kinds.append(kind)
    texts = [f"CAST({sql.name(name)} AS STRING)" for name in columns]
    rows = attempt(lambda: frame.selectExpr(*texts).distinct().limit(MOST + 1).collect())
    if isinstance(rows, Failure):
        raise UsageError(f"its partitions cannot be listed: {rows.message}.", "Check its partition columns.")
    if len(rows) > MOST:
        raise UsageError(
            f"{', '.join(columns)} has more than {MOST:,} different values, which are no partitions.",
            "Mark the columns that the table is partitioned by: partitioned: true.",
        )
    # Not the values of the rows: a check of a partition is told its text.
    named: dict[Partition, None] = {
        tuple(
            (name, NULL_PARTITION if text is None else str(text))
            for name, text in zip(columns, row, strict=True)
        ): None
        for row in rows
    }
    return _in_order(_with_keys(spark, [FoundPartition(one, None) for one in named], kinds))


def key_sql(value: str, kind: DataType) -> str:
    """What Spark gives for the value of a partition column, so that Python compares it as Spark does."""
    # Python would read an instant in the zone of its own machine.
    return f"unix_micros({value})" if kind.name == "timestamp" else value


def _with_keys(
    spark: SparkSession, found: Sequence[FoundPartition], kinds: Sequence[DataType]
) -> Iterable[FoundPartition]:
    """The partitions with the values that their texts stand for; of several with the same values, one."""
    asked: list[tuple[FoundPartition, str]] = []
    for one in found:
        texts = [_literal(text, kind) for (_, text), kind in zip(one.partition, kinds, strict=True)]
        if None in texts:
            yield one
        else:
            asked.append((one, f"({', '.join(str(text) for text in texts)})"))
    names = [f"_dq_p{at}" for at in range(len(kinds))]
    keys = [key_sql(name, kind) for name, kind in zip(names, kinds, strict=True)]
    same: dict[Key, FoundPartition] = {}
    for begin in range(0, len(asked), _AT_ONCE):
        some = asked[begin : begin + _AT_ONCE]
        rows = [f"({at}, {text[1:]}" for at, (_, text) in enumerate(some)]
        table = f"VALUES {', '.join(rows)} AS t(_dq_at, {', '.join(names)})"
        # Texts of paths stand in it as literals of their columns' types.
        query = f"SELECT _dq_at, {', '.join(keys)} FROM {table}"  # noqa: S608
        for at, *key in spark.sql(query).collect():
            one = some[at][0]
            known = same.get(tuple(key))
            # Two folders may name one value, such as month=1 and month=01: Spark reads both for either.
            files = one.files if known is None else (*(known.files or ()), *(one.files or ()))
            same[tuple(key)] = replace(known or one, key=tuple(key), files=files)
    yield from same.values()


def _literal(text: str, kind: DataType) -> str | None:
    """A text of a path as a value of its column, None where it is none."""
    if text == NULL_PARTITION:
        return f"CAST(NULL AS {type_ddl(kind)})"
    try:
        made = literal(text, kind)
    except (ValueError, ArithmeticError):
        return None
    return None if made is None else f"CAST({made} AS {type_ddl(kind)})"


def _in_order(found: Iterable[FoundPartition]) -> tuple[FoundPartition, ...]:
    return tuple(sorted(found, key=lambda one: (one.key is not None, _sortable(one))))


def _sortable(one: FoundPartition) -> tuple[Any, ...]:
    if one.key is None:
        return tuple(text for _, text in one.partition)
    return tuple((value is not None, value if value is not None else 0) for value in one.key)


# Which partitions a check of one opens with the same columns: those that may be asked together.


def alike(data: DataFrame | Dataset, found: Sequence[FoundPartition]) -> list[Sequence[FoundPartition]]:
    """The partitions in groups, each of those whose columns are the same.

    A table's columns are those of all of its partitions. Of plain files each tells its own, and a partition
    whose files differ, or cannot be looked at, is in no group. Of CSV only the values tell (see `plain`), and
    of JSON each partition alone.
    """
    if not isinstance(data, Dataset) or data.table is not None or data.format not in FILES:
        return [found]
    if data.format in TEXTS:
        return [found] if data.format == "csv" else []
    groups: dict[object, list[FoundPartition]] = {}
    for one in found:
        told = _columns(one, data.format)
        if told is not None:
            groups.setdefault(told, []).append(one)
    return list(groups.values())


def _columns(one: FoundPartition, form: str) -> object:
    """The columns of a partition's files, None where they differ or are not known."""
    if one.files is None:
        return ()
    try:
        told = {(file.names, file.types) for file in columns_of(one.files, form)}
    except Unreadable:
        return None
    return told.pop() if len(told) == 1 else None


def plain(data: DataFrame | Dataset, table: DataFrame) -> bool:
    """Whether partitions that were opened together have the columns that each has when it is opened alone.

    A reader of CSV notes on a column that a value is none of its type, or that a file lacks it. Without any
    such note, no part of the data has one.
    """
    if not isinstance(data, Dataset) or data.table is not None or data.format not in TEXTS:
        return True
    return not any(each.metadata for each in table.schema.fields)
