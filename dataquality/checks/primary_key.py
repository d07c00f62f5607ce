"""The columns of the primary key have a value in every row, and no combination of them occurs twice.

Why: Consumers merge by the key; a doubled or missing one loses rows or fails their job.
Bad: Two rows with the same key, or a row without one.
Good: Every key once.
Nulls: NULL in a column of the key fails; such a row is not a duplicate.
How to fix: Remove the repeated rows at their source, or correct the key in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import Severity
from dq.dataquality.clauses.clause import (
    Clause,
    PropertyKeys,
    RowFilter,
    RowScope,
    RowTest,
    UniqueKey,
    with_test,
)
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import Column


def clauses(_contract: Contract, schema_object: SchemaObject) -> Iterator[Clause]:
    parts = schema_object.primary_key()
    for part in parts:
        column = Column((part.column,))
        clause = PropertyKeys("primary_key", schema_object, part, column).clause(
            "primaryKey", "no NULL in the key"
        )
        clause = replace(clause, covers=(part.path("primaryKeyPosition"),))
        yield with_test(clause, RowTest(column.missing(), "are NULL"))
    if parts:
        keys = tuple(Column((part.column,)) for part in parts)
        path, location, name = (
            schema_object.path("primaryKey"),
            parts[0].locate("primaryKey"),
            ", ".join(map(str, keys)),
        )
        clause = Clause(
            "primary_key", path, schema_object.name, name, location, Severity.ERROR, "no key twice"
        )
        yield replace(clause, test=UniqueKey(keys, "repeat a key"), row_filter=RowFilter(RowScope.TABLE))


CHECK = CheckKind("primary_key", __doc__, clauses)
