"""CSV and JSON files as DataFrames: file listing, columns and typed values."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dq.contracts.access.data_location import TextFormat
from dq.contracts.outcome import ReadError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.column import struct_field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark import schema
from dq.dataquality.spark.file_listing import Listing, load, reader_of
from dq.dataquality.spark.schema import struct_type, type_ddl
from dq.dataquality.spark.session import (
    SHARED_HINT,
    attempt,
    attempt_without_values,
    forget_archives,
    is_missing_for_executors,
)
from dq.dataquality.sql_values import cast
from dq.dataquality.text import (
    ONE_END,
    STRING,
    TWO_ENDS,
    JsonObservations,
    MalformedJson,
    carrier_type,
    is_array,
    object_in_line,
    objects,
    read_header,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession


# The first bytes of each file.

_PARALLEL_READS = 16
# Bytes read from the beginning of a file, and again if its first line is longer.
_HEAD_BYTES, _LONG_HEAD_BYTES = 1 << 16, 1 << 24
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate", ".xz", ".br")


def heads(spark: SparkSession, files: Sequence[str], size: int = _HEAD_BYTES) -> list[bytes]:
    """Return the first bytes of each file, decompressed by its suffix. Raises ReadError."""
    threads = 1 if all(_local(file) for file in files) else _PARALLEL_READS
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda file: _head(spark, file, size), files))


def longer_head(spark: SparkSession, file: str) -> bytes:
    """Return more of the first bytes, for a file with a long first line. Raises ReadError."""
    return _head(spark, file, _LONG_HEAD_BYTES)


def tail(spark: SparkSession, file: str, size: int = _HEAD_BYTES) -> bytes | None:
    """Return the last bytes of a file, or None if it is compressed. Raises ReadError."""
    path = _local(file)
    if file.lower().endswith(_COMPRESSED_SUFFIXES):
        return None
    with _readable(file):
        if path is not None:
            with open(path, "rb") as source:  # noqa: PTH123  # Spark's path, not one of this program
                source.seek(max(0, source.seek(0, 2) - size))
                return source.read()
        _, conf, hadoop_path = _in_hadoop(spark, file)
        system = hadoop_path.getFileSystem(conf)
        with closing(system.open(hadoop_path)) as stream:
            stream.seek(max(0, system.getFileStatus(hadoop_path).getLen() - size))
            return bytes(stream.readNBytes(size))


def _local(file: str) -> str | None:
    parts = urlsplit(file)
    return unquote(parts.path) if parts.scheme in ("", "file") and not parts.netloc else None


def _head(spark: SparkSession, file: str, size: int) -> bytes:
    path = _local(file)
    with _readable(file):
        if path is not None and not path.lower().endswith(_COMPRESSED_SUFFIXES):
            with open(path, "rb") as source:  # noqa: PTH123  # Spark's path, not one of this program
                return source.read(size)
        hadoop, conf, hadoop_path = _in_hadoop(spark, file)
        codec = hadoop.io.compress.CompressionCodecFactory(conf).getCodec(hadoop_path)
        with closing(hadoop_path.getFileSystem(conf).open(hadoop_path)) as stream:
            return bytes((stream if codec is None else codec.createInputStream(stream)).readNBytes(size))


@contextmanager
def _readable(file: str) -> Iterator[None]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs

    try:
        yield
    except (OSError, Py4JError) as error:
        raise ReadError(f"{unquote(file)} cannot be read.", "Deliver this file again.") from error


def _in_hadoop(spark: SparkSession, file: str) -> tuple[Any, Any, Any]:
    """Return Hadoop's package, its configuration, and the file as a Hadoop Path."""
    context: Any = spark.sparkContext
    hadoop = context._jvm.org.apache.hadoop
    path = hadoop.fs.Path(context._jvm.java.net.URI(file))
    return hadoop, context._jsc.hadoopConfiguration(), path


# CSV as a DataFrame: columns by the header of each file, values parsed as the contract's types.

