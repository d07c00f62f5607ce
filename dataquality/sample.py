"""Check of a sample file against its contract, without Spark and Java, with the lines of failing rows."""

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
from dq.contracts.check_result import CheckResult, Row, Status
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import ReadError, UsageError, pluralize
from dq.contracts.types import DataType, row_type
from dq.dataquality.answers.memory import find_violations, measure
from dq.dataquality.answers.rows import Rows, rows_from_arrow
from dq.dataquality.answers.sources import KnownAnswers
from dq.dataquality.check import (
    build_report,
    evaluate,
    failed_row_clauses,
    source_of_answer,
    verification,
)
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, ForeignKey
from dq.dataquality.clauses.coverage import bind_clauses, select
from dq.dataquality.clauses.kind import CheckKinds, result
from dq.dataquality.clauses.metric_rule import metric_request_of
from dq.dataquality.model.column import MASK, classified, struct_field
from dq.dataquality.model.run_context import RunContext
from dq.dataquality.pandera import why_unanswerable, why_untestable
from dq.dataquality.report import Report
from dq.dataquality.request import Request, context_for, select_clauses, session_hint
from dq.dataquality.spark.failing_rows import MAX_SAMPLES, MOST_CHARACTERS
from dq.dataquality.text import (
    MARK,
    STRING,
    JsonObservations,
    MalformedJson,
    NotAValue,
    carrier_type,
    column_names,
    objects,
    text_from_json,
    text_row_type,
    value_from_json,
    value_from_text,
)
from dq.dataquality.text import rows as csv_rows
from dq.lake.parquet import columns as parquet_columns
from dq.lake.parquet import require_distinct, unreadable_column
from dq.lake.types import arrow_type

if TYPE_CHECKING:
    from pyarrow import ChunkedArray, Table
    from pyarrow.parquet import ParquetFile


# A sample file as typed rows, with their lines and the values that do not parse.

# Samples are small enough for a pull request; whole tables are checked with Spark.
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class InvalidCell:
    """A value that does not parse as its column's type, which makes the column a string column, as in
    Spark.
    """

    row: int
    column: str
    text: str
    promised: DataType


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a file. `places` are their line numbers, or row numbers in a Parquet file, from 1.

    `unreadable_columns` are the columns that Spark does not read, in lower case, each with the reason. They
    are NULL in the rows.
    """

    file: str
    rows: Rows
    places: tuple[int, ...]
    place: str
    invalid_cells: tuple[InvalidCell, ...]
    unreadable_columns: Mapping[str, str] = field_of(default_factory=dict)


def read(path: Path, schema_object: SchemaObject, text_format: TextFormat = RFC_4180) -> Sample:
    """Read a sample; the file name's suffix selects the format.

    In CSV the first line names the columns; in JSON they are the keys of the objects, and missing keys are
    NULL. Columns that are not in the contract are strings.

    Raises:
        UsageError: Another suffix, or a file that is too large.
        ReadError: The content does not match the suffix.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{path} cannot be read as a sample.",
            f"Its name must have one of the endings {', '.join(ENDINGS)}.",
        )
    try:
        data = files.read(path, limit=MAX_BYTES)
    except files.TooLarge as error:
        raise UsageError(
            f"{path} has more than {MAX_BYTES >> 20} MiB.", "Use a smaller sample, or 'dq check'."
        ) from error
    try:
        return ENDINGS[path.suffix.lower()](files.printable_path(path), data, schema_object, text_format)
    except (UnicodeError, LookupError) as error:
        raise ReadError(f"{path} is not text in {text_format.encoding}.", "Write it in UTF-8.") from error


def _csv(path: str, data: bytes, schema_object: SchemaObject, text_format: TextFormat) -> Sample:
    # A byte order mark is not part of the first column's name.
    text = data.decode(text_format.encoding).removeprefix(MARK)
    body = list(csv_rows(text, path, text_format))
    if not body:
        raise ReadError(f"{path} is empty.", "Write the column names on its first line.")
    declared = tuple(prop.column for prop in schema_object.properties)
    names = column_names(body.pop(0)[1], path) if text_format.header else declared
    for line, cells in body:
        if len(cells) != len(names):
            raise ReadError(
                f"{path}:{line}: {len(cells)} values for {len(names)} columns.",
                "Correct the line; quote values that contain a delimiter.",
            )
    promised = text_row_type(schema_object)
    types = [carrier_type(struct_field(promised, name) or STRING) for name in names]
    return _with_types(path, names, types, body, lambda kind, cell: value_from_text(kind, str(cell)))


