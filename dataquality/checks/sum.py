"""The sum of a column is within the bounds of a `sum` rule.

Why: A ledger that does not add up, or a day with a tenth of the usual revenue, passes every test of rows.
Bad: `engine: dq`, `implementation: {check: sum, arguments: {by: ledger}, mustBe: 0}`, and one ledger of 0.01.
Good: The same rule, and every ledger adds up to 0.
Nulls: NULL is ignored, and without values the sum is 0. With a NaN among the values, the rule is an error.
Integers and decimals are added exactly, up to 38 digits; beyond, the rule is an error. A sum of floats
depends on the order in its last digits.
How to fix: Correct the data or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.dataquality.clauses.metric_rule import (
    ColumnMetric,
    MeasuredValue,
    MetricRequest,
    check_kind_for,
    exact_sum,
    sum_follow_ups,
    sum_metrics,
)
from dq.dataquality.model.metric import Failure, Value


def number(_request: MetricRequest, answers: Sequence[Value]) -> MeasuredValue:
    sum_and_count = exact_sum(answers)
    return sum_and_count if isinstance(sum_and_count, Failure) else sum_and_count[0]


CHECK = check_kind_for("sum", __doc__, ColumnMetric(sum_metrics, number, sum_follow_ups))
