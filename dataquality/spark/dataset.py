"""Location of an object's data, and opening it as a DataFrame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dq.contracts.access.access_policy import AccessPolicy, is_remote
from dq.contracts.access.data_location import (
    CATALOGS,
    RFC_4180,
    DataLocation,
    TextFormat,
    resolve,
    select_server,
    text_format,
)
from dq.contracts.layout import HIVE, Layout, PlacedPartition
from dq.contracts.model import Contract, SchemaObject, Server
from dq.contracts.outcome import FORMATS, ReadError, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType, row_type
from dq.dataquality.model import run_context
from dq.dataquality.model.column import struct_field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.columnar_files import (
    NULL_PARTITION,
    for_hadoop,
    in_scope,
    literal,
    only_partitions,
    read_merged,
    union_with_external,
)
from dq.dataquality.spark.file_listing import (
    Listing,
    base_path,
    data_files,
    files_in_scope,
    listing,
    note_on_outside,
    open_files,
    reader_of,
    values_in_path,
)
from dq.dataquality.spark.schema import ddl
from dq.dataquality.spark.session import SHARED_HINT, attempt, is_local, is_missing_for_executors
from dq.dataquality.spark.text_files import csv_frame, json_frame
from dq.dataquality.text import carrier_type, text_row_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField


# Formats of plain files, with partitions in their paths.
FILE_FORMATS = ("parquet", "orc", "avro", "json", "csv")
# Formats whose types come from the contract.
_TEXT_READERS = {"json": json_frame, "csv": csv_frame}
TEXT_FORMATS = tuple(_TEXT_READERS)
# Spark reads `format.path` as a file if the first name is a format; these are all formats that it or a common
# jar knows.
_PATH_DATABASES = frozenset({*FORMATS, "binaryfile", "image", "jdbc", "kafka", "libsvm", "text", "xml"})
# Columns that Hudi adds to every row.
_HUDI_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A path with a format, or a table of Spark's catalog.

    `columns` are the contract's columns as a struct type, including partition columns; `partitions` are the
    names of those, in order, whose folders are named by `layout`. `external_partitions` lie outside of the
    path, so that the files below the path are not all of the data.
    """

    object: str
    path: str | None
    format: str | None
    table: str | None
    columns: DataType
    partitions: tuple[str, ...]
    text: TextFormat = RFC_4180
    external_partitions: tuple[PlacedPartition, ...] = ()
    layout: Layout = HIVE

    def values_of(self, file: str) -> dict[str, str] | None:
        """Return the values in the path of a file, by lower-case column, or None if it lies in no
        partition.
        """
        return values_in_path(file, self.path or "", self.layout)

    def __str__(self) -> str:
        return self.table or f"{self.format} at {self.path}"


def locate(
    contract: Contract, schema_object: SchemaObject, server_name: str | None, reach: AccessPolicy
) -> Dataset:
    """Return the location of an object's data on a server of its contract; see `data_location.resolve`.

    A catalog server gives a table of Spark's catalog, other servers a path.

    Raises:
        UsageError: An unknown or ambiguous server, a location or variable outside of `reach`, or an
            unsupported format.
    """
    location = resolve(contract, schema_object, server_name, reach)
    columns = row_type(schema_object)
    partitions = tuple(prop.column for prop in schema_object.partition_keys())
    if location.type in CATALOGS or not location.path:
        parts = [part for part in location.database.split(".") if part]
        if len(parts) == 1 and parts[0].lower() in _PATH_DATABASES:
            raise UsageError(
                f"{contract.id} {schema_object.name}: Spark reads a table of the database "
                f"{parts[0]!r} as a path.",
                "Rename the database.",
            )
        table = ".".join(sql.name(part) for part in (*parts, schema_object.column))
        return Dataset(schema_object.name, None, location.format, table, columns, partitions)
    if location.format not in FORMATS:
        raise UsageError(
            f"{contract.id} {schema_object.name}: unsupported format {location.format!r}.",
            f"Set 'format:' on the server or in the object's dataset terms: {', '.join(FORMATS)}.",
            at=schema_object.locate(),
        )
    server = select_server(contract, server_name)
    reach_problem = reach.contents_problem(location.path)
    if reach_problem is not None:
        raise UsageError(
            f"{server.locate()}: the data of {contract.id} {schema_object.name} {reach_problem.message}.",
            reach_problem.hint,
        )
    text_options = text_format(server)
    if location.format in TEXT_FORMATS:
        columns = text_row_type(schema_object)
    return Dataset(
        schema_object.name,
        for_hadoop(location.path),
        location.format,
        None,
        columns,
        partitions,
        text_options,
        layout=_required_layout(location, partitions, server),
    )


