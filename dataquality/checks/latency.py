"""The newest value of a column is no older than a service level `latency` (or `freshness`) promises.

Why: A table that nobody writes to any more passes every check of its values.
Bad: `{property: latency, value: 4, unit: h, element: orders.updated_at}`, and the newest order is of
yesterday.
Good: The same service level, and an order of the last hour.
Nulls: NULL is no value. A table without rows, or without a value in the column, has no fresh data: it fails.
Values that lie in the future show nothing of the age: they are left out, and the message counts them. A date
stands for its whole day, so that its age begins when the day ends. A date, and a timestamp without zone, is
meant in `defaultTimezone`, UTC unless the contract says so. Days and weeks are 24 and 168 hours; months and
years go by the calendar. Without the time of the run it is an error: nobody can tell how old the data is.
The whole table is asked, also when one partition is tested.
Mend: Find out why nothing new arrives. Without an element that names a column (`object.property`) it is not
evaluated: none is guessed. In Python hand the time in: `check(…, now=…)`.
"""

from __future__ import annotations

from functools import partial

from dq.contracts.outcome import CheckResult, Status
from dq.dataquality.clauses.clause import Clause, micros_of, terms_of
from dq.dataquality.clauses.coverage import Promise, judged, promises, untimed
from dq.dataquality.clauses.kind import CheckKind, Values, ending, result, subject
from dq.dataquality.model.metric import Metric, count


def metrics(clause: Clause) -> tuple[Metric, ...]:
    promise = terms_of(clause, Promise)
    return (promise.time.extreme("max"), count())


def then(clause: Clause, values: Values) -> tuple[Metric, ...]:
    """Only where the newest value lies in the future: the newest one that does not, and how many do."""
    promise, now = terms_of(clause, Promise), clause.occasion.now
    newest = values[promise.time.extreme("max")]
    if now is None or not isinstance(newest, int) or promise.time.starts(newest) <= micros_of(now):
        return ()
    later = count(promise.time.later_than(now))
    return (promise.time.extreme("max", until=now), later)


def judge(clause: Clause, values: Values) -> CheckResult:
    promise, now = terms_of(clause, Promise), clause.occasion.now
    if now is None:
        return untimed(clause)
    asked = (*metrics(clause)[:1], *then(clause, values))
    newest, future = values[asked[-2] if len(asked) > 1 else asked[0]], ""
    if len(asked) > 1:
        beyond = values[asked[0]]
        assert isinstance(beyond, int)
        number = values[asked[-1]]
        future = f"; {number} row(s) lie in the future, up to {promise.time.shown(beyond)}"
    if newest is None:
        empty = values[count()] == 0
        observed = "no rows" if empty else "no value"
        reason = "the table is empty" if empty else "no row has a value" + (" up to now" if future else "")
        message = f"{subject(clause)}: {reason}, so that nothing is fresh{future}"
        return result(clause, Status.FAIL, observed, message + ending(clause, kept=False))
    assert isinstance(newest, int)
    return judged(clause, "newest", newest, now, future)


CHECK = CheckKind("latency", __doc__, partial(promises, "latency", "at most {} old"), metrics, judge, then)
