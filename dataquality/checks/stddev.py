"""The standard deviation of a column is within the bounds of a `stddev` rule.

Why: A sensor that always reports the same value is broken, and no bound of its values shows it.
Bad: `engine: dq`, `implementation: {check: stddev, mustBeGreaterThan: 0.1}`, and every value is 20.
Good: The same rule, and values that move.
Nulls: NULL is ignored; with fewer than two values the rule is skipped. With a NaN among the values, the
rule is an error. The deviation is that of a sample (divided by the number of values less one), in
double precision.
How to fix: Look at the source; if the values are right, correct the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.dataquality.clauses import metric_rule
from dq.dataquality.model.metric import Value
from dq.dataquality.model.predicate import Predicate


def metrics(request: metric_rule.MetricRequest, where: Predicate | None) -> tuple[metric_rule.Question, ...]:
    return (
        metric_rule.aggregate_of(request, "stddev_samp", where),
        metric_rule.present(request, where),
        metric_rule.nans(request, where),
    )


def number(_request: metric_rule.MetricRequest, answers: Sequence[Value]) -> metric_rule.MeasuredValue:
    deviation, values, nan_count = answers
    if (failure := metric_rule.not_a_number(nan_count)) is not None:
        return failure
    return (
        metric_rule.NoValueMeasured("fewer than two values")
        if metric_rule.integer(values) < 2
        else metric_rule.exact(deviation)
    )


CHECK = metric_rule.check_kind_for("stddev", __doc__, metric_rule.ColumnMetric(metrics, number))