def _required_layout(location: DataLocation, partitions: Sequence[str], server: Server) -> Layout:
    """Return the layout of files. Raises UsageError if it does not have the partition columns."""
    layout = location.layout if location.format in FILE_FORMATS else HIVE
    if not layout:
        return layout
    columns = {column.lower() for column in layout.columns}
    if columns != {name.lower() for name in partitions}:
        raise UsageError(
            f"the layout {layout.template!r} of server {server.server!r} has the columns "
            f"{', '.join(layout.columns)}, and the partition columns are {', '.join(partitions) or 'none'}.",
            "Mark the columns of the layout, and no others, with partitioned: true.",
            at=server.locate(),
        )
    if base_path(location.path) != location.path:
        raise UsageError(
            f"server {server.server!r} has a layout, and its location {location.path!r} is a pattern.",
            "Write the folder of the table as location.",
            at=server.locate(),
        )
    return layout


def open_table(
    spark: SparkSession, dataset: Dataset, scope: Sequence[Mapping[str, str]] | None = None
) -> DataFrame:
    """Return all rows as a DataFrame, with the columns of the partitions in `scope` (None: of all
    partitions).

    In a layout other than Hive's, and with external partitions, rows outside of the scope may be absent.
    Partition columns have the contract's types, and so do JSON and CSV columns without invalid values; a
    column with an invalid value is a string column. A path without files gives no rows. Hudi's own columns
    are dropped unless the contract names them.

    Raises:
        ReadError: The path does not exist or cannot be opened.
        UsageError: Invalid partitions, as for `only_partitions`.
    """
    if dataset.external_partitions:
        relevant = in_scope(dataset.external_partitions, scope or (), _partition_types(dataset))
        dataset = replace(dataset, external_partitions=relevant)
    if dataset.external_partitions:
        return _with_external_partitions(spark, dataset, scope or ())
    frame = attempt(lambda: _read(spark, dataset, scope or ()))
    if isinstance(frame, Failure):
        if not any(sign in frame.message for sign in _WITHOUT_FILES):
            raise _unopened_error(dataset, frame.message, spark)
        frame = None
    if frame is None:
        frame = spark.createDataFrame([], ddl(carrier_type(dataset.columns)))
    if set(_HUDI_COLUMNS) <= set(frame.columns):
        frame = frame.drop(*(name for name in _HUDI_COLUMNS if name not in dataset.columns.names))
    return frame


# Spark's errors for an existing folder without files.
_WITHOUT_FILES = ("UNABLE_TO_INFER_SCHEMA", "No Avro files found")


def _with_external_partitions(
    spark: SparkSession, dataset: Dataset, scope: Sequence[Mapping[str, str]]
) -> DataFrame:
    """Return the rows of a dataset with external partitions; `scope` is that of `open_table`."""
    base_dataset = replace(dataset, external_partitions=())
    external_values = [dict(partition.values) for partition in dataset.external_partitions]
    base_scope = [partition for partition in scope if dict(partition) not in external_values]
    has_other_folders = False
    if base_scope or not scope:
        folders = [base_dataset.values_of(file) for file in files_of(spark, base_dataset, base_scope)[0]]
        has_other_folders = any(
            not any(partition.is_named_in(values or {}) for partition in dataset.external_partitions)
            for values in folders
        )
    base_frame = open_table(spark, base_dataset, base_scope) if has_other_folders else None
    roots = {
        partition: partition.root(dataset.partitions, dataset.layout)
        for partition in dataset.external_partitions
    }
    arguments = (dataset.object, base_frame, roots)
    frame = attempt(
        lambda: union_with_external(
            *arguments,
            lambda root, partitions: open_table(spark, replace(base_dataset, path=root), partitions),
        )
    )
    if isinstance(frame, Failure):
        raise _unopened_error(dataset, frame.message, spark)
    return frame


