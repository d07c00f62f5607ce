"""The files of a dataset as Spark lists them, and their partition columns."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from dq.contracts.layout import HIVE, Layout, named_folders, unescaped
from dq.contracts.outcome import ReadError, pluralize
from dq.contracts.sql import text as sql
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.session import attempt
from dq.lake.storage import is_data_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructField, StructType


Scope = Sequence[Mapping[str, str]]
FilterPartitions = Callable[["DataFrame", Scope], "DataFrame"]

_GLOB = re.compile(r"/[^/]*[*?\[{]")
_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
# Hive's value for NULL in paths.
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Listing:
    """Addresses of files as URIs, and the partition columns in their paths.

    Spark finds these columns itself in Hive's `layout`; in another one they are computed from the path of
    each row's file. `is_complete` is False if `path` has other data files than these; `outside` are those
    that are not in the layout, if all were listed.
    """

    path: str
    base: str
    files: tuple[str, ...]
    partitions: tuple[StructField, ...]
    layout: Layout = HIVE
    is_complete: bool = True
    outside: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Lower-case names of the partition columns."""
        return frozenset(field.name.lower() for field in self.partitions)

    def columns(self) -> list[Column]:
        """Return the partition columns as Spark expressions."""
        from pyspark.sql.functions import col

        return [col(sql.name(field.name)) for field in self.partitions]

    def schema(self, fields: Sequence[StructField]) -> StructType:
        """Return the schema to read files with these columns."""
        from pyspark.sql.types import StructType

        return StructType([*fields, *(() if self.layout else self.partitions)])

    def values_of(self, file: str) -> dict[str, str] | None:
        """Return the values in a file's path by lower-case column, or None if it lies in no partition."""
        return values_in_path(file, self.path, self.layout)

    def with_keys(self, frame: DataFrame) -> DataFrame:
        """Return the frame of these files with the partition columns that Spark does not find itself."""
        if not self.layout:
            return frame
        from pyspark.sql.functions import col

        data = [col(sql.name(name)) for name in frame.columns if name.lower() not in self.names]
        return frame.select(*data, *(self._key(field) for field in self.partitions))

    def _key(self, field: StructField) -> Column:
        """Return a partition column as an expression of the path of a row's file."""
        from pyspark.sql.functions import array, element_at, lit, map_from_arrays, nullif, when

        parts = {
            directive: self._group(number)
            for number, (column, directive) in enumerate(self.layout.groups, 1)
            if column.lower() == field.name.lower()
        }
        if "" not in parts:
            return _time(parts, self.layout.precision(field.name)).cast(field.dataType).alias(field.name)
        text = parts[""]
        escaped = sorted(
            {raw for file in self.files if "%" in unquote(file) for raw in self._raw_values(file, field.name)}
        )
        if escaped:
            read = map_from_arrays(
                array(*map(lit, escaped)), array(*(lit(unescaped(raw)) for raw in escaped))
            )
            text = when(text.isin(escaped), element_at(read, text)).otherwise(text)
        return nullif(text, lit(_NULL)).cast(field.dataType).alias(field.name)

    def _group(self, number: int) -> Column:
        from pyspark.sql.functions import expr, regexp_extract

        # The path is URL-encoded, where a plus sign is itself.
        decoded = expr("url_decode(replace(_metadata.file_path, '+', '%2B'))")
        root = _root_text(self.path)
        below = f"^.*?{re.escape(root)}/{self.layout.pattern}/"
        return regexp_extract(decoded, below, number)

    def _raw_values(self, file: str, name: str) -> Iterator[str]:
        """Yield a value as it is written in a file's path."""
        match = re.match(f"{self.layout.pattern}/", _below(file, self.path))
        for (column, _), text in zip(self.layout.groups, match.groups() if match else (), strict=False):
            if column.lower() == name.lower() and "%" in text:
                yield text


def _time(parts: Mapping[str, Column], precision: str) -> Column:
    """Return the text of a time from its directives, as `Layout.partition_of` writes it."""
    from pyspark.sql.functions import concat, concat_ws, lit

    if "F" in parts:
        date = parts["F"]
    elif "j" in parts:
        first = concat(parts["Y"], lit("-01-01")).cast("date")
        date = (first + (parts["j"].cast("int") - 1)).cast("string")
    else:
        date = concat_ws("-", parts["Y"], parts.get("m", lit("01")), parts.get("d", lit("01")))
    if precision in ("year", "month", "day"):
        return date
    clock = concat_ws(":", parts["H"], parts.get("M", lit("00")), parts.get("S", lit("00")))
    return concat_ws(" ", date, clock)


