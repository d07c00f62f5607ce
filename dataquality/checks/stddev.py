"""The standard deviation of a column is within the bounds of a `stddev` rule.

Why: A sensor that always says the same is broken, and no bound of its values shows it.
Bad: `engine: dq`, `implementation: {check: stddev, mustBeGreaterThan: 0.1}`, and every value is 20.
Good: The same rule, and values that move.
Nulls: NULL is left out; of fewer than two values there is no deviation, and the rule is skipped. NaN is no
number: with one, there is no answer. It is that of a sample (divided by the number of values less one), in
double precision.
Mend: Look at the source; if the values are right, correct the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.dataquality.clauses import metric_rule
from dq.dataquality.model.metric import Value
from dq.dataquality.model.predicate import Predicate


def asks(asked: metric_rule.MeasureAsked, where: Predicate | None) -> tuple[metric_rule.Question, ...]:
    return (
        metric_rule.of_values(asked, "stddev_samp", where),
        metric_rule.present(asked, where),
        metric_rule.nans(asked, where),
    )


def number(_asked: metric_rule.MeasureAsked, answers: Sequence[Value]) -> metric_rule.Found:
    deviation, values, strange = answers
    if (failure := metric_rule.not_a_number(strange)) is not None:
        return failure
    return (
        metric_rule.Nothing("fewer than two values")
        if metric_rule.integer(values) < 2
        else metric_rule.exact(deviation)
    )


CHECK = metric_rule.kind_of("stddev", __doc__, metric_rule.ColumnMeasure(asks, number))
