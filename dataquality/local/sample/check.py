"""A sample against its contract: pandera finds the rows that break a clause, and dq judges their number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from pandera.errors import SchemaErrors

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import CheckResult, Row, Severity, Status
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, ForeignKey
from dq.dataquality.clauses.judge import result
from dq.dataquality.clauses.kind import Shelf, answered, asked_by, second_of
from dq.dataquality.clauses.measured.found import measured_by
from dq.dataquality.clauses.preparation import asked_of, select
from dq.dataquality.local.offline.answers import measure
from dq.dataquality.local.offline.rows import to_pandas
from dq.dataquality.local.pandera import _pandas
from dq.dataquality.local.pandera.export import Export, untestable
from dq.dataquality.local.sample.read import Sample, Unread
from dq.dataquality.model.classification import MASK, classified
from dq.dataquality.model.metric import Answer, DistinctKeys, Failure, Metric
from dq.dataquality.model.run_context import Occasion
from dq.dataquality.report import Report
from dq.dataquality.spark.failing_rows import MOST, MOST_CHARACTERS

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
    sound = [clause for clause in tested if not clause.refused]
    broken = _broken(contract, one, sound, kinds, sample)
    judged = tuple(_judged(one, clause, kinds, sample, broken) for clause in tested)
    return Report(
        contract=contract.id,
        version=contract.version,
        object=one.name,
        partitions=(),
        results=judged,
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
    if (reason := untestable(one, clause, kinds, _pandas.unable)) is not None:
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


def _broken(
    contract: Contract, one: SchemaObject, clauses: Iterable[Clause], kinds: Shelf, sample: Sample
) -> dict[str, frozenset[int]]:
    """The rows that break each clause, as pandera finds them: without thresholds, none may."""
    strict = tuple(
        replace(clause, limit=None, severity=Severity.ERROR) for clause in clauses if clause.of_rows
    )
    schema = _pandas.schema(Export(contract, one, (), strict, kinds, ()))
    try:
        schema.validate(to_pandas(sample.rows), lazy=True)
    except SchemaErrors as errors:
        return {
            error.check.name: frozenset(at for at, kept in enumerate(error.check_output) if not kept)
            for error in errors.schema_errors
            if error.check_output is not None
        }
    return {}


def _judged(
    one: SchemaObject, clause: Clause, kinds: Shelf, sample: Sample, broken: Mapping[str, frozenset[int]]
) -> CheckResult:
    for name in sorted(_roots(clause) & sample.unread_columns.keys()):
        message = f"{clause.object}.{name}: {sample.unread_columns[name]}"
        return result(clause, Status.ERROR, "not readable", message)
    if clause.check == "columns":
        own = [value for value in sample.unread if value.column.lower() == clause.property.lower()]
        if own:
            return _unreadable(one, clause, sample, own)
    rows = broken.get(clause.path, frozenset())
    made = answered(clause, _answers(clause, kinds, sample, len(rows)), kinds)
    if made.status is not Status.FAIL or not clause.of_rows or not clause.too_many(made.value or 0):
        return made
    return replace(made, samples=tuple(_shown(one, clause, sample, at) for at in sorted(rows)[:MOST]))


def _answers(clause: Clause, kinds: Shelf, sample: Sample, broken: int) -> dict[Metric, Answer]:
    """What pandera counted stands for the first question of a clause about rows; the rest is counted here.

    A rule that expects many repetitions asks for the different keys, and not for the rows that repeat one.
    """
    asked = asked_by(clause, kinds)
    answers = measure(sample.rows, asked)
    answers |= measure(sample.rows, second_of([clause], answers, kinds))
    counts_rows = bool(asked) and clause.of_rows and not isinstance(asked[0], DistinctKeys)
    if counts_rows and not isinstance(answers[asked[0]], Failure):
        answers[asked[0]] = broken
    return answers


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
