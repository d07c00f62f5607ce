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

from dq.contracts.metrics import MEASURES
from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metrics import (
    DEC,
    ColumnMeasure,
    Found,
    MeasureAsked,
    Nothing,
    asks,
    of_numbers,
    rule,
    summed,
    then,
)
from dq.dataquality.model.answer import Failure, Value


def number(_asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    found = summed(answers)
    if isinstance(found, Failure):
        return found
    total, values = found
    return total / values if values else Nothing("no values")


_DOUBLES, _LAST = "v double, g string", 9223372036854775807
EXAMPLES = (
    Example(
        "kept",
        rule("mean", "", "mustBe: 1.5"),
        _DOUBLES,
        ((2.0, "a"), (1.0, "a"), (None, "b")),
        "pass",
        ("1.5",),
    ),
    Example("broken", rule("mean", "", "mustBeLessThan: 1.5"), _DOUBLES, ((2.0, "a"), (1.0, "a")), "fail"),
    Example("no rows", rule("mean", "", "mustBe: 0"), _DOUBLES, (), "skipped", ("no values",)),
    Example(
        "exact beyond 64 bits",
        rule("mean", "", "mustBe: 9223372036854775807", "integer"),
        "v bigint, g string",
        ((_LAST, "a"), (_LAST, "a")),
        "pass",
        ("9,223,372,036,854,775,807",),
    ),
    Example(
        "a third is more than its digits",
        rule("mean", "", "mustBe: 0.3333333333333333"),
        "v decimal(3,0), g string",
        ((DEC(1), "a"), (DEC(0), "a"), (DEC(0), "a")),
        "fail",
        ("0.3333333333",),
    ),
    *of_numbers("mean"),
)
MEASURE = ColumnMeasure(MEASURES["mean"], asks, number, then)
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
