"""The number or share of rows that violate a column comparison is within the bounds of a `compareColumns`
rule.

Why: An order that is shipped before it was made, or a net above its gross, shows that a join went wrong.
Bad: `engine: dq`, `implementation: {check: compareColumns, arguments: {operator: ">=", property: ordered}}`
on `shipped`, and a row that was shipped a day too soon.
Good: The same rule, and each row was shipped on its day or later.
Nulls: A row with NULL in one of the columns passes. Both columns are numbers, texts, dates, timestamps or
flags; exact numbers are compared exactly, texts byte by byte, NaN equals NaN and is above every number.
Without an operator, e.g. mustBe, no row may violate it; a percentage is of all rows.
How to fix: Correct the rows, or the bound.
"""

from __future__ import annotations

from dataclasses import replace

from dq.dataquality.clauses.clause import CheckParameters, Clause, RowTest, parameters_of, with_test
from dq.dataquality.clauses.metric_rule import (
    ColumnMetric,
    MetricRequest,
    Question,
    check_kind_for,
    metric_clause,
    ratio,
)
from dq.dataquality.clauses.quality_rule import Rule
from dq.dataquality.model.metric import count
from dq.dataquality.model.predicate import NUMBERS, TEXTS, Compare, Not, Path, Predicate, all_of

# Family of logical types -> physical types allowed in the data.
_TYPES = {
    "number": NUMBERS,
    "string": TEXTS,
    "timestamp": frozenset({"timestamp", "timestamp_ntz"}),
}


def breaks(request: MetricRequest) -> Predicate:
    """Return the predicate that is true for violating rows, and NULL if a value is NULL."""
    types = _TYPES.get(request.terms.family, frozenset({request.terms.family}))
    left, right = (Path(column.path.steps, types) for column in request.columns)
    # one of the operators
    return Not(Compare(left, request.terms.comparison, right))  # type: ignore[arg-type]


def metrics(request: MetricRequest, where: Predicate | None) -> tuple[Question, ...]:
    return count(all_of(where, breaks(request))), count(where)


def clause_of(rule: Rule) -> Clause:
    clause = metric_clause(rule)
    if not isinstance(clause.test, CheckParameters):
        return clause
    request = parameters_of(clause, MetricRequest)
    if request.group_by or request.terms.against:
        return clause
    left, right = request.columns
    operator = next(name for name, sign in _SIGNS.items() if sign == request.terms.comparison)
    return with_test(clause, RowTest(breaks(request), f"violate {left} {operator} {right}"))


_SIGNS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "!=": "<>"}


CHECK = replace(check_kind_for("compareColumns", __doc__, ColumnMetric(metrics, ratio)), rule=clause_of)
