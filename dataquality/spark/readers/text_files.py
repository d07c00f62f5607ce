"""The files of a dataset as Spark lists them, with the first bytes of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dq.contracts.shared.errors import Unreadable
from dq.contracts.sql import text as sql
from dq.lake.paths import is_data_name, named_folders

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructField

Scope = Sequence[Mapping[str, str]]
Narrow = Callable[["DataFrame", Scope], "DataFrame"]

_GLOB = re.compile(r"/[^/]*[*?\[{]")
_AT_A_TIME = 16
# A first line that is longer is asked for once more.
_HEAD, _LONGER_HEAD = 1 << 16, 1 << 24
_PACKED = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate", ".xz", ".br")


@dataclass(frozen=True, slots=True)
class Listing:
    """The addresses of files as URIs, and the partition columns that Spark finds in their paths."""

    path: str
    base: str
    files: tuple[str, ...]
    partitions: tuple[StructField, ...]

    @property
    def names(self) -> frozenset[str]:
        """The partition columns in lower case."""
        return frozenset(field.name.lower() for field in self.partitions)

    def columns(self) -> list[Column]:
        """The partition columns as expressions of Spark."""
        from pyspark.sql.functions import col

        return [col(sql.name(field.name)) for field in self.partitions]


def reader_of(spark: SparkSession, form: str) -> DataFrameReader:
    """Reads files of a format, and fails at one that is broken or goes away meanwhile.

    A session may be set to pass over those, for jobs that would rather go on: nobody would know what a check
    has not read.
    """
    return spark.read.format(form).options(ignoreCorruptFiles="false", ignoreMissingFiles="false")


def base_of(path: str) -> str:
    """The folder below which a path with a pattern names partitions."""
    return _GLOB.split(path, maxsplit=1)[0]


def with_rows(addresses: Iterable[str]) -> list[str]:
    """The files that Spark reads rows from, of those that it lists.

    It lists summaries of footers (`_metadata`, `_common_metadata`) next to them, and reads no row of these,
    nor of files that lie beside the folders of partitions.
    """
    data = [address for address in addresses if is_data_name(unquote(address).rpartition("/")[2])]
    in_partitions = [address for address in data if named_folders(unquote(urlsplit(address).path))]
    return in_partitions or data


def listing(spark: SparkSession, path: str, types: Mapping[str, StructField]) -> Listing:
    """The files at a path. `types` are the contract's of partition columns, by their lower case.

    Raises what Spark raises where there is no such path.
    """
    base = base_of(path)
    reader = spark.read.format("text")
    found = (reader.option("basePath", base) if base != path else reader).load(path)
    own = [field for field in found.schema.fields if field.name != "value"]
    partitions = tuple(types.get(field.name.lower(), field) for field in own)
    return Listing(path, base, tuple(sorted(with_rows(found.inputFiles()))), partitions)


def within(spark: SparkSession, all_files: Listing, scope: Scope, narrow: Narrow) -> tuple[str, ...]:
    """The files of these partitions; all of them where none are asked for. No file's content is read."""
    if not scope or not all_files.partitions:
        return all_files.files
    from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

    own = (
        StructField("path", StringType()),
        StructField("modificationTime", TimestampType()),
        StructField("length", LongType()),
        StructField("content", BinaryType()),
    )
    schema = StructType([*own, *all_files.partitions])
    found = load(spark.read.format("binaryFile").schema(schema), all_files, all_files.files)
    kept = {_plain(row.path) for row in narrow(found, scope).select("path").collect()}
    return tuple(file for file in all_files.files if _plain(unquote(file)) in kept)


def _plain(address: str) -> str:
    """Spark writes file:/ in one place and file:/// in another."""
    return re.sub(r"^(\w+):/+", r"\1:/", address)


def load(reader: DataFrameReader, all_files: Listing, files: Sequence[str]) -> DataFrame:
    """The rows of some of the files, by a reader with its format and schema.

    All of them are asked for by their path, which costs no job that lists them again.
    """
    if all_files.base != all_files.path:
        # Without it, a path with a glob loses the partition columns that stand where the glob does.
        reader = reader.option("basePath", all_files.base)
    if len(files) == len(all_files.files):
        found = reader.load(all_files.path)
        if set(with_rows(found.inputFiles())) == set(files):
            return found
    if all_files.partitions:
        reader = reader.option("basePath", all_files.base)
    # A name with a bracket is a name, and no pattern.
    return reader.option("__globPaths__", "false").load([unquote(file) for file in files])


def heads(spark: SparkSession, files: Sequence[str], size: int = _HEAD) -> list[bytes]:
    """The first bytes of each file, unpacked where its name says that it is packed. Raises Unreadable."""
    threads = 1 if all(_local(file) for file in files) else _AT_A_TIME
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda file: _head(spark, file, size), files))


def longer_head(spark: SparkSession, file: str) -> bytes:
    """Many more of the first bytes, for a file whose first line is that long. Raises Unreadable."""
    return _head(spark, file, _LONGER_HEAD)


def tail(spark: SparkSession, file: str, size: int = _HEAD) -> bytes | None:
    """The last bytes of a file, None of a packed one. Raises Unreadable."""
    path = _local(file)
    if file.lower().endswith(_PACKED):
        return None
    with _readable(file):
        if path is not None:
            with open(path, "rb") as source:  # noqa: PTH123  # Spark's path, not one of this program
                source.seek(max(0, source.seek(0, 2) - size))
                return source.read()
        _, conf, there = _in_hadoop(spark, file)
        system = there.getFileSystem(conf)
        with closing(system.open(there)) as stream:
            stream.seek(max(0, system.getFileStatus(there).getLen() - size))
            return bytes(stream.readNBytes(size))


def _local(file: str) -> str | None:
    parts = urlsplit(file)
    return unquote(parts.path) if parts.scheme in ("", "file") and not parts.netloc else None


def _head(spark: SparkSession, file: str, size: int) -> bytes:
    path = _local(file)
    with _readable(file):
        if path is not None and not path.lower().endswith(_PACKED):
            with open(path, "rb") as source:  # noqa: PTH123  # Spark's path, not one of this program
                return source.read(size)
        hadoop, conf, there = _in_hadoop(spark, file)
        codec = hadoop.io.compress.CompressionCodecFactory(conf).getCodec(there)
        with closing(there.getFileSystem(conf).open(there)) as stream:
            return bytes((stream if codec is None else codec.createInputStream(stream)).readNBytes(size))


@contextmanager
def _readable(file: str) -> Iterator[None]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs

    try:
        yield
    except (OSError, Py4JError) as error:
        raise Unreadable(f"{unquote(file)} cannot be read.", "Deliver this file again.") from error


def _in_hadoop(spark: SparkSession, file: str) -> tuple[Any, Any, Any]:
    """Hadoop's classes, its configuration, and the file as its path."""
    context: Any = spark.sparkContext
    hadoop = context._jvm.org.apache.hadoop
    path = hadoop.fs.Path(context._jvm.java.net.URI(file))
    return hadoop, context._jsc.hadoopConfiguration(), path
