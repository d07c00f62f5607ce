"""The rows in which two columns do not compare as a `compareColumns` rule says are within its bounds.

Why: An order that is shipped before it was made, or a net above its gross, shows that a join went wrong.
Bad: `engine: dq`, `implementation: {check: compareColumns, arguments: {operator: ">=", property: ordered}}`
on `shipped`, and a row that was shipped a day too soon.
Good: The same rule, and each row was shipped on its day or later.
Nulls: A row with NULL in one of the columns keeps it. Both columns are numbers, texts, dates, timestamps or
flags; exact numbers are compared exactly, texts byte by byte, NaN equals NaN and stands above every number.
Without an operator such as mustBe, no row may break it; a percentage is of all rows.
Mend: Correct the rows, or the bound.
"""

from __future__ import annotations

from dataclasses import replace

from dq.dataquality.clauses.clause import Clause, KindTerms, RowTest, asking, terms_of
from dq.dataquality.clauses.metric_rule import (
    ColumnMeasure,
    MeasureAsked,
    Question,
    kind_of,
    metric_clause,
    share,
)
from dq.dataquality.clauses.quality_rule import Rule
from dq.dataquality.model.metric import count
from dq.dataquality.model.predicate import NUMBERS, TEXTS, Compare, Not, Path, Predicate, all_of

# The kind of a logical type -> what a column of it may be in the data.
_TYPES = {
    "number": NUMBERS,
    "string": TEXTS,
    "timestamp": frozenset({"timestamp", "timestamp_ntz"}),
}


def breaks(asked: MeasureAsked) -> Predicate:
    """What is true of a row that breaks it; NULL where a value is NULL."""
    types = _TYPES.get(asked.terms.family, frozenset({asked.terms.family}))
    left, right = (Path(column.path.steps, types) for column in asked.columns)
    return Not(Compare(left, asked.terms.comparison, right))  # type: ignore[arg-type]  # one of the operators


def asks(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    return count(all_of(where, breaks(asked))), count(where)


def clause_of(rule: Rule) -> Clause:
    clause = metric_clause(rule)
    if not isinstance(clause.ask, KindTerms):
        return clause
    asked = terms_of(clause, MeasureAsked)
    if asked.by or asked.terms.against:
        return clause
    left, right = asked.columns
    shown = next(name for name, sign in _SIGNS.items() if sign == asked.terms.comparison)
    return asking(clause, RowTest(breaks(asked), f"have not {left} {shown} {right}"))


_SIGNS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "!=": "<>"}


CHECK = replace(kind_of("compareColumns", __doc__, ColumnMeasure(asks, share)), rule=clause_of)
