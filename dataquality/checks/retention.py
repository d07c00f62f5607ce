"""No value of a column, snapshot or file of a table is older than a service level `retention` allows.

Why: What is kept too long costs money, and for personal data it breaks the law. Deleted rows stay in old
snapshots and files until these are removed.
Bad: `{property: retention, value: 3, unit: y, element: orders.ordered_on}`, and an order of four years ago.
Good: The same service level, and the oldest order is two years old.
Of what: The custom property `retention` says it. `{of: rows}`, the default, means the values of the column
that the element names. `{of: snapshots}` means the snapshots or commits in the log of an Iceberg, Delta or
Hudi table besides the current one, by the time of the commit. `{of: files}` means all files below the table's
location, hidden, orphaned and current ones, but not its log, by the time of the storage. Snapshots and files
are read from the log and from a listing, without a Spark job.
Bound: ODCS does not say whether data is kept at least or at most so long. `atMost` is the default, because
it is what the law asks for. With `{bound: atLeast}`, the oldest value or file must be at least so old, so a
table that is younger fails; for snapshots, a table passes from whose log none was removed. Write an entry,
with an id, for each bound.
Nulls: NULL is ignored, and an empty table passes. A date stands for its
whole day. Months and years go by the calendar of `defaultTimezone` (UTC unless the contract says so); days
and weeks are 24 and 168 hours. Without the time of the run it is an error. The whole table is read, even if
one partition is tested.
How to fix: Delete what is older (expire snapshots, vacuum, remove orphan files), or correct the service
level. Without an element that names a column (`object.property`) rows are not evaluated: the only date of a
table may be when a song was released.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dq.contracts import extension
from dq.contracts.access.data_location import data_formats
from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import Contract, SchemaObject, SlaProperty
from dq.contracts.outcome import LAKEHOUSE, Duration
from dq.contracts.service_levels import service_level_name
from dq.dataquality.clauses.clause import (
    CheckParameters,
    Clause,
    before,
    in_words,
    micros_of,
    refuse,
    with_test,
)
from dq.dataquality.clauses.coverage import (
    Promise,
    age_clauses_of,
    evaluate_age,
    level_clauses,
    promised,
    untimed,
)
from dq.dataquality.clauses.kind import CheckKind, Values, ending, result, subject
from dq.dataquality.model.metric import Metric, OldestInstant, TableAge
from dq.dataquality.model.run_context import Unusable

_NAME = "retention"
_ALLOWED = {"atMost": "nothing older than {}", "atLeast": "the oldest at least {} old"}


@dataclass(frozen=True, slots=True)
class _TablePromise:
    """Parameters of a clause about snapshots or files."""

    of: TableAge
    noun: str
    length: Duration
    at_least: bool


def clauses(contract: Contract, schema_object: SchemaObject) -> Iterator[Clause]:
    for sla in contract.sla_properties:
        if service_level_name(sla.property) != _NAME:
            continue
        terms, findings = extension.retention(contract, sla)
        allowed, at_least = _ALLOWED[terms.bound], terms.bound == "atLeast"
        if findings:
            for clause, _ in level_clauses(sla, _NAME, contract, schema_object):
                yield refuse(clause, "its custom property 'retention' is invalid; see 'dq validate'")
        elif terms.of == "rows":
            yield from age_clauses_of(sla, _NAME, allowed, contract, schema_object, at_least=at_least)
        else:
            for clause, part in level_clauses(sla, _NAME, contract, schema_object):
                yield _table_clause(clause, part, terms.of, at_least, contract, schema_object, sla)


def _table_clause(
    clause: Clause,
    part: str,
    of: str,
    at_least: bool,
    contract: Contract,
    schema_object: SchemaObject,
    sla: SlaProperty,
) -> Clause:
    if part:
        return refuse(clause, f"{of} are of the whole table; write element: {schema_object.name}")
    formats = data_formats(contract, schema_object)
    if of == "snapshots" and formats and not formats & LAKEHOUSE:
        return refuse(clause, f"{', '.join(sorted(formats))} has no snapshots; write of: files")
    try:
        length = promised(sla)
    except Unusable as error:
        return refuse(clause, str(error))
    history = TableAge.HISTORY if at_least else TableAge.SNAPSHOT
    age = TableAge.FILE if of == "files" else history
    promise = _TablePromise(age, of.removesuffix("s"), length, at_least)
    bound = _ALLOWED["atLeast" if at_least else "atMost"]
    return with_test(replace(clause, allowed=bound.format(length)), CheckParameters(promise))


def metrics(clause: Clause) -> tuple[Metric, ...]:
    assert isinstance(clause.test, CheckParameters)
    promise = clause.test.value
    if isinstance(promise, _TablePromise):
        return (OldestInstant(promise.of),)
    assert isinstance(promise, Promise)
    return (promise.time.extreme("min"),)


def judge(clause: Clause, values: Values) -> CheckResult:
    if clause.context.now is None:
        return untimed(clause)
    (oldest,) = values.values()
    assert isinstance(clause.test, CheckParameters)
    promise = clause.test.value
    if oldest is None:
        nothing = _NOTHING[promise.of] if isinstance(promise, _TablePromise) else "the column has no values"
        return result(
            clause, Status.PASS, "no value", f"{subject(clause)}: {nothing}{ending(clause, passes=True)}"
        )
    assert isinstance(oldest, int)
    if isinstance(promise, _TablePromise):
        return _judge_table(clause, promise, oldest, clause.context.now)
    return evaluate_age(clause, "oldest", oldest, clause.context.now)


_NOTHING = {
    TableAge.SNAPSHOT: "it has no snapshot besides the current one",
    TableAge.HISTORY: "no snapshot was removed",
    TableAge.FILE: "it has no files",
}


def _judge_table(clause: Clause, promise: _TablePromise, oldest: int, now: dt.datetime) -> CheckResult:
    allowed = micros_of(before(now, promise.length, dt.UTC))
    passes = oldest <= allowed if promise.at_least else oldest >= allowed
    age = in_words(max(micros_of(now) - oldest, 0))
    instant = dt.datetime.fromtimestamp(oldest // 1_000_000, dt.UTC)
    message = f"{subject(clause)}: the oldest {promise.noun} is of {instant:%Y-%m-%d %H:%M:%S}Z, {age} old"
    status = Status.PASS if passes else Status.FAIL
    observed, seconds = f"oldest {age}", (micros_of(now) - oldest) / 1_000_000
    return result(clause, status, observed, message + ending(clause, passes), seconds)


CHECK = CheckKind(_NAME, __doc__, clauses, metrics, judge)
