"""The number of different values per row that has one is within the bounds of a `distinctRatio` rule.

Why: A column that is nearly a key, and suddenly has each value ten times, was joined with too much.
Bad: `engine: dq`, `implementation: {check: distinctRatio, mustBeGreaterThan: 0.9}`, and 100 different values
in 1,000 rows.
Good: The same rule, and 950 different values.
Nulls: NULL is no value, and a key of several columns counts where all of them have one; where there is none,
the rule is skipped. With `unit: percent` the bound is in percent.
Mend: Look for the join that multiplies rows, or correct the bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.metric_rule import ColumnMeasure, different, kind_of, share

CHECK = kind_of("distinctRatio", __doc__, ColumnMeasure(different, share))
