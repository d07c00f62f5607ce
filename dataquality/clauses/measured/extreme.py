"""The measure of the value at one end of a column: the least or the greatest."""

from __future__ import annotations

from collections.abc import Sequence

from dq.contracts.measures.table import MEASURES
from dq.dataquality.clauses.measured.found import (
    ColumnMeasure,
    Found,
    MeasureAsked,
    Nothing,
    Question,
    exact,
    not_a_number,
)
from dq.dataquality.clauses.measured.values import nans, of_values
from dq.dataquality.model.answer import Value
from dq.dataquality.model.predicate import Predicate


def extreme(name: str) -> ColumnMeasure:
    """The measure `min` or `max`: exact, without NULL, and none where a value is NaN."""

    def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
        return of_values(asked, name, where), nans(asked, where)

    return ColumnMeasure(MEASURES[name], asks, _number)


def _number(_asked: MeasureAsked, answers: Sequence[Value]) -> Found:
    value, strange = answers
    return not_a_number(strange) or (Nothing("no values") if value is None else exact(value))