def reader_of(spark: SparkSession, file_format: str) -> DataFrameReader:
    """Return a reader of a format that fails for corrupt or vanished files.

    Sessions may be configured to skip such files, but a check must not miss rows silently.
    """
    return spark.read.format(file_format).options(ignoreCorruptFiles="false", ignoreMissingFiles="false")


def base_path(path: str) -> str:
    """Return the folder before the first pattern of a path."""
    return _GLOB.split(path, maxsplit=1)[0]


def data_files(addresses: Iterable[str]) -> list[str]:
    """Return the files that Spark reads rows from, of those that it lists.

    It also lists summary files (`_metadata`, `_common_metadata`) and files next to partition folders, but
    reads no rows from them.
    """
    data = [address for address in addresses if is_data_name(unquote(address).rpartition("/")[2])]
    in_partitions = [address for address in data if named_folders(unquote(urlsplit(address).path))]
    return in_partitions or data


def values_in_path(file: str, path: str, layout: Layout) -> dict[str, str] | None:
    """Return the values in the path of a file of the table at `path`, by lower-case column, or None if it
    lies in no partition.
    """
    # Folder names are escaped, and the address is URL-encoded in addition.
    if not layout:
        return named_folders(unquote(urlsplit(file).path))
    return layout.values_of_file(_below(file, path))


def _below(file: str, path: str) -> str:
    """Return the path of a file below the table's folder, or "" if it is elsewhere."""
    root, place = f"{_root_text(path)}/", _root_text(unquote(file))
    if not root.startswith("//"):
        # The session's default file system may have a host.
        place = re.sub("^//[^/]*", "", place)
    return place.removeprefix(root) if place.startswith(root) else ""


def _root_text(path: str) -> str:
    """Return an address without scheme: `/folder` or `//bucket/folder`."""
    match = _SCHEME.match(path)
    if match is None:
        return os.path.abspath(path)  # noqa: PTH100  # links must stay, as they do in Spark's addresses
    address = path[match.end() :].rstrip("/")
    return address if match[1].lower() != "file" else f"/{address.lstrip('/')}"


def listing(
    spark: SparkSession,
    path: str,
    types: Mapping[str, StructField],
    layout: Layout = HIVE,
    scope: Scope = (),
) -> Listing:
    """List the files at a path. `types` are the contract's types of partition columns, by lower-case name.

    In a layout other than Hive's, only those of the partitions in `scope` are listed (empty: all). Raises
    Spark's error if the path does not exist, and ReadError if there are files and none is in the layout.
    """
    if layout:
        return _layout_listing(spark, path, types, layout, scope)
    base = base_path(path)
    reader = spark.read.format("text")
    frame = (reader.option("basePath", base) if base != path else reader).load(path)
    folder_fields = [field for field in frame.schema.fields if field.name != "value"]
    partitions = tuple(types.get(field.name.lower(), field) for field in folder_fields)
    return Listing(path, base, tuple(sorted(data_files(frame.inputFiles()))), partitions)


def _layout_listing(
    spark: SparkSession, path: str, types: Mapping[str, StructField], layout: Layout, scope: Scope
) -> Listing:
    from pyspark.sql.types import StringType, StructField

    fields = tuple(types.get(column.lower(), StructField(column, StringType())) for column in layout.columns)
    folders = _folders_in_scope(path, layout, scope) if _has_one_spelling(fields, layout) else []
    addresses = _existing_files(spark, folders) if folders else []
    if addresses:
        is_complete = False
    else:
        addresses = _recursive(spark, [path]).inputFiles()
        is_complete = True
    data = [file for file in addresses if is_data_name(unquote(file).rpartition("/")[2])]
    in_layout = [file for file in data if values_in_path(file, path, layout) is not None]
    if data and not in_layout:
        example = _below(data[0], path).rpartition("/")[0] or "."
        raise ReadError(
            f"no folder of {path} is one of the layout {layout.template!r}, e.g. {example!r}.",
            "Correct the layout of the server, or its location.",
        )
    chosen = [file for file in in_layout if _may_be_in(values_in_path(file, path, layout), layout, scope)]
    return Listing(
        path,
        path,
        tuple(sorted(chosen)),
        fields,
        layout,
        is_complete and len(chosen) == len(data),
        tuple(sorted(set(data) - set(in_layout))) if is_complete else (),
    )


