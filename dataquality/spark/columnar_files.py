"""The rows of the partitions that are asked for, as a filter that Spark applies to paths."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote, unquote, urlsplit

from dq.contracts.access.access_policy import is_remote
from dq.contracts.outcome import MissingTool, Unreadable, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.column import field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.schema import Leaf, holds, joined, of_files, spark_type, unreadable, widening
from dq.dataquality.spark.session import attempt, spark_errors
from dq.dataquality.spark.text_files import Scope, listing, reader_of, with_rows, within
from dq.lake import storage
from dq.lake.compression import avro_header
from dq.lake.parquet import columns as parquet_columns
from dq.lake.storage import PlacedPartition, file_system, split
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructField, StructType


def only(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> DataFrame:
    """The rows of these partitions, each given as column and value text, as a path has them.

    The filter compares each column with a literal of its own type, so that Spark reads no other partition.
    Raises UsageError for a column that is not there or a text that cannot be a value of it.
    """
    return frame.where(_any_of(frame, partitions))


def without(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> DataFrame:
    """The rows of all other partitions. Raises UsageError as `only`."""
    return frame.where(f"NOT coalesce({_any_of(frame, partitions)}, FALSE)")


def _any_of(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> str:
    schema = from_spark_json(frame.schema.jsonValue())
    wanted = [
        sql.all_of(*(_equals(schema, column, text) for column, text in partition.items()))
        for partition in partitions
    ]
    return sql.any_of(*wanted)


# What Hive writes into the path for NULL.
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def _equals(schema: DataType, column: str, text: str) -> str:
    kind = field(schema, column)
    if kind is None:
        known = ", ".join(schema.names)
        raise UsageError(
            f"there is no column {column!r} for a partition; there are: {known}.", "Correct its name."
        )
    if text == NULL_PARTITION:
        return f"{sql.name(column)} IS NULL"
    try:
        made = literal(text, kind)
    except (ValueError, ArithmeticError) as error:
        message = f"{text!r} cannot be a value of the partition column {column!r}, which is {kind}."
        raise UsageError(message, "Write it as it stands in the path.") from error
    if made is None:
        raise UsageError(f"partitions cannot be chosen by {column!r}, which is {kind}.", "Leave it out.")
    return f"{sql.name(column)} = {made}"


def literal(text: str, kind: DataType) -> str | None:
    """The text of a path as a value of this type in Spark SQL; None for a type that no path can hold.

    Raises ValueError or ArithmeticError for a text that is no value of it.
    """
    make = _LITERALS.get(kind.name)
    return None if make is None else make(text)


def _flag(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.upper()


def _real(text: str, kind: str) -> str:
    # Spark has no literal of NaN or of infinity.
    number = float(text)
    return f"CAST({f'{number!r}D' if math.isfinite(number) else sql.text(str(number))} AS {kind})"


def _instant(text: str) -> str:
    # Spark reads the path in the session's zone, and so must the literal be read.
    dt.datetime.fromisoformat(text)
    return f"CAST({sql.text(text)} AS TIMESTAMP)"


_LITERALS: dict[str, Callable[[str], str]] = {
    "string": sql.text,
    "date": lambda text: sql.date(dt.date.fromisoformat(text)),
    "timestamp": _instant,
    "boolean": _flag,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), lambda text: sql.number(int(text))),
    "decimal": lambda text: sql.number(Decimal(text)),
    "double": lambda text: _real(text, "DOUBLE"),
    "float": lambda text: _real(text, "FLOAT"),
}


# Parquet, ORC and Avro files as pyarrow opens them, and their columns, without a read of a row.

_AT_A_TIME = 16
# What pyarrow raises for a file that it cannot open, or for a system of files that it does not know.
NOT_OPENED = (OSError, ValueError, NotImplementedError, MissingTool)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of one file, in their order: names, and types in any words.

    Two files whose types differ here may still mean the same type to another reader.
    """

    address: str
    names: tuple[str, ...]
    types: tuple[str, ...]


def opened(path: str) -> Any:
    """A file of a file system that pyarrow knows, by the address that Spark has for it.

    Raises OSError or ValueError when it cannot be opened.
    """
    if not is_remote(path):
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem().open_input_file(unquote(urlsplit(path).path))
    # The address is encoded, the path is not: a name with a `?` is a name and no query.
    root, inside = split(path)
    system, before = file_system(root)
    return system.open_input_file(before + unquote(inside))


