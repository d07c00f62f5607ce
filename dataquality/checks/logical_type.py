"""Values are of the `logicalType` of their property, if the column type can also hold others.

Why: A text column full of numbers is joined as numbers, until the first row with `n/a` stops the query.
Bad: `logicalType: integer`, `physicalType: string` and a row with `12a`.
Good: The same, and only texts such as `12` and `-7`.
Nulls: NULL passes; the empty text is not a number, date or flag. Texts: integers are digits
with or without a sign, numbers may have a point and an exponent or be NaN and Infinity; flags are the words
that Spark casts to booleans (true, t, yes, y, 1 and their opposites, in any case); dates, timestamps and
times are ISO 8601 with a day that exists, or of the `format` of their property, which then tests it alone.
Floats and decimals are integers if they have no fraction. Numbers are flags if they are 0 or 1. Other
contradictions to `physicalType` are not evaluated, and neither is an object stored as a text.
How to fix: Correct the value at its source, write the column with a type that fits, or correct `logicalType`.
For dates and times in another form write `logicalTypeOptions: {format: dd.MM.yyyy}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, not_evaluated, with_test
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import columns
from dq.dataquality.sql_values import logical_test


def clauses(contract: Contract, schema_object: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(schema_object):
        test = logical_test(prop, contract.odcs)
        if test is None:
            continue
        clause = PropertyKeys("logical_type", schema_object, prop, column).clause(
            "logicalType", str(prop.logical_type)
        )
        if isinstance(test, str):
            yield not_evaluated(clause, test)
        else:
            yield with_test(clause, RowTest(column.where(test.breaks), test.complaint))


CHECK = CheckKind("logical_type", __doc__, clauses)
