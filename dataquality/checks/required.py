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

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, RowTest, asking, of_property
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import columns


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        if prop.required:
            made = of_property("required", one, prop, column, "required", "no NULL")
            yield asking(made, RowTest(column.missing(), "are NULL"))


CHECK = CheckKind("required", __doc__, clauses)