def columns_of(files: Sequence[str], form: str) -> list[FileColumns]:
    """The columns of each file but the empty ones, of which a reader takes nothing.

    Raises Unreadable for one that cannot be looked at: it may hold any column.
    """
    remote = any(is_remote(file) for file in files)
    with ThreadPoolExecutor(_AT_A_TIME if remote else 1) as pool:
        return [told for told in pool.map(lambda file: _columns_of(file, form), files) if told is not None]


def _columns_of(file: str, form: str) -> FileColumns | None:
    import pyarrow.orc as orc
    import pyarrow.parquet as pq

    try:
        with opened(file) as source:
            if source.size() == 0:
                return None
            if form == "orc":
                schema = orc.ORCFile(source).schema
                return FileColumns(file, tuple(schema.names), tuple(map(str, schema.types)))
            if form == "avro":
                return _avro_columns(file, source)
            columns = parquet_columns(pq.read_metadata(source).schema)
    except NOT_OPENED as error:
        raise Unreadable(
            f"{file} cannot be looked at, and may hold any column.",
            "Write it anew, or take it away; a file that is no data has a name that begins with _ or a dot.",
        ) from error
    types = tuple(str(column.type or column.problem) for column in columns)
    return FileColumns(file, tuple(column.name for column in columns), types)


def _avro_columns(file: str, source: BinaryIO) -> FileColumns:
    """The fields of the records; as their types the whole schema, because one may name another one's type."""
    try:
        _, schema, _ = avro_header(source)
    except (EOFError, LookupError) as error:
        raise ValueError("it is no Avro") from error
    names = tuple(field["name"] for field in schema.get("fields", ())) if isinstance(schema, dict) else ()
    return FileColumns(file, names, (json.dumps(schema),) * len(names))


# The columns of Parquet, ORC and Avro files, file by file: Spark looks at one file and takes it for all.

# More files than this are merged by Spark's own tasks, which do not say in how many a column stands.
MOST_FILES = 2_000
FORMATS = ("parquet", "orc", "avro")
# What Spark says of a type that it does not read: up to 4.0, and of times in microseconds later on (4.3.0).
ILLEGAL = (
    "Illegal Parquet type",
    "[UNSUPPORTED_TIME_TYPE]",
    "[PARQUET_TYPE_NOT_SUPPORTED",
    "Parquet type not yet supported",
)


def typed_by_files(
    spark: SparkSession,
    reader: DataFrameReader,
    path: str,
    form: str,
    scope: Scope,
    types: Mapping[str, StructField],
) -> DataFrame:
    """The rows at a path, with the columns of every file in these partitions (none: of all), by their names.

    `types` are the contract's of partition columns, by their lower case. Raises what Spark raises where it
    cannot read the files.
    """
    from pyspark.sql.types import StructType

    try:
        found = reader.load(path)
        schema = found.schema
    except spark_errors() as error:
        whole = listing(spark, path, types)
        told = without_illegal(whole.files[0]) if form == "parquet" and _of_a_type(error) else None
        if told is None:
            raise
        found, schema = None, StructType([*told.fields, *whole.partitions])
    wanted = StructType([_typed(field, types) for field in schema.fields])
    if form in FORMATS:
        files: Sequence[str] = with_rows(found.inputFiles()) if found is not None else whole.files
        several = len(files) > 1
        if scope and types and several:
            files = _within(spark, path, files, scope, types)
        # Spark's own way first where there are many; it has none for Avro.
        if len(files) > MOST_FILES and form != "avro":
            by_spark = _merged_by_spark(reader, path, types)
            if by_spark is not None:
                return by_spark
        if several:
            try:
                looked_at = columns_of(files, form)
            except Unreadable:
                # Spark may know a file system that pyarrow does not.
                if form == "avro":
                    looked_at = [_told_by_spark(spark, form, file) for file in files]
                else:
                    by_spark = _merged_by_spark(reader, path, types)
                    if by_spark is None:
                        raise
                    return by_spark
            wanted = (merged(spark, form, wanted, looked_at) if looked_at else None) or wanted
    return _read(reader, path, found, wanted)


def _told_by_spark(spark: SparkSession, form: str, file: str) -> FileColumns:
    schema = _schema_of(spark, form, file)
    types = tuple(field.dataType.simpleString() for field in schema.fields)
    return FileColumns(file, tuple(schema.names), types)


