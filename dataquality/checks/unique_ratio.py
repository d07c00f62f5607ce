"""The share of rows whose value occurs once is within the bounds of a `uniqueRatio` rule.

Why: Some repetition is tolerable; `distinctRatio` does not distinguish ten values twice from one value ten
    times.
Bad: `engine: dq`, `implementation: {check: uniqueRatio, mustBeGreaterThan: 0.9}`, and half of them repeat.
Good: The same rule, and nearly every value occurs once.
Nulls: Rows with a value that no other row has are counted. NULL is not a value, and a key of several columns
counts only if all of them have one. Without values the rule is skipped. With
`unit: percent` the bound is in percent. It shares the pass of the different values.
How to fix: Remove the repeated rows at their source, or correct the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.metric_rule import (
    ColumnMetric,
    MetricRequest,
    Question,
    check_kind_for,
    present,
    ratio,
)
from dq.dataquality.model.metric import SingleKeys
from dq.dataquality.model.predicate import Predicate


def metrics(request: MetricRequest, where: Predicate | None) -> tuple[Question, ...]:
    return SingleKeys(request.columns, where), present(request, where)


CHECK = check_kind_for("uniqueRatio", __doc__, ColumnMetric(metrics, ratio))
