"""The newest value of a column is within the age that a service level `latency` (or `freshness`) allows.

Why: A table that is no longer updated still passes every check of its values.
Bad: `{property: latency, value: 4, unit: h, element: orders.updated_at}`, and the newest order is of
yesterday.
Good: The same service level, and an order of the last hour.
Nulls: NULL is ignored. A table without rows, or without a value in the column, has no fresh data: it fails.
Values that lie in the future show nothing of the age: they are left out, and the message counts them. A date
stands for its whole day, so that its age begins when the day ends. A date, and a timestamp without zone, is
meant in `defaultTimezone`, UTC unless the contract says so. Days and weeks are 24 and 168 hours; months and
years go by the calendar. Without the time of the run it is an error: the age is unknown.
The whole table is read, even if one partition is tested.
How to fix: Find out why nothing new arrives. Without an element that names a column (`object.property`) it is
not evaluated: no column is guessed. In Python pass the time: `check(…, now=…)`.
"""

from __future__ import annotations

from functools import partial

from dq.contracts.check_result import CheckResult, Status
from dq.dataquality.clauses.clause import Clause, micros_of, parameters_of
from dq.dataquality.clauses.coverage import Promise, age_clauses, evaluate_age, untimed
from dq.dataquality.clauses.kind import CheckKind, Values, ending, result, subject
from dq.dataquality.model.metric import Metric, count


def metrics(clause: Clause) -> tuple[Metric, ...]:
    promise = parameters_of(clause, Promise)
    return (promise.time.extreme("max"), count())


def then(clause: Clause, values: Values) -> tuple[Metric, ...]:
    """If the newest value lies in the future, return metrics for the newest past value and the future
    rows.
    """
    promise, now = parameters_of(clause, Promise), clause.context.now
    newest = values[promise.time.extreme("max")]
    if now is None or not isinstance(newest, int) or promise.time.starts(newest) <= micros_of(now):
        return ()
    future_rows = count(promise.time.later_than(now))
    return (promise.time.extreme("max", until=now), future_rows)


def judge(clause: Clause, values: Values) -> CheckResult:
    promise, now = parameters_of(clause, Promise), clause.context.now
    if now is None:
        return untimed(clause)
    requested = (*metrics(clause)[:1], *then(clause, values))
    newest, future = values[requested[-2] if len(requested) > 1 else requested[0]], ""
    if len(requested) > 1:
        beyond = values[requested[0]]
        assert isinstance(beyond, int)
        number = values[requested[-1]]
        future = f"; {number} row(s) lie in the future, up to {promise.time.format_value(beyond)}"
    if newest is None:
        empty = values[count()] == 0
        observed = "no rows" if empty else "no value"
        reason = "the table is empty" if empty else "no row has a value" + (" up to now" if future else "")
        message = f"{subject(clause)}: {reason}, so no data is fresh{future}"
        return result(clause, Status.FAIL, observed, message + ending(clause, passes=False))
    assert isinstance(newest, int)
    return evaluate_age(clause, "newest", newest, now, future)


CHECK = CheckKind("latency", __doc__, partial(age_clauses, "latency", "at most {} old"), metrics, judge, then)
