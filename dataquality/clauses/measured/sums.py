"""The exact sum of a column, which both `sum` and `mean` ask for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dq.dataquality.clauses.measured.found import MeasureAsked, Question, exact, integer, not_a_number
from dq.dataquality.clauses.measured.values import nans, of_values, present
from dq.dataquality.model.answer import Failure, Value
from dq.dataquality.model.metric import aggregate
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.model.term import INTEGERS, Function, Path


def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    """The sum, which is NULL where it does not fit into its type; how many values; how many are NaN."""
    return of_values(asked, "try_sum", where), present(asked, where), nans(asked, where)


def then(
    asked: MeasureAsked, rows: Sequence[Sequence[Value]], where: Predicate | None
) -> tuple[Question, ...]:
    """Integers once more as decimals of 38 digits, where 64 bits do not hold their sum."""
    if not any(total is None and integer(values) > 0 for total, values, _ in rows):
        return ()
    value = Path(asked.columns[0].path.steps, INTEGERS)
    return (aggregate("try_sum", Function("try_decimal", (value, 38, 0)), where),)


def summed(answers: Sequence[Value]) -> tuple[Fraction, int] | Failure:
    """The sum and the number of values."""
    total, values, strange, *wide = answers
    if (failure := not_a_number(strange)) is not None:
        return failure
    if integer(values) == 0:
        return Fraction(0), 0
    if total is None:
        total = wide[0] if wide else None
    if total is None:
        return Failure("the sum has more than 38 digits")
    found = exact(total)
    return found if isinstance(found, Failure) else (found, integer(values))
