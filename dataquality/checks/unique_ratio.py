"""The share of rows whose value stands once is within the bounds of a `uniqueRatio` rule.

Why: Some repetition is tolerable; `distinctRatio` does not tell ten values twice from one value ten times.
Bad: `engine: dq`, `implementation: {check: uniqueRatio, mustBeGreaterThan: 0.9}`, and half of them repeat.
Good: The same rule, and nearly every value stands once.
Nulls: Of the rows that have a value, those count whose value no other row has. NULL is no value, and a key of
several columns counts where all of them have one; where there is none, the rule is skipped. With
`unit: percent` the bound is in percent. It shares the pass of the different values.
Mend: Remove the repeated rows at their source, or correct the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.metric_rule import ColumnMeasure, MeasureAsked, Question, kind_of, present, share
from dq.dataquality.model.metric import SingleKeys
from dq.dataquality.model.predicate import Predicate


def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    return SingleKeys(asked.columns, where), present(asked, where)


CHECK = kind_of("uniqueRatio", __doc__, ColumnMeasure(asks, share))