_REPLACEMENT = "\ufffd"
_UNUSED_NULL = "\x00dq: nothing\x00"
_MAX_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class _Reading:
    """CSV files of a dataset with their headers."""

    spark: SparkSession
    text_format: TextFormat
    promised: DataType
    all_files: Listing
    headers: dict[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns of all files, spelled as in the contract, else as in the first file."""
        spellings: dict[str, str] = {}
        for header in self.headers.values():
            for name in header:
                spellings.setdefault(name.lower(), self._spelling(name))
        return tuple(name for lower_name, name in spellings.items() if lower_name not in self.all_files.names)

    def _spelling(self, name: str) -> str:
        return next((declared for declared in self.promised.names if declared.lower() == name.lower()), name)

    def type_of(self, name: str) -> DataType:
        return carrier_type(struct_field(self.promised, name) or STRING)


def csv_frame(
    spark: SparkSession, all_files: Listing, scope: Sequence[str], text_format: TextFormat, promised: DataType
) -> DataFrame | None:
    """Return the rows of the files, or None if none of them has a header.

    A column has the contract's type if all its values in `scope` are valid, else it is a string column.
    Outside of `scope`, reading an invalid value raises. Columns that a file lacks are NULL there.

    Raises ReadError for a row with more or fewer values than columns, unclosed quotes, and invalid encoding.
    """
    reading = _Reading(
        spark, text_format, promised, all_files, _headers(spark, all_files.files, text_format, promised)
    )
    if not reading.headers:
        return None
    scoped_files = [file for file in reading.headers if file in set(scope)]
    invalid_counts, rows = _inspect_cells(reading, scoped_files)
    frame = _rows(reading, list(reading.headers))
    return frame.select(*_typed_columns(reading, scoped_files, invalid_counts, rows), *all_files.columns())


def _headers(
    spark: SparkSession, files: Sequence[str], text_format: TextFormat, promised: DataType
) -> dict[str, tuple[str, ...]]:
    """Return the column names by file, without empty files."""
    headers = {}
    for file, head in zip(files, heads(spark, files), strict=True):
        if not head:
            continue
        if not text_format.header:
            headers[file] = promised.names
            continue
        names = _header(spark, file, head, text_format)
        if names is not None:
            headers[file] = names
    return headers


# First bytes of files of other formats.
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro"}


def _header(spark: SparkSession, file: str, head: bytes, text_format: TextFormat) -> tuple[str, ...] | None:
    name = unquote(file)
    try:
        return _first_row(head, name, text_format)
    except (ReadError, UnicodeError):
        # The header may be truncated.
        longer = longer_head(spark, file)
        try:
            return _first_row(longer, name, text_format)
        except UnicodeError as error:
            for magic, format_name in _MAGIC.items():
                if head.startswith(magic):
                    message = f"{name} is a file in the format {format_name}, not CSV."
                    raise ReadError(message, f"Set the format to {format_name}.") from error
            raise ReadError(f"{name} is not text in {text_format.encoding}.", "Write it in UTF-8.") from error


def _first_row(head: bytes, name: str, text_format: TextFormat) -> tuple[str, ...] | None:
    text = codecs.getincrementaldecoder(text_format.encoding)().decode(head)
    end = max(text.rfind("\n"), text.rfind("\r"))
    complete_lines = text if end < 0 else text[: end + 1]
    if end < 0 and len(head) >= 1 << 16:
        raise ReadError(f"{name} has a first line of more than {len(head):,} bytes.", "Check that it is CSV.")
    return read_header(complete_lines, name, text_format)


def _rows(reading: _Reading, files: Sequence[str], *extra_columns: str) -> DataFrame:
    """Return the string columns of all files by name, and the typed partition columns."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        groups.setdefault(reading.headers[file], []).append(file)
    frames = [_header_group(reading, header, members, extra_columns) for header, members in groups.items()]
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionByName(frame)
    return union


def _header_group(
    reading: _Reading, header: tuple[str, ...], files: Sequence[str], extra_columns: Sequence[str]
) -> DataFrame:
    from pyspark.sql.functions import expr, lit
    from pyspark.sql.types import StringType, StructField

    # Numbered, because a name may be empty or equal to a partition column.
    text_fields = [StructField(f"_dq_{index}", StringType()) for index in range(len(header))]
    reader = reader_of(reading.spark, "csv").options(**_options(reading.text_format))
    frame = load(reader.schema(reading.all_files.schema(text_fields)), reading.all_files, files)
    columns_by_name = {name.lower(): f"_dq_{index}" for index, name in enumerate(header)}
    null_column = lit(None).cast("string")
    columns = [
        (
            expr(_nullable(columns_by_name[name.lower()], reading.text_format))
            if name.lower() in columns_by_name
            else null_column
        ).alias(name)
        for name in reading.names
    ]
    last_column = {"_dq_last": f"_dq_{len(header) - 1} AS _dq_last"}
    extras = [expr(last_column.get(expression, expression)) for expression in extra_columns]
    return frame.select(*columns, *reading.all_files.columns(), *extras)


def _nullable(column: str, text_format: TextFormat) -> str:
    return f"nullif({column}, {sql.text(text_format.null_text)})" if text_format.null_text else column


def _options(text_format: TextFormat) -> dict[str, str]:
    return {
        "sep": text_format.delimiter,
        "quote": text_format.quote,
        "escape": text_format.escape,
        "encoding": text_format.charset,
        "header": str(text_format.header).lower(),
        # Spark would also turn quoted strings into NULL if they equal this value, so use one that no file
        # has.
        "nullValue": _UNUSED_NULL,
        "emptyValue": "",
        "mode": "FAILFAST",
        "multiLine": "true",
        # Spark only detects rows with too many values if it reads all columns.
        "columnPruning": "false",
        "unescapedQuoteHandling": "RAISE_ERROR",
        "enforceSchema": "true",
        "inferSchema": "false",
    }


def _value(reading: _Reading, name: str) -> str:
    return cast(reading.type_of(name), sql.name(name))


def _inspect_cells(reading: _Reading, files: Sequence[str]) -> tuple[dict[str, int], int]:
    """Return the number of invalid values of each column, and the number of rows. Raises ReadError."""
    from pyspark.sql.functions import expr

    if not files:
        return {}, 0
    frame = _rows(reading, files, "input_file_name() AS _dq_file", "_dq_last")
    typed = [name for name in reading.names if reading.type_of(name) != STRING]
    has_replacement = " OR ".join(
        f"contains({sql.name(name)}, {sql.text(_REPLACEMENT)})" for name in reading.names
    )
    aggregates = [
        "count(1)",
        # With mixed line endings, the carriage return stays in the last value.
        "count_if(endswith(_dq_last, '\r'))",
        f"count_if({has_replacement or 'false'})",
        # Rows of one file are read in order by one task.
        "last(_dq_last)",
        *(f"count_if({sql.name(name)} IS NOT NULL AND {_value(reading, name)} IS NULL)" for name in typed),
    ]
    grouped = frame.groupBy("_dq_file")
    file_counts = attempt_without_values(
        lambda: grouped.agg(*(expr(aggregate) for aggregate in aggregates)).collect()
    )
    if isinstance(file_counts, Failure):
        if is_missing_for_executors(frame.sparkSession, file_counts.message):
            raise ReadError(f"{file_counts.message.rstrip('.')}.", SHARED_HINT)
        raise ReadError(f"{_RAGGED}: {file_counts.message.rstrip('.')}.", _CSV_HINT)
    for file, _, carriage_returns, _, last, *_ in file_counts:
        if carriage_returns:
            raise ReadError(f"{unquote(file)}: {TWO_ENDS}.", ONE_END)
        if _has_open_quote(reading, file, last):
            raise ReadError(f"{unquote(file)}: the quotes of a value are not closed.", _CSV_HINT)
    if any(row[3] for row in file_counts) and _has_undecodable_bytes(reading, files):
        raise ReadError(
            f"a CSV file is not text in {reading.text_format.encoding}.",
            "Correct 'encoding', or write it in UTF-8.",
        )
    totals = [sum(column) for column in zip(*(row[5:] for row in file_counts), strict=True)]
    invalid_counts = {name: number for name, number in zip(typed, totals, strict=False) if number}
    return invalid_counts, sum(row[1] for row in file_counts)


_RAGGED = "a CSV file has a row with a wrong number of values, or unclosed quotes"
_CSV_HINT = (
    "Correct the file, or the server's 'csv' terms that describe its dialect; 'dq sample' shows the line."
)


def _has_open_quote(reading: _Reading, file: str, last: str | None) -> bool:
    """Return True if the last value of a file has an opening quote only, which Spark ignores."""
    text_format = reading.text_format
    end = tail(reading.spark, file)
    if last is None or end is None or not text_format.quote:
        return False
    text = end.decode(text_format.encoding, "replace").rstrip("\r\n")
    if text.endswith(text_format.quote):
        return False
    line = re.split(r"[\r\n]", text)[-1]
    # An unquoted value cannot have a delimiter or line break.
    if any(sign in last for sign in (text_format.delimiter, "\n", "\r")):
        return True
    return line.endswith(text_format.quote + last)


def _has_undecodable_bytes(reading: _Reading, files: Sequence[str]) -> bool:
    """Return True if bytes could not be decoded; Java replaces them with U+FFFD, which a file may also
    contain.

    Read as Latin-1, a U+FFFD that is in the file appears as its three bytes.
    """
    if reading.text_format.encoding.lower().replace("-", "").replace("_", "") != "utf8":
        return True
    encoded = "".join(chr(byte) for byte in _REPLACEMENT.encode())
    bytewise = replace(reading, text_format=replace(reading.text_format, encoding="iso-8859-1"))
    return _count_occurrences(_rows(reading, files), reading.names, _REPLACEMENT) != _count_occurrences(
        _rows(bytewise, files), reading.names, encoded
    )


def _count_occurrences(frame: DataFrame, names: Sequence[str], sign: str) -> int:
    column_counts = " + ".join(
        f"coalesce(length({sql.name(name)}) - length(replace({sql.name(name)}, {sql.text(sign)}, '')), 0)"
        for name in names
    )
    return int(frame.selectExpr(f"coalesce(sum({column_counts}), 0)").collect()[0][0]) // len(sign)


def _typed_columns(
    reading: _Reading, files: Sequence[str], invalid_counts: dict[str, int], rows: int
) -> list[Column]:
    """Return the columns with the contract's types; one with invalid values stays a string column.

    Both that and a column which some files lack are noted in the column's metadata.
    """
    from pyspark.sql.functions import col, expr

    columns = []
    for name in reading.names:
        note: dict[str, Any] = {}
        present_files = sum(
            name.lower() in {header_name.lower() for header_name in reading.headers[file]} for file in files
        )
        kind = reading.type_of(name)
        if name in invalid_counts:
            examples = _invalid_examples(reading, files, name)
            note = schema.invalid_values_note(invalid_counts[name], rows, kind, examples)
            value = col(sql.name(name))
        elif kind == STRING:
            value = col(sql.name(name))
        else:
            value = expr(_or_raise(reading, name))
        if 0 < present_files < len(files):
            note = note or schema.partial_column_note(present_files, len(files))
        columns.append(value.alias(name, metadata=note))
    return columns


def _or_raise(reading: _Reading, name: str) -> str:
    """Return SQL of the typed value that fails for an invalid value, instead of returning NULL."""
    value, text = _value(reading, name), sql.name(name)
    message = sql.text(f"a value of {name} is not of type {reading.type_of(name)}")
    return f"CASE WHEN {text} IS NULL THEN NULL ELSE coalesce({value}, raise_error({message})) END"


def _invalid_examples(reading: _Reading, files: Sequence[str], name: str) -> list[tuple[object, str]]:
    frame = _rows(reading, files)
    condition = f"{sql.name(name)} IS NOT NULL AND {_value(reading, name)} IS NULL"
    rows = (
        frame.where(condition).selectExpr("input_file_name()", sql.name(name)).limit(_MAX_EXAMPLES).collect()
    )
    return [(unquote(file).rpartition("/")[2], text) for file, text in rows]


# JSON as a DataFrame: columns by the keys of the objects, values parsed as the contract's types.
#
# A first pass validates the files, because Spark's reader takes the last of two equal keys, ignores text
# after an object, rounds decimals, and only reads the keys of the given schema.

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_JSON_HINT = "Write one object per line, or all objects in one array; 'dq sample' shows the line."


def json_frame(
    spark: SparkSession, all_files: Listing, scope: Sequence[str], text_format: TextFormat, promised: DataType
) -> DataFrame | None:
    """Return the rows of the files, or None if they have no objects.

    The columns are the keys of the objects in `scope`, at every depth; a column with an invalid value is a
    string column. Files outside of `scope` are read by Spark without validation, which raises for invalid
    values.

    Raises ReadError for anything but one object per line or one array of objects, duplicate keys in an
    object, and keys that only differ in case.
    """
    arrays = _arrays(spark, all_files.files, text_format)
    observations = _observe_json(spark, all_files, scope, arrays, text_format, promised)
    if not observations.rows:
        return None
    file_type, contract_type = (
        observations.shape.type(promised, spelt=True),
        observations.shape.type(promised),
    )
    indexes = [index for index, name in enumerate(contract_type.names) if name.lower() not in all_files.names]
    file_type, contract_type = _select_fields(file_type, indexes), _select_fields(contract_type, indexes)
    pairs = zip(contract_type.names, file_type.parts, strict=True)
    read_type = _select_fields(
        file_type, range(len(indexes)), [_read_as(name, kind, observations) for name, kind in pairs]
    )
    frames = [
        _read_group(spark, all_files, members, read_type, text_format, as_array=as_array)
        for as_array in (False, True)
        if (members := [file for file in all_files.files if (file in arrays) is as_array])
    ]
    frame = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    return frame.select(
        *_output_columns(observations, file_type, contract_type, read_type, promised), *all_files.columns()
    )


def _select_fields(
    struct: DataType, indexes: Sequence[int], parts: Sequence[DataType] | None = None
) -> DataType:
    selected_parts = parts if parts is not None else [struct.parts[index] for index in indexes]
    return DataType("struct", (), tuple(selected_parts), tuple(struct.names[index] for index in indexes))


def _arrays(spark: SparkSession, files: Sequence[str], text_format: TextFormat) -> frozenset[str]:
    """Return the files to read as one document, rather than line by line."""
    is_wide = "a".encode(text_format.encoding) != b"a"
    arrays = []
    for file, head in zip(files, heads(spark, files, 4096), strict=True):
        if head.startswith(_BYTE_ORDER_MARKS[0] if not is_wide else ()):
            head = head[3:]
        if is_wide or is_array(head.decode(text_format.encoding, "replace")):
            arrays.append(file)
    return frozenset(arrays)


def _observe_json(
    spark: SparkSession,
    all_files: Listing,
    scope: Sequence[str],
    arrays: frozenset[str],
    text_format: TextFormat,
    promised: DataType,
) -> JsonObservations:
    """Return the observations on all objects of these files. Raises ReadError."""
    frames = []
    line_files, array_files = [f for f in scope if f not in arrays], [f for f in scope if f in arrays]
    base = "input_file_name() AS file"
    if line_files:
        reader = reader_of(spark, "text").option("lineSep", "\n")
        frames.append(load(reader, all_files, line_files).selectExpr("CAST(value AS BINARY) AS text", base))
    if array_files:
        reader = reader_of(spark, "binaryFile")
        frames.append(load(reader, all_files, array_files).selectExpr("content AS text", base))
    observations = JsonObservations()
    for frame, as_array in zip(frames, [False] * bool(line_files) + [True] * bool(array_files), strict=True):
        observe = partial(
            _observe_batches, encoding=text_format.encoding, promised=promised, as_array=as_array
        )
        rows = attempt(
            lambda frame=frame, observe=observe: frame.mapInArrow(observe, "seen STRING").collect()  # type: ignore[misc]
        )
        if isinstance(rows, Failure):
            raise ReadError(f"JSON cannot be read: {rows.message.rstrip('.')}.", _spark_hint(rows.message))
        for row in rows:
            part = json.loads(row.seen)
            if isinstance(part, str):
                raise ReadError(part, _JSON_HINT)
            try:
                observations.merge(JsonObservations.from_json(part))
            except MalformedJson as error:
                raise ReadError(f"the JSON files differ: {error}.", _JSON_HINT) from error
    return observations


def _spark_hint(message: str) -> str:
    if "No module named" in message:
        return "Start Spark with PYSPARK_PYTHON set to a Python that has dq and pyarrow."
    return "Check that Spark may read it, and the format in the contract."


def _observe_batches(
    batches: Iterator[pa.RecordBatch], encoding: str, promised: DataType, as_array: bool
) -> Iterator[pa.RecordBatch]:
    """Yield one row with the observations of a task as JSON, or with an error message."""
    import pyarrow as pa

    observations: JsonObservations | str = JsonObservations()
    for batch in batches:
        if isinstance(observations, JsonObservations):
            texts, files = (batch.column(index).to_pylist() for index in (0, 1))
            observations = _observe_texts(observations, texts, files, encoding, promised, as_array)
    payload = json.dumps(observations if isinstance(observations, str) else observations.to_json())
    yield pa.RecordBatch.from_pydict({"seen": [payload]}, pa.schema([("seen", pa.string())]))
    forget_archives()


def _observe_texts(
    observations: JsonObservations,
    texts: list[bytes],
    files: list[str],
    encoding: str,
    promised: DataType,
    as_array: bool,
) -> JsonObservations | str:
    for text, file in zip(texts, files, strict=True):
        name = unquote(file).rpartition("/")[2]
        line = 0
        try:
            decoded = text.decode(encoding)
            if as_array:
                for line, record in objects(decoded):
                    observations.add(promised, record, f"{name}:{line}")
            elif (line_record := object_in_line(decoded.removeprefix("\ufeff"))) is not None:
                observations.add(promised, line_record, name)
        except UnicodeError:
            return f"{unquote(file)} is not text in {encoding}."
        except MalformedJson as error:
            line_number = error.line or line
            return f"{unquote(file)}{f':{line_number}' if line_number else ''}: {error}."
    return observations


def _read_as(name: str, kind: DataType, observations: JsonObservations) -> DataType:
    """Return the type to read a column with: string for columns with invalid values and for map keys."""
    return STRING if name in observations.invalid else _with_text_keys(carrier_type(kind))


def _with_text_keys(kind: DataType) -> DataType:
    parts = tuple(_with_text_keys(part) for part in kind.parts)
    if kind.name == "map":
        parts = (STRING, parts[1])
    return DataType(kind.name, kind.numbers, parts, kind.names)


def _read_group(
    spark: SparkSession,
    all_files: Listing,
    files: Sequence[str],
    read_type: DataType,
    text_format: TextFormat,
    *,
    as_array: bool,
) -> DataFrame:

    fields_type = struct_type(read_type)
    reader = reader_of(spark, "json").option("mode", "FAILFAST").option("encoding", text_format.charset)
    reader = reader.option("multiLine", str(as_array).lower())
    if not as_array:
        reader = reader.option("lineSep", "\n")
    return load(reader.schema(all_files.schema(fields_type.fields)), all_files, files)


def _output_columns(
    observations: JsonObservations,
    file_type: DataType,
    contract_type: DataType,
    read_type: DataType,
    promised: DataType,
) -> Iterator[Column]:
    from pyspark.sql.functions import expr

    kinds = {name.lower(): part for name, part in zip(promised.names, promised.parts, strict=True)}
    for file_name, name, kind, actual_type in zip(
        file_type.names, contract_type.names, contract_type.parts, read_type.parts, strict=True
    ):
        target_type = STRING if name in observations.invalid else carrier_type(kind)
        value = sql.name(file_name)
        if target_type != actual_type:
            value = f"CAST({value} AS {type_ddl(target_type)})"
        note: dict[str, Any] = {}
        if invalid := observations.invalid.get(name):
            note = schema.invalid_values_note(
                invalid.count, observations.rows, carrier_type(kinds[name.lower()]), invalid.examples
            )
        yield expr(value).alias(name, metadata=note)
