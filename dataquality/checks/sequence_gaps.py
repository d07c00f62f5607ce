"""The number of values that are missing from a sequence is within the bounds of a `sequenceGaps` rule.

Why: Invoice 1017 after invoice 1015 is a lost invoice, and a calendar without a day a lost day; no test of
single rows sees what is not there.
Bad: `engine: dq`, `implementation: {check: sequenceGaps, mustBe: 0}`, and the numbers 1, 2 and 4.
Good: The same rule, and the numbers 1, 2, 2 and 3.
Nulls: NULL is left out. Expected is every whole number, or day of a date, from the least value to the
greatest; with `step`, every so many from `start` (by default 0, or 1970-01-01), and a value that is none of
these fills nothing. Of no values nothing is missing. In percent it is a share of what is expected.
Mend: Load what is missing, or correct the step or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.dataquality.clauses import metric_rule
from dq.dataquality.model.metric import DistinctKeys, Value, aggregate
from dq.dataquality.model.predicate import INTEGERS, In, Path, Predicate, Remainder, Since1970, Term, all_of


def asks(asked: metric_rule.MeasureAsked, where: Predicate | None) -> tuple[metric_rule.Question, ...]:
    column = asked.columns[0].path
    value: Term = Since1970(column, "date") if asked.terms.dated else Path(column.steps, INTEGERS)
    present = DistinctKeys(asked.columns, all_of(where, _expected(asked, value)))
    return aggregate("min", value, where), aggregate("max", value, where), present


def _expected(asked: metric_rule.MeasureAsked, value: Term) -> Predicate | None:
    """Whether a value is one of the sequence; a remainder has the sign of its number."""
    step = asked.terms.step
    if step == 1:
        return None
    rest = asked.terms.start % step
    return In(Remainder(value, step), (rest, rest - step) if rest else (0,))


def number(asked: metric_rule.MeasureAsked, answers: Sequence[Value]) -> metric_rule.Found:
    least, greatest, present = answers
    if least is None or greatest is None:
        return metric_rule.Share(0, 0)
    step, start = asked.terms.step, asked.terms.start
    first, last = (
        -((start - metric_rule.integer(least)) // step),
        (metric_rule.integer(greatest) - start) // step,
    )
    expected = max(last - first + 1, 0)
    return metric_rule.Share(expected - metric_rule.integer(present), expected)


CHECK = metric_rule.kind_of("sequenceGaps", __doc__, metric_rule.ColumnMeasure(asks, number))