def _json(path: str, data: bytes, schema_object: SchemaObject, text_format: TextFormat) -> Sample:
    promised, observations = text_row_type(schema_object), JsonObservations()
    body = []
    try:
        for line, record in objects(data.decode(text_format.encoding)):
            observations.add(promised, record, line)
            body.append((line, record))
    except MalformedJson as error:
        position = f":{error.line}" if error.line else ""
        raise ReadError(
            f"{path}{position}: {error}.", "Write one object per line, or all objects in one array."
        ) from error
    observed_type = observations.shape.type(promised)
    spellings = [
        observations.shape.fields[name.lower()][0] if observations.rows else name
        for name in observed_type.names
    ]
    shaped = [(line, [record.get(key) for key in spellings]) for line, record in body]
    sample = _with_types(path, observed_type.names, observed_type.parts, shaped, value_from_json)
    schema = sample.rows.schema
    return replace(sample, rows=replace(sample.rows, schema=carrier_type(schema)))


def _parquet(path: str, data: bytes, schema_object: SchemaObject, _text_format: TextFormat) -> Sample:
    import pyarrow as pa
    from pyarrow import parquet

    unreadable_columns: dict[str, str] = {}
    names, arrays = [], []
    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        parquet_schema = parquet_columns(file.schema)
        require_distinct(parquet_schema, path)
        for column in parquet_schema:
            reason = column.problem or unreadable_column(file.metadata, column.name)
            values = None if column.type is None or reason else _as_spark(file, column.name, column.type)
            if values is None:
                unreadable_columns[column.name.lower()] = (
                    reason or f"its {column.type} cannot be read without Spark"
                )
                values = pa.nulls(file.metadata.num_rows, pa.binary())
            names.append(column.name)
            arrays.append(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise ReadError(f"{path} is not a Parquet file.", "Write it again.") from error
    rows = rows_from_arrow(pa.table(arrays, names=names), row_type(schema_object))
    return Sample(
        path, rows, tuple(range(1, len(rows.cells) + 1)), "row", (), unreadable_columns=unreadable_columns
    )


def _as_spark(file: ParquetFile, column: str, kind: DataType) -> ChunkedArray | None:
    """Return the values of a column in Spark's type, or None if Arrow cannot convert them."""
    import pyarrow as pa

    # pyarrow reads a dot in a name as the path into a struct.
    table = file.read() if "." in column else file.read(columns=[column])
    values = table.column(column)
    if isinstance(values.type, pa.BaseExtensionType):
        values = pa.chunked_array([chunk.storage for chunk in values.chunks], type=values.type.storage_type)
    try:
        # Nanoseconds are truncated, as in Spark.
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


def _with_types(
    path: str,
    names: Sequence[str],
    types: Sequence[DataType],
    body: Sequence[tuple[int, Sequence[object]]],
    value: Callable[[DataType, object], object],
) -> Sample:
    """Return the typed rows; a column with a value that does not parse stays a string column."""
    invalid_cells: list[InvalidCell] = []
    columns: list[list[object]] = []
    kinds: list[DataType] = []
    for position, (name, kind) in enumerate(zip(names, types, strict=True)):
        values: list[object] = []
        before = len(invalid_cells)
        for index, (_, row) in enumerate(body):
            cell = row[position]
            try:
                values.append(None if cell is None else value(kind, cell))
            except NotAValue:
                invalid_cells.append(InvalidCell(index, name, text_from_json(cell), carrier_type(kind)))
        has_invalid = len(invalid_cells) > before
        texts = [None if row[position] is None else text_from_json(row[position]) for _, row in body]
        columns.append(list(texts) if has_invalid else values)
        kinds.append(STRING if has_invalid else kind)
    cells = tuple(dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    rows = Rows(DataType("struct", (), tuple(kinds), tuple(names)), cells)
    return Sample(path, rows, tuple(line for line, _ in body), "line", tuple(invalid_cells))


# Check of a sample file: the metrics of a check, measured on rows in memory.

_WITHIN_SAMPLE = "within the sample"
_NOT_ALL_ROWS = "a sample does not have the rows of the table"
_IN_PATH = "the column's value is in the partition path, not in the file"


def check(
    contract: Contract, schema_object: SchemaObject, sample: Sample, now: datetime | None = None
) -> Report:
    """Evaluate every clause of the object that a sample can test; the coverage gives reasons for the others.

    Clauses about the whole table (unique keys, shares of NULLs) are tested within the sample, and noted as
    such. A value that does not parse as its column's type breaks the clause of the column and counts in no
    other clause.
    """
    kinds = built_in()
    selected = select(
        contract,
        schema_object,
        kinds,
        exclusion_reason=lambda clause: _why_untested(schema_object, clause, kinds, sample),
    )
    bound_clauses = bind_clauses(sample.rows.schema, selected.clauses, RunContext(now))
    clauses = [
        replace(clause, note=_WITHIN_SAMPLE) if clause.keys or clause.limit else clause
        for clause in bound_clauses
    ]
    unreadable_results = {
        clause.path: unreadable
        for clause in clauses
        if (unreadable := _unreadable_result(schema_object, clause, sample))
    }
    results = evaluate(
        [clause for clause in clauses if clause.path not in unreadable_results],
        kinds,
        partial(measure, sample.rows),
    )
    samples_by_path = {
        clause.path: _failing_rows(schema_object, clause, sample)
        for clause in failed_row_clauses([clause for clause in clauses if clause.path in results], results)
    }
    results |= {
        path: replace(results[path], samples=rows) for path, rows in samples_by_path.items()
    } | unreadable_results
    return Report(
        contract=contract.id,
        version=contract.version,
        object=schema_object.name,
        partitions=(),
        results=tuple(results[clause.path] for clause in clauses),
        coverage=selected.coverage,
        passes=0,
        at=now,
    )


# Check of a whole frame: every clause is answered by its rows in memory, or the frame needs Spark.

MAX_FRAME_ROWS = 500_000
"""Maximum number of rows that are checked in memory: each becomes a dictionary."""

_MAX_NAMED = 10


def check_frame(request: Request, table: Table) -> Report:
    """Evaluate the requested clauses on all rows of an Arrow table, without Spark; see `request.as_arrow`.

    Raises UsageError that names the clauses which need Spark, or the reason why all do.
    """
    selection, context = select_clauses(request), context_for(request)
    if request.partitions:
        raise UsageError("selecting partitions of a frame needs a Spark session.", session_hint())
    if table.num_rows > MAX_FRAME_ROWS:
        raise UsageError(
            f"a frame of more than {MAX_FRAME_ROWS:,} rows needs a Spark session.", session_hint()
        )
    rows, kinds = rows_from_arrow(table, row_type(selection.schema_object)), selection.kinds
    clauses = selection.bind(request, rows.schema, context)
    reasons = [
        f"{clause.object}{f'.{clause.property}' if clause.property else ''} {clause.check}: {reason}"
        for clause in clauses
        if not clause.refusal_reason
        and (reason := why_unanswerable(selection.schema_object, clause, kinds)) is not None
    ]
    if reasons:
        omitted = len(reasons) - _MAX_NAMED
        details = [*reasons[:_MAX_NAMED], *([f"and {omitted} more"] if omitted > 0 else [])]
        verb = "needs" if len(clauses) == 1 else "need"
        message = f"{len(reasons)} of {pluralize(len(clauses), 'clause')} {verb} a Spark session:"
        raise UsageError(message, session_hint(), details)
    results = evaluate(clauses, kinds, partial(measure, rows))
    sample = Sample("", rows, tuple(range(1, len(rows.cells) + 1)), "row", ())
    for clause in failed_row_clauses(clauses, results) if request.samples else ():
        failing_rows = _failing_rows(selection.schema_object, clause, sample)
        results[clause.path] = replace(results[clause.path], samples=failing_rows)
    sources = {clause.path: source_of_answer(clause, KnownAnswers(), kinds) for clause in clauses}
    report = build_report(request, selection, clauses, context, results, sources, 1, rows=table.num_rows)
    return replace(report, verification=verification(request.verify_statistics, ()))


def _why_untested(
    schema_object: SchemaObject, clause: Clause, kinds: CheckKinds, sample: Sample
) -> str | None:
    """Return the reason why a sample cannot test a clause, or None. Refused clauses are errors, as in a
    check.
    """
    if clause.refusal_reason:
        return None
    if isinstance(clause.test, ForeignKey):
        return "the sample does not have all keys of the other object"
    if (reason := why_untestable(schema_object, clause, kinds, why_unanswerable)) is not None:
        return reason
    metric_request = metric_request_of(clause)
    if (
        clause.limit
        and not clause.is_row_level
        and (metric_request is None or metric_request.terms.kind.by_size)
    ):
        return _NOT_ALL_ROWS
    filter_columns = {str(column.steps[0]).lower() for column in clause.row_filter.columns}
    return (
        _IN_PATH
        if (_top_level_columns(clause) | filter_columns) & _missing_partition_columns(schema_object, sample)
        else None
    )


def _top_level_columns(clause: Clause) -> set[str]:
    names = {clause.property.split(".")[0].split("[")[0].split("{")[0].lower()}
    metric_request = metric_request_of(clause)
    measured_columns = (*metric_request.columns, *metric_request.group_by) if metric_request else ()
    return names | {str(column.steps[0]).lower() for column in (*clause.columns, *measured_columns)}


def _missing_partition_columns(schema_object: SchemaObject, sample: Sample) -> set[str]:
    """Return the partition columns that the file lacks; in a lake they are in the path."""
    file_columns = {name.lower() for name in sample.rows.schema.names}
    return {prop.column.lower() for prop in schema_object.partition_keys()} - file_columns


def _unreadable_result(schema_object: SchemaObject, clause: Clause, sample: Sample) -> CheckResult | None:
    """Return the result of a clause on invalid cells or on a column that Spark does not read, or None."""
    for name in sorted(_top_level_columns(clause) & sample.unreadable_columns.keys()):
        message = f"{clause.object}.{name}: {sample.unreadable_columns[name]}"
        return result(clause, Status.ERROR, "not readable", message)
    invalid_cells = [
        value for value in sample.invalid_cells if value.column.lower() == clause.property.lower()
    ]
    return (
        _invalid_cells_result(schema_object, clause, sample, invalid_cells)
        if invalid_cells and clause.check == "columns"
        else None
    )


def _failing_rows(schema_object: SchemaObject, clause: Clause, sample: Sample) -> tuple[Row, ...]:
    """Return the first rows that break the clause."""
    rows = [index for index, breaks in enumerate(find_violations(sample.rows, clause) or ()) if breaks]
    return tuple(_failing_row(schema_object, clause, sample, index) for index in rows[:MAX_SAMPLES])


def _invalid_cells_result(
    schema_object: SchemaObject, clause: Clause, sample: Sample, invalid_cells: list[InvalidCell]
) -> CheckResult:
    number, total = len(invalid_cells), len(sample.rows.cells)
    observed = f"{number} of {total} values"
    message = f"{clause.object}.{clause.property}: {observed} are not of type {invalid_cells[0].promised}"
    is_classified = invalid_cells[0].column.lower() in classified(schema_object)
    samples = tuple(
        {
            sample.place: sample.places[value.row],
            value.column: MASK if is_classified else value.text[:MOST_CHARACTERS],
        }
        for value in invalid_cells[:MAX_SAMPLES]
    )
    failure = result(clause, Status.FAIL, observed, message, float(number))
    return replace(failure, samples=samples)


def _failing_row(schema_object: SchemaObject, clause: Clause, sample: Sample, index: int) -> Row:
    """Return the line of a row and the values that the clause is about."""
    classified_columns, cells = classified(schema_object), sample.rows.cells[index]
    relevant_columns = _top_level_columns(clause)
    values = {
        name: MASK
        if name.lower() in classified_columns
        else None
        if value is None
        else str(value)[:MOST_CHARACTERS]
        for name, value in cells.items()
        if name.lower() in relevant_columns
    }
    return {sample.place: sample.places[index], **values}
