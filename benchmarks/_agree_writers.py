"""The writers of the tables that commands are compared on, and how each of them writes a table."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from _agree_types import TYPES, RandomTable
from _referee_writers import Foreign, Unwritten

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What Spark can be handed by pyarrow as a file, and writes in its own way.
_SPARKS = tuple(
    name
    for name in TYPES
    if name not in ("half", "null", "duration", "uuid", "fixed", "date in millis", "instant elsewhere")
    and not name.startswith("time ")
    and "nanos" not in name
)
_NUMPYS = ("int32", "int64", "string", "boolean", "double")
_FLAT = ("int32", "int64", "double", "boolean", "string", "date", "local in micros", "decimal(9,0)")


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer: the format of its tables, the types that it is asked for, and whether it takes partitions."""

    format: str
    types: tuple[str, ...]
    partitioned: bool
    write: Callable[[WriteRequest], None]


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A table to be written to a folder that is there and empty."""

    table: RandomTable
    folder: Path
    chance: random.Random
    spark: SparkSession
    foreign: Foreign | None


def partition_folder(keys: tuple[str, ...], values: tuple[str, ...]) -> str:
    """The folder of a partition as Hive and Spark name it."""
    return "/".join(f"{key}={hive_escape(value)}" for key, value in zip(keys, values, strict=True))


def hive_escape(value: str) -> str:
    """Escape a value for a folder name, as Spark's ExternalCatalogUtils.escapePathName does."""
    return re.sub(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]", lambda sign: f"%{ord(sign[0]):02X}", value)


Save = Callable[[pa.Table, Path, "WriteRequest"], None]
Write = Callable[["WriteRequest"], None]


def _by_file(ending: str, save: Save) -> Write:
    """A writer of one file after another, each into the folder of its partition."""

    def write(request: WriteRequest) -> None:
        for number, (values, rows) in enumerate(request.table.files):
            folder = request.folder / partition_folder(request.table.keys, values)
            folder.mkdir(parents=True, exist_ok=True)
            save(request.table.arrow(rows), folder / f"part-{number}.{ending}", request)

    return write


def _pyarrow(table: pa.Table, target: Path, request: WriteRequest) -> None:
    # The same for all files of a table: files of different types are a fault of their own.
    chance = random.Random(request.folder.name)
    pq.write_table(
        table,
        target,
        row_group_size=chance.choice((3, 1_000)),
        use_dictionary=chance.random() < 0.7,
        write_statistics=chance.random() < 0.8,
        data_page_version=chance.choice(("1.0", "2.0")),
        compression=chance.choice(("snappy", "zstd", "gzip", "none")),
        store_decimal_as_integer=chance.random() < 0.3,
        use_deprecated_int96_timestamps=chance.random() < 0.15,
        store_schema=chance.random() < 0.7,
        version=chance.choice(("1.0", "2.4", "2.6")),
    )


def _polars(table: pa.Table, target: Path, _: WriteRequest) -> None:
    import polars as pl

    try:
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        frame.write_parquet(target)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, TypeError) as error:
        raise Unwritten(f"polars: {str(error).splitlines()[0][:160]}") from error


def _foreign(writer: str) -> Write:
    """A writer in the process of the foreign libraries."""

    def save(table: pa.Table, target: Path, request: WriteRequest) -> None:
        ask(table, target, 0, request, last=True)

    def ask(table: pa.Table, target: Path, number: int, request: WriteRequest, *, last: bool) -> None:
        if request.foreign is None:
            raise Unwritten(f"{writer}: there is no environment of foreign writers")
        source = _source(request, "arrow")
        with pa.OSFile(str(source), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)
        request.foreign.write(
            writer=writer, source=str(source), target=str(target), number=number, size=1_000, last=last
        )

    def write_log(request: WriteRequest) -> None:
        files = request.table.files
        for number, (_, rows) in enumerate(files):
            last = number == len(files) - 1
            ask(request.table.arrow(rows), request.folder, number, request, last=last)
        # Spark reads by path the versions that are named as a catalog of folders names them.
        for version in request.folder.glob("metadata/0*.metadata.json"):
            version.unlink()

    return write_log if writer in ("deltalake", "pyiceberg") else _by_file("parquet", save)


