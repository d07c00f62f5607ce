"""CSV and JSON files as DataFrames: the files as Spark lists them, their columns and values."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dq.contracts.access.data_location import TextFormat
from dq.contracts.outcome import Unreadable
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.column import field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark import schema
from dq.dataquality.spark.schema import struct_type, type_ddl
from dq.dataquality.spark.session import answered, attempt, forget_archives
from dq.dataquality.sql_values import cast
from dq.dataquality.text import (
    ONE_END,
    STRING,
    TWO_ENDS,
    MalformedJson,
    SeenObjects,
    carried,
    header_of,
    in_line,
    is_array,
    objects,
)
from dq.lake.storage import is_data_name, named_folders

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructField


# The files of a dataset as Spark lists them, with the first bytes of each.

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


# CSV as a DataFrame: columns by the names of every file's header, values exactly as the contract's types.

_DAMAGED = "\ufffd"
_NOTHING = "\x00dq: nothing\x00"
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class _Reading:
    """The files of a dataset, of which `scope` are looked at wholly before any is judged."""

    spark: SparkSession
    form: TextFormat
    promised: DataType
    all_files: Listing
    headers: dict[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns of all files, each in the spelling of the contract, else of the first file."""
        found: dict[str, str] = {}
        for header in self.headers.values():
            for name in header:
                found.setdefault(name.lower(), self._spelt(name))
        return tuple(name for low, name in found.items() if low not in self.all_files.names)

    def _spelt(self, name: str) -> str:
        return next((own for own in self.promised.names if own.lower() == name.lower()), name)

    def kind(self, name: str) -> DataType:
        return carried(field(self.promised, name) or STRING)


def csv_frame(
    spark: SparkSession, all_files: Listing, scope: Sequence[str], form: TextFormat, promised: DataType
) -> DataFrame | None:
    """The rows of the files; None where none of them has a header.

    A column whose values in `scope` all are of the contract's type has it, with the exact value; one with
    another value is of texts. Outside of `scope`, a value that is none of the type raises where it is read. A
    column that a file lacks is NULL there. Raises Unreadable for a row with more or fewer values than its
    file has columns, for quotes that do not close, and for bytes that are no text in the encoding.
    """
    reading = _Reading(spark, form, promised, all_files, _headers(spark, all_files.files, form, promised))
    if not reading.headers:
        return None
    looked_at = [file for file in reading.headers if file in set(scope)]
    unfit, rows = _looked_at_cells(reading, looked_at)
    frame = _rows(reading, list(reading.headers))
    return frame.select(*_typed(reading, looked_at, unfit, rows), *all_files.columns())


def _headers(
    spark: SparkSession, files: Sequence[str], form: TextFormat, promised: DataType
) -> dict[str, tuple[str, ...]]:
    """The names of the columns by file; a file without a byte has none, and no rows."""
    found = {}
    for file, head in zip(files, heads(spark, files), strict=True):
        if not head:
            continue
        if not form.header:
            found[file] = promised.names
            continue
        names = _header(spark, file, head, form)
        if names is not None:
            found[file] = names
    return found


def _header(spark: SparkSession, file: str, head: bytes, form: TextFormat) -> tuple[str, ...] | None:
    name = unquote(file)
    try:
        return _first_row(head, name, form)
    except (Unreadable, UnicodeError):
        # It may be cut off in the middle.
        longer = longer_head(spark, file)
        try:
            return _first_row(longer, name, form)
        except UnicodeError as error:
            raise Unreadable(f"{name} is not text in {form.encoding}.", "Write it in UTF-8.") from error


def _first_row(head: bytes, name: str, form: TextFormat) -> tuple[str, ...] | None:
    text = codecs.getincrementaldecoder(form.encoding)().decode(head)
    end = max(text.rfind("\n"), text.rfind("\r"))
    whole = text if end < 0 else text[: end + 1]
    if end < 0 and len(head) >= 1 << 16:
        raise Unreadable(f"{name} has a first line of more than {len(head):,} bytes.", "Is it CSV?")
    return header_of(whole, name, form)


