"""CSV as a DataFrame: columns by the names of every file's header, values exactly as the contract's types."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dq.contracts.access.text_format import TextFormat
from dq.contracts.shared.errors import Unreadable
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.column import field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark import column_notes
from dq.dataquality.spark.error_redaction import answered
from dq.dataquality.spark.readers.text_files import Listing, heads, load, longer_head, reader_of, tail
from dq.dataquality.sql.text_cast import cast
from dq.dataquality.text.csv_rows import ONE_END, TWO_ENDS, header_of
from dq.dataquality.text.text_types import STRING, carried

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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
    unfit, rows = _looked_at(reading, looked_at)
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
    frames = [_group(reading, header, members, more) for header, members in groups.items()]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def _group(
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


def _looked_at(reading: _Reading, files: Sequence[str]) -> tuple[dict[str, int], int]:
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
        raise Unreadable(f"{_RAGGED}: {counted.message.rstrip('.')}.", _MEND)
    for file, _, returns, _, last, *_ in counted:
        if returns:
            raise Unreadable(f"{unquote(file)}: {TWO_ENDS}.", ONE_END)
        if _open_at_end(reading, file, last):
            raise Unreadable(f"{unquote(file)}: the quotes of a value are not closed.", _MEND)
    if any(row[3] for row in counted) and _damaged(reading, files):
        raise Unreadable(
            f"a CSV file is not text in {reading.form.encoding}.", "Correct 'encoding', or write it in UTF-8."
        )
    totals = [sum(column) for column in zip(*(row[5:] for row in counted), strict=True)]
    unfit = {name: number for name, number in zip(typed, totals, strict=False) if number}
    return unfit, sum(row[1] for row in counted)


_RAGGED = "a CSV file has a row with more or fewer values than columns, or quotes that do not close"
_MEND = (
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
            note = column_notes.unfit(unfit[name], rows, kind, first)
            value = col(sql.name(name))
        elif kind == STRING:
            value = col(sql.name(name))
        else:
            value = expr(_or_raise(reading, name))
        if 0 < holders < len(files):
            note = note or column_notes.of_files(holders, len(files))
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
