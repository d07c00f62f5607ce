"""Statistics of Iceberg tables, from the manifests of the snapshot that the frame reads."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dq.contracts.sql import text as sql
from dq.dataquality.answers.statistics import (
    UNKNOWN,
    ColumnStatistics,
    FileStatistics,
    Partitions,
    Scalar,
    StatisticsRequest,
    counts_rows,
    leaf_relation,
    required_columns,
    select_files,
    without_distrusted,
)
from dq.dataquality.model.predicate import Inside
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.measure import schema_of
from dq.lake.iceberg import local_path, own_folders, writers_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


# Values of `content` in Iceberg's metadata tables.
_DATA, _POSITION_DELETES = 0, 1
# Field id of `file_path` in position delete files, the path of the data file.
_DELETED_PATH_ID = 2147483546
# Other read options may select another snapshot or an incremental read.
_PLAIN_OPTIONS = {"path", "paths"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Steps = tuple[str | Inside, ...]


def files(
    frame: DataFrame, _: Dataset | None, partitions: Partitions, request: StatisticsRequest
) -> list[FileStatistics] | None:
    """Return the data files of the current snapshot, or None if unknown.

    Bounds hold for all values but may not occur in the file, because writers may round them. A file is
    incomplete if a delete file may delete some of its rows. For files written by another program and added to
    the table, only the row count is trusted: Iceberg counts 0 NULLs if the footer has no NULL count
    (https://github.com/apache/iceberg/issues/17558).
    """
    table = _table(frame) if hasattr(frame, "_jdf") else None
    if table is None:
        return None
    schema, fields = schema_of(frame), _fields(frame, table)
    requested_fields = {
        column: fields[column.steps]
        for column in required_columns(schema, partitions, request)
        if column.steps in fields
    }
    rows = _list_files(frame, table, {number for number, _ in requested_fields.values()})
    origin = _origin(table, {row["snapshot_id"] for row in rows if row["content"] == _DATA})
    with_deletes = _files_with_deletes(rows)
    file_statistics = []
    for row in rows:
        if row["content"] != _DATA:
            continue
        path, writers = row["file_path"], origin.writers.get(row["snapshot_id"], ("",))
        is_complete = with_deletes is not None and path not in with_deletes and counts_rows(writers)
        facts = {}
        if local_path(path).startswith(origin.folders):
            facts = {
                column: _trusted_statistics(row, writers, origin, number, kind, nested=len(column.steps) > 1)
                for column, (number, kind) in requested_fields.items()
            }
        size = row["file_size_in_bytes"]
        file_statistics.append(
            FileStatistics(path, row["record_count"], is_complete, facts, writers, size=size)
        )
    return select_files(file_statistics, partitions, schema)


def _table(frame: DataFrame) -> Any | None:
    """Return Iceberg's table object if the frame is its current snapshot on the main branch, or None."""
    leaf = leaf_relation(frame, "DataSourceV2Relation")
    if leaf is None or leaf.table().getClass().getName() != "org.apache.iceberg.spark.source.SparkTable":
        return None
    if set(leaf.options().keySet().toArray()) - _PLAIN_OPTIONS:
        return None
    if leaf.table().snapshotId() is not None or leaf.table().branch() is not None:
        return None
    if frame.sparkSession.conf.get("spark.wap.branch", None) is not None:
        return None
    return leaf.table().table()


def _fields(frame: DataFrame, table: Any) -> dict[Steps, tuple[int, str]]:
    """Return the id and Iceberg type of every column and struct field, by its path.

    Files identify columns by these ids, so statistics follow a renamed column.
    """
    jvm: Any = frame.sparkSession._jvm
    return dict(_ids(json.loads(jvm.org.apache.iceberg.SchemaParser.toJson(table.schema())), ()))


def _ids(struct: Mapping[str, Any], above: Steps) -> Iterator[tuple[Steps, tuple[int, str]]]:
    for field in struct["fields"]:
        steps, kind = (*above, field["name"]), field["type"]
        if isinstance(kind, str):
            yield steps, (field["id"], kind)
        elif kind["type"] == "struct":
            yield from _ids(kind, steps)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Origin of the table's own files.

    `writers` are the writer names by snapshot id, `folders` the folders that the table's writers use, and
    `partitions` the identity-partitioned column ids with their partition field names, by partition spec id.
    """

    writers: Mapping[int, tuple[str, ...]]
    folders: tuple[str, ...]
    partitions: Mapping[int, Mapping[int, str]]


def _origin(table: Any, snapshots: set[int]) -> _Origin:
    specs = table.specs()
    partitions = {
        int(number): {
            int(field.sourceId()): str(field.name())
            for field in specs.get(number).fields()
            if str(field.transform().toString()) == "identity"
        }
        for number in specs.keySet().toArray()
    }
    snapshots_by_id = {number: table.snapshot(number) for number in snapshots}
    writers = {
        number: writers_of(snapshot.summary() if snapshot is not None else {})
        for number, snapshot in snapshots_by_id.items()
    }
    return _Origin(writers, own_folders(str(table.location()), table.properties()), partitions)


def _trusted_statistics(
    row: Row, writers: tuple[str, ...], origin: _Origin, number: int, kind: str, *, nested: bool
) -> ColumnStatistics:
    """Return the trusted statistics of a column.

    For an identity-partitioned column the statistics must agree with the partition value. Otherwise Iceberg,
    which reads the value from the manifest but prunes files by bounds, returns other rows with a filter than
    without.
    """
    name = kind.partition("(")[0]
    facts = without_distrusted(_facts(row, number, kind, nested=nested), writers, name, nested=nested)
    partition_field = origin.partitions.get(row["spec_id"], {}).get(number)
    if partition_field is None:
        return facts
    value, count = row["partition"][partition_field], row["record_count"]
    agrees = (
        facts.nulls == count if value is None else facts.nulls == 0 and facts.values == frozenset({value})
    )
    return facts if agrees else UNKNOWN


def _list_files(frame: DataFrame, table: Any, ids: set[int]) -> list[Row]:
    """Return a row for every data and delete file of the snapshot, with the statistics of these column
    ids.
    """
    from pyspark.sql import DataFrame

    snapshot = table.currentSnapshot()
    if snapshot is None:
        return []
    spark: Any = frame.sparkSession
    java_frame = spark._jvm.org.apache.iceberg.spark.SparkTableUtil.loadMetadataTable(
        spark._jsparkSession,
        table,
        spark._jvm.org.apache.iceberg.MetadataTableType.ENTRIES,
        {"snapshot-id": str(snapshot.snapshotId())},
    )
    entries = DataFrame(java_frame, spark).where("status < 2")
    metadata = entries.selectExpr("snapshot_id", "data_file.*")
    id_list = ", ".join(map(str, sorted({*ids, _DELETED_PATH_ID})))
    maps = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    picked = [f"map_filter({name}, (id, _) -> id IN ({id_list})) AS {name}" for name in maps]
    # Missing in older Iceberg versions, or in tables that were never partitioned.
    for name in ("referenced_data_file", "partition"):
        exists = name in metadata.columns
        picked.append(sql.name(name) if exists else f"CAST(NULL AS STRING) AS {sql.name(name)}")
    return metadata.selectExpr(
        "snapshot_id",
        "spec_id",
        "content",
        "file_path",
        "file_format",
        "record_count",
        "file_size_in_bytes",
        *picked,
    ).collect()


def _files_with_deletes(rows: list[Row]) -> frozenset[str] | None:
    """Return the data files from which rows may be deleted, or None if it can be any file."""
    targets = {_target_file(row) for row in rows if row["content"] != _DATA}
    return None if None in targets else frozenset(path for path in targets if path)


def _target_file(row: Row) -> str | None:
    """Return the one data file that a delete file refers to, or None if there may be several."""
    if row["content"] != _POSITION_DELETES:
        return None
    if row["referenced_data_file"]:
        return str(row["referenced_data_file"])
    least, greatest = ((row[name] or {}).get(_DELETED_PATH_ID) for name in ("lower_bounds", "upper_bounds"))
    return bytes(least).decode() if least is not None and least == greatest else None


def _facts(row: Row, number: int, kind: str, *, nested: bool) -> ColumnStatistics:
    count = row["record_count"]
    nulls = (row["null_value_counts"] or {}).get(number)
    # ORC does not count fields of a NULL struct as values.
    is_counted = (row["value_counts"] or {}).get(number) == count
    if not is_counted or (nested and row["file_format"] != "PARQUET"):
        nulls = None
    least = _bound(kind, (row["lower_bounds"] or {}).get(number))
    greatest = _bound(kind, (row["upper_bounds"] or {}).get(number))
    if least is None or greatest is None or least > greatest:
        return ColumnStatistics(nulls)
    is_attained = least == greatest and nulls is not None and nulls < count
    values = frozenset({least}) if least == greatest else None
    if kind == "string":
        # Bounds of texts are truncated, but if both bounds are equal, all values are.
        return ColumnStatistics(nulls, values=values)
    return ColumnStatistics(nulls, least, greatest, is_attained, values)


def _bound(kind: str, stored: bytes | None) -> Any | None:
    """Decode a bound by the current Iceberg type; None if it has another type, as after some promotions."""
    if stored is None or len(stored) not in _SIZES.get(kind, (len(stored),)):
        return None
    try:
        if kind.startswith("decimal("):
            return _decimal(bytes(stored), int(kind.rstrip(")").rpartition(",")[2]))
        decode = _DECODERS.get(kind)
        return decode(bytes(stored)) if decode else None
    except (ValueError, ArithmeticError):
        return None


def _integer(stored: bytes) -> int:
    return int.from_bytes(stored, "little", signed=True)


def _instant(stored: bytes) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=_integer(stored))


def _decimal(stored: bytes, scale: int) -> Decimal:
    # Built from text, because Decimal arithmetic would round to 28 digits.
    return Decimal(f"{int.from_bytes(stored, 'big', signed=True)}E-{scale}")


# Byte lengths of single values, Appendix D of Iceberg's specification. A promoted int keeps its 4 bytes.
_SIZES = {"int": (4,), "long": (4, 8), "date": (4,), "timestamp": (8,), "timestamptz": (8,)}
_DECODERS: dict[str, Callable[[bytes], Scalar]] = {
    "int": _integer,
    "long": _integer,
    "date": lambda stored: _EPOCH.date() + dt.timedelta(days=_integer(stored)),
    "timestamp": lambda stored: _instant(stored).replace(tzinfo=None),
    "timestamptz": _instant,
    "string": bytes.decode,
}
