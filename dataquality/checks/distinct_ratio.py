"""The ratio of distinct values to rows with a value is within the bounds of a `distinctRatio` rule.

Why: A column that is nearly a key, and suddenly has each value ten times, was joined with too much.
Bad: `engine: dq`, `implementation: {check: distinctRatio, mustBeGreaterThan: 0.9}`, and 100 different values
in 1,000 rows.
Good: The same rule, and 950 different values.
Nulls: NULL is not counted, and a key of several columns counts only if all of them have a value. Without
values the rule is skipped. With `unit: percent` the bound is in percent.
How to fix: Look for the join that multiplies rows, or correct the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.metric_rule import ColumnMetric, check_kind_for, distinct_keys, ratio

CHECK = check_kind_for("distinctRatio", __doc__, ColumnMetric(distinct_keys, ratio))
