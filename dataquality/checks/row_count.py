"""The number of rows is within the bounds of a `rowCount` rule.

Why: An empty or half-loaded delivery looks fine to every check of a column.
Bad: `metric: rowCount` with `mustBeGreaterThan: 0` on no rows.
Good: The same rule on one row.
With `unit: percent` the number is compared with an earlier one: `arguments: {period: 24, unit: h}` and
`mustBeGreaterThan: -10` mean that no more than a tenth is lost against the run of 24 hours ago. That is the
run nearest to then, at most half a period away; of partitions, one that differs only in its date.
Nulls: A row counts whatever is in it. A percentage is skipped while no earlier run is known, and of an
earlier zero.
Mend: Load the missing rows, or correct the bounds. In Python hand the earlier counts in:
`check(…, history=…)`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dq.contracts.model import Contract, Quality, SchemaObject
from dq.contracts.odcs import time_unit
from dq.contracts.shared.outcome import CheckResult, Status, TextFault
from dq.contracts.shared.units import Duration, parse_duration
from dq.contracts.shared.wording import counted
from dq.dataquality.clauses.clause import Clause, KindTerms, Unit, asking, before, refuse, terms_of
from dq.dataquality.clauses.kind import CheckKind, Example, Values, percent, result
from dq.dataquality.clauses.quality_rule import arguments, metric, of_quality
from dq.dataquality.clauses.row_count_range import comparable, moment_of, nearest
from dq.dataquality.model.run_context import Earlier
from dq.dataquality.model.threshold import Unusable

_CHECK = "row_count"


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for quality in one.quality:
        if metric(quality) != "rowCount":
            continue
        made = of_quality(_CHECK, one, quality, "")
        limit = made.limit
        made = replace(made, allowed=f"{limit.threshold} rows" if limit else "")
        try:
            if limit and limit.unit is Unit.PERCENT:
                period = _period(quality)
                allowed = f"{limit.threshold} percent more than {period} before"
                made = replace(asking(made, KindTerms(period)), allowed=allowed)
            else:
                arguments(quality)
        except Unusable as error:
            made = refuse(made, str(error))
        yield made


def _period(quality: Quality) -> Duration:
    given = arguments(quality, "period", "unit")
    period, unit = given.get("period"), given.get("unit")
    word = time_unit(unit) if isinstance(unit, str) else None
    if isinstance(period, bool) or not isinstance(period, int) or period < 1 or word is None:
        raise Unusable(
            "a row count in percent is compared with an earlier one; say with which:"
            " arguments: {period: 24, unit: h}"
        )
    found = parse_duration(f"{period}{'m' if word == 'min' else word}")
    if isinstance(found, TextFault):
        raise Unusable(f"its period: {found.message}")
    return found


def judge(clause: Clause, values: Values) -> CheckResult:
    """The growth against the earlier run. The result's value is the number of rows, for later runs."""
    (found,) = values.values()
    here, period = moment_of(clause.occasion), terms_of(clause, Duration)
    assert isinstance(found, int)
    assert clause.limit is not None
    seen = f"{clause.object}: {counted(found, 'row')}"
    then = before(here, period, dt.UTC) if here else None
    known = comparable(clause.occasion, _CHECK, clause.path)
    earlier = nearest(known, then, (here - then).total_seconds() / 2) if here and then else None
    if earlier is None or earlier.rows == 0:
        reason = f"no run of {period} before" if earlier is None else f"no rows {period} before"
        return result(clause, Status.SKIPPED, reason, f"{seen}; {reason} to compare it with", float(found))
    growth = Fraction(100 * (found - earlier.rows), earlier.rows)
    kept = clause.limit.threshold.holds(growth)
    observed = f"{'+' if growth >= 0 else ''}{percent(growth)} %"
    message = f"{seen}, {observed} against {earlier.rows:,} of {earlier.of:%Y-%m-%d %H:%MZ}"
    if not kept:
        message += f"; allowed: {clause.allowed}"
    return result(clause, Status.PASS if kept else Status.FAIL, observed, message, float(found))


