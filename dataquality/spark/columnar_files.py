"""Partition filters, and columns of Parquet, ORC and Avro files merged over all files."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote, urlsplit

from dq.contracts import layout
from dq.contracts.access.access_policy import is_remote
from dq.contracts.layout import PlacedPartition
from dq.contracts.outcome import MissingTool, ReadError, UsageError, suggestion
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.column import struct_field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.file_listing import Listing, Scope, data_files, files_in_scope, reader_of
from dq.dataquality.spark.schema import (
    ChooseType,
    contains_type,
    merge_types,
    partial_column_note,
    prefer_wider,
    spark_type,
    unreadable_note,
)
from dq.dataquality.spark.session import attempt, spark_errors
from dq.lake.compression import avro_header
from dq.lake.parquet import columns as parquet_columns
from dq.lake.storage import ArrowFiles
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructField, StructType


def only_partitions(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> DataFrame:
    """Return the rows of these partitions, each given as column and value text as in the path.

    The filter compares each column with a literal of its own type, so that Spark prunes other partitions.

    Raises UsageError for an unknown column or an invalid value.
    """
    return frame.where(_any_partition_sql(frame, partitions))


def without_partitions(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> DataFrame:
    """Return the rows of all other partitions. Raises UsageError like `only_partitions`."""
    return frame.where(f"NOT coalesce({_any_partition_sql(frame, partitions)}, FALSE)")


def _any_partition_sql(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> str:
    schema = from_spark_json(frame.schema.jsonValue())
    conditions = [
        sql.all_of(*(_equals_sql(schema, column, text) for column, text in partition.items()))
        for partition in partitions
    ]
    return sql.any_of(*conditions)


# Hive's value for NULL in paths.
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def _equals_sql(schema: DataType, column: str, text: str) -> str:
    kind = struct_field(schema, column)
    if kind is None:
        columns = f"Columns: {', '.join(schema.names)}."
        raise UsageError(f"unknown partition column {column!r}.", suggestion(column, schema.names, columns))
    if text == NULL_PARTITION:
        return f"{sql.name(column)} IS NULL"
    try:
        literal_sql = literal(text, kind)
    except (ValueError, ArithmeticError) as error:
        message = f"{text!r} is not a valid value of the partition column {column!r} of type {kind}."
        raise UsageError(message, "Write it as in the path.") from error
    if literal_sql is None:
        raise UsageError(f"partitions cannot be selected by {column!r} of type {kind}.", "Remove it.")
    return f"{sql.name(column)} = {literal_sql}"


def literal(text: str, kind: DataType) -> str | None:
    """Return the text of a path as a Spark SQL literal of this type, or None if paths cannot hold the type.

    Raises ValueError or ArithmeticError for an invalid value.
    """
    convert = _LITERALS.get(kind.name)
    return None if convert is None else convert(text)


def _boolean_literal(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.upper()


def _float_literal(text: str, kind: str) -> str:
    # Spark has no literals for NaN and infinity.
    number = float(text)
    return f"CAST({f'{number!r}D' if math.isfinite(number) else sql.text(str(number))} AS {kind})"


def _timestamp_literal(text: str) -> str:
    # Spark parses the path in the session's zone, so the literal must be parsed in it too.
    dt.datetime.fromisoformat(text)
    return f"CAST({sql.text(text)} AS TIMESTAMP)"


_LITERALS: dict[str, Callable[[str], str]] = {
    "string": sql.text,
    "date": lambda text: sql.date(dt.date.fromisoformat(text)),
    "timestamp": _timestamp_literal,
    "boolean": _boolean_literal,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), lambda text: sql.number(int(text))),
    "decimal": lambda text: sql.number(Decimal(text)),
    "double": lambda text: _float_literal(text, "DOUBLE"),
    "float": lambda text: _float_literal(text, "FLOAT"),
}


# Columns of Parquet, ORC and Avro files, read with pyarrow without reading rows.

_PARALLEL_READS = 16
# Errors of pyarrow for a file that it cannot open, or an unsupported file system.
NOT_OPENED = (OSError, ValueError, NotImplementedError, MissingTool)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Columns of one file, in order: names, and types in any notation.

    Two types that differ here may still be the same type for another reader.
    """

    address: str
    names: tuple[str, ...]
    types: tuple[str, ...]


