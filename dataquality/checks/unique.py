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

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, Extent, RowScope, UniqueKey, asking, of_property, refuse
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import columns


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        if not prop.unique:
            continue
        made = of_property("unique", one, prop, column, "unique", "no value twice")
        made = replace(made, extent=Extent(RowScope.TABLE))
        if column.single:
            yield asking(made, UniqueKey((column,), "repeat a value"))
        else:
            yield refuse(made, "a value inside of an array or map has no row of its own; use uniqueItems")


CHECK = CheckKind("unique", __doc__, clauses)
