"""What the metrics of dq's own engine share: what is asked of a column, and what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dq.contracts.metrics import MEASURES, MeasureKind, Measurement
from dq.dataquality.clauses.clause import Clause, KindTerms
from dq.dataquality.model.answer import Failure, Group, Value
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Aggregate, DistinctKeys, SingleKeys, aggregate, count
from dq.dataquality.model.predicate import IsNaN, IsNull, Not, Predicate, all_of
from dq.dataquality.model.term import INTEGERS, NUMBERS, Function, Path

# What was measured: a number, a share of something, nothing at all, or no answer.

Question = Aggregate | DistinctKeys | SingleKeys


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    part: int
    whole: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to measure, and why."""

    reason: str


Found = Fraction | Share | Nothing | Failure


@dataclass(frozen=True, slots=True)
class MeasureAsked:
    """A rule with a metric of dq's own engine, as its check takes it.

    `untold` says why its number is not shown, where it is not; `of` tells what is measured.
    """

    terms: Measurement
    columns: tuple[Column, ...]
    by: tuple[Column, ...]
    untold: str
    of: str


def measured_by(clause: Clause) -> MeasureAsked | None:
    """What a clause asks of a metric of dq's own engine; None for every other clause."""
    told = clause.ask.value if isinstance(clause.ask, KindTerms) else None
    return told if isinstance(told, MeasureAsked) else None


def nothing_more(
    _asked: MeasureAsked, _rows: Sequence[Sequence[Value]], _where: Predicate | None
) -> tuple[()]:
    """No second question."""
    return ()


@dataclass(frozen=True, slots=True)
class ColumnMeasure:
    """How one metric is asked and what its number is.

    `asks` gives the first questions about the rows where a predicate is true, `then` those that only their
    answers call for, of each group; `number` makes the number of both.
    """

    kind: MeasureKind
    asks: Callable[[MeasureAsked, Predicate | None], tuple[Question, ...]]
    number: Callable[[MeasureAsked, Sequence[Value]], Found]
    then: Callable[[MeasureAsked, Sequence[Sequence[Value]], Predicate | None], tuple[Question, ...]] = (
        nothing_more
    )


def exact(value: Value) -> Fraction | Failure:
    """A number as it is read: a float is the shortest decimal that names it. NaN and infinity are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return Failure(f"the data gives a {type(value).__name__}; a number is needed")
    if not math.isfinite(value):
        return Failure(f"the number is {value}, which nothing is compared with")
    return Fraction(str(value))


def integer(value: Value) -> int:
    """A count."""
    assert isinstance(value, int), f"a count is needed, not {value!r}"
    return value


def share(_asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    """The first answer as a part of the second."""
    part, whole = answers
    return Share(integer(part), integer(whole))


def not_a_number(count: Value) -> Failure | None:
    """Why values with NaN have no number; None where there is no NaN."""
    found = integer(count)
    verb = "value is" if found == 1 else "values are"
    return Failure(f"{found:,} {verb} NaN, which is no number") if found else None


def in_unit(asked: MeasureAsked, found: Found) -> Found:
    """The number in the unit of its rule."""
    if not isinstance(found, Share):
        return found
    percent = asked.terms.unit == "percent" and asked.terms.against is None
    if not percent and not asked.terms.kind.name.endswith("Ratio"):
        return Fraction(found.part)
    if found.whole == 0:
        return Nothing("nothing to take a share of")
    return Fraction(found.part * (100 if percent else 1), found.whole)


# More digits than any decimal that Spark sums.
_DIGITS = 60


def shown(number: Fraction) -> str:
    """A number for a reader: all its digits where they end, else ten."""
    if number.denominator == 1 and abs(number) < 10**18:
        return f"{number.numerator:,}"
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest == 1 and number.denominator < 10**20 and abs(number) < 10**_DIGITS:
        scale = next(at for at in range(_DIGITS) if 10**at % number.denominator == 0)
        digits = str(abs(number.numerator) * (10**scale // number.denominator)).rjust(scale + 1, "0")
        sign = "-" if number < 0 else ""
        return f"{sign}{int(digits[: len(digits) - scale]):,}" + (f".{digits[-scale:]}" if scale else "")
    return f"{as_float(number):,.10g}"


def as_float(number: Fraction) -> float:
    """The nearest float; beyond the largest one there is infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


Numbers = Mapping[Group, Found]
"""What was measured, by group; without groups, under the empty one."""


# The questions about one column that the metrics of numbers share.


def value_of(asked: MeasureAsked) -> Path:
    """The column that is measured, as a number."""
    return Path(asked.columns[0].path.steps, NUMBERS)


def of_values(asked: MeasureAsked, name: str, where: Predicate | None) -> Aggregate:
    """An aggregate of the column."""
    return aggregate(name, value_of(asked), where)


def present(asked: MeasureAsked, where: Predicate | None) -> Aggregate:
    """How many rows have a value in every column that is measured."""
    return count(all_of(where, *(Not(IsNull(column.path)) for column in asked.columns)))


def nans(asked: MeasureAsked, where: Predicate | None) -> Aggregate:
    """How many values are NaN."""
    return count(all_of(where, IsNaN(value_of(asked))))


# The measure of the value at one end of a column: the least or the greatest.


def extreme(name: str) -> ColumnMeasure:
    """The measure `min` or `max`: exact, without NULL, and none where a value is NaN."""

    def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
        return of_values(asked, name, where), nans(asked, where)

    return ColumnMeasure(MEASURES[name], asks, _number)


def _number(_asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    value, strange = answers
    return not_a_number(strange) or (Nothing("no values") if value is None else exact(value))


# The questions about keys that the metrics of different values share.


def different(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    """How many different keys there are, and how many rows have one; a key with NULL is none."""
    return DistinctKeys(asked.columns, where), present(asked, where)


# The exact sum of a column, which both `sum` and `mean` ask for.


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
