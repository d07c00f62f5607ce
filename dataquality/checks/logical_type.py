"""Values are of the `logicalType` of their property, where the type of the column may hold others too.

Why: A text column full of numbers is joined as numbers, until the first row with `n/a` stops the query.
Bad: `logicalType: integer`, `physicalType: string` and a row with `12a`.
Good: The same, and only texts such as `12` and `-7`.
Nulls: NULL does not break it; the empty text is no number, no date and no flag. Texts: integers are digits
with or without a sign, numbers may have a point and an exponent or be NaN and Infinity; flags are the words
that Spark casts to booleans (true, t, yes, y, 1 and their opposites, in any case); dates, timestamps and
times are ISO 8601 with a day that exists, or of the `format` of their property, which then tests it alone.
Floats and decimals are integers where nothing stands after the point. Numbers are flags where they are 0
or 1. What else contradicts its `physicalType` is not evaluated, and so is an object in a text.
Mend: Correct the value at its source, write the column with a type that fits, or correct `logicalType`. For
dates and times in another form write `logicalTypeOptions: {format: dd.MM.yyyy}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, asking, left_out
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import columns
from dq.dataquality.sql_values import logical_test


def clauses(contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        test = logical_test(prop, contract.odcs)
        if test is None:
            continue
        made = PropertyKeys("logical_type", one, prop, column).clause("logicalType", str(prop.logical_type))
        if isinstance(test, str):
            yield left_out(made, test)
        else:
            yield asking(made, RowTest(column.where(test.breaks), test.complaint))


CHECK = CheckKind("logical_type", __doc__, clauses)
