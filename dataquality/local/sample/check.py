"""A sample file against its contract: the questions of a check, answered by the rows in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import CheckResult, Row, Status
from dq.dataquality.answers.by_rows import broken, measure
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, ForeignKey
from dq.dataquality.clauses.kind import Shelf, result
from dq.dataquality.clauses.metric_rule import measured_by
from dq.dataquality.clauses.preparation import asked_of, select
from dq.dataquality.local.pandera.export import unaskable, untestable
from dq.dataquality.local.sample.read import Sample, Unread
from dq.dataquality.model.column import MASK, classified
from dq.dataquality.model.run_context import Occasion
from dq.dataquality.object_check import broken_by_rows, evaluate
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
