"""A sample file against its contract, without Spark and Java: its rows with their lines, and the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as field_of
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access import files
from dq.contracts.access.data_location import RFC_4180, TextFormat
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import CheckResult, Row, Status, Unreadable, UsageError
from dq.contracts.types import DataType, row_type
from dq.dataquality.answers.memory import broken, measure
from dq.dataquality.answers.rows import Rows, of_arrow
from dq.dataquality.check import broken_by_rows, evaluate
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, ForeignKey
from dq.dataquality.clauses.coverage import asked_of, select
from dq.dataquality.clauses.kind import Shelf, result
from dq.dataquality.clauses.metric_rule import measured_by
from dq.dataquality.model.column import MASK, classified, field
from dq.dataquality.model.run_context import Occasion
from dq.dataquality.pandera import unaskable, untestable
from dq.dataquality.report import Report
from dq.dataquality.spark.failing_rows import MOST, MOST_CHARACTERS
from dq.dataquality.text import (
    MARK,
    STRING,
    MalformedJson,
    NoValue,
    SeenObjects,
    carried,
    names_of,
    objects,
    of_json,
    of_text,
    shown,
    text_row_type,
)
from dq.dataquality.text import rows as csv_rows
from dq.lake.parquet import columns as parquet_columns
from dq.lake.parquet import require_distinct, unreadable_column
from dq.lake.types import arrow_type

if TYPE_CHECKING:
    from pyarrow import ChunkedArray
    from pyarrow.parquet import ParquetFile


# A sample file as rows of the contract's types, with their lines and the values that are none of a type.

# A pull request holds samples; whole tables are for Spark.
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that is none of its column's type, which makes the column one of texts, as in Spark."""

    row: int
    column: str
    text: str
    promised: DataType


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of a file. `places` are their lines, or in a Parquet file their numbers, from 1.

    `unread_columns` are those that Spark does not read, in lower case, each with the reason. They are NULL in
    the rows.
    """

    file: str
    rows: Rows
    places: tuple[int, ...]
    place: str
    unread: tuple[Unread, ...]
    unread_columns: Mapping[str, str] = field_of(default_factory=dict)


def read(path: Path, one: SchemaObject, form: TextFormat = RFC_4180) -> Sample:
    """The sample, by the ending of its file.

    In CSV the first line names the columns; in JSON they are the keys of the objects, and one that an object
    lacks is NULL. A column that the contract does not name is text. Raises UsageError for another ending or
    a file that is no sample by its size, and Unreadable for a file that is not what its ending says.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{path} is no file that can be read as a sample.", f"Its name must end in {', '.join(ENDINGS)}."
        )
    try:
        data = files.read(path, limit=MAX_BYTES)
    except files.TooLarge as error:
        raise UsageError(
            f"{path} has more than {MAX_BYTES >> 20} MiB.", "Take a smaller sample, or 'dq check'."
        ) from error
    try:
        return ENDINGS[path.suffix.lower()](files.shown(path), data, one, form)
    except (UnicodeError, LookupError) as error:
        raise Unreadable(f"{path} is not text in {form.encoding}.", "Write it in UTF-8.") from error


def _csv(path: str, data: bytes, one: SchemaObject, form: TextFormat) -> Sample:
    # A byte order mark is no part of the first column's name.
    text = data.decode(form.encoding).removeprefix(MARK)
    body = list(csv_rows(text, path, form))
    if not body:
        raise Unreadable(f"{path} is empty.", "Write the names of the columns into its first line.")
    own = tuple(prop.column for prop in one.properties)
    names = names_of(body.pop(0)[1], path) if form.header else own
    for line, cells in body:
        if len(cells) != len(names):
            raise Unreadable(
                f"{path}:{line}: {len(cells)} values for {len(names)} columns.",
                "Correct the line; a value that holds a delimiter is put in quotes.",
            )
    promised = text_row_type(one)
    types = [carried(field(promised, name) or STRING) for name in names]
    return _typed(path, names, types, body, lambda kind, cell: of_text(kind, str(cell)))


