"""A quantile of a column is within the bounds of a `quantile` rule.

Why: Half of all deliveries may be late while the mean is fine; a median or a 95th percentile shows it.
Bad: `engine: dq`, `implementation: {check: quantile, arguments: {q: 0.95}, mustBeLessThan: 60}`, and the
95th percentile is 75.
Good: The same rule, and the 95th percentile is 41.
Nulls: NULL is ignored; without values the rule is skipped. With a NaN among the values, the rule is an
error. Up to 200,000 values (of all groups together) it is exact, between two values linearly, as NumPy and
spreadsheets have it. Beyond, it is a value of the column whose rank is at most 0.01 percent of the rows away.
It takes a pass of its own after the first, which all quantiles share.
How to fix: Correct the data or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dq.dataquality.clauses import metric_rule
from dq.dataquality.model.metric import Aggregate, Failure, Value
from dq.dataquality.model.predicate import Predicate

# Maximum number of values per column that one task sorts exactly; ten such columns take about 120 MB.
EXACT_VALUES = 200_000


def metrics(request: metric_rule.MetricRequest, where: Predicate | None) -> tuple[metric_rule.Question, ...]:
    return metric_rule.present(request, where), metric_rule.nans(request, where)


def then(
    request: metric_rule.MetricRequest, rows: Sequence[Sequence[Value]], where: Predicate | None
) -> tuple[metric_rule.Question, ...]:
    values = sum(metric_rule.integer(row[0]) for row in rows)
    if values == 0:
        return ()
    names = ("rank_below", "rank_above") if values <= EXACT_VALUES else ("rank_near",)
    return tuple(
        Aggregate(name, metric_rule.value_of(request), where, share=request.terms.share) for name in names
    )


def number(request: metric_rule.MetricRequest, answers: Sequence[Value]) -> metric_rule.MeasuredValue:
    values, nan_count, *ranks = answers
    if (failure := metric_rule.not_a_number(nan_count)) is not None:
        return failure
    if metric_rule.integer(values) == 0:
        return metric_rule.NoValueMeasured("no values")
    rank_values = [metric_rule.exact(rank) for rank in ranks]
    failed = next((value for value in rank_values if isinstance(value, Failure)), None)
    if failed is not None:
        return failed
    below, above = rank_values[0], rank_values[-1]
    assert isinstance(below, Fraction)
    assert isinstance(above, Fraction)
    place = Fraction(request.terms.share) * (metric_rule.integer(values) - 1)
    return below + (above - below) * (place - place.numerator // place.denominator)


CHECK = metric_rule.check_kind_for("quantile", __doc__, metric_rule.ColumnMetric(metrics, number, then))