def _rule(operator: str) -> str:
    return f"quality: [{{metric: rowCount, {operator}}}]"


_NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
_GROWTH = _rule("mustBeGreaterOrEqualTo: 0, unit: percent, arguments: {period: 24, unit: h}")


def _seen(hours: int, rows: int) -> tuple[Earlier, ...]:
    return (Earlier(_CHECK, "schema[0].quality[0]", _NOW - dt.timedelta(hours=hours), rows),)


_WEEK = (
    "{properties: [{name: d, logicalType: date}], quality: [{metric: rowCount, mustBe: 2,"
    " customProperties: [{property: scope, vendor: dq, value: {rows: window, window: 7d, time: d}}]}]}"
)
_SOME = (("a",), (None,), ("a",))
EXAMPLES = (
    Example("as many as promised", _rule("mustBe: 3"), "v string", _SOME, "pass", ("3 rows",)),
    Example("none", _rule("mustBeGreaterThan: 0"), "v string", (), "fail", ("0 rows",)),
    Example("at the bound", _rule("mustBeBetween: [1, 3]"), "v string", _SOME, "pass"),
    Example("over the bound", _rule("mustBeLessThan: 3"), "v string", _SOME, "fail"),
    Example("in a forbidden range", _rule("mustNotBeBetween: [3, 4]"), "v string", _SOME, "fail"),
    Example("two operators", _rule("mustBeLessThan: 3, mustBeGreaterThan: 1"), "v string", _SOME, "error"),
    Example("relative to what?", _rule("mustBeLessThan: 3, unit: percent"), "v string", _SOME, "error"),
    Example("half as many again", _GROWTH, "v string", _SOME, "pass", ("+50 %",), "", _NOW, _seen(24, 2)),
    Example("too few", _GROWTH, "v string", _SOME, "fail", ("-25 %",), "", _NOW, _seen(23, 4)),
    Example("the nearest run", _GROWTH, "v string", _SOME, "pass", ("+0 %",), "", _NOW,
            (*_seen(2, 9), *_seen(26, 3), *_seen(35, 9))),
    Example("no run then", _GROWTH, "v string", _SOME, "skipped", (), "", _NOW, _seen(11, 2)),
    Example("none then", _GROWTH, "v string", _SOME, "skipped", ("no rows 24h before",), "", _NOW,
            _seen(24, 0)),
    Example("no history", _GROWTH, "v string", _SOME, "skipped", (), "", _NOW),
    Example(
        "where nothing is left",
        "quality: [{metric: rowCount, mustBe: 0, customProperties:"
        " [{property: scope, vendor: dq, value: {where: \"v = 'b'\"}}]}]",
        "v string",
        _SOME,
        "pass",
        ("0 rows",),
    ),
    Example(
        "of the last week",
        _WEEK,
        "d date",
        ((dt.date(2026, 11, 21),), (dt.date(2026, 11, 14),), (dt.date(2026, 11, 13),), (None,)),
        "pass",
        ("2 rows",),
        "",
        _NOW,
    ),
    Example("of a week by nobody's birthday", _WEEK.replace(", time: d", ""), "d date", (), "error"),
    Example("of a week by a number", _WEEK.replace("Type: date", "Type: integer"), "d int", (), "error"),
    Example("of a week by nothing that is there", _WEEK.replace("time: d", "time: e"), "d date", (), "error"),
    Example(
        "of a week, but when?",
        _WEEK,
        "d date",
        (),
        "error",
    ),
    Example(
        "a window without a column",
        "quality: [{metric: rowCount, mustBe: 0, customProperties:"
        " [{property: scope, vendor: dq, value: {rows: window, window: 7d}}]}]",
        "v string",
        (),
        "error",
        (),
        "",
        _NOW,
    ),
)  # fmt: skip
CHECK = CheckKind(_CHECK, __doc__, clauses, EXAMPLES, judge=judge)
