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

from dq.contracts.metrics import MEASURES
from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.metric_rule import kind_of
from dq.dataquality.clauses.metrics import (
    DEC,
    ColumnMeasure,
    Found,
    MeasureAsked,
    asks,
    of_numbers,
    rule,
    summed,
    then,
)
from dq.dataquality.model.answer import Failure, Value


def number(_asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    found = summed(answers)
    return found if isinstance(found, Failure) else found[0]


_DOUBLES, _LAST = "v double, g string", 9223372036854775807
EXAMPLES = (
    Example(
        "kept", rule("sum", "", "mustBe: 3"), _DOUBLES, ((2.0, "a"), (1.0, "a"), (None, "b")), "pass", ("3",)
    ),
    Example("broken", rule("sum", "", "mustBeLessThan: 3"), _DOUBLES, ((2.0, "a"), (1.0, "a")), "fail"),
    Example("no rows", rule("sum", "", "mustBeGreaterThan: 0"), _DOUBLES, (), "fail", ("0",)),
    Example("all NULL", rule("sum", "", "mustBe: 0"), _DOUBLES, ((None, "a"),), "pass", ("0",)),
    Example(
        "cents are exact",
        rule("sum", "", "mustBe: 0.3"),
        "v decimal(10,2), g string",
        ((DEC("0.1"), "a"), (DEC("0.2"), "a")),
        "pass",
        ("0.3",),
    ),
    Example(
        "beyond 64 bits",
        rule("sum", "", "mustBe: 18446744073709551614", "integer"),
        "v bigint, g string",
        ((_LAST, "a"), (_LAST, "a")),
        "pass",
        ("18,446,744,073,709,551,614",),
    ),
    Example(
        "groups beyond 64 bits",
        rule("sum", "by: g", "mustBeLessThan: 10", "integer"),
        "v bigint, g string",
        ((_LAST, "a"), (_LAST, "a"), (1, None), (2, None), (None, "c")),
        "fail",
        ("1 of 3 groups",),
    ),
    Example(
        "beyond 38 digits",
        rule("sum", "", "mustBeGreaterThan: 0"),
        "v decimal(38,0), g string",
        ((DEC("9" * 38), "a"), (DEC("9" * 38), "a")),
        "error",
    ),
    *of_numbers("sum"),
)
MEASURE = ColumnMeasure(MEASURES["sum"], asks, number, then)
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
