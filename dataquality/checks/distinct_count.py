"""The number of distinct values is within the bounds of a `distinctCount` rule.

Why: A table with rows of 3 shops instead of 50 has lost most of its sources, however many rows there are.
Bad: `engine: dq`, `implementation: {check: distinctCount, mustBe: 50}` on `shop_id`, and rows of 3 shops.
Good: The same rule, and rows of all 50.
Nulls: NULL is not counted, and a key of several columns (`properties` of a rule on the object) counts only if
all of them have a value. Without values the count is 0. The count is exact; -0.0 and 0.0 are one value, as
are all NaN. In percent it is a share of the rows that have a value.
How to fix: Find the missing source, or correct the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.metric_rule import ColumnMetric, check_kind_for, distinct_keys, ratio

CHECK = check_kind_for("distinctCount", __doc__, ColumnMetric(distinct_keys, ratio))
