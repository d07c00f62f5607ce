"""A property with `enum` holds only the values that are listed.

Why: Consumers branch on these values; one that they do not know falls through.
Bad: `enum: [{value: open}, {value: closed}]` and a row with `opened`.
Good: Rows with `open` and `closed`.
Nulls: NULL passes; use `required` to forbid it. NaN is not on any list. A column of floats is
compared with the floats nearest to the values. A number that does not fit into 38 digits together with
the column's decimals is an error, since Spark would round one of them or overflow.
How to fix: Correct the value at its source, or add it to the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.dataquality.clauses.clause import Clause, PropertyKeys
from dq.dataquality.clauses.kind import property_check
from dq.dataquality.clauses.quality_rule import accepted_values_clause


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    prop = keys.property
    if prop.enum:
        yield accepted_values_clause(
            keys.clause("enum", ""), prop, keys.column, [entry.value for entry in prop.enum]
        )


CHECK = property_check("enum", __doc__, clauses)
