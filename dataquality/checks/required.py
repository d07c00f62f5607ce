"""A property with `required: true` has a value in every row.

Why: Consumers join and filter on it; a NULL silently drops rows.
Bad: `required: true` on a column that holds NULL.
Good: A value in every row.
Nulls: NULL fails; the empty text and NaN are values. A field of a NULL struct is not missing (the
struct is), and an item that is NULL is.
How to fix: Fill the value at its source, or remove `required`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, with_test
from dq.dataquality.clauses.kind import property_check


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    if keys.property.required:
        yield with_test(keys.clause("required", "no NULL"), RowTest(keys.column.missing(), "are NULL"))


CHECK = property_check("required", __doc__, clauses)
