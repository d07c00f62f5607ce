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
from dataclasses import replace
from fractions import Fraction

from dq.contracts.model import Quality
from dq.contracts.odcs import time_unit
from dq.contracts.outcome import CheckResult, Duration, Status, TextFault, counted, parse_duration
from dq.dataquality.clauses.clause import Clause, KindTerms, Unit, asking, before, refuse, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, percent, result
from dq.dataquality.clauses.quality_rule import Rule, arguments, comparable, moment_of, nearest, of_quality
from dq.dataquality.model.run_context import Unusable

_CHECK = "row_count"


def clause(rule: Rule) -> Clause | None:
    if rule.property is not None:
        return None
    made = of_quality(_CHECK, rule.object, rule.quality, "")
    limit = made.limit
    made = replace(made, allowed=f"{limit.threshold} rows" if limit else "")
    try:
        if limit and limit.unit is Unit.PERCENT:
            period = _period(rule.quality)
            allowed = f"{limit.threshold} percent more than {period} before"
            return replace(asking(made, KindTerms(period)), allowed=allowed)
        arguments(rule.quality)
    except Unusable as error:
        return refuse(made, str(error))
    return made


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


CHECK = CheckKind(_CHECK, __doc__, judge=judge, rule=clause)
