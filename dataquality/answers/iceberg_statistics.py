"""Facts of Iceberg tables, from the manifests of the snapshot that the frame reads."""

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
    Facts,
    File,
    Partitions,
    Scalar,
    Wanted,
    asked,
    believed,
    counts_rows,
    relation,
    within,
)
from dq.dataquality.model.predicate import Inside
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.measure import schema_of
from dq.lake.iceberg import local_path, own_folders, writers_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


# What Iceberg's table of files calls each kind of file.
_DATA, _POSITION_DELETES = 0, 1
# The id of the column of a position delete file that has the paths of the data files.
_AIMED_AT = 2147483546
# A read with another option may be of another snapshot, or of what came between two.
_PLAIN_OPTIONS = {"path", "paths"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Steps = tuple[str | Inside, ...]


def files(frame: DataFrame, _: Dataset | None, partitions: Partitions, wanted: Wanted) -> list[File] | None:
    """The data files of the current snapshot.

    Bounds hold for all values, and are not known to stand in the file: writers may round them. A file with
    rows that a delete file may take away is not whole. Of a file that another program wrote and that was
    added as it is, only the number of rows is believed: Iceberg counts no NULLs where its footer has no
    number of them (https://github.com/apache/iceberg/issues/17558).
    """
    table = _table(frame)
    if table is None:
        return None
    schema, fields = schema_of(frame), _fields(frame, table)
    known = {
        column: fields[column.steps] for column in asked(schema, partitions, wanted) if column.steps in fields
    }
    rows = _listed(frame, table, {number for number, _ in known.values()})
    origin = _origin(table, {row["snapshot_id"] for row in rows if row["content"] == _DATA})
    touched = _touched(rows)
    found = []
    for row in rows:
        if row["content"] != _DATA:
            continue
        path, writers = row["file_path"], origin.writers.get(row["snapshot_id"], ("",))
        whole = touched is not None and path not in touched and counts_rows(writers)
        facts = {}
        if local_path(path).startswith(origin.folders):
            facts = {
                column: _stated(row, writers, origin, number, kind, nested=len(column.steps) > 1)
                for column, (number, kind) in known.items()
            }
        found.append(File(path, row["record_count"], whole, facts, writers))
    return within(found, partitions, schema)


def _table(frame: DataFrame) -> Any | None:
    """Iceberg's own table when the frame is its current snapshot on the main branch, else None."""
    leaf = relation(frame, "DataSourceV2Relation")
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
    """The id and Iceberg's type of every column and field of a struct, by the way to it.

    Files know columns by these ids, so that one with a new name keeps its facts, and another one that has
    got the old name does not get them.
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
    """Where the table's own files come from.

    `writers` are the names by the id of a snapshot, `folders` those that its writers use, and `partitions`
    by the id of a partition spec the columns that it has as they are, with the partition's name.
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
    kept = {number: table.snapshot(number) for number in snapshots}
    writers = {number: writers_of(one.summary() if one is not None else {}) for number, one in kept.items()}
    return _Origin(writers, own_folders(str(table.location()), table.properties()), partitions)


def _stated(
    row: Row, writers: tuple[str, ...], origin: _Origin, number: int, kind: str, *, nested: bool
) -> Facts:
    """What is believed of a column.

    A column that the file's partition has as it is must say the same there: Iceberg reads its value from the
    manifest, passes over files by their bounds, and so gives other rows with a filter than without one.
    """
    name = kind.partition("(")[0]
    facts = believed(_facts(row, number, kind, nested=nested), writers, name, nested=nested)
    placed = origin.partitions.get(row["spec_id"], {}).get(number)
    if placed is None:
        return facts
    value, count = row["partition"][placed], row["record_count"]
    same = facts.nulls == count if value is None else facts.nulls == 0 and facts.values == frozenset({value})
    return facts if same else UNKNOWN


def _listed(frame: DataFrame, table: Any, ids: set[int]) -> list[Row]:
    """A row for every data and delete file of the snapshot, with what it says of the columns of these ids."""
    from pyspark.sql import DataFrame

    snapshot = table.currentSnapshot()
    if snapshot is None:
        return []
    spark: Any = frame.sparkSession
    made = spark._jvm.org.apache.iceberg.spark.SparkTableUtil.loadMetadataTable(
        spark._jsparkSession,
        table,
        spark._jvm.org.apache.iceberg.MetadataTableType.ENTRIES,
        {"snapshot-id": str(snapshot.snapshotId())},
    )
    entries = DataFrame(made, spark).where("status < 2")
    metadata = entries.selectExpr("snapshot_id", "data_file.*")
    told = ", ".join(map(str, sorted({*ids, _AIMED_AT})))
    maps = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    picked = [f"map_filter({name}, (id, _) -> id IN ({told})) AS {name}" for name in maps]
    # What older versions do not have, and what a table that was never partitioned lacks.
    for name in ("referenced_data_file", "partition"):
        there = name in metadata.columns
        picked.append(sql.name(name) if there else f"CAST(NULL AS STRING) AS {sql.name(name)}")
    return metadata.selectExpr(
        "snapshot_id", "spec_id", "content", "file_path", "file_format", "record_count", *picked
    ).collect()


def _touched(rows: list[Row]) -> frozenset[str] | None:
    """The data files from which rows may be deleted; None when that can be any."""
    aimed = {_aim(row) for row in rows if row["content"] != _DATA}
    return None if None in aimed else frozenset(path for path in aimed if path)


def _aim(row: Row) -> str | None:
    """The one data file that a delete file speaks of; None when there may be more."""
    if row["content"] != _POSITION_DELETES:
        return None
    if row["referenced_data_file"]:
        return str(row["referenced_data_file"])
    least, greatest = ((row[name] or {}).get(_AIMED_AT) for name in ("lower_bounds", "upper_bounds"))
    return bytes(least).decode() if least is not None and least == greatest else None


def _facts(row: Row, number: int, kind: str, *, nested: bool) -> Facts:
    count = row["record_count"]
    nulls = (row["null_value_counts"] or {}).get(number)
    # In ORC, a field of a struct that is NULL is no value at all.
    counted = (row["value_counts"] or {}).get(number) == count
    if not counted or (nested and row["file_format"] != "PARQUET"):
        nulls = None
    least = _bound(kind, (row["lower_bounds"] or {}).get(number))
    greatest = _bound(kind, (row["upper_bounds"] or {}).get(number))
    if least is None or greatest is None or least > greatest:
        return Facts(nulls)
    stands = least == greatest and nulls is not None and nulls < count
    values = frozenset({least}) if least == greatest else None
    if kind == "string":
        # Texts are cut after some characters; but where both bounds are the same, so are all values.
        return Facts(nulls, values=values)
    return Facts(nulls, least, greatest, stands, values)


def _bound(kind: str, stored: bytes | None) -> Any | None:
    """A bound by Iceberg's type now; None when it is of another type, as after some promotions."""
    if stored is None or len(stored) not in _SIZES.get(kind, (len(stored),)):
        return None
    try:
        if kind.startswith("decimal("):
            return _decimal(bytes(stored), int(kind.rstrip(")").rpartition(",")[2]))
        read = _READ.get(kind)
        return read(bytes(stored)) if read else None
    except (ValueError, ArithmeticError):
        return None


def _whole_number(stored: bytes) -> int:
    return int.from_bytes(stored, "little", signed=True)


def _instant(stored: bytes) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=_whole_number(stored))


def _decimal(stored: bytes, scale: int) -> Decimal:
    # By text, because arithmetic would round to 28 digits.
    return Decimal(f"{int.from_bytes(stored, 'big', signed=True)}E-{scale}")


# Appendix D of Iceberg's specification: how one value is written. An int that was promoted stays short.
_SIZES = {"int": (4,), "long": (4, 8), "date": (4,), "timestamp": (8,), "timestamptz": (8,)}
_READ: dict[str, Callable[[bytes], Scalar]] = {
    "int": _whole_number,
    "long": _whole_number,
    "date": lambda stored: _EPOCH.date() + dt.timedelta(days=_whole_number(stored)),
    "timestamp": lambda stored: _instant(stored).replace(tzinfo=None),
    "timestamptz": _instant,
    "string": bytes.decode,
}
