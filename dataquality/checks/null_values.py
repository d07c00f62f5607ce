"""The number or share of NULLs is within the bounds of a `nullValues` rule.

Why: Some columns may have gaps, but not suddenly many.
Bad: `metric: nullValues` with `mustBeLessThan: 1`, `unit: percent`, and one NULL in ten rows.
Good: The same rule and one NULL in a thousand rows.
Nulls: NULL counts; the empty text and NaN do not (see missingValues). A percentage of zero rows is skipped.
How to fix: Fill the values at their source, or correct the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.clauses.quality_rule import Rule, arguments, row_test_clause


def clause(rule: Rule) -> Clause | None:
    if rule.column is None:
        return None
    arguments(rule.quality)
    return row_test_clause("null_values", rule, "are NULL", rule.column.missing())


CHECK = CheckKind("null_values", __doc__, rule=clause)
