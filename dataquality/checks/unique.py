"""A property with `unique: true` has no duplicate values in the whole table.

Why: A doubled key multiplies the rows of every join.
Bad: `unique: true` on a column that holds the same value in two rows.
Good: Every value once.
Nulls: Rows with NULL repeat nothing. NaN equals NaN, and 0.0 equals -0.0.
How to fix: Remove the repeated rows at their source, or remove `unique`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.dataquality.clauses.clause import (
    Clause,
    PropertyKeys,
    RowFilter,
    RowScope,
    UniqueKey,
    refuse,
    with_test,
)
from dq.dataquality.clauses.kind import property_check


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    if not keys.property.unique:
        return
    clause = replace(keys.clause("unique", "no value twice"), row_filter=RowFilter(RowScope.TABLE))
    if keys.column.single:
        yield with_test(clause, UniqueKey((keys.column,), "repeat a value"))
    else:
        yield refuse(clause, "a value inside an array or map does not have its own row; use uniqueItems")


CHECK = property_check("unique", __doc__, clauses)