def _within(
    spark: SparkSession, path: str, files: Sequence[str], scope: Scope, types: Mapping[str, StructField]
) -> Sequence[str]:
    """The files of these partitions by the names of their folders; by Spark, where one does not tell."""
    held = [[is_held(file, one, types) for one in scope] for file in files]
    if any(None in each for each in held):
        return within(spark, listing(spark, path, types), scope, only)
    return [file for file, each in zip(files, held, strict=True) if True in each]


def is_held(file: str, partition: Mapping[str, str], types: Mapping[str, StructField]) -> bool | None:
    """Whether a file lies in a partition; None where the text of its folder may be read in several ways."""
    told, answers = named_folders(file), []
    for name, wanted in partition.items():
        text, kind = told.get(name.lower()), types.get(name.lower())
        canonical = CANONICAL_TEXTS.get(kind.dataType.typeName()) if kind is not None else None
        if (
            text is None
            or canonical is None
            or not canonical.fullmatch(text)
            or not canonical.fullmatch(wanted)
        ):
            return None
        answers.append(text == wanted)
    return all(answers)


def named_folders(file: str) -> dict[str, str]:
    """What the names of a file's folders say of columns, by their lower case."""
    # The address of a file escapes once more what the names of its folders escape.
    return storage.named_folders(unquote(urlsplit(file).path))


