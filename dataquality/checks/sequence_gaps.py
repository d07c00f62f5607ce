"""The number of values that are missing from a sequence is within the bounds of a `sequenceGaps` rule.

Why: Invoice 1017 after invoice 1015 is a lost invoice, and a calendar without a day a lost day; no test of
single rows sees what is missing.
Bad: `engine: dq`, `implementation: {check: sequenceGaps, mustBe: 0}`, and the numbers 1, 2 and 4.
Good: The same rule, and the numbers 1, 2, 2 and 3.
Nulls: NULL is left out. Expected is every whole number, or day of a date, from the least value to the
greatest; with `step`, every so many from `start` (by default 0, or 1970-01-01), and other values fill no
gap. Without values nothing is missing. In percent it is a share of what is expected.
How to fix: Load what is missing, or correct the step or the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dq.dataquality.clauses import metric_rule
from dq.dataquality.model.metric import DistinctKeys, Value, aggregate
from dq.dataquality.model.predicate import INTEGERS, In, Path, Predicate, Remainder, Since1970, Term, all_of


def metrics(request: metric_rule.MetricRequest, where: Predicate | None) -> tuple[metric_rule.Question, ...]:
    column = request.columns[0].path
    value: Term = Since1970(column, "date") if request.terms.dated else Path(column.steps, INTEGERS)
    present = DistinctKeys(request.columns, all_of(where, _expected(request, value)))
    return aggregate("min", value, where), aggregate("max", value, where), present


def _expected(request: metric_rule.MetricRequest, value: Term) -> Predicate | None:
    """Return the predicate for values of the sequence, or None if all are; remainders have the value's
    sign.
    """
    step = request.terms.step
    if step == 1:
        return None
    remainder = request.terms.start % step
    return In(Remainder(value, step), (remainder, remainder - step) if remainder else (0,))


def number(request: metric_rule.MetricRequest, answers: Sequence[Value]) -> metric_rule.MeasuredValue:
    least, greatest, present = answers
    if least is None or greatest is None:
        return metric_rule.Ratio(0, 0)
    step, start = request.terms.step, request.terms.start
    first, last = (
        -((start - metric_rule.integer(least)) // step),
        (metric_rule.integer(greatest) - start) // step,
    )
    expected = max(last - first + 1, 0)
    return metric_rule.Ratio(expected - metric_rule.integer(present), expected)


CHECK = metric_rule.check_kind_for("sequenceGaps", __doc__, metric_rule.ColumnMetric(metrics, number))
