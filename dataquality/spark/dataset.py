"""Where an object's data is, and how it is opened as a DataFrame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dq.contracts.access.access_policy import Reach
from dq.contracts.access.data_location import CATALOGS, RFC_4180, TextFormat, resolve, server_of, text_format
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import FORMATS, Unreadable, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType, row_type
from dq.dataquality.model import run_context
from dq.dataquality.model.column import field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.columnar_files import (
    for_hadoop,
    in_scope,
    named_folders,
    only,
    typed_by_files,
    united,
)
from dq.dataquality.spark.schema import ddl
from dq.dataquality.spark.session import attempt
from dq.dataquality.spark.text_files import base_of, csv_frame, json_frame, listing, reader_of, within
from dq.dataquality.text import carried, text_row_type
from dq.lake.storage import PlacedPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField


# Those that are nothing but files: partitions are in their paths.
FILES = ("parquet", "orc", "avro", "json", "csv")
# Of these, what types the values have is for the contract to say.
_TEXT_READERS = {"json": json_frame, "csv": csv_frame}
TEXTS = tuple(_TEXT_READERS)
# Of two names, Spark reads the first as a format and the second as a path; these are all that it or a
# common jar knows.
_PATH_TABLES = frozenset({*FORMATS, "binaryfile", "image", "jdbc", "kafka", "libsvm", "text", "xml"})
# What Hudi adds to every row for itself.
_HUDI = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A place in a file system with a format, or a table of Spark's catalog.

    `columns` are the contract's columns as a struct type, partition columns included; `partitions` names
    those, in their order. `placed` are partitions that lie elsewhere: what the files below the path tell is
    not all then.
    """

    object: str
    path: str | None
    format: str | None
    table: str | None
    columns: DataType
    partitions: tuple[str, ...]
    text: TextFormat = RFC_4180
    placed: tuple[PlacedPartition, ...] = ()

    def __str__(self) -> str:
        return self.table or f"{self.format} at {self.path}"


def locate(contract: Contract, one: SchemaObject, server_name: str | None, reach: Reach) -> Dataset:
    """Where the data of an object is, by a server of its contract; see `location.resolve`.

    A server of a catalog gives a table of Spark's catalog, every other one a path. Raises UsageError for
    an unknown or ambiguous server, a place or variable that the reach does not allow, and a format that
    cannot be read.
    """
    place = resolve(contract, one, server_name, reach)
    columns = row_type(one)
    partitions = tuple(prop.column for prop in one.partition_keys())
    if place.type in CATALOGS or not place.path:
        parts = [part for part in place.database.split(".") if part]
        if len(parts) == 1 and parts[0].lower() in _PATH_TABLES:
            raise UsageError(
                f"{contract.id} {one.name}: Spark reads a table of the database {parts[0]!r} as a path.",
                "Give the database another name.",
            )
        table = ".".join(sql.name(part) for part in (*parts, one.column))
        return Dataset(one.name, None, place.format, table, columns, partitions)
    if place.format not in FORMATS:
        raise UsageError(
            f"{contract.id} {one.name}: format {place.format!r} is not one that can be read.",
            f"Write 'format:' on the server or in the object's dataset terms: {', '.join(FORMATS)}.",
            at=one.at(),
        )
    server = server_of(contract, server_name)
    linked = reach.contents(place.path)
    if linked is not None:
        raise UsageError(
            f"{server.at()}: the data of {contract.id} {one.name} {linked.message}.", linked.mend
        )
    form = text_format(server)
    if place.format in TEXTS:
        columns = text_row_type(one)
    return Dataset(one.name, for_hadoop(place.path), place.format, None, columns, partitions, form)