def note_on_outside(all_files: Listing) -> str:
    """Return a note on the files that are not in the layout, or ""."""
    if not all_files.outside:
        return ""
    example = _below(all_files.outside[0], all_files.path)
    return (
        f"{pluralize(len(all_files.outside), 'file')} not in the layout {all_files.layout.template!r} left "
        f"out, e.g. {example!r}."
    )


def _may_be_in(values: Mapping[str, str] | None, layout: Layout, scope: Scope) -> bool:
    """Return whether a file may be in the scope, by its times: other values may have several texts."""
    return not scope or any(
        all(
            (values or {}).get(name.lower()) == text or not layout.precision(name)
            for name, text in layout.normalized(partition.items())
        )
        for partition in scope
    )


def _has_one_spelling(fields: Iterable[StructField], layout: Layout) -> bool:
    """Return whether each value has one folder: not e.g. an integer, whose folders may be `1` and `01`."""
    return all(layout.precision(field.name) or field.dataType.typeName() == "string" for field in fields)


def _folders_in_scope(path: str, layout: Layout, scope: Scope) -> list[str]:
    """Return the folders of the partitions, or [] if they are not known without a listing."""
    try:
        return [f"{path.rstrip('/')}/{layout.folder_of(partition.items())}" for partition in scope]
    except ValueError:
        return []


def _recursive(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    reader = spark.read.format("text").option("recursiveFileLookup", "true")
    return reader.option("__globPaths__", "false").load(list(paths))


def _existing_files(spark: SparkSession, folders: Sequence[str]) -> list[str]:
    """Return the files in those of the folders that exist."""
    together = attempt(lambda: _recursive(spark, folders).inputFiles())
    if not isinstance(together, Failure):
        return list(together)
    if len(folders) == 1:
        return []
    # Mostly few are missing, and each listing is a job.
    middle = len(folders) // 2
    return _existing_files(spark, folders[:middle]) + _existing_files(spark, folders[middle:])


def files_in_scope(
    spark: SparkSession, all_files: Listing, scope: Scope, filter_partitions: FilterPartitions
) -> tuple[str, ...]:
    """Return the files of the partitions in `scope`, or all files if it is empty. No content is read."""
    if not scope or not all_files.partitions:
        return all_files.files
    from pyspark.sql.types import BinaryType, LongType, StringType, StructField, TimestampType

    file_fields = (
        StructField("path", StringType()),
        StructField("modificationTime", TimestampType()),
        StructField("length", LongType()),
        StructField("content", BinaryType()),
    )
    frame = load(
        spark.read.format("binaryFile").schema(all_files.schema(file_fields)), all_files, all_files.files
    )
    matching = {_normalized(row.path) for row in filter_partitions(frame, scope).select("path").collect()}
    return tuple(file for file in all_files.files if _normalized(unquote(file)) in matching)


def _normalized(address: str) -> str:
    """Normalize the slashes after the scheme: Spark uses both file:/ and file:///."""
    return re.sub(r"^(\w+):/+", r"\1:/", address)


def load(reader: DataFrameReader, all_files: Listing, files: Sequence[str]) -> DataFrame:
    """Load some of the files with a reader that has format and schema.

    If these are all files, they are loaded by their common path, which spares Spark a listing job.
    """
    if all_files.layout:
        return all_files.with_keys(open_files(reader, all_files, files))
    if all_files.base != all_files.path:
        # Without basePath, a path with a glob loses the partition columns in place of the glob.
        reader = reader.option("basePath", all_files.base)
    if len(files) == len(all_files.files):
        frame = reader.load(all_files.path)
        if set(data_files(frame.inputFiles())) == set(files):
            return frame
    if all_files.partitions:
        reader = reader.option("basePath", all_files.base)
    # A bracket in a file name is not a pattern.
    return reader.option("__globPaths__", "false").load([unquote(file) for file in files])


def open_files(reader: DataFrameReader, all_files: Listing, files: Sequence[str]) -> DataFrame:
    """Load some of the files without partition columns."""
    reader = reader.option("recursiveFileLookup", "true").option("__globPaths__", "false")
    is_all = all_files.is_complete and len(files) == len(all_files.files)
    return reader.load([all_files.path] if is_all else [unquote(file) for file in files])