def files_of(
    spark: SparkSession, dataset: Dataset, scope: Sequence[Mapping[str, str]] = ()
) -> tuple[tuple[str, ...], tuple[StructField, ...]]:
    """Return the addresses of a dataset's files, and the columns in their folder names.

    In a layout other than Hive's, those outside of the `scope` may be absent (empty: none is). Only for
    plain files; no file is read. Raises ReadError if the path does not exist.
    """
    assert dataset.path is not None
    path = dataset.path
    file_listing = attempt(lambda: listing(spark, path, _partition_types(dataset), dataset.layout, scope))
    if isinstance(file_listing, Failure):
        raise _unopened_error(dataset, file_listing.message, spark)
    return file_listing.files, file_listing.partitions


def note_on_files(spark: SparkSession, dataset: Dataset) -> str:
    """Return a note on files that are left out because they are not in the layout, or ""."""
    if not dataset.layout or dataset.path is None:
        return ""
    path = dataset.path
    all_files = attempt(lambda: listing(spark, path, _partition_types(dataset), dataset.layout))
    return "" if isinstance(all_files, Failure) else note_on_outside(all_files)


def open_folders(
    spark: SparkSession, dataset: Dataset, schema: DataType, folders: Sequence[str]
) -> DataFrame:
    """Return the rows of some folders of a dataset of files, with the schema of the whole dataset.

    For JSON and CSV the schema may differ if these folders have invalid values.
    """
    assert dataset.path is not None
    assert dataset.format is not None
    if dataset.format in TEXT_FORMATS:
        file_listing = listing(spark, dataset.path, _partition_types(dataset), dataset.layout)
        files = tuple(file for file in file_listing.files if file.rpartition("/")[0] in folders)
        folder_listing = replace(file_listing, files=files, is_complete=False)
        frame = _TEXT_READERS[dataset.format](spark, folder_listing, files, dataset.text, dataset.columns)
        return frame if frame is not None else spark.createDataFrame([], ddl(schema))
    reader = reader_of(spark, dataset.format)
    if dataset.layout:
        return _open_layout_folders(spark, dataset, dataset.path, schema, folders)
    if list(folders) != [dataset.path]:
        # A single file cannot be a basePath.
        reader = reader.option("basePath", base_path(dataset.path))
    return reader.schema(ddl(schema)).load([unquote(folder) for folder in folders])


def _open_layout_folders(
    spark: SparkSession, dataset: Dataset, path: str, schema: DataType, folders: Sequence[str]
) -> DataFrame:
    """Return the rows of some folders, with the partition columns of the layout."""
    assert dataset.format is not None
    names = [name for name in schema.names if name.lower() not in {key.lower() for key in dataset.partitions}]
    kinds = dict(zip(schema.names, schema.parts, strict=True))
    data = DataType("struct", (), tuple(kinds[name] for name in names), tuple(names))
    reader = reader_of(spark, dataset.format).option("recursiveFileLookup", "true").schema(ddl(data))
    frame = reader.option("__globPaths__", "false").load([unquote(folder) for folder in folders])
    files = tuple(data_files(frame.inputFiles()))
    types = _partition_types(dataset)
    fields = tuple(types[name.lower()] for name in dataset.partitions)
    return Listing(path, path, files, fields, dataset.layout, is_complete=False).with_keys(frame)


# For so little data, one task is faster than several tasks and a shuffle. Measured on Spark 4.0, a key and
# plain predicates on 1,000 rows: 3 jobs for a table instead of 6.
SMALL_BYTES, SMALL_FILES = 4 << 20, 8
SMALL_ROWS = 50_000


def coalesce_small(frame: DataFrame) -> DataFrame:
    """Coalesce a frame of small files to one partition, so that no pass over it needs a shuffle."""
    if not hasattr(frame, "_jdf"):
        # Spark Connect does not expose the plan.
        return frame
    # A Scala or Python number, depending on the version of py4j.
    size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    return frame.coalesce(1) if size <= SMALL_BYTES and 0 < len(frame.inputFiles()) <= SMALL_FILES else frame