def _rows(reading: _Reading, files: Sequence[str], *more: str) -> DataFrame:
    """The texts of all files by name, whatever the order of their columns; partitions with their types."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        groups.setdefault(reading.headers[file], []).append(file)
    frames = [_header_group(reading, header, members, more) for header, members in groups.items()]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def _header_group(
    reading: _Reading, header: tuple[str, ...], files: Sequence[str], more: Sequence[str]
) -> DataFrame:
    from pyspark.sql.functions import expr, lit
    from pyspark.sql.types import StringType, StructField, StructType

    # By number: a name may be empty, or that of a partition, whose value comes from the path.
    own = [StructField(f"_dq_{at}", StringType()) for at in range(len(header))]
    reader = reader_of(reading.spark, "csv").options(**_options(reading.form))
    frame = load(reader.schema(StructType([*own, *reading.all_files.partitions])), reading.all_files, files)
    at = {name.lower(): f"_dq_{index}" for index, name in enumerate(header)}
    nothing = lit(None).cast("string")
    columns = [
        (expr(_nullable(at[name.lower()], reading.form)) if name.lower() in at else nothing).alias(name)
        for name in reading.names
    ]
    last = {"_dq_last": f"_dq_{len(header) - 1} AS _dq_last"}
    others = [expr(last.get(one, one)) for one in more]
    return frame.select(*columns, *reading.all_files.columns(), *others)


def _nullable(column: str, form: TextFormat) -> str:
    return f"nullif({column}, {sql.text(form.null_text)})" if form.null_text else column


def _options(form: TextFormat) -> dict[str, str]:
    return {
        "sep": form.delimiter,
        "quote": form.quote,
        "escape": form.escape,
        "encoding": form.charset,
        "header": str(form.header).lower(),
        # Spark takes quoted texts for NULL too where they are the one for it: no file has this one.
        "nullValue": _NOTHING,
        "emptyValue": "",
        "mode": "FAILFAST",
        "multiLine": "true",
        # A row with too many values is seen only by who reads all of it.
        "columnPruning": "false",
        "unescapedQuoteHandling": "RAISE_ERROR",
        "enforceSchema": "true",
        "inferSchema": "false",
    }


def _value(reading: _Reading, name: str) -> str:
    return cast(reading.kind(name), sql.name(name))


def _looked_at_cells(reading: _Reading, files: Sequence[str]) -> tuple[dict[str, int], int]:
    """How many values of each column are none of its type, and how many rows there are. Raises Unreadable."""
    from pyspark.sql.functions import expr

    if not files:
        return {}, 0
    frame = _rows(reading, files, "input_file_name() AS _dq_file", "_dq_last")
    typed = [name for name in reading.names if reading.kind(name) != STRING]
    strange = " OR ".join(f"contains({sql.name(name)}, {sql.text(_DAMAGED)})" for name in reading.names)
    asked = [
        "count(1)",
        # A line that ends otherwise than the first leaves its carriage return with the last value.
        "count_if(endswith(_dq_last, '\r'))",
        f"count_if({strange or 'false'})",
        # Of one file, whose rows a task reads in their order.
        "last(_dq_last)",
        *(f"count_if({sql.name(name)} IS NOT NULL AND {_value(reading, name)} IS NULL)" for name in typed),
    ]
    grouped = frame.groupBy("_dq_file")
    counted = answered(lambda: grouped.agg(*(expr(one) for one in asked)).collect())
    if isinstance(counted, Failure):
        raise Unreadable(f"{_RAGGED}: {counted.message.rstrip('.')}.", _MEND_CSV)
    for file, _, returns, _, last, *_ in counted:
        if returns:
            raise Unreadable(f"{unquote(file)}: {TWO_ENDS}.", ONE_END)
        if _open_at_end(reading, file, last):
            raise Unreadable(f"{unquote(file)}: the quotes of a value are not closed.", _MEND_CSV)
    if any(row[3] for row in counted) and _damaged(reading, files):
        raise Unreadable(
            f"a CSV file is not text in {reading.form.encoding}.", "Correct 'encoding', or write it in UTF-8."
        )
    totals = [sum(column) for column in zip(*(row[5:] for row in counted), strict=True)]
    unfit = {name: number for name, number in zip(typed, totals, strict=False) if number}
    return unfit, sum(row[1] for row in counted)


_RAGGED = "a CSV file has a row with more or fewer values than columns, or quotes that do not close"
_MEND_CSV = (
    "Correct the file, or the server's 'csv' terms, which say how it is written; 'dq sample' names the line."
)


def _open_at_end(reading: _Reading, file: str, last: str | None) -> bool:
    """Whether the last value of a file has a quote before it and none behind, which Spark passes over."""
    form = reading.form
    end = tail(reading.spark, file)
    if last is None or end is None or not form.quote:
        return False
    text = end.decode(form.encoding, "replace").rstrip("\r\n")
    if text.endswith(form.quote):
        return False
    line = re.split(r"[\r\n]", text)[-1]
    # Without quotes, a value holds no delimiter and no line break.
    if any(sign in last for sign in (form.delimiter, "\n", "\r")):
        return True
    return line.endswith(form.quote + last)


def _damaged(reading: _Reading, files: Sequence[str]) -> bool:
    """Whether bytes were no text: Java puts the same sign for them that a file may hold rightly.

    Read byte by byte, a sign that stands in the file is its three bytes.
    """
    if reading.form.encoding.lower().replace("-", "").replace("_", "") != "utf8":
        return True
    written = "".join(chr(byte) for byte in _DAMAGED.encode())
    bytewise = replace(reading, form=replace(reading.form, encoding="iso-8859-1"))
    return _times(_rows(reading, files), reading.names, _DAMAGED) != _times(
        _rows(bytewise, files), reading.names, written
    )


def _times(frame: DataFrame, names: Sequence[str], sign: str) -> int:
    each = " + ".join(
        f"coalesce(length({sql.name(name)}) - length(replace({sql.name(name)}, {sql.text(sign)}, '')), 0)"
        for name in names
    )
    return int(frame.selectExpr(f"coalesce(sum({each}), 0)").collect()[0][0]) // len(sign)


def _typed(reading: _Reading, files: Sequence[str], unfit: dict[str, int], rows: int) -> list[Column]:
    from pyspark.sql.functions import col, expr

    made = []
    for name in reading.names:
        note: dict[str, Any] = {}
        holders = sum(name.lower() in {each.lower() for each in reading.headers[file]} for file in files)
        kind = reading.kind(name)
        if name in unfit:
            first = _first(reading, files, name)
            note = schema.unfit(unfit[name], rows, kind, first)
            value = col(sql.name(name))
        elif kind == STRING:
            value = col(sql.name(name))
        else:
            value = expr(_or_raise(reading, name))
        if 0 < holders < len(files):
            note = note or schema.of_files(holders, len(files))
        made.append(value.alias(name, metadata=note))
    return made


def _or_raise(reading: _Reading, name: str) -> str:
    """The value; where it is none of the type, reading it fails, since NULL would be a lie."""
    value, text = _value(reading, name), sql.name(name)
    said = sql.text(f"a value of {name} is no {reading.kind(name)}")
    return f"CASE WHEN {text} IS NULL THEN NULL ELSE coalesce({value}, raise_error({said})) END"


def _first(reading: _Reading, files: Sequence[str], name: str) -> list[tuple[object, str]]:
    frame = _rows(reading, files)
    broken = f"{sql.name(name)} IS NOT NULL AND {_value(reading, name)} IS NULL"
    found = frame.where(broken).selectExpr("input_file_name()", sql.name(name)).limit(_SHOWN).collect()
    return [(unquote(file).rpartition("/")[2], text) for file, text in found]


# JSON as a DataFrame: the keys that its objects have, and values exactly as the contract's types.
#
# Spark reads what a first look has found to be sound: it takes the last of two equal keys, passes over what
# follows an object, rounds decimals, and knows no other keys than it is told.

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_MEND = "Write one object per line, or all of them in one array; 'dq sample' names the line."


def json_frame(
    spark: SparkSession, all_files: Listing, scope: Sequence[str], form: TextFormat, promised: DataType
) -> DataFrame | None:
    """The rows of the files; None where no object is in them.

    The columns are the keys that the objects of `scope` have, at every depth; a column with a value that is
    none of the contract's type is of texts. The rest of the files is read by Spark alone, which raises for
    a value of another type. Raises Unreadable for what is no object by line or array of objects, a key that
    stands twice in one object, and keys that differ in case alone.
    """
    arrays = _arrays(spark, all_files.files, form)
    seen = _looked_at(spark, all_files, scope, arrays, form, promised)
    if not seen.rows:
        return None
    spelt, named = seen.shape.type(promised, spelt=True), seen.shape.type(promised)
    keep = [at for at, name in enumerate(named.names) if name.lower() not in all_files.names]
    spelt, named = _some(spelt, keep), _some(named, keep)
    pairs = zip(named.names, spelt.parts, strict=True)
    read = _some(spelt, range(len(keep)), [_read_as(name, kind, seen) for name, kind in pairs])
    frames = [
        _group(spark, all_files, members, read, form, whole=whole)
        for whole in (False, True)
        if (members := [file for file in all_files.files if (file in arrays) is whole])
    ]
    frame = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    return frame.select(*_columns(seen, spelt, named, read, promised), *all_files.columns())


def _some(struct: DataType, keep: Sequence[int], parts: Sequence[DataType] | None = None) -> DataType:
    chosen = parts if parts is not None else [struct.parts[at] for at in keep]
    return DataType("struct", (), tuple(chosen), tuple(struct.names[at] for at in keep))


def _arrays(spark: SparkSession, files: Sequence[str], form: TextFormat) -> frozenset[str]:
    """The files that are one text, rather than one for every line."""
    wide = "a".encode(form.encoding) != b"a"
    found = []
    for file, head in zip(files, heads(spark, files, 4096), strict=True):
        if head.startswith(_MARKS[0] if not wide else ()):
            head = head[3:]
        if wide or is_array(head.decode(form.encoding, "replace")):
            found.append(file)
    return frozenset(found)


def _looked_at(
    spark: SparkSession,
    all_files: Listing,
    scope: Sequence[str],
    arrays: frozenset[str],
    form: TextFormat,
    promised: DataType,
) -> SeenObjects:
    """What all objects of these files have. Raises Unreadable."""
    frames = []
    lines, wholes = [f for f in scope if f not in arrays], [f for f in scope if f in arrays]
    base = "input_file_name() AS file"
    if lines:
        reader = reader_of(spark, "text").option("lineSep", "\n")
        frames.append(load(reader, all_files, lines).selectExpr("CAST(value AS BINARY) AS text", base))
    if wholes:
        reader = reader_of(spark, "binaryFile")
        frames.append(load(reader, all_files, wholes).selectExpr("content AS text", base))
    seen = SeenObjects()
    for frame, whole in zip(frames, [False] * bool(lines) + [True] * bool(wholes), strict=True):
        look = partial(_look, encoding=form.encoding, promised=promised, whole=whole)
        told = attempt(lambda frame=frame, look=look: frame.mapInArrow(look, "seen STRING").collect())  # type: ignore[misc]
        if isinstance(told, Failure):
            raise Unreadable(f"JSON cannot be looked at: {told.message.rstrip('.')}.", _python(told.message))
        for row in told:
            part = json.loads(row.seen)
            if isinstance(part, str):
                raise Unreadable(part, _MEND)
            try:
                seen.merge(SeenObjects.of(part))
            except MalformedJson as error:
                raise Unreadable(f"the files of JSON differ: {error}.", _MEND) from error
    return seen


def _python(message: str) -> str:
    if "No module named" in message:
        return "Start Spark with PYSPARK_PYTHON set to a Python that has dq and pyarrow."
    return "Check that Spark may read it, and the format in the contract."


def _look(
    batches: Iterator[pa.RecordBatch], encoding: str, promised: DataType, whole: bool
) -> Iterator[pa.RecordBatch]:
    """What a task saw, or why it is no JSON, as a text in one row."""
    import pyarrow as pa

    seen: SeenObjects | str = SeenObjects()
    for batch in batches:
        if isinstance(seen, SeenObjects):
            texts, files = (batch.column(at).to_pylist() for at in (0, 1))
            seen = _added(seen, texts, files, encoding, promised, whole)
    told = json.dumps(seen if isinstance(seen, str) else seen.plain())
    yield pa.RecordBatch.from_pydict({"seen": [told]}, pa.schema([("seen", pa.string())]))
    forget_archives()


def _added(
    seen: SeenObjects, texts: list[bytes], files: list[str], encoding: str, promised: DataType, whole: bool
) -> SeenObjects | str:
    for text, file in zip(texts, files, strict=True):
        name = unquote(file).rpartition("/")[2]
        line = 0
        try:
            decoded = text.decode(encoding)
            if whole:
                for line, made in objects(decoded):
                    seen.add(promised, made, f"{name}:{line}")
            elif (one := in_line(decoded.removeprefix("\ufeff"))) is not None:
                seen.add(promised, one, name)
        except UnicodeError:
            return f"{unquote(file)} is not text in {encoding}."
        except MalformedJson as error:
            at = error.line or line
            return f"{unquote(file)}{f':{at}' if at else ''}: {error}."
    return seen


def _read_as(name: str, kind: DataType, seen: SeenObjects) -> DataType:
    """The type that Spark reads a column as: texts where values are of no type, and for keys of maps."""
    return STRING if name in seen.unfit else _keyed(carried(kind))


def _keyed(kind: DataType) -> DataType:
    parts = tuple(_keyed(part) for part in kind.parts)
    if kind.name == "map":
        parts = (STRING, parts[1])
    return DataType(kind.name, kind.numbers, parts, kind.names)


def _group(
    spark: SparkSession,
    all_files: Listing,
    files: Sequence[str],
    read: DataType,
    form: TextFormat,
    *,
    whole: bool,
) -> DataFrame:
    from pyspark.sql.types import StructType

    own = struct_type(read)
    reader = reader_of(spark, "json").option("mode", "FAILFAST").option("encoding", form.charset)
    reader = reader.option("multiLine", str(whole).lower())
    if not whole:
        reader = reader.option("lineSep", "\n")
    return load(reader.schema(StructType([*own.fields, *all_files.partitions])), all_files, files)


def _columns(
    seen: SeenObjects, spelt: DataType, named: DataType, read: DataType, promised: DataType
) -> Iterator[Column]:
    from pyspark.sql.functions import expr

    kinds = {name.lower(): part for name, part in zip(promised.names, promised.parts, strict=True)}
    for written, name, kind, found in zip(spelt.names, named.names, named.parts, read.parts, strict=True):
        wanted = STRING if name in seen.unfit else carried(kind)
        value = sql.name(written)
        if wanted != found:
            value = f"CAST({value} AS {type_ddl(wanted)})"
        note: dict[str, Any] = {}
        if bad := seen.unfit.get(name):
            note = schema.unfit(bad.count, seen.rows, carried(kinds[name.lower()]), bad.first)
        yield expr(value).alias(name, metadata=note)