# Texts of which no other one means the same.
CANONICAL_TEXTS = {
    "string": re.compile(r"[A-Za-z0-9 .:_-]*"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    **dict.fromkeys(("byte", "short", "integer", "long"), re.compile(r"0|-?[1-9]\d*")),
}


def _typed(field: StructField, types: Mapping[str, StructField]) -> StructField:
    from pyspark.sql.types import StructField

    known = types.get(field.name.lower())
    return field if known is None else StructField(field.name, known.dataType)


def _read(reader: DataFrameReader, path: str, found: DataFrame | None, wanted: StructType) -> DataFrame:
    """What was read, or once more, where the columns are others or have notes."""

    def told(schema: StructType) -> list[tuple[Any, ...]]:
        return [(field.name, field.dataType, field.metadata or {}) for field in schema.fields]

    return (
        found
        if found is not None and told(found.schema) == told(wanted)
        else reader.schema(wanted).load(path)
    )


def _merged_by_spark(
    reader: DataFrameReader, path: str, types: Mapping[str, StructField]
) -> DataFrame | None:
    """By Spark's tasks, which do not merge files that differ in a type; None then."""
    from pyspark.sql.types import StructType

    found = attempt(lambda: reader.option("mergeSchema", "true").load(path))
    reader.option("mergeSchema", "false")
    if isinstance(found, Failure):
        return None
    return _read(reader, path, found, StructType([_typed(field, types) for field in found.schema.fields]))


def merged(
    spark: SparkSession, form: str, schema: StructType, looked_at: list[FileColumns]
) -> StructType | None:
    """The columns of one file with those that only others have, as Spark reads these; None if all are alike.

    A column that some files lack, or have with another type, has a note that says how many. Names are
    compared without case.
    """
    from pyspark.sql.types import BinaryType, StructField, StructType

    held: dict[str, dict[str, list[str]]] = {}
    for file in looked_at:
        for name, kind in dict(zip(map(str.lower, file.names), file.types, strict=True)).items():
            held.setdefault(name, {}).setdefault(kind, []).append(file.address)
    folders = {name for file in looked_at for name in named_folders(file.address)}
    own = {field.name.lower() for field in schema.fields}
    alike = all([len(looked_at)] == [len(files) for files in kinds.values()] for kinds in held.values())
    placed = folders - held.keys()
    if alike and own - placed == held.keys():
        return None
    read: dict[str, dict[str, StructField]] = {}

    def as_read(file: str, name: str) -> StructField:
        if file not in read:
            found = attempt(lambda: _schema_of(spark, form, file))
            if isinstance(found, Failure):
                note = unreadable(f"Spark does not read {unquote(file)}: {found.message}")
                return StructField(name, BinaryType(), metadata=note)
            read[file] = {field.name.lower(): field for field in found.fields}
        return read[file][name]

    # Partition columns stand in no file, and last.
    fields = {field.name.lower(): field for field in schema.fields if field.name.lower() in held}
    storage = [field for field in schema.fields if field.name.lower() in placed]
    for name, kinds in held.items():
        by_type = list(kinds.values())
        field = fields.get(name) or as_read(by_type[0][0], name)
        # What stands in the names of folders too, Spark takes from there.
        several = len(by_type) > 1 and name not in folders
        types = [(as_read(files[0], name), len(files)) for files in by_type] if several else []
        fields[name] = _joined(field, types, sum(map(len, by_type)), len(looked_at), widening(spark.version))
    return StructType([*fields.values(), *storage])


def _schema_of(spark: SparkSession, form: str, file: str) -> StructType:
    try:
        return reader_of(spark, form).option("__globPaths__", "false").load([unquote(file)]).schema
    except spark_errors() as error:
        told = without_illegal(file) if form == "parquet" and _of_a_type(error) else None
        if told is None:
            raise
        return told


def _joined(
    field: StructField, types: Sequence[tuple[StructField, int]], number: int, files: int, wider: Leaf
) -> StructField:
    """A column of so many files, of a type that holds as many of `types` as one can, with a note."""
    from pyspark.sql.types import StructField

    refused = next((other.metadata for other, _ in types if other.metadata), None)
    if refused is not None:
        return StructField(field.name, field.dataType, nullable=True, metadata=refused)
    kinds = [(from_spark_json(other.dataType.jsonValue()), count) for other, count in types]
    kind = whole = from_spark_json(field.dataType.jsonValue())
    for other, _ in kinds:
        whole = joined(whole, other, wider)
    others = [
        (known.dataType.jsonValue(), count)
        for (known, count), (other, _) in zip(types, kinds, strict=True)
        if not holds(whole, other)
    ]
    merged_type = field.dataType if whole == kind else spark_type(whole)
    metadata = {**of_files(number, files, others), **(field.metadata or {})}
    return StructField(field.name, merged_type, nullable=True, metadata=metadata)


def _of_a_type(error: Exception) -> bool:
    return any(sign in str(error) for sign in ILLEGAL)


def without_illegal(file: str) -> StructType | None:
    """The columns of a Parquet file of which Spark refuses a type; None where pyarrow cannot tell the others.

    A column of such a type is one of bytes here, with a note that says why: Spark reads the others, and no
    clause about this one has an answer.
    """
    import pyarrow.parquet as pq
    from pyspark.sql.types import BinaryType, StructField, StructType

    try:
        with opened(file) as source:
            columns = parquet_columns(pq.ParquetFile(source).schema)
    except NOT_OPENED:
        return None
    return StructType(
        [
            StructField(column.name, spark_type(column.type))
            if column.type is not None
            else StructField(column.name, BinaryType(), nullable=True, metadata=unreadable(column.problem))
            for column in columns
        ]
    )


# Partitions that lie beside their table, read together with those below it.

# Each folder is a plan of its own; beyond so many, Spark plans for longer than it reads.
MOST_FOLDERS = 200


def for_hadoop(path: str) -> str:
    """The address as Hadoop's own client for S3 has it, with the scheme s3a."""
    return f"s3a://{path.removeprefix('s3://')}" if path.startswith("s3://") else path


def in_scope(
    placed: Sequence[PlacedPartition], scope: Sequence[Mapping[str, str]], types: Mapping[str, StructField]
) -> tuple[PlacedPartition, ...]:
    """Return those that may be among the partitions of a scope; none of these stands for all.

    `types` are those of the partition columns, by their lower case.
    """
    return tuple(
        partition
        for partition in placed
        if not scope
        or any(is_held(f"{quote(partition.folder)}/", wanted, types) is not False for wanted in scope)
    )


def united(
    name: str,
    below: DataFrame | None,
    placed: Sequence[PlacedPartition],
    keys: Sequence[str],
    read: Callable[[str], DataFrame],
) -> DataFrame:
    """The rows below the table but for those of the placed partitions, and the rows of these.

    `below` is None where no other partition lies below the table. `read` opens all that lies below a folder.

    Raises Unreadable for more folders than Spark can plan, and for one that is not named as its partition.
    """
    roots: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for partition in placed:
        root = partition.root(keys)
        if root is None:
            raise Unreadable(
                f"{name}: {partition.folder} is not named as the partition that was published there.",
                "Publish it from a folder that is named so.",
            )
        roots[root].append(dict(partition.values))
    if len(roots) > MOST_FOLDERS:
        raise Unreadable(
            f"{name}: its partitions were published from {len(roots):,} folders, more than {MOST_FOLDERS}.",
            "Stage below one folder, or name the catalog that has them as the contract's server.",
        )
    frames = [only(read(for_hadoop(root)), partitions) for root, partitions in roots.items()]
    if below is not None:
        frames.insert(0, without(below, [dict(partition.values) for partition in placed]))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)
