"""The number of rows is within the bounds of a `rowCount` rule.

Why: An empty or half-loaded delivery looks fine to every check of a column.
Bad: `metric: rowCount` with `mustBeGreaterThan: 0` on no rows.
Good: The same rule on one row.
With `unit: percent` the number is compared with an earlier one: `arguments: {period: 24, unit: h}` and
`mustBeGreaterThan: -10` mean that at most a tenth is lost against the run of 24 hours ago. That is the
run nearest to then, at most half a period away; of partitions, one that differs only in its date.
Nulls: A row counts whatever is in it. A percentage is skipped while no earlier run is known, and of an
earlier zero.
How to fix: Load the missing rows, or correct the bounds. In Python pass the earlier counts:
`check(…, history=…)`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import Quality
from dq.contracts.odcs import time_unit
from dq.contracts.outcome import Duration, ValueProblem, parse_duration, pluralize
from dq.dataquality.clauses.clause import (
    CheckParameters,
    Clause,
    Unit,
    before,
    parameters_of,
    refuse,
    with_test,
)
from dq.dataquality.clauses.kind import CheckKind, Values, percent, result
from dq.dataquality.clauses.quality_rule import (
    Rule,
    arguments,
    clause_from_quality,
    comparable_counts,
    data_time_of,
    nearest,
)
from dq.dataquality.model.run_context import Unusable

_CHECK = "row_count"


def clause(rule: Rule) -> Clause | None:
    if rule.property is not None:
        return None
    draft = clause_from_quality(_CHECK, rule.object, rule.quality, "")
    limit = draft.limit
    draft = replace(draft, allowed=f"{limit.threshold} rows" if limit else "")
    try:
        if limit and limit.unit is Unit.PERCENT:
            period = _period(rule.quality)
            allowed = f"{limit.threshold} percent more than {period} before"
            return replace(with_test(draft, CheckParameters(period)), allowed=allowed)
        arguments(rule.quality)
    except Unusable as error:
        return refuse(draft, str(error))
    return draft


def _period(quality: Quality) -> Duration:
    rule_arguments = arguments(quality, "period", "unit")
    period, unit = rule_arguments.get("period"), rule_arguments.get("unit")
    word = time_unit(unit) if isinstance(unit, str) else None
    if isinstance(period, bool) or not isinstance(period, int) or period < 1 or word is None:
        raise Unusable(
            "a row count in percent needs an earlier run to compare with: arguments: {period: 24, unit: h}"
        )
    duration = parse_duration(f"{period}{'m' if word == 'min' else word}")
    if isinstance(duration, ValueProblem):
        raise Unusable(f"its period: {duration.message}")
    return duration


def judge(clause: Clause, values: Values) -> CheckResult:
    """Compare the growth since the earlier run with the limit. The result's value is the row count, for later
    runs.
    """
    (rows,) = values.values()
    run_at, period = data_time_of(clause.context), parameters_of(clause, Duration)
    assert isinstance(rows, int)
    assert clause.limit is not None
    summary = f"{clause.object}: {pluralize(rows, 'row')}"
    target_at = before(run_at, period, dt.UTC) if run_at else None
    history = comparable_counts(clause.context, _CHECK, clause.path)
    earlier = (
        nearest(history, target_at, (run_at - target_at).total_seconds() / 2)
        if run_at and target_at
        else None
    )
    if earlier is None or earlier.rows == 0:
        reason = f"no run of {period} before" if earlier is None else f"no rows {period} before"
        return result(clause, Status.SKIPPED, reason, f"{summary}; {reason} to compare it with", float(rows))
    growth = Fraction(100 * (rows - earlier.rows), earlier.rows)
    is_met = clause.limit.threshold.holds(growth)
    observed = f"{'+' if growth >= 0 else ''}{percent(growth)} %"
    message = f"{summary}, {observed} against {earlier.rows:,} of {earlier.data_time:%Y-%m-%d %H:%MZ}"
    if not is_met:
        message += f"; allowed: {clause.allowed}"
    return result(clause, Status.PASS if is_met else Status.FAIL, observed, message, float(rows))


CHECK = CheckKind(_CHECK, __doc__, evaluate=judge, rule=clause)
