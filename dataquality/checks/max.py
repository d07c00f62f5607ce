"""The greatest value of a column is within the bounds of a `max` rule.

Why: A price of 10,000,000 or an age of 999 shows that somebody's placeholder got through.
Bad: `engine: dq`, `implementation: {check: max, mustBeLessThan: 150}`, and a value of 999.
Good: The same rule, and 104 is the greatest value.
Nulls: NULL is left out; where there is no value, the rule is skipped. NaN is no number: with one, there is no
answer. Exact numbers are compared exactly, and statistics of the files answer without a scan where they can.
Mend: Correct the data or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.contracts.measures.table import MEASURES
from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.measured.found import (
    ColumnMeasure,
    Found,
    MeasureAsked,
    Nothing,
    Question,
    exact,
    not_a_number,
)
from dq.dataquality.clauses.measured.rule import kind_of
from dq.dataquality.clauses.measured.values import nans, of_numbers, of_values, rule
from dq.dataquality.model.answer import Value
from dq.dataquality.model.predicate import Predicate


def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    return of_values(asked, "max", where), nans(asked, where)


def number(_asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    most, strange = answers
    return not_a_number(strange) or (Nothing("no values") if most is None else exact(most))


_DOUBLES = "v double, g string"
EXAMPLES = (
    Example(
        "kept", rule("max", "", "mustBe: 2"), _DOUBLES, ((2.0, "a"), (1.0, "a"), (None, "b")), "pass", ("2",)
    ),
    Example("broken", rule("max", "", "mustBeLessThan: 2"), _DOUBLES, ((2.0, "a"), (1.0, "a")), "fail"),
    Example("no rows", rule("max", "", "mustBe: 1"), _DOUBLES, (), "skipped", ("no values",)),
    Example(
        "the last integer",
        rule("max", "", "mustBe: 9223372036854775807", "integer"),
        "v bigint, g string",
        ((9223372036854775807, "a"),),
        "pass",
        ("9,223,372,036,854,775,807",),
    ),
    Example(
        "one less than the last integer",
        rule("max", "", "mustBe: 9223372036854775807", "integer"),
        "v bigint, g string",
        ((9223372036854775806, "a"),),
        "fail",
    ),
    *of_numbers("max"),
)
MEASURE = ColumnMeasure(MEASURES["max"], asks, number)
CHECK = kind_of(MEASURE, __doc__, EXAMPLES)