def _csv(table: pa.Table, target: Path, _: WriteRequest) -> None:
    with target.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(table.column_names)
        lines.writerows([_text(value) for value in row.values()] for row in table.to_pylist())


def _json(table: pa.Table, target: Path, _: WriteRequest) -> None:
    lines = (json.dumps(row, default=_text, ensure_ascii=False) + "\n" for row in table.to_pylist())
    target.write_text("".join(lines), "utf-8")


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _spark(settings: Mapping[str, str], form: str = "parquet", **options: str) -> Write:
    """Spark's own writer with these settings of its session."""

    def write(request: WriteRequest) -> None:
        frames = [_frame(request, number) for number in range(len(request.table.files))]
        before = {name: request.spark.conf.get(name, None) for name in settings}
        for name, value in settings.items():
            request.spark.conf.set(name, value)
        try:
            for frame in frames:
                writer = frame.coalesce(1).write.format(form).mode("append").options(**options)
                writer.partitionBy(*request.table.keys).save(str(request.folder))
        finally:
            for name, old in before.items():
                request.spark.conf.unset(name) if old is None else request.spark.conf.set(name, old)

    return write


def _source(request: WriteRequest, ending: str) -> Path:
    """A file outside of the lake for what a writer is handed."""
    folder = request.folder.parent.parent / "sources"
    folder.mkdir(exist_ok=True)
    return folder / f"{request.folder.name}.{ending}"


def _frame(request: WriteRequest, number: int) -> DataFrame:
    from pyspark.sql import functions as sql

    values, rows = request.table.files[number]
    source = _source(request, f"{number}.parquet")
    pq.write_table(request.table.arrow(rows), source)
    frame = request.spark.read.parquet(str(source))
    for key, value in zip(request.table.keys, values, strict=True):
        frame = frame.withColumn(key, sql.lit(value))
    return frame


def _hudi(request: WriteRequest) -> None:
    from pyspark.sql import functions as sql

    key = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "key",
        "hoodie.datasource.write.precombine.field": "key",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.partitionpath.field": ",".join(request.table.keys),
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.bulkinsert.shuffle.parallelism": "1",
    }
    for number in range(len(request.table.files)):
        frame = _frame(request, number).withColumn("key", sql.expr("uuid()"))
        frame.write.format("hudi").options(**key).mode("append").save(str(request.folder))


_INT96 = {"spark.sql.parquet.outputTimestampType": "INT96"}
_MICROS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
_LEGACY = {"spark.sql.parquet.writeLegacyFormat": "true", **_INT96}
_EVERY = tuple(TYPES)
WRITERS: dict[str, Writer] = {
    "Spark, INT96": Writer("parquet", _SPARKS, True, _spark(_INT96)),
    "Spark, micros": Writer("parquet", _SPARKS, True, _spark(_MICROS)),
    "Spark, as Hive (parquet-mr)": Writer("parquet", _SPARKS, True, _spark(_LEGACY)),
    "pyarrow": Writer("parquet", _EVERY, True, _by_file("parquet", _pyarrow)),
    "polars": Writer("parquet", _EVERY, True, _by_file("parquet", _polars)),
    "duckdb": Writer("parquet", _EVERY, True, _foreign("duckdb")),
    "arro3 (arrow-rs)": Writer("parquet", _EVERY, True, _foreign("arro3")),
    "fastparquet": Writer("parquet", _NUMPYS, True, _foreign("fastparquet")),
    "deltalake (delta-rs)": Writer("delta", _SPARKS, False, _foreign("deltalake")),
    "pyiceberg": Writer("iceberg", _SPARKS, False, _foreign("pyiceberg")),
    "Spark, Delta": Writer("delta", _SPARKS, True, _spark({}, "delta")),
    "CSV": Writer("csv", _FLAT, True, _by_file("csv", _csv)),
    "JSON": Writer("json", _FLAT, True, _by_file("json", _json)),
    "Hudi": Writer("hudi", _FLAT, True, _hudi),
}


def write(name: str, request: WriteRequest) -> None:
    """Write a table. Raises Unwritten."""
    shutil.rmtree(request.folder, ignore_errors=True)
    request.folder.mkdir(parents=True)
    try:
        WRITERS[name].write(request)
    except Unwritten:
        raise
    except Exception as error:  # a writer that refuses a type raises whatever it likes
        raise Unwritten(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:160]}") from error
