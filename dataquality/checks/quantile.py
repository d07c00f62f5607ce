"""A quantile of a column is within the bounds of a `quantile` rule.

Why: Half of all deliveries may be late while the mean is fine; a median or a 95th percentile shows it.
Bad: `engine: dq`, `implementation: {check: quantile, arguments: {q: 0.95}, mustBeLessThan: 60}`, and the
95th percentile is 75.
Good: The same rule, and the 95th percentile is 41.
Nulls: NULL is left out; where there is no value, the rule is skipped. NaN is no number: with one, there is no
answer. Up to 200,000 values (of all groups together) it is exact, between two values linearly, as NumPy and
spreadsheets have it. Beyond, it is a value of the column whose rank is at most 0.01 percent of the rows away.
It takes a pass of its own after the first, which all quantiles share.
Mend: Correct the data or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dq.dataquality.clauses import metric_rule
from dq.dataquality.model.metric import Aggregate, Failure, Value
from dq.dataquality.model.predicate import Predicate

# So many values of a column are held at once by one task; ten columns of them take about 120 MB.
EXACT_VALUES = 200_000


def asks(asked: metric_rule.MeasureAsked, where: Predicate | None) -> tuple[metric_rule.Question, ...]:
    return metric_rule.present(asked, where), metric_rule.nans(asked, where)


def then(
    asked: metric_rule.MeasureAsked, rows: Sequence[Sequence[Value]], where: Predicate | None
) -> tuple[metric_rule.Question, ...]:
    values = sum(metric_rule.integer(row[0]) for row in rows)
    if values == 0:
        return ()
    names = ("rank_below", "rank_above") if values <= EXACT_VALUES else ("rank_near",)
    return tuple(
        Aggregate(name, metric_rule.value_of(asked), where, share=asked.terms.share) for name in names
    )


def number(asked: metric_rule.MeasureAsked, answers: Sequence[Value]) -> metric_rule.Found:
    values, strange, *ranks = answers
    if (failure := metric_rule.not_a_number(strange)) is not None:
        return failure
    if metric_rule.integer(values) == 0:
        return metric_rule.Nothing("no values")
    found = [metric_rule.exact(rank) for rank in ranks]
    failed = next((one for one in found if isinstance(one, Failure)), None)
    if failed is not None:
        return failed
    below, above = found[0], found[-1]
    assert isinstance(below, Fraction)
    assert isinstance(above, Fraction)
    place = Fraction(asked.terms.share) * (metric_rule.integer(values) - 1)
    return below + (above - below) * (place - place.numerator // place.denominator)


CHECK = metric_rule.kind_of("quantile", __doc__, metric_rule.ColumnMeasure(asks, number, then))
