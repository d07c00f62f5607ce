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

from dq.dataquality.clauses.metric_rule import (
    ColumnMeasure,
    Found,
    MeasureAsked,
    Nothing,
    asks,
    kind_of,
    summed,
    then,
)
from dq.dataquality.model.metric import Failure, Value


def number(_asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    found = summed(answers)
    if isinstance(found, Failure):
        return found
    total, values = found
    return total / values if values else Nothing("no values")


CHECK = kind_of("mean", __doc__, ColumnMeasure(asks, number, then))