def open_table(
    spark: SparkSession, dataset: Dataset, scope: Sequence[Mapping[str, str]] | None = None
) -> DataFrame:
    """All rows of the data as a DataFrame, its columns as they are in these partitions (none: in all).

    Partition columns have the contract's types. So have those of json and csv whose values all are of it; a
    column with another value is one of texts. A place without any file gives no rows. The columns that Hudi
    adds for itself are left out, unless the contract names them. Raises Unreadable when there is no such
    place, or it cannot be opened, and UsageError for partitions as `only` does.
    """
    if dataset.placed:
        placed = in_scope(dataset.placed, scope or (), _partition_types(dataset))
        dataset = replace(dataset, placed=placed)
    if dataset.placed:
        return _with_placed(spark, dataset)
    frame = attempt(lambda: _read(spark, dataset, scope or ()))
    if isinstance(frame, Failure):
        if not any(sign in frame.message for sign in _WITHOUT_FILES):
            raise _unopened(dataset, frame.message, spark)
        frame = None
    if frame is None:
        frame = spark.createDataFrame([], ddl(carried(dataset.columns)))
    if set(_HUDI) <= set(frame.columns):
        frame = frame.drop(*(name for name in _HUDI if name not in dataset.columns.names))
    return frame


# What Spark says of a folder that is there and has no file.
_WITHOUT_FILES = ("UNABLE_TO_INFER_SCHEMA", "No Avro files found")


