"""A property with `required: true` has a value in every row.

Why: Consumers join and filter on it; a NULL drops rows without a word.
Bad: `required: true` on a column that holds NULL.
Good: A value in every row.
Nulls: NULL breaks it; the empty text and NaN are values. A field of a NULL struct is not missing (the
struct is), and an item that is NULL is.
Mend: Fill the value at its source, or remove `required`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, asking
from dq.dataquality.clauses.kind import of_properties


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    if keys.property.required:
        yield asking(keys.clause("required", "no NULL"), RowTest(keys.column.missing(), "are NULL"))


CHECK = of_properties("required", __doc__, clauses)