def file_bytes(frame: DataFrame) -> int | None:
    """Return the size of the files that a scan of the frame would read, from their listing, or None.

    Partition filters are applied. None for other sources than files, and for Spark Connect.
    """
    if not hasattr(frame, "_jdf"):
        return None
    # The files are listed already; partition filters are applied when the scan is planned.
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    scans = [leaves.apply(index) for index in range(leaves.size())]
    if any(scan.getClass().getSimpleName() != "FileSourceScanExec" for scan in scans):
        return None
    selected = [scan.selectedPartitions() for scan in scans]
    if frame.sparkSession.version.startswith("3."):
        files = [folder.files() for folders in selected for folder in folders]
        return sum(int(listed.apply(index).getLen()) for listed in files for index in range(listed.size()))
    return sum(int(str(listing.totalFileSize())) for listing in selected)


def count_written(frame: DataFrame, folder: str) -> int | Failure:
    """Return the number of rows in a folder of Parquet to which the frame was written.

    A Failure if rows are missing, see `lost_rows`. Raises Spark's errors.
    """
    rows = frame.sparkSession.read.schema(frame.schema).parquet(folder).count()
    return rows if is_shared(frame.sparkSession, folder) else lost_rows(frame, rows) or rows


def lost_rows(frame: DataFrame, arrived: int) -> Failure | None:
    """Return a Failure if a place to which the frame was written got another number of rows.

    Executors on other machines write a local path to disks of their own, and Spark reports success. Raises
    Spark's errors.
    """
    written = frame.count()
    if arrived == written:
        return None
    return Failure(f"{arrived:,} of {written:,} rows arrived. {SHARED_HINT}")


def is_shared(spark: SparkSession, location: str) -> bool:
    """Return whether the driver certainly sees what executors write to a location."""
    return is_remote(location) or is_local(spark)


def repartition_small(frame: DataFrame, rows: object) -> DataFrame:
    """Repartition a frame with few rows to one partition, instead of the session's shuffle partitions.

    Two hundred tasks for a micro-batch take seconds for each key. The computation of the rows keeps its
    tasks.
    """
    return frame.repartition(1) if isinstance(rows, int) and rows <= SMALL_ROWS else frame


def _read(spark: SparkSession, dataset: Dataset, scope: Sequence[Mapping[str, str]]) -> DataFrame | None:
    if dataset.table is not None:
        return spark.table(dataset.table)
    assert dataset.path is not None
    assert dataset.format is not None
    if dataset.format in TEXT_FORMATS:
        all_files = _listing(spark, dataset, dataset.path, scope)
        scoped_files = files_in_scope(spark, all_files, scope, only_partitions)
        return _TEXT_READERS[dataset.format](spark, all_files, scoped_files, dataset.text, dataset.columns)
    if dataset.format not in FILE_FORMATS:
        return spark.read.format(dataset.format).load(dataset.path)
    reader = reader_of(spark, dataset.format)
    if dataset.layout:
        all_files = _listing(spark, dataset, dataset.path, scope)
        if not all_files.files:
            return None
        frame = read_merged(
            spark,
            lambda plain: open_files(plain, all_files, all_files.files),
            reader,
            dataset.format,
            (),
            {},
            lambda: all_files,
        )
        return all_files.with_keys(frame)
    base = base_path(dataset.path)
    if base != dataset.path:
        # Without basePath, a path with a glob loses the partition columns in place of the glob.
        reader = reader.option("basePath", base)
    path, types = dataset.path, _partition_types(dataset)
    return read_merged(
        spark,
        lambda plain: plain.load(path),
        reader,
        dataset.format,
        scope,
        types,
        lambda: listing(spark, path, types),
    )


