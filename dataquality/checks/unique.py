"""A property with `unique: true` has no value twice in the whole table.

Why: A doubled key multiplies the rows of every join.
Bad: `unique: true` on a column that holds the same value in two rows.
Good: Every value once.
Nulls: Rows with NULL repeat nothing. NaN equals NaN, and 0.0 equals -0.0.
Mend: Remove the repeated rows at their source, or remove `unique`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.dataquality.clauses.clause import Clause, Extent, PropertyKeys, RowScope, UniqueKey, asking, refuse
from dq.dataquality.clauses.kind import of_properties


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    if not keys.property.unique:
        return
    made = replace(keys.clause("unique", "no value twice"), extent=Extent(RowScope.TABLE))
    if keys.column.single:
        yield asking(made, UniqueKey((keys.column,), "repeat a value"))
    else:
        yield refuse(made, "a value inside of an array or map has no row of its own; use uniqueItems")


CHECK = of_properties("unique", __doc__, clauses)
