"""The number of different values is within the bounds of a `distinctCount` rule.

Why: A table with rows of 3 shops instead of 50 has lost most of its sources, however many rows there are.
Bad: `engine: dq`, `implementation: {check: distinctCount, mustBe: 50}` on `shop_id`, and rows of 3 shops.
Good: The same rule, and rows of all 50.
Nulls: NULL is no value, and a key of several columns (`properties` of a rule on the object) counts where all
of them have one; of no values there are 0. The count is exact; -0.0 and 0.0 are one value, as are all NaN.
In percent it is a share of the rows that have a value.
Mend: Find the missing source, or correct the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.metric_rule import ColumnMeasure, different, kind_of, share

CHECK = kind_of("distinctCount", __doc__, ColumnMeasure(different, share))
