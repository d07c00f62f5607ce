"""The least value of a column is within the bounds of a `min` rule.

Why: One price of 0.01 or one age of -1 shows that a source has changed its meaning.
Bad: `engine: dq`, `implementation: {check: min, mustBeGreaterOrEqualTo: 1}`, and a value of 0.5.
Good: The same rule, and 1 is the least value.
Nulls: NULL is ignored; without values the rule is skipped. With a NaN among the values, the rule is an
error. -0.0 is 0. Exact numbers are compared exactly, and statistics of the files answer without a scan where
they can.
How to fix: Correct the data or the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.metric_rule import extreme

CHECK = extreme("min", __doc__)
