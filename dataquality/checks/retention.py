"""No value of a column is older than a service level `retention` allows.

Why: What is kept too long costs money, and for personal data it breaks the law.
Bad: `{property: retention, value: 3, unit: y, element: orders.ordered_on}`, and an order of four years ago.
Good: The same service level, and the oldest order is two years old.
Nulls: NULL is ignored, and an empty table passes. A date stands for its
whole day. Months and years go by the calendar of `defaultTimezone` (UTC unless the contract says so); days
and weeks are 24 and 168 hours. Without the time of the run it is an error. The whole table is read, even if
one partition is tested.
How to fix: Delete what is older, or correct the service level. Without an element that names a column
(`object.property`) it is not evaluated: the only date of a table may be when a song was released. ODCS does
not say whether data is kept at least or at most so long. It is tested as the most, which is what the law
asks for; that it is kept at least so long cannot be seen, because a table may be younger than that.
"""

from __future__ import annotations

from functools import partial

from dq.contracts.outcome import CheckResult, Status
from dq.dataquality.clauses.clause import Clause, parameters_of
from dq.dataquality.clauses.coverage import Promise, age_clauses, evaluate_age, untimed
from dq.dataquality.clauses.kind import CheckKind, Values, ending, result, subject
from dq.dataquality.model.metric import Metric


def metrics(clause: Clause) -> tuple[Metric, ...]:
    promise = parameters_of(clause, Promise)
    return (promise.time.extreme("min"),)


def judge(clause: Clause, values: Values) -> CheckResult:
    if clause.context.now is None:
        return untimed(clause)
    (oldest,) = values.values()
    if oldest is None:
        message = f"{subject(clause)}: the column has no values{ending(clause, passes=True)}"
        return result(clause, Status.PASS, "no value", message)
    assert isinstance(oldest, int)
    return evaluate_age(clause, "oldest", oldest, clause.context.now)


CHECK = CheckKind(
    "retention", __doc__, partial(age_clauses, "retention", "nothing older than {}"), metrics, judge
)