def open_input(path: str, storage: ArrowFiles | None = None) -> Any:
    """Open a file by Spark's address on a file system that pyarrow supports.

    Pass the same `storage` for several files: each new one creates a client, which for S3 takes longer than
    to read a footer. Raises OSError or ValueError if it cannot be opened.
    """
    if not is_remote(path):
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem().open_input_file(unquote(urlsplit(path).path))
    # The address is URL-encoded, the path is not: a `?` belongs to the name.
    system, inside = (storage or ArrowFiles()).opened(path)
    return system.open_input_file(unquote(inside))


def connected_storage(files: Iterable[str]) -> ArrowFiles | None:
    """Return access to the storage of these files, opened once for all threads; None if all are local."""
    storage, first = ArrowFiles(), next(filter(is_remote, files), None)
    if first is None:
        return None
    storage.connect(first)
    return storage


def columns_of(files: Sequence[str], file_format: str) -> list[FileColumns]:
    """Return the columns of each non-empty file.

    Raises ReadError for a file that cannot be opened, because it may have any column.
    """
    storage = connected_storage(files)
    with ThreadPoolExecutor(_PARALLEL_READS if storage is not None else 1) as pool:
        return [
            file_columns
            for file_columns in pool.map(lambda file: _columns_of(file, file_format, storage), files)
            if file_columns is not None
        ]


def _columns_of(file: str, file_format: str, storage: ArrowFiles | None) -> FileColumns | None:
    import pyarrow.orc as orc
    import pyarrow.parquet as pq

    try:
        with open_input(file, storage) as source:
            if source.size() == 0:
                return None
            if file_format == "orc":
                schema = orc.ORCFile(source).schema
                return FileColumns(file, tuple(schema.names), tuple(map(str, schema.types)))
            if file_format == "avro":
                return _avro_columns(file, source)
            columns = parquet_columns(pq.read_metadata(source).schema)
    except NOT_OPENED as error:
        raise ReadError(
            f"{file} cannot be read, so its columns are unknown.",
            "Rewrite or remove it. Prefix the names of files that are not data with _ or a dot.",
        ) from error
    types = tuple(str(column.type or column.problem) for column in columns)
    return FileColumns(file, tuple(column.name for column in columns), types)


def _avro_columns(file: str, source: BinaryIO) -> FileColumns:
    """Return the record fields, each with the whole schema as its type, because types may refer to each
    other.
    """
    try:
        _, schema, _ = avro_header(source)
    except (EOFError, LookupError) as error:
        raise ValueError("it is not Avro") from error
    names = tuple(field["name"] for field in schema.get("fields", ())) if isinstance(schema, dict) else ()
    return FileColumns(file, names, (json.dumps(schema),) * len(names))


# Columns of Parquet, ORC and Avro files merged over all files; Spark itself takes the schema of one file.

# More files than this are merged by Spark's own tasks, which do not count the files that have a column.
MAX_INSPECTED_FILES = 2_000
FORMATS = ("parquet", "orc", "avro")
# Spark's errors for types that it does not read: up to 4.0, and for times in microseconds later (4.3.0).
ILLEGAL_TYPE_ERRORS = (
    "Illegal Parquet type",
    "[UNSUPPORTED_TIME_TYPE]",
    "[PARQUET_TYPE_NOT_SUPPORTED",
    "Parquet type not yet supported",
)


