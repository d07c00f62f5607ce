"""What was measured: a number, a share of something, nothing at all, or no answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dq.contracts.measures.table import MeasureKind
from dq.contracts.measures.terms import Measurement
from dq.dataquality.clauses.clause import Clause, KindTerms
from dq.dataquality.model.answer import Failure, Group, Value
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Aggregate, DistinctKeys, SingleKeys
from dq.dataquality.model.predicate import Predicate

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
