"""The greatest value of a column is within the bounds of a `max` rule.

Why: A price of 10,000,000 or an age of 999 is probably a placeholder.
Bad: `engine: dq`, `implementation: {check: max, mustBeLessThan: 150}`, and a value of 999.
Good: The same rule, and 104 is the greatest value.
Nulls: NULL is ignored; without values the rule is skipped. With a NaN among the values, the rule is an
error. Exact numbers are compared exactly, and statistics of the files answer without a scan where they can.
How to fix: Correct the data or the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.metric_rule import extreme

CHECK = extreme("max", __doc__)
