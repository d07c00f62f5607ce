"""The mean of a column is within the bounds of a `mean` rule.

Why: Prices in cents instead of euros keep every type and every count, and are a hundred times the mean.
Bad: `engine: dq`, `implementation: {check: mean, mustBeBetween: [20, 40]}`, and a mean of 2,950.
Good: The same rule, and a mean of 29.5.
Nulls: NULL is left out; where there is no value, the rule is skipped. NaN is no number: with one, there is no
answer. Of integers and decimals the mean is exact: their sum by their number; beyond 38 digits of the sum,
there is no answer.
Mend: Correct the data or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.dataquality.clauses import metric_rule
from dq.dataquality.model.metric import Failure, Value


def number(_asked: metric_rule.MeasureAsked, answers: Sequence[Value]) -> metric_rule.Found:
    found = metric_rule.summed(answers)
    if isinstance(found, Failure):
        return found
    total, values = found
    return total / values if values else metric_rule.Nothing("no values")


CHECK = metric_rule.kind_of(
    "mean", __doc__, metric_rule.ColumnMeasure(metric_rule.asks, number, metric_rule.then)
)
