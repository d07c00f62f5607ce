"""The number or share of missing values is within the bounds of a `missingValues` rule.

Why: `N/A` and the empty text are gaps that a NULL check does not see.
Bad: `metric: missingValues` with `mustBe: 0`, `missingValues: ['N/A']`, and a row with `N/A`.
Good: The same rule and no such row.
Nulls: NULL is missing, whether it is listed or not. A percentage of zero rows is skipped.
How to fix: Fill the values at their source, or correct the bound or the list.
"""

from __future__ import annotations

from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.clauses.quality_rule import Rule, arguments, require_list, row_test_clause
from dq.dataquality.model.predicate import In, any_of
from dq.dataquality.sql_values import literal

_CHECK = "missing_values"


def clause(rule: Rule) -> Clause | None:
    prop, column = rule.property, rule.column
    if prop is None or column is None:
        return None
    listed_values = require_list(
        arguments(rule.quality, "missingValues").get("missingValues", [None]), "missingValues"
    )
    literals = tuple(literal(prop, value) for value in listed_values if value is not None)
    gap = column.missing()
    breaks = any_of(gap, column.where(lambda value: In(value, literals))) if literals else gap
    return row_test_clause(_CHECK, rule, "are missing", breaks)


CHECK = CheckKind(_CHECK, __doc__, rule=clause)