def read_merged(
    spark: SparkSession,
    open_with: Callable[[DataFrameReader], DataFrame],
    reader: DataFrameReader,
    file_format: str,
    scope: Scope,
    types: Mapping[str, StructField],
    list_files: Callable[[], Listing],
) -> DataFrame:
    """Read the rows of files, with the columns of all files in the partitions of `scope` (empty: all).

    Columns are merged by name. `open_with` loads the files with a reader, and `list_files` lists them.
    `types` are the contract's types of partition columns, by lower-case name. Raises Spark's errors if it
    cannot read the files.
    """
    from pyspark.sql.types import StructType

    try:
        frame = open_with(reader)
        schema = frame.schema
    except spark_errors() as error:
        file_listing = list_files()
        file_schema = (
            schema_without_illegal(file_listing.files[0])
            if file_format == "parquet" and _is_illegal_type(error)
            else None
        )
        if file_schema is None:
            raise
        frame, schema = None, file_listing.schema(file_schema.fields)
    target_schema = StructType([_with_contract_type(field, types) for field in schema.fields])
    if file_format in FORMATS:
        files: Sequence[str] = data_files(frame.inputFiles()) if frame is not None else file_listing.files
        several = len(files) > 1
        if scope and types and several:
            files = _files_in_scope(spark, files, scope, types, list_files)
        # Let Spark merge many files; it cannot merge Avro.
        if len(files) > MAX_INSPECTED_FILES and file_format != "avro":
            spark_frame = _merged_by_spark(reader, open_with, types)
            if spark_frame is not None:
                return spark_frame
        if several:
            try:
                file_columns = columns_of(files, file_format)
            except ReadError:
                # Spark may support a file system that pyarrow does not.
                if file_format == "avro":
                    file_columns = [_columns_from_spark(spark, file_format, file) for file in files]
                else:
                    spark_frame = _merged_by_spark(reader, open_with, types)
                    if spark_frame is None:
                        raise
                    return spark_frame
            target_schema = (
                merge_columns(spark, file_format, target_schema, file_columns) if file_columns else None
            ) or target_schema
    return _reuse_or_reload(reader, open_with, frame, target_schema)


def _columns_from_spark(spark: SparkSession, file_format: str, file: str) -> FileColumns:
    schema = _schema_of(spark, file_format, file)
    types = tuple(field.dataType.simpleString() for field in schema.fields)
    return FileColumns(file, tuple(schema.names), types)


def _files_in_scope(
    spark: SparkSession,
    files: Sequence[str],
    scope: Scope,
    types: Mapping[str, StructField],
    list_files: Callable[[], Listing],
) -> Sequence[str]:
    """Return the files of these partitions by folder names, or by Spark if folder names are ambiguous."""
    values = [named_folders(file) for file in files]
    matches = [[is_in_partition(texts, partition, types) for partition in scope] for texts in values]
    if any(None in file_matches for file_matches in matches):
        return files_in_scope(spark, list_files(), scope, only_partitions)
    return [file for file, file_matches in zip(files, matches, strict=True) if True in file_matches]


def is_in_partition(
    folder_values: Mapping[str, str], partition: Mapping[str, str], types: Mapping[str, StructField]
) -> bool | None:
    """Return True if a file lies in a partition, or None if the texts in its path are ambiguous."""
    matches = []
    for name, expected in partition.items():
        text, kind = folder_values.get(name.lower()), types.get(name.lower())
        canonical = CANONICAL_TEXTS.get(kind.dataType.typeName()) if kind is not None else None
        if (
            text is None
            or canonical is None
            or not canonical.fullmatch(text)
            or not canonical.fullmatch(expected)
        ):
            return None
        matches.append(text == expected)
    return all(matches)


def named_folders(file: str) -> dict[str, str]:
    """Return the column values in a file's folder names, by lower-case column."""
    # Folder names are escaped, and the address is URL-encoded in addition.
    return layout.named_folders(unquote(urlsplit(file).path))


