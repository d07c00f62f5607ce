"""Tables of a case as real files: by pyarrow, or by Spark itself, in each format that is compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from oracle.tables import Layout, Table

from dq.contracts.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Json = dict[str, Any]
# Spark reads a file of another writer as it does its own: days before 1582 need no rebasing. Its default
# for others changed between 3.5 and 4.0.
WRITTEN_AS = {b"org.apache.spark.version": b"3.5.0"}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class Writer(Protocol):
    """Writes a table into a folder that does not exist yet."""

    format: str

    def root(self, spark: SparkSession, folder: Path) -> Path:
        """Where the tables of a case lie, when a folder of its own is given to it."""
        ...

    def __call__(self, spark: SparkSession, table: Table, layout: Layout, folder: Path) -> None: ...


_ARROW = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}


def arrow(kind: DataType) -> pa.DataType:
    if kind.name == "decimal":
        return pa.decimal128(*kind.numbers)
    if kind.name == "array":
        return pa.list_(arrow(kind.parts[0]))
    if kind.name == "map":
        return pa.map_(arrow(kind.parts[0]), arrow(kind.parts[1]))
    if kind.name == "struct":
        pairs = zip(kind.names, kind.parts, strict=True)
        return pa.struct([(name, arrow(part)) for name, part in pairs])
    return _ARROW[kind.name]


def folder_name(column: str, value: object) -> str:
    """A partition's folder, as Hive and Spark name it."""
    text = NO_VALUE if value is None else str(value)
    return f"{column}=" + re.sub(
        r"[\"#%'*/:=?\\{\[\]^\x00-\x1f\x7f]", lambda sign: f"%{ord(sign[0]):02X}", text
    )


def _chunks(rows: Sequence[Json], files: int) -> Iterator[Sequence[Json]]:
    size = max(1, -(-len(rows) // files))
    for start in range(0, max(len(rows), 1), size):
        yield rows[start : start + size]


class Pyarrow:
    format = "parquet"

    def root(self, spark: SparkSession, folder: Path) -> Path:
        return folder

    def __call__(self, spark: SparkSession, table: Table, layout: Layout, folder: Path) -> None:
        columns = [(name, kind) for name, kind in table.columns if name != table.part]
        schema = pa.schema([(name, arrow(kind)) for name, kind in columns], metadata=WRITTEN_AS)
        for number, (place, rows) in enumerate(self._files(table, layout, folder)):
            place.mkdir(parents=True, exist_ok=True)
            inside = [{name: row[name] for name, _ in columns} for row in rows]
            pq.write_table(
                pa.Table.from_pylist(inside, schema),
                place / f"part-{number}.parquet",
                row_group_size=layout.row_group,
                use_dictionary=layout.dictionary,
                dictionary_pagesize_limit=layout.dictionary_bytes,
                data_page_version=layout.page,
                store_decimal_as_integer=layout.integers,
                write_statistics=layout.statistics[number % len(layout.statistics)],
            )

    def _files(self, table: Table, layout: Layout, folder: Path) -> Iterator[tuple[Path, Sequence[Json]]]:
        if table.part is None:
            yield from ((folder, rows) for rows in _chunks(table.rows, layout.files))
            return
        by_folder: dict[str, list[Json]] = {}
        for row in table.rows:
            by_folder.setdefault(folder_name(table.part, row[table.part]), []).append(row)
        for name, rows in by_folder.items():
            yield from ((folder / name, some) for some in _chunks(rows, layout.files))


def spark_value(kind: DataType, value: Any) -> Any:
    """A value as `createDataFrame` takes it."""
    if value is None:
        return None
    if kind.name == "array":
        return [spark_value(kind.parts[0], one) for one in value]
    if kind.name == "map":
        return {spark_value(kind.parts[0], key): spark_value(kind.parts[1], one) for key, one in value}
    if kind.name == "struct":
        return tuple(
            spark_value(part, value[name]) for name, part in zip(kind.names, kind.parts, strict=True)
        )
    return bytearray(value) if kind.name == "binary" else value


def ddl(kind: DataType) -> str:
    if kind.name == "struct":
        pairs = zip(kind.names, kind.parts, strict=True)
        return (
            "struct<" + ", ".join(f"`{name.replace('`', '``')}`: {ddl(part)}" for name, part in pairs) + ">"
        )
    return f"{kind.name}<{', '.join(map(ddl, kind.parts))}>" if kind.parts else str(kind)


def frame_of(spark: SparkSession, table: Table, rows: Sequence[Json]) -> DataFrame:
    """Rows with the table's columns."""
    made = [tuple(spark_value(kind, row[name]) for name, kind in table.columns) for row in rows]
    schema = ", ".join(f"`{name.replace('`', '``')}` {ddl(kind)}" for name, kind in table.columns)
    return spark.createDataFrame(made, schema)


class Spark:
    """Written by Spark, in one of its formats, with options of the writer."""

    def __init__(self, format: str = "parquet", options: Mapping[str, str] | None = None) -> None:
        self.format, self.options = format, options or {}

    def root(self, spark: SparkSession, folder: Path) -> Path:
        return folder

    def __call__(self, spark: SparkSession, table: Table, layout: Layout, folder: Path) -> None:
        options = {
            "parquet.block.size": "1024",
            "parquet.page.size.row.check.min": "1",
            "parquet.block.size.row.check.min": "1",
            "parquet.enable.dictionary": str(layout.dictionary).lower(),
            "parquet.writer.version": "PARQUET_2_0" if layout.page == "2.0" else "PARQUET_1_0",
            "parquet.statistics.truncate.length": "2",
            **self.options,
        }
        writer = (
            frame_of(spark, table, table.rows)
            .repartition(layout.files)
            .write.format(self.format)
            .options(**options)
        )
        (writer.partitionBy(table.part) if table.part else writer).save(str(folder))
