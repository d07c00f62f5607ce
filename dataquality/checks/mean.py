"""The mean of a column is within the bounds of a `mean` rule.

Why: Prices in cents instead of euros keep every type and every count, and are a hundred times the mean.
Bad: `engine: dq`, `implementation: {check: mean, mustBeBetween: [20, 40]}`, and a mean of 2,950.
Good: The same rule, and a mean of 29.5.
Nulls: NULL is ignored; without values the rule is skipped. With a NaN among the values, the rule is an
error. Of integers and decimals the mean is exact: their sum by their number; beyond 38 digits of the sum,
the rule is an error.
How to fix: Correct the data or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.dataquality.clauses import metric_rule
from dq.dataquality.model.metric import Failure, Value


def number(_request: metric_rule.MetricRequest, answers: Sequence[Value]) -> metric_rule.MeasuredValue:
    sum_and_count = metric_rule.exact_sum(answers)
    if isinstance(sum_and_count, Failure):
        return sum_and_count
    total, values = sum_and_count
    return total / values if values else metric_rule.NoValueMeasured("no values")


CHECK = metric_rule.check_kind_for(
    "mean", __doc__, metric_rule.ColumnMetric(metric_rule.sum_metrics, number, metric_rule.sum_follow_ups)
)