def _with_placed(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """All rows of a dataset of which some partitions lie elsewhere."""
    below = replace(dataset, placed=())
    folders = [named_folders(file) for file in files_of(spark, below)[0]]
    others = any(not any(each.is_named_in(names) for each in dataset.placed) for names in folders)
    rest = open_table(spark, below) if others else None
    parts = (dataset.object, rest, dataset.placed, dataset.partitions)
    frame = attempt(lambda: united(*parts, lambda root: open_table(spark, replace(below, path=root))))
    if isinstance(frame, Failure):
        raise _unopened(dataset, frame.message, spark)
    return frame


def files_of(spark: SparkSession, dataset: Dataset) -> tuple[tuple[str, ...], tuple[StructField, ...]]:
    """The addresses of a dataset's files, and the columns that the names of their folders hold.

    No file is read. For a dataset of plain files. Raises Unreadable when there is no such place.
    """
    assert dataset.path is not None
    path = dataset.path
    found = attempt(lambda: listing(spark, path, _partition_types(dataset)))
    if isinstance(found, Failure):
        raise _unopened(dataset, found.message, spark)
    return found.files, found.partitions


def open_folders(
    spark: SparkSession, dataset: Dataset, schema: DataType, folders: Sequence[str]
) -> DataFrame:
    """The rows of these folders of a dataset of files, with the whole dataset's schema.

    Where texts show other types in these folders than in the whole dataset, the schema is another one.
    """
    assert dataset.path is not None
    assert dataset.format is not None
    if dataset.format in TEXTS:
        whole = listing(spark, dataset.path, _partition_types(dataset))
        files = tuple(file for file in whole.files if file.rpartition("/")[0] in folders)
        part = replace(whole, files=files)
        found = _TEXT_READERS[dataset.format](spark, part, files, dataset.text, dataset.columns)
        return found if found is not None else spark.createDataFrame([], ddl(schema))
    reader = reader_of(spark, dataset.format)
    if list(folders) != [dataset.path]:
        # Which a single file may not be.
        reader = reader.option("basePath", base_of(dataset.path))
    return reader.schema(ddl(schema)).load([unquote(folder) for folder in folders])


# Of so little, one task reads all before several have joined their answers by a shuffle. Counted on Spark
# 4.0, a key and plain predicates on 1,000 rows: 3 jobs for a table instead of 6.
SMALL_BYTES, SMALL_FILES = 4 << 20, 8
SMALL_ROWS = 50_000


def in_one_task(frame: DataFrame) -> DataFrame:
    """The frame in one partition where it is small files, so that no pass over it needs a shuffle."""
    if not hasattr(frame, "_jdf"):
        # Spark Connect shows nothing of a plan.
        return frame
    # A number of Scala or of Python, by the version of py4j.
    size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    return frame.coalesce(1) if size <= SMALL_BYTES and 0 < len(frame.inputFiles()) <= SMALL_FILES else frame


def gathered(frame: DataFrame, rows: object) -> DataFrame:
    """The frame in one partition where it has few rows: the session's own number is made for many.

    Two hundred tasks for a batch of a stream take seconds for each key. What the rows are made from still
    runs in as many tasks as it would.
    """
    return frame.repartition(1) if isinstance(rows, int) and rows <= SMALL_ROWS else frame


def _read(spark: SparkSession, dataset: Dataset, scope: Sequence[Mapping[str, str]]) -> DataFrame | None:
    if dataset.table is not None:
        return spark.table(dataset.table)
    assert dataset.path is not None
    assert dataset.format is not None
    if dataset.format in TEXTS:
        all_files = listing(spark, dataset.path, _partition_types(dataset))
        looked_at = within(spark, all_files, scope, only)
        return _TEXT_READERS[dataset.format](spark, all_files, looked_at, dataset.text, dataset.columns)
    if dataset.format not in FILES:
        return spark.read.format(dataset.format).load(dataset.path)
    reader = reader_of(spark, dataset.format)
    base = base_of(dataset.path)
    if base != dataset.path:
        # Without it, a path with a glob loses the partition columns that stand where the glob does.
        reader = reader.option("basePath", base)
    return typed_by_files(spark, reader, dataset.path, dataset.format, scope, _partition_types(dataset))


def _partition_types(dataset: Dataset) -> dict[str, StructField]:
    from pyspark.sql.types import StructField, _parse_datatype_string

    kinds = ((name, field(dataset.columns, name)) for name in dataset.partitions)
    return {
        name.lower(): StructField(name, _parse_datatype_string(str(carried(kind))))
        for name, kind in kinds
        if kind is not None and not kind.parts
    }


_PATH = "Check the server's path in the contract, and that something was delivered."
_CATALOG = "Tell Spark the catalog that the server's database begins with: spark.sql.catalog.<name>=…"
_JAR = "Start Spark with {jar}"
_S3_JAR = "Start Spark with spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}."
_TYPE = "Store the column as a type that Spark has."
# What Spark, Hadoop and the formats say, and how it is mended; the first that fits.
_MENDS = (
    ("PATH_NOT_FOUND", _PATH),
    ("DELTA_TABLE_NOT_FOUND", f"{_PATH} A folder without Delta's log is no Delta table."),
    ("TABLE_OR_VIEW_NOT_FOUND", "Check the server's database, and that Spark uses the right catalog."),
    ("REQUIRES_SINGLE_PART_NAMESPACE", _CATALOG),
    ("DATA_SOURCE_NOT_FOUND", _JAR),
    ("DELTA_CONFIGURE_SPARK_SESSION", _JAR),
    ("ClassNotFound", _JAR),
    ("external data source module", _JAR),
    ("Spark does not support time fields", _TYPE),
    ("Cannot convert unsupported type to Spark", _TYPE),
    ("Cannot convert unknown type to Spark", _TYPE),
    ("No FileSystem for scheme", "Correct the path, or start Spark with the jar of this file system."),
    ("S3AFileSystem not found", _S3_JAR),
    ("CANNOT_READ_FILE_FOOTER", "Deliver this file again, or correct the format in the contract."),
)


def _unopened(dataset: Dataset, reason: str, spark: SparkSession) -> Unreadable:
    message = f"the data of {dataset.object} ({dataset}) cannot be opened: {reason.rstrip('.')}."
    return Unreadable(message, _mend(dataset, reason, spark))


def _mend(dataset: Dataset, reason: str, spark: SparkSession) -> str:
    found = next((mend for sign, mend in _MENDS if sign in reason), None)
    if found == _S3_JAR:
        return found.format(version=_hadoop(spark))
    if found == _JAR:
        # A table of the catalog may be of another format than the contract says.
        named = re.search(r"data source: (\w+)", reason)
        form = named[1].lower() if named else dataset.format or ""
        jar = ",".join(run_context.coordinates(spark.version, (form,)))
        needed = f"spark.jars.packages={jar}" if jar else f"the jar for {form}".rstrip()
        return f"{_JAR.format(jar=needed)}; 'dq doctor' prints what every format needs."
    if dataset.path and reason.startswith("[TABLE_OR_VIEW_NOT_FOUND]"):
        return _PATH
    return found or "Check that Spark may read it, and the format in the contract."


def _hadoop(spark: SparkSession) -> str:
    """The version of the session's Hadoop, which its jars must have; Spark Connect does not tell it."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        return "<the version of Spark's Hadoop>"
    return str(context._jvm.org.apache.hadoop.util.VersionInfo.getVersion())
