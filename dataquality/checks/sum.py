"""The sum of a column is within the bounds of a `sum` rule.

Why: A ledger that does not add up, or a day with a tenth of the usual revenue, passes every test of rows.
Bad: `engine: dq`, `implementation: {check: sum, arguments: {by: ledger}, mustBe: 0}`, and one ledger of 0.01.
Good: The same rule, and every ledger adds up to 0.
Nulls: NULL is left out, and of no values the sum is 0. NaN is no number: with one, there is no answer.
Integers and decimals are added exactly, up to 38 digits; beyond, there is no answer. A sum of floats depends
on the order in its last digits.
Mend: Correct the data or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.dataquality.clauses.metric_rule import ColumnMeasure, Found, MeasureAsked, asks, kind_of, summed, then
from dq.dataquality.model.metric import Failure, Value


def number(_asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    found = summed(answers)
    return found if isinstance(found, Failure) else found[0]


CHECK = kind_of("sum", __doc__, ColumnMeasure(asks, number, then))