# Spark type -> texts that are the only notation of their value.
CANONICAL_TEXTS = {
    "string": re.compile(r"[A-Za-z0-9 .:_-]*"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    **dict.fromkeys(("byte", "short", "integer", "long"), re.compile(r"0|-?[1-9]\d*")),
}


def _with_contract_type(field: StructField, types: Mapping[str, StructField]) -> StructField:
    from pyspark.sql.types import StructField

    contract_field = types.get(field.name.lower())
    return field if contract_field is None else StructField(field.name, contract_field.dataType)


def _reuse_or_reload(
    reader: DataFrameReader,
    open_with: Callable[[DataFrameReader], DataFrame],
    frame: DataFrame | None,
    target_schema: StructType,
) -> DataFrame:
    """Return the frame if it has these columns and notes, or else read the path again with them."""

    def describe(schema: StructType) -> list[tuple[Any, ...]]:
        return [(field.name, field.dataType, field.metadata or {}) for field in schema.fields]

    return (
        frame
        if frame is not None and describe(frame.schema) == describe(target_schema)
        else open_with(reader.schema(target_schema))
    )


def _merged_by_spark(
    reader: DataFrameReader,
    open_with: Callable[[DataFrameReader], DataFrame],
    types: Mapping[str, StructField],
) -> DataFrame | None:
    """Read with columns merged by Spark's tasks, or return None if files differ in a type."""
    from pyspark.sql.types import StructType

    frame = attempt(lambda: open_with(reader.option("mergeSchema", "true")))
    reader.option("mergeSchema", "false")
    if isinstance(frame, Failure):
        return None
    return _reuse_or_reload(
        reader,
        open_with,
        frame,
        StructType([_with_contract_type(field, types) for field in frame.schema.fields]),
    )


def merge_columns(
    spark: SparkSession, file_format: str, schema: StructType, file_columns: list[FileColumns]
) -> StructType | None:
    """Add the columns of the other files, as Spark reads them, to those of one file; None if all are the
    same.

    Columns that some files lack or have with another type get a note with the number of files. Names are
    compared case-insensitively.
    """
    from pyspark.sql.types import BinaryType, StructField, StructType

    files_by_type: dict[str, dict[str, list[str]]] = {}
    for file in file_columns:
        for name, kind in dict(zip(map(str.lower, file.names), file.types, strict=True)).items():
            files_by_type.setdefault(name, {}).setdefault(kind, []).append(file.address)
    folders = {name for file in file_columns for name in named_folders(file.address)}
    own_names = {field.name.lower() for field in schema.fields}
    alike = all(
        [len(file_columns)] == [len(files) for files in kinds.values()] for kinds in files_by_type.values()
    )
    partition_columns = folders - files_by_type.keys()
    if alike and own_names - partition_columns == files_by_type.keys():
        return None
    fields_by_file: dict[str, dict[str, StructField]] = {}

    def read_field(file: str, name: str) -> StructField:
        if file not in fields_by_file:
            file_schema = attempt(lambda: _schema_of(spark, file_format, file))
            if isinstance(file_schema, Failure):
                note = unreadable_note(f"Spark does not read {unquote(file)}: {file_schema.message}")
                return StructField(name, BinaryType(), metadata=note)
            fields_by_file[file] = {field.name.lower(): field for field in file_schema.fields}
        return fields_by_file[file][name]

    # Partition columns come last and are not in the files.
    fields = {field.name.lower(): field for field in schema.fields if field.name.lower() in files_by_type}
    partition_fields = [field for field in schema.fields if field.name.lower() in partition_columns]
    for name, kinds in files_by_type.items():
        file_groups = list(kinds.values())
        field = fields.get(name) or read_field(file_groups[0][0], name)
        # Spark prefers the values in folder names.
        several = len(file_groups) > 1 and name not in folders
        types = [(read_field(files[0], name), len(files)) for files in file_groups] if several else []
        fields[name] = _merge_column(
            field, types, sum(map(len, file_groups)), len(file_columns), prefer_wider(spark.version)
        )
    return StructType([*fields.values(), *partition_fields])


def _schema_of(spark: SparkSession, file_format: str, file: str) -> StructType:
    try:
        return reader_of(spark, file_format).option("__globPaths__", "false").load([unquote(file)]).schema
    except spark_errors() as error:
        file_schema = (
            schema_without_illegal(file) if file_format == "parquet" and _is_illegal_type(error) else None
        )
        if file_schema is None:
            raise
        return file_schema


def _merge_column(
    field: StructField,
    types: Sequence[tuple[StructField, int]],
    column_files: int,
    files: int,
    choose_wider: ChooseType,
) -> StructField:
    """Return a column with the widest common type of `types` and a note on its files."""
    from pyspark.sql.types import StructField

    unreadable_metadata = next((other.metadata for other, _ in types if other.metadata), None)
    if unreadable_metadata is not None:
        return StructField(field.name, field.dataType, nullable=True, metadata=unreadable_metadata)
    kinds = [(from_spark_json(other.dataType.jsonValue()), count) for other, count in types]
    kind = common_type = from_spark_json(field.dataType.jsonValue())
    for other, _ in kinds:
        common_type = merge_types(common_type, other, choose_wider)
    incompatible = [
        (struct_field.dataType.jsonValue(), count)
        for (struct_field, count), (other, _) in zip(types, kinds, strict=True)
        if not contains_type(common_type, other)
    ]
    merged_type = field.dataType if common_type == kind else spark_type(common_type)
    metadata = {**partial_column_note(column_files, files, incompatible), **(field.metadata or {})}
    return StructField(field.name, merged_type, nullable=True, metadata=metadata)


def _is_illegal_type(error: Exception) -> bool:
    return any(sign in str(error) for sign in ILLEGAL_TYPE_ERRORS)


def schema_without_illegal(file: str) -> StructType | None:
    """Return the columns of a Parquet file with types that Spark rejects, or None if pyarrow cannot read it.

    Columns of such types become binary, with a note: Spark reads the others, and clauses about these are
    errors.
    """
    import pyarrow.parquet as pq
    from pyspark.sql.types import BinaryType, StructField, StructType

    try:
        with open_input(file) as source:
            columns = parquet_columns(pq.ParquetFile(source).schema)
    except NOT_OPENED:
        return None
    return StructType(
        [
            StructField(column.name, spark_type(column.type))
            if column.type is not None
            else StructField(
                column.name, BinaryType(), nullable=True, metadata=unreadable_note(column.problem)
            )
            for column in columns
        ]
    )


# Partitions outside of the table's path, read together with those below it.

# Each folder is a separate plan; with more, Spark plans longer than it reads.
MOST_FOLDERS = 200


def for_hadoop(path: str) -> str:
    """Return the address with the scheme s3a of Hadoop's S3 client."""
    return f"s3a://{path.removeprefix('s3://')}" if path.startswith("s3://") else path


def in_scope(
    external: Sequence[PlacedPartition], scope: Sequence[Mapping[str, str]], types: Mapping[str, StructField]
) -> tuple[PlacedPartition, ...]:
    """Return the external partitions that may be in the scope; an empty scope means all.

    `types` are the types of the partition columns, by lower-case name.
    """

    def may_be(partition: PlacedPartition) -> bool:
        values = {name.lower(): text for name, text in partition.values}
        return any(is_in_partition(values, expected, types) is not False for expected in scope)

    return tuple(partition for partition in external if not scope or may_be(partition))


def union_with_external(
    name: str,
    table_frame: DataFrame | None,
    external: Mapping[PlacedPartition, str | None],
    open_folder: Callable[[str, Sequence[Mapping[str, str]]], DataFrame],
) -> DataFrame:
    """Return the rows of the table, with the external partitions in place of those of the same values.

    `table_frame` is None if the table has no other partitions. `external` are these with the folder below
    which their own is named as one of the table, if there is one; `open_folder` opens these partitions below
    such a folder.

    Raises ReadError for more folders than Spark can plan, and for a folder that is not named like its
    partition.
    """
    roots: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for partition, root in external.items():
        if root is None:
            raise ReadError(
                f"{name}: {partition.folder} does not match the name of the partition published there.",
                "Publish it from a folder of that name.",
            )
        roots[root].append(dict(partition.values))
    if len(roots) > MOST_FOLDERS:
        raise ReadError(
            f"{name}: its partitions were published from {len(roots):,} folders, more than {MOST_FOLDERS}.",
            "Stage below one folder, or set the contract's server to the catalog that has the partitions.",
        )
    frames = [
        only_partitions(open_folder(for_hadoop(root), partitions), partitions)
        for root, partitions in roots.items()
    ]
    if table_frame is not None:
        frames.insert(0, without_partitions(table_frame, [dict(partition.values) for partition in external]))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)
