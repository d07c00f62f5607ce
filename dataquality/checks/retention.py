"""No value of a column is older than a service level `retention` allows.

Why: What is kept too long costs money, and for personal data it breaks the law.
Bad: `{property: retention, value: 3, unit: y, element: orders.ordered_on}`, and an order of four years ago.
Good: The same service level, and the oldest order is two years old.
Nulls: NULL is no value, and the table may be empty: nothing is kept too long then. A date stands for its
whole day. Months and years go by the calendar of `defaultTimezone` (UTC unless the contract says so); days
and weeks are 24 and 168 hours. Without the time of the run it is an error. The whole table is asked, also
when one partition is tested.
Mend: Delete what is older, or correct the service level. Without an element that names a column
(`object.property`) it is not evaluated: the only date of a table may be when a song was released. ODCS does
not say whether data is kept at least or at most so long. It is tested as the most, which is what the law
asks for; that it is kept at least so long cannot be seen, because a table may be younger than that.
"""

from __future__ import annotations

import datetime as dt
from functools import partial

from dq.contracts.shared.outcome import CheckResult, Status
from dq.dataquality.clauses.clause import Clause, terms_of
from dq.dataquality.clauses.coverage import Promise, judged, promises, untimed
from dq.dataquality.clauses.kind import CheckKind, Example, Values, ending, result, subject
from dq.dataquality.model.metric import Metric


def metrics(clause: Clause) -> tuple[Metric, ...]:
    promise = terms_of(clause, Promise)
    return (promise.time.extreme("min"),)


def judge(clause: Clause, values: Values) -> CheckResult:
    if clause.occasion.now is None:
        return untimed(clause)
    (oldest,) = values.values()
    if oldest is None:
        said = f"{subject(clause)}: there is no value to keep{ending(clause, kept=True)}"
        return result(clause, Status.PASS, "no value", said)
    assert isinstance(oldest, int)
    return judged(clause, "oldest", oldest, clause.occasion.now)


_NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def _seen(kind: str, rest: str = "") -> str:
    return f"properties: [{{name: v, logicalType: {kind}{rest}}}]"


def _level(value: int, unit: str) -> str:
    return f"[{{property: retention, value: {value}, unit: {unit}, element: t.v}}]"


_YEARS = _level(3, "y")
_DDL = "v date"
EXAMPLES = (
    Example("within, and NULL", _seen("date"), _DDL, ((dt.date(2023, 11, 21),), (None,)), "pass",
            (), _YEARS, _NOW),
    Example("the day itself ends within", _seen("date"), _DDL, ((dt.date(2023, 11, 20),),), "fail",
            ("oldest 1,096 d 12 h",), _YEARS, _NOW),
    Example("no rows", _seen("date"), _DDL, (), "pass", ("no value",), _YEARS, _NOW),
    Example("only NULL", _seen("date"), _DDL, ((None,),), "pass", ("no value",), _YEARS, _NOW),
    Example("a marker of long ago", _seen("date"), _DDL, ((dt.date(1, 1, 1),),), "fail", (), _YEARS, _NOW),
    Example("the future", _seen("date"), _DDL, ((dt.date(9999, 12, 31),),), "pass", ("oldest 0 s",),
            _YEARS, _NOW),
    Example("instants", _seen("timestamp"), "v timestamp",
            ((_NOW - dt.timedelta(days=30),), (_NOW,)), "pass", ("oldest 30 d",), _level(30, "d"), _NOW),
    Example("instants too old", _seen("timestamp"), "v timestamp",
            ((_NOW - dt.timedelta(days=30, microseconds=1),),), "fail", ("oldest 30 d",),
            _level(30, "d"), _NOW),
    Example("civil times", _seen("timestamp", ", physicalType: timestamp_ntz"), "v timestamp_ntz",
            ((dt.datetime(1969, 12, 31, 23, 59, 59, 1),),), "fail", (), _level(30, "d"), _NOW),  # noqa: DTZ001
    Example("no time of the run", _seen("date"), _DDL, (), "error", (), _YEARS),
    Example("no number", _seen("date"), _DDL, (), "error", (),
            "[{property: retention, value: long, unit: y, element: t.v}]", _NOW),
    Example("no element", _seen("date"), _DDL, ((dt.date(1970, 1, 1),),), "", (),
            "[{property: retention, value: 3, unit: y}]", _NOW),
    Example("no column is guessed", _seen("date"), _DDL, ((dt.date(1970, 1, 1),),), "", (),
            "[{property: retention, value: 3, unit: y, element: t}]", _NOW),
    Example("a text instead", _seen("date"), "v string", (("2026-11-21",),), "error", (), _YEARS, _NOW),
)  # fmt: skip
CHECK = CheckKind(
    "retention", __doc__, partial(promises, "retention", "nothing older than {}"), EXAMPLES, metrics, judge
)