def _listing(spark: SparkSession, dataset: Dataset, path: str, scope: Sequence[Mapping[str, str]]) -> Listing:
    """List the dataset's files. Raises ReadError for a folder whose name is not a value of its column."""
    all_files = listing(spark, path, _partition_types(dataset), dataset.layout, scope)
    if not dataset.layout:
        return all_files
    kinds = {name.lower(): struct_field(dataset.columns, name) for name in dataset.partitions}
    folders = {tuple((all_files.values_of(file) or {}).items()): file for file in all_files.files}
    for values, file in folders.items():
        for name, text in values:
            kind = kinds.get(name)
            try:
                if kind is not None and text != NULL_PARTITION:
                    literal(text, carrier_type(kind))
            except (ValueError, ArithmeticError) as error:
                folder = unquote(file).rpartition("/")[0]
                raise ReadError(
                    f"{folder}: {text!r} is not a value of the partition column {name!r} of type {kind}.",
                    "Correct the layout of the server, or the type of the column.",
                ) from error
    return all_files


def _partition_types(dataset: Dataset) -> dict[str, StructField]:
    from pyspark.sql.types import StructField, _parse_datatype_string

    kinds = ((name, struct_field(dataset.columns, name)) for name in dataset.partitions)
    return {
        name.lower(): StructField(name, _parse_datatype_string(str(carrier_type(kind))))
        for name, kind in kinds
        if kind is not None and not kind.parts
    }


_PATH_HINT = "Check the server's path in the contract, and that data was delivered."
_CATALOG_HINT = "Configure the catalog that the server's database begins with: spark.sql.catalog.<name>=…"
_JAR_HINT = "Start Spark with {jar}"
_S3_JAR_HINT = "Start Spark with spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}."
_TYPE_HINT = "Store the column as a type that Spark supports."
# Text in errors of Spark, Hadoop and the formats -> hint; the first match counts.
_HINTS = (
    ("PATH_NOT_FOUND", _PATH_HINT),
    ("DELTA_TABLE_NOT_FOUND", f"{_PATH_HINT} A folder without a Delta log is not a Delta table."),
    ("TABLE_OR_VIEW_NOT_FOUND", "Check the server's database, and that Spark uses the right catalog."),
    ("REQUIRES_SINGLE_PART_NAMESPACE", _CATALOG_HINT),
    ("DATA_SOURCE_NOT_FOUND", _JAR_HINT),
    ("DELTA_CONFIGURE_SPARK_SESSION", _JAR_HINT),
    ("ClassNotFound", _JAR_HINT),
    ("external data source module", _JAR_HINT),
    ("Spark does not support time fields", _TYPE_HINT),
    ("Cannot convert unsupported type to Spark", _TYPE_HINT),
    ("Cannot convert unknown type to Spark", _TYPE_HINT),
    ("No FileSystem for scheme", "Correct the path, or start Spark with the jar of this file system."),
    ("S3AFileSystem not found", _S3_JAR_HINT),
    ("CANNOT_READ_FILE_FOOTER", "Deliver this file again, or correct the format in the contract."),
)


def _unopened_error(dataset: Dataset, reason: str, spark: SparkSession) -> ReadError:
    message = f"the data of {dataset.object} ({dataset}) cannot be opened: {reason.rstrip('.')}."
    return ReadError(message, _hint_for(dataset, reason, spark))


def _hint_for(dataset: Dataset, reason: str, spark: SparkSession) -> str:
    if is_missing_for_executors(spark, reason):
        return SHARED_HINT
    known_hint = next((hint for sign, hint in _HINTS if sign in reason), None)
    if known_hint == _S3_JAR_HINT:
        return known_hint.format(version=_hadoop_version(spark))
    if known_hint == _JAR_HINT:
        # A catalog table may have another format than the contract states.
        source_match = re.search(r"data source: (\w+)", reason)
        source_format = source_match[1].lower() if source_match else dataset.format or ""
        jar = ",".join(run_context.coordinates(spark.version, (source_format,)))
        needed = f"spark.jars.packages={jar}" if jar else f"the jar for {source_format}".rstrip()
        return f"{_JAR_HINT.format(jar=needed)}; 'dq doctor' lists the jars of each format."
    if dataset.path and reason.startswith("[TABLE_OR_VIEW_NOT_FOUND]"):
        return _PATH_HINT
    return known_hint or "Check that Spark may read it, and the format in the contract."


def _hadoop_version(spark: SparkSession) -> str:
    """Return the version of the session's Hadoop, which its jars must match; unknown on Spark Connect."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        return "<the version of Spark's Hadoop>"
    return str(context._jvm.org.apache.hadoop.util.VersionInfo.getVersion())