def _json(path: str, data: bytes, one: SchemaObject, form: TextFormat) -> Sample:
    promised, seen = text_row_type(one), SeenObjects()
    body = []
    try:
        for line, made in objects(data.decode(form.encoding)):
            seen.add(promised, made, line)
            body.append((line, made))
    except MalformedJson as error:
        at = f":{error.line}" if error.line else ""
        raise Unreadable(
            f"{path}{at}: {error}.", "Write one object per line, or all of them in one array."
        ) from error
    found = seen.shape.type(promised)
    spellings = [seen.shape.fields[name.lower()][0] if seen.rows else name for name in found.names]
    shaped = [(line, [made.get(key) for key in spellings]) for line, made in body]
    sample = _typed(path, found.names, found.parts, shaped, of_json)
    schema = sample.rows.schema
    return replace(sample, rows=replace(sample.rows, schema=carried(schema)))


def _parquet(path: str, data: bytes, one: SchemaObject, _form: TextFormat) -> Sample:
    import pyarrow as pa
    from pyarrow import parquet

    unread: dict[str, str] = {}
    names, arrays = [], []
    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        found = parquet_columns(file.schema)
        require_distinct(found, path)
        for column in found:
            reason = column.problem or unreadable_column(file.metadata, column.name)
            values = None if column.type is None or reason else _as_spark(file, column.name, column.type)
            if values is None:
                unread[column.name.lower()] = reason or f"its {column.type} cannot be read without Spark"
                values = pa.nulls(file.metadata.num_rows, pa.binary())
            names.append(column.name)
            arrays.append(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise Unreadable(f"{path} is not a Parquet file.", "Write it again.") from error
    rows = of_arrow(pa.table(arrays, names=names), row_type(one))
    return Sample(path, rows, tuple(range(1, len(rows.cells) + 1)), "row", (), unread_columns=unread)


def _as_spark(file: ParquetFile, column: str, kind: DataType) -> ChunkedArray | None:
    """Return the values of a column in Spark's type of it, or None where Arrow does not convert them."""
    import pyarrow as pa

    # A dot in a name reads as the way into a struct.
    read = file.read() if "." in column else file.read(columns=[column])
    values = read.column(column)
    if isinstance(values.type, pa.BaseExtensionType):
        values = pa.chunked_array([chunk.storage for chunk in values.chunks], type=values.type.storage_type)
    try:
        # Nanoseconds are cut off, as Spark does.
        return values.cast(arrow_type(kind), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


ENDINGS: dict[str, Callable[[str, bytes, SchemaObject, TextFormat], Sample]] = {
    ".csv": _csv,
    ".jsonl": _json,
    ".ndjson": _json,
    ".json": _json,
    ".parquet": _parquet,
}


def _typed(
    path: str,
    names: Sequence[str],
    types: Sequence[DataType],
    body: Sequence[tuple[int, Sequence[object]]],
    value: Callable[[DataType, object], object],
) -> Sample:
    """The rows; a column with a value that is none of its type is one of texts, as they are written."""
    unread: list[Unread] = []
    columns: list[list[object]] = []
    kinds: list[DataType] = []
    for position, (name, kind) in enumerate(zip(names, types, strict=True)):
        made: list[object] = []
        before = len(unread)
        for at, (_, row) in enumerate(body):
            given = row[position]
            try:
                made.append(None if given is None else value(kind, given))
            except NoValue:
                unread.append(Unread(at, name, shown(given), carried(kind)))
        broken = len(unread) > before
        texts = [None if row[position] is None else shown(row[position]) for _, row in body]
        columns.append(list(texts) if broken else made)
        kinds.append(STRING if broken else kind)
    cells = tuple(dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    rows = Rows(DataType("struct", (), tuple(kinds), tuple(names)), cells)
    return Sample(path, rows, tuple(line for line, _ in body), "line", tuple(unread))


# A sample file against its contract: the questions of a check, answered by the rows in memory.

_WITHIN = "within the sample"
_ROWS = "a sample does not have the rows of the table"
_PATH = "the file lacks this column, which the path of a partition holds"


def check(contract: Contract, one: SchemaObject, sample: Sample, now: datetime | None = None) -> Report:
    """Every clause of the object that a sample can show, tested on it; the accounts say why others are not.

    What is promised of the whole table (no key twice, a share of NULLs) is tested within the sample, and
    says so. A value that is none of its column's type breaks the clause of the column, and is counted by
    no other.
    """
    kinds = built_in()
    selected = select(contract, one, kinds, why_not=lambda clause: _why_not(one, clause, kinds, sample))
    asked = asked_of(sample.rows.schema, selected.clauses, Occasion(now))
    tested = [replace(clause, note=_WITHIN) if clause.keys or clause.limit else clause for clause in asked]
    unread = {clause.path: found for clause in tested if (found := _unread(one, clause, sample))}
    results = evaluate(
        [clause for clause in tested if clause.path not in unread], kinds, partial(measure, sample.rows)
    )
    shown = {
        clause.path: _samples(one, clause, sample)
        for clause in broken_by_rows([clause for clause in tested if clause.path in results], results)
    }
    results |= {path: replace(results[path], samples=rows) for path, rows in shown.items()} | unread
    return Report(
        contract=contract.id,
        version=contract.version,
        object=one.name,
        partitions=(),
        results=tuple(results[clause.path] for clause in tested),
        accounts=selected.accounts,
        passes=0,
        at=now,
    )


def _why_not(one: SchemaObject, clause: Clause, kinds: Shelf, sample: Sample) -> str | None:
    """Why a sample does not show whether a clause is kept, or None. What is refused is an error here, too."""
    if clause.refused:
        return None
    if isinstance(clause.ask, ForeignKey):
        return "the sample has not all keys of the other object"
    if (reason := untestable(one, clause, kinds, unaskable)) is not None:
        return reason
    asked = measured_by(clause)
    if clause.limit and not clause.of_rows and (asked is None or asked.terms.kind.by_size):
        return _ROWS
    narrows = {str(column.steps[0]).lower() for column in clause.extent.narrows}
    return _PATH if (_roots(clause) | narrows) & _in_path(one, sample) else None


def _roots(clause: Clause) -> set[str]:
    named = {clause.property.split(".")[0].split("[")[0].split("{")[0].lower()}
    asked = measured_by(clause)
    measured = (*asked.columns, *asked.by) if asked else ()
    return named | {str(column.steps[0]).lower() for column in (*clause.columns, *measured)}


def _in_path(one: SchemaObject, sample: Sample) -> set[str]:
    """Partition columns that the file does not have: in a lake they stand in the path."""
    has = {name.lower() for name in sample.rows.schema.names}
    return {prop.column.lower() for prop in one.partition_keys()} - has


def _unread(one: SchemaObject, clause: Clause, sample: Sample) -> CheckResult | None:
    """The result of a clause about values that are none of their column's type, or about a column that
    Spark does not read; None for all others."""
    for name in sorted(_roots(clause) & sample.unread_columns.keys()):
        message = f"{clause.object}.{name}: {sample.unread_columns[name]}"
        return result(clause, Status.ERROR, "not readable", message)
    own = [value for value in sample.unread if value.column.lower() == clause.property.lower()]
    return _unreadable(one, clause, sample, own) if own and clause.check == "columns" else None


def _samples(one: SchemaObject, clause: Clause, sample: Sample) -> tuple[Row, ...]:
    """The first rows that break the clause."""
    rows = [at for at, breaks in enumerate(broken(sample.rows, clause) or ()) if breaks]
    return tuple(_shown(one, clause, sample, at) for at in rows[:MOST])


def _unreadable(one: SchemaObject, clause: Clause, sample: Sample, unread: list[Unread]) -> CheckResult:
    number, total = len(unread), len(sample.rows.cells)
    observed = f"{number} of {total} values"
    message = f"{clause.object}.{clause.property}: {observed} are no {unread[0].promised}"
    hidden = unread[0].column.lower() in classified(one)
    shown = tuple(
        {
            sample.place: sample.places[value.row],
            value.column: MASK if hidden else value.text[:MOST_CHARACTERS],
        }
        for value in unread[:MOST]
    )
    made = result(clause, Status.FAIL, observed, message, float(number))
    return replace(made, samples=shown)


def _shown(one: SchemaObject, clause: Clause, sample: Sample, at: int) -> Row:
    """The line of a row, and the values that the clause is about."""
    hidden, cells = classified(one), sample.rows.cells[at]
    wanted = _roots(clause)
    values = {
        name: MASK if name.lower() in hidden else None if value is None else str(value)[:MOST_CHARACTERS]
        for name, value in cells.items()
        if name.lower() in wanted
    }
    return {sample.place: sample.places[at], **values}
